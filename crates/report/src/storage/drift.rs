//! Whether the storage was as fast at the end of the window as at its beginning.

use super::{Second, StorageSummary};
use crate::statistics::ratio;

/// Fewer whole seconds say nothing.
const LEAST_SECONDS: usize = 6;
/// Less is noise.
const NOTABLE: f64 = 0.15;

/// A change of storage bandwidth worth a word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Bytes per second in the first third of the window.
    pub first: f64,
    /// Bytes per second in the last third.
    pub last: f64,
}

impl Drift {
    /// The change as a part of what it was.
    pub fn change(&self) -> f64 {
        ratio(self.last - self.first, self.first)
    }

    /// What happened and what it may mean.
    pub fn sentence(&self) -> String {
        let gib = |rate: f64| format!("{:.2} GiB/s", rate / super::GIB);
        let from_to =
            format!("from {} in the first third to {} in the last", gib(self.first), gib(self.last));
        let percent = format!("{:.0} %", self.change().abs() * 100.0);
        if self.change() < 0.0 {
            format!(
                "storage bandwidth fell by {percent}, {from_to}: thermal throttling, a full write cache or a \
                 filling drive; run longer, or precondition the drive"
            )
        } else {
            format!(
                "storage bandwidth rose by {percent}, {from_to}: the run was still warming up; warm up longer"
            )
        }
    }
}

impl StorageSummary {
    /// How storage bandwidth changed over the whole seconds of the window, if notably.
    pub fn drift(&self) -> Option<Drift> {
        let whole = (self.window.elapsed.as_seconds() as usize).min(self.timeline.len());
        if whole < LEAST_SECONDS {
            return None;
        }
        let third = whole / 3;
        let rate = |seconds: &[Second]| {
            let bytes = seconds.iter().map(|second| second.storage_read_bytes + second.storage_written_bytes);
            bytes.sum::<u64>() as f64 / seconds.len() as f64
        };
        let drift =
            Drift { first: rate(&self.timeline[..third]), last: rate(&self.timeline[whole - third..whole]) };
        (drift.change().abs() > NOTABLE).then_some(drift)
    }
}
