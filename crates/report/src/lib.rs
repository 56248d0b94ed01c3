//! Events become numbers, numbers become text.
//!
//! `collectors` receive the events of a run; `statistics`, `histogram` and `latencies` reduce them;
//! `summary`, `attribution`, `course`, `storage` and `suite` name them; `page` makes `figure`s of reports;
//! `render` writes all of it.
#![forbid(unsafe_code)]

mod attribution;
pub mod collectors;
pub mod compare;
pub mod course;
pub mod figure;
mod histogram;
mod latencies;
pub mod page;
mod pointers;
pub mod render;
mod scaling;
mod statistics;
pub mod storage;
pub mod suite;
mod summary;
mod tiers;

pub use attribution::{Attribution, WorkerShare};
pub use collectors::course::{CourseOf, Workers};
pub use collectors::records::{Admission, Record, Records, Routing, write_records};
pub use collectors::serving::{Serving, Sla};
pub use collectors::storage::Storage;
pub use collectors::tiers::{Saved, Tiers};
pub use histogram::Histogram;
pub use latencies::{Buckets, EXACT_LIMIT, Latencies, SIGNIFICANT_DIGITS, Spread};
pub use scaling::{Change, Presence, Scaling};
pub use statistics::{Distribution, Gaps, Moments, Samples, Spans, median};
pub use storage::StorageSummary;
pub use summary::{Counts, Pictures, Pool, Summary};
pub use tiers::{BreakEven, TierShape, TierSummary, TiersSummary};
