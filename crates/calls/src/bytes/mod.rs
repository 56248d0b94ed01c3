//! The bytes of objects: in memory, and in the tiers behind it.

mod depot;
mod pool;

pub(crate) use depot::{Depot, Freight};
pub use pool::Object;
pub(crate) use pool::Pool;
