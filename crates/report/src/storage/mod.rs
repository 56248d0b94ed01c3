//! The numbers of a storage benchmark, and what they mean: `summary` is plain data, `metric` says which
//! number tells drives apart, `bottleneck` where the time went, `assessment` whether the storage is good
//! enough, `drift` whether it stayed so, `warning` what to know before using them. `merge` puts runs of many
//! hosts together.

mod assessment;
mod bottleneck;
mod class;
mod drift;
mod merge;
mod metric;
mod setting;
mod size;
mod summary;
pub(crate) mod timeline;
mod warning;

pub use self::assessment::{Assessment, Criteria, Criterion, Profile};
pub use self::bottleneck::{Bottleneck, Part};
pub use self::class::{ClassSummary, TailTarget};
pub use self::drift::Drift;
pub use self::merge::{Difference, Mismatch, difference, differences};
pub use self::metric::{Metric, MetricName, Standing};
pub use self::setting::{ClassTarget, Clock, Setting};
pub use self::size::{SizeClass, SizeSummary};
pub use self::summary::{
    AtEnd, Bandwidth, Busy, LaneSummary, LatencyLists, MoveSummary, ReasonCounts, RequestsSummary, Second,
    StorageSummary, TierSummary, TierUse, TimeSplit, TouchesSummary, Traffic, Window,
};

/// Bytes in a GiB, which is what `gb` means in the keys of a report.
pub const GIB: f64 = (1u64 << 30) as f64;
