//! A door over real sockets: its places, its patience, and clients that leave.
#![forbid(unsafe_code)]

mod bodies;
mod door;
mod server;
mod streams;
