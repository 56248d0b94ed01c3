//! What a thread does with its time while it is watched: how long it is busy, and how many operations end
//! each time it wakes up.

use std::time::{Duration, Instant};

use wavetank_store::Lane;

/// What ends at once is not seen by a thread that sleeps less than this share of its time.
const ASLEEP_AT_LEAST: f64 = 0.5;

/// A thread's time from one operation on.
pub(super) struct Labour {
    begun: Instant,
    asleep_before: Duration,
    asleep: Duration,
    ended: u64,
    wakes: u64,
}

impl Labour {
    pub(super) fn begin(lane: &mut Lane) -> Self {
        let asleep = lane.asleep();
        Self { begun: Instant::now(), asleep_before: asleep, asleep, ended: 0, wakes: 0 }
    }

    /// An operation ended.
    pub(super) fn saw_end(&mut self, lane: &mut Lane) {
        let asleep = lane.asleep();
        self.wakes += u64::from(asleep > self.asleep);
        self.ended += 1;
        self.asleep = asleep;
    }

    /// All the time in which it did not sleep until devices were done. What a file system has it wait for, as
    /// for its journal when a file is made, counts.
    pub(super) fn busy_seconds(&self, lane: &mut Lane) -> f64 {
        self.begun.elapsed().saturating_sub(lane.asleep() - self.asleep_before).as_secs_f64()
    }

    /// How many operations ended each time it woke up, where it slept enough.
    pub(super) fn ended_at_once(&self, lane: &mut Lane) -> f64 {
        let asleep = (lane.asleep() - self.asleep_before).as_secs_f64();
        let sleeps = asleep >= ASLEEP_AT_LEAST * self.begun.elapsed().as_secs_f64();
        if sleeps && self.wakes > 0 { self.ended as f64 / self.wakes as f64 } else { 0.0 }
    }
}
