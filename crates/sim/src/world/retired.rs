//! What stays of a worker that has left: what it did. Its cache is given back.

use wavetank_cache::Change;
use wavetank_model::{Nanos, RequestId, Result, ServeSink};

use crate::engines::{Backlog, Engine, Horizon, Job, Occupancy, Signal, Work};

/// An engine that is not there any more.
pub(super) struct Retired {
    work: Work,
    boundary: Nanos,
}

impl Retired {
    /// Takes the place of `engine`.
    pub(super) fn of(engine: &dyn Engine) -> Self {
        Self { work: engine.work(), boundary: engine.boundary() }
    }
}

const GONE: &str = "a worker that has left gets nothing to do";

impl Engine for Retired {
    fn submit(&mut self, _job: Job, _now: Nanos) {
        unreachable!("{GONE}")
    }

    fn cancel(&mut self, _request: RequestId, _now: Nanos) -> bool {
        false
    }

    fn advance(&mut self, _horizon: Horizon, _sink: &mut ServeSink<'_>) -> Result<()> {
        Ok(())
    }

    fn wake(&mut self) -> Option<Nanos> {
        None
    }

    fn take_signals(&mut self, _into: &mut Vec<Signal>) -> bool {
        false
    }

    fn watch_cache(&mut self) {}

    fn take_changes(&mut self, _now: Nanos, _into: &mut Vec<Change>) {}

    fn boundary(&self) -> Nanos {
        self.boundary
    }

    fn reserve(&mut self, _job: &Job) -> Option<u32> {
        unreachable!("{GONE}")
    }

    fn activate(&mut self, _request: RequestId, _now: Nanos) {
        unreachable!("{GONE}")
    }

    fn release(&mut self, _request: RequestId, _now: Nanos) {
        unreachable!("{GONE}")
    }

    fn hold_back(&mut self, _reservations: Backlog, _now: Nanos) {}

    fn is_held_back(&self) -> bool {
        false
    }

    fn occupancy(&self) -> Occupancy {
        Occupancy::default()
    }

    fn work(&self) -> Work {
        self.work
    }
}
