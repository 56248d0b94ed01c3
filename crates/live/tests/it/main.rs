//! The mock as its clients see it: real sockets, real workers, all on this machine.

mod chat;
mod client;
mod completion;
mod kv_events;
mod leaving;
mod refusal;
mod reuse;
mod server;
