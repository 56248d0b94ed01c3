//! The front door over real sockets.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod behind;
mod bounds;
mod client;
mod differential;
mod malformed;
mod peer;
mod pipeline;
mod server;
mod spans;
mod values;
