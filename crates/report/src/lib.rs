//! Events become numbers, numbers become text.
//!
//! `collectors` receive the events of a run, `statistics` and `histogram` reduce them, `summary` names them,
//! `render` writes them.
#![forbid(unsafe_code)]

pub mod collectors;
mod histogram;
pub mod render;
mod statistics;
mod summary;

pub use collectors::records::{Record, Records};
pub use collectors::serving::{Serving, Sla};
pub use histogram::Histogram;
pub use statistics::{Distribution, Gaps, Moments, Samples};
pub use summary::{Counts, Summary};
