//! Events become numbers, numbers become text.
//!
//! `collectors` receive the events of a run, `statistics` and `histogram` reduce them, `summary` and
//! `attribution` name them, `render` writes them.
#![forbid(unsafe_code)]

mod attribution;
pub mod collectors;
pub mod compare;
mod histogram;
pub mod render;
mod statistics;
mod summary;

pub use attribution::{Attribution, WorkerShare};
pub use collectors::records::{Record, Records};
pub use collectors::serving::{Serving, Sla};
pub use histogram::Histogram;
pub use statistics::{Distribution, Gaps, Moments, Samples, Spans};
pub use summary::{Counts, Pool, Summary};
