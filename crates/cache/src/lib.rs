//! Cache bookkeeping shared by simulated and real caches: no time, no I/O.
#![forbid(unsafe_code)]
#![deny(clippy::iter_over_hash_type)]

mod pool;
mod recency;

pub use pool::{BlockId, BlockPool, Hits};
pub use recency::{Links, Recency};
