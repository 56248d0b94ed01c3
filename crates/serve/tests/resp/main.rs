//! The front door over real sockets.

mod behind;
mod bounds;
mod client;
mod differential;
mod malformed;
mod peer;
mod pipeline;
mod server;
mod values;
