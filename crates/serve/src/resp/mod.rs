//! The front door for clients of Redis. [`parse`](Parser) and [`reply`](Reply) are the protocol without
//! sockets; the rest serves connections: a few threads, each with many of them.

mod commands;
mod connection;
mod door;
mod inbox;
mod leases;
mod mailbox;
mod outbox;
mod pace;
mod parse;
mod reactor;
mod reply;
mod session;
mod settings;
mod shared;
mod turn;

pub use door::{Door, Status};
pub use parse::{Arg, Fault, Limits, Parser, Step, Whose};
pub use reply::{END, Protocol, Reply};
pub use settings::Settings;
