//! The Redis protocol, without sockets: bytes in, commands out; replies in, bytes out.

mod parse;
mod reply;

pub use parse::{Arg, Fault, Limits, Parser, Step};
pub use reply::{END, Protocol, Reply};
