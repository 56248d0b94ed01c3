//! The bytes of objects: in memory, and in the tiers behind it.

mod depot;
mod hand;
mod pool;

pub use depot::Keeping;
pub(crate) use depot::{Depot, Freight, Parcel, Wanted};
pub(crate) use hand::{start, start_with};
pub use pool::Object;
pub(crate) use pool::Pool;
