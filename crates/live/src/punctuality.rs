//! How well the host kept up: what was late, and by how much.

use hdrhistogram::Histogram;
use wavetank_model::Nanos;

use crate::pass::Pass;

/// How late things were.
#[derive(Clone, Debug)]
pub struct Lateness(Histogram<u64>);

impl Default for Lateness {
    fn default() -> Self {
        Self(Histogram::new(3).expect("three digits are few"))
    }
}

impl Lateness {
    fn record(&mut self, late: Nanos) {
        self.0.record(late.0).expect("it grows with what it holds");
    }

    /// How many things.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The value that so many percent do not exceed.
    pub fn percentile(&self, percent: f64) -> Nanos {
        Nanos(self.0.value_at_percentile(percent))
    }

    /// The average.
    pub fn mean_ms(&self) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.0.mean() / 1e6 }
    }

    /// The most.
    pub fn max(&self) -> Nanos {
        Nanos(self.0.max())
    }
}

/// What was late in a run.
#[derive(Clone, Debug, Default)]
pub struct Punctuality {
    /// From when requests were due to when they were sent; nothing in a closed loop, where none is due.
    pub dispatch: Lateness,
    /// From when passes should have been over to when their worker woke up.
    pub timer: Lateness,
    /// From when a worker told of a pass to when that was heard, and its tokens seen.
    pub delivery: Lateness,
    modelled: Nanos,
}

/// What a host that keeps up stays below, at the 99th percentile.
const KEPT_UP: Nanos = Nanos(1_000_000);
/// And the share of a pass that a timer may be late by on average.
const KEPT_UP_SHARE: f64 = 0.02;

impl Punctuality {
    pub(crate) fn dispatched(&mut self, late: Nanos) {
        self.dispatch.record(late);
    }

    pub(crate) fn passed(&mut self, pass: &Pass, heard: Nanos) {
        self.delivery.record(heard.since(pass.end));
        self.timer.record(pass.end.since(pass.due));
        self.modelled += pass.modelled;
    }

    /// The average pass as the model has it.
    pub fn mean_pass_ms(&self) -> f64 {
        self.modelled.as_ms() / self.timer.count().max(1) as f64
    }

    /// Whether requests were sent on time.
    pub fn dispatch_kept_up(&self) -> bool {
        self.dispatch.percentile(99.0) <= KEPT_UP
    }

    /// Whether tokens were seen when they came.
    pub fn delivery_kept_up(&self) -> bool {
        self.delivery.percentile(99.0) <= KEPT_UP
    }

    /// Whether passes took about as long as they should.
    pub fn timers_kept_up(&self) -> bool {
        let is_small = self.timer.mean_ms() <= self.mean_pass_ms() * KEPT_UP_SHARE;
        self.timer.count() == 0 || (is_small && self.timer.percentile(99.0) <= KEPT_UP)
    }
}
