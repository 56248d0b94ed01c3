//! Whether the storage was as fast at the end of the window as at its beginning.

use super::{Clock, Second, StorageSummary};
use crate::statistics::{ratio, sum};

/// Fewer whole seconds say nothing …
const LEAST_SECONDS: usize = 6;
/// … nor do fewer storage operations in a third of the window.
const LEAST_OPERATIONS: u64 = 20;
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
    /// How storage bandwidth changed over the whole seconds of the window, if notably. In virtual time, with
    /// a changing number of users, or when there was nothing left to do at the end, it changes whatever the
    /// drive does. Runs that were put together begin and end at different times: each has its own.
    pub fn drift(&self) -> Option<Drift> {
        let step = self.timeline_step;
        let whole = self.timeline.len().min((self.window.elapsed.0 / step.0.max(1)) as usize);
        let whole = &self.timeline[..whole];
        let is_steady = self.setting.clock == Clock::Wall && !self.setting.scaled && self.parts.is_empty();
        let is_busy_to_the_end = whole.last().is_some_and(|second| second.storage_bytes() > 0);
        if whole.len() < LEAST_SECONDS || !is_steady || !is_busy_to_the_end {
            return None;
        }
        let third = whole.len() / 3;
        let thirds = [&whole[..third], &whole[third..whole.len() - third], &whole[whole.len() - third..]];
        let operations = |third: &[Second]| sum(third.iter().map(|second| second.storage_operations));
        if thirds.into_iter().any(|third| operations(third) < LEAST_OPERATIONS) {
            return None;
        }
        let rate = |third: &[Second]| {
            let bytes = sum(third.iter().map(Second::storage_bytes));
            ratio(bytes as f64, third.len() as f64 * step.as_seconds())
        };
        let drift = Drift { first: rate(thirds[0]), last: rate(thirds[2]) };
        (drift.change().abs() > NOTABLE).then_some(drift)
    }
}
