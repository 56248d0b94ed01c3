//! Cache bookkeeping shared by simulated and real caches: no time, no I/O.
#![forbid(unsafe_code)]
#![deny(clippy::iter_over_hash_type)]

mod change;
pub mod eviction;
mod ghosts;
mod group;
mod holdings;
pub mod mrc;
mod pool;
mod radix;
mod recency;
mod shelf;
mod tiers;

pub use change::{Change, ChangeKind, ChangeLog, GivenUp};
pub use eviction::{Eviction, Quotas, Resident, Slot};
pub use holdings::{Claim, Holdings, MOST_TIERS, Overlap};
pub use pool::{BlockId, BlockPool, Hits};
pub use radix::{PageId, RadixTree};
pub use recency::{Links, Recency};
pub use shelf::{Begun, BusyGroup, Shelf, leading, objects};
pub use tiers::{
    Admitted, Destination, Move, Promoted, Promotion, Refusal, Room, Rules, TierId, TierRow, TierSet, Tiers,
    WritePolicy,
};
