//! How every backend behaves, driven through its port: one suite over the table, chosen by what each can do.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "what is skipped says why")]

mod driver;
mod faults;
mod files;
mod life;
mod random;
#[path = "../peers/server.rs"]
mod server;
mod stage;
mod trips;
mod trouble;
mod wrapped;
