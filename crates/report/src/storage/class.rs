//! Requests of one class, and what they were promised.

use serde::{Deserialize, Serialize};
use wavetank_model::Class;

use super::ClassTarget;
use crate::Spread;
use crate::statistics::ratio;

/// Requests of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassSummary {
    /// The class.
    pub class: Class,
    /// Requests that came, those turned away too.
    pub arrived: u64,
    /// Requests that found the queue full.
    pub turned_away: u64,
    /// Requests that had come by the end of the window, also before it, and were neither served nor turned
    /// away.
    pub unfinished: u64,
    /// Requests that were served and took longer than 95 of 100 may.
    pub violations: u64,
    /// What they may take.
    pub target: ClassTarget,
    /// Arrival to end.
    pub end_to_end: Spread,
}

/// A promise about the slowest requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailTarget {
    /// Which percentile.
    pub name: &'static str,
    /// What was promised.
    pub target_ms: f64,
    /// What was found.
    pub actual_ms: f64,
    /// Whether it was kept; unknown with too few requests.
    pub met: Option<bool>,
}

impl ClassSummary {
    /// Requests served.
    pub fn served(&self) -> u64 {
        self.end_to_end.count()
    }

    /// Whether the class had any request.
    pub(crate) fn has_requests(&self) -> bool {
        [self.arrived, self.turned_away, self.unfinished, self.served()].iter().any(|&count| count > 0)
    }

    /// The part of the requests that kept the promise: those turned away did not. Zero when no request came
    /// to an end.
    pub fn compliance(&self) -> f64 {
        let kept = self.served().saturating_sub(self.violations);
        ratio(kept as f64, self.served().saturating_add(self.turned_away) as f64)
    }

    /// Whether enough of them did.
    pub fn met(&self) -> bool {
        self.compliance() >= 0.95
    }

    /// What the slowest requests may take, and took. A percentile says something once one value lies beyond
    /// it.
    pub fn tail(&self) -> [TailTarget; 3] {
        let (target, found) = (&self.target, &self.end_to_end);
        let tail = |name, target_ms, actual_ms, needs| TailTarget {
            name,
            target_ms,
            actual_ms,
            met: (found.count() >= needs).then_some(actual_ms <= target_ms),
        };
        [
            tail("p99", target.p99_ms, found.p99, 100),
            tail("p999", target.p999_ms, found.p999, 1_000),
            tail("p9999", target.p9999_ms, found.p9999, 10_000),
        ]
    }
}
