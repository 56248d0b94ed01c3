//! Cache bookkeeping shared by simulated and real caches: no time, no I/O.
#![forbid(unsafe_code)]
#![deny(clippy::iter_over_hash_type)]

mod holdings;
mod pool;
mod recency;

pub use holdings::{Claim, Holdings, Overlap};
pub use pool::{BlockId, BlockPool, Change, ChangeKind, Hits};
pub use recency::{Links, Recency};
