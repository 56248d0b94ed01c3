//! What became of spans on their way out, counted where others can read it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Why spans did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Too many waited to be sent.
    QueueFull,
    /// Nobody answered.
    Unreachable,
    /// The receiver had too much to do.
    Throttled,
    /// The answer took too long.
    TimedOut,
    /// The receiver refused the batch.
    Refused,
    /// It took the batch, but not these.
    Rejected,
    /// The file could not be written.
    Unwritten,
    /// The server ended before.
    CutShort,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::QueueFull,
        Self::Unreachable,
        Self::Throttled,
        Self::TimedOut,
        Self::Refused,
        Self::Rejected,
        Self::Unwritten,
        Self::CutShort,
    ];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::Unreachable => "unreachable",
            Self::Throttled => "throttled",
            Self::TimedOut => "timed_out",
            Self::Refused => "refused",
            Self::Rejected => "rejected",
            Self::Unwritten => "unwritten",
            Self::CutShort => "cut_short",
        }
    }
}

/// Counts of one exporter.
#[derive(Default)]
pub(crate) struct Tally {
    offered: AtomicU64,
    sent: AtomicU64,
    lost: [AtomicU64; Reason::ALL.len()],
    problem: Mutex<String>,
}

/// What became of the spans of one exporter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exports {
    /// Where they went.
    pub target: String,
    /// Spans that were to be sent.
    pub offered: u64,
    /// Those the receiver took.
    pub sent: u64,
    /// Those it did not, by reason; only where there were some.
    pub lost: Vec<(Reason, u64)>,
    /// What went wrong last; empty if nothing did.
    pub problem: String,
}

impl Exports {
    /// Spans that did not arrive.
    pub(crate) fn lost_in_all(&self) -> u64 {
        self.lost.iter().map(|(_, count)| count).sum()
    }

    /// Spans on their way.
    pub fn waiting(&self) -> u64 {
        self.offered.saturating_sub(self.sent + self.lost_in_all())
    }
}

impl Tally {
    pub(crate) fn offer(&self, spans: u64) {
        self.offered.fetch_add(spans, Ordering::Relaxed);
    }

    pub(crate) fn send(&self, spans: u64) {
        self.sent.fetch_add(spans, Ordering::Relaxed);
    }

    pub(crate) fn lose(&self, why: Reason, spans: u64) {
        self.lost[why as usize].fetch_add(spans, Ordering::Relaxed);
    }

    pub(crate) fn fail(&self, problem: &str) {
        problem.clone_into(&mut self.problem.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn exports(&self, target: &str) -> Exports {
        let lost = Reason::ALL.map(|why| (why, self.lost[why as usize].load(Ordering::Relaxed)));
        Exports {
            target: target.to_owned(),
            offered: self.offered.load(Ordering::Relaxed),
            sent: self.sent.load(Ordering::Relaxed),
            lost: lost.into_iter().filter(|(_, count)| *count > 0).collect(),
            problem: self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}
