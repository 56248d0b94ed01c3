//! The KV-cache server: the storage layer behind the protocols that clients speak.
#![forbid(unsafe_code)]

mod cache;
mod counters;
pub mod resp;

pub use cache::Cache;
pub use counters::{Counter, Counters};
