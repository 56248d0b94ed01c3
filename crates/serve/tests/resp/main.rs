//! The front door over real sockets.

mod client;
mod differential;
mod peer;
mod server;
