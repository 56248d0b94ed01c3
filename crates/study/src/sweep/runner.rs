//! Who runs the jobs of a sweep: this process, or anything that gives the same results.

use std::sync::atomic::{AtomicBool, Ordering};

use wavetank::{Keep, Observer, Plan, Replayed, Tapes, Unwatched, WorkloadPlan, replay, replay_tape};
use wavetank_model::Result;
use wavetank_trace::Tape;

use super::finished::Finished;
use super::job::Job;
use super::metric;
use super::point::Part;

/// Traces that are held at a time take about so much, besides the one in use.
const TAPES_BYTES: usize = 128 << 20;

/// Why jobs that are under way may end without a result.
pub struct Stop<'a> {
    /// Somebody wants the sweep to end.
    pub asked: &'a AtomicBool,
    failed: AtomicBool,
}

impl<'a> Stop<'a> {
    /// Raised with `asked`, or by a job that failed.
    pub fn of(asked: &'a AtomicBool) -> Self {
        Self { asked, failed: AtomicBool::new(false) }
    }

    /// Whether nobody waits for results any more.
    pub fn is_raised(&self) -> bool {
        self.asked.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }

    /// A job failed, and with it the sweep.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }
}

/// Runs jobs; called from many threads at a time. The same job gives the same result, whoever runs it.
pub trait Runner: Sync {
    /// The result of `job`; nothing where `stop` was raised before it was there. An error ends the sweep.
    fn run(&self, job: &Job, stop: &Stop<'_>) -> Result<Option<Finished>>;
}

/// Runs jobs on the threads that ask, and reads a trace once for all of them.
pub struct Local {
    tapes: Tapes,
}

impl Default for Local {
    fn default() -> Self {
        Self { tapes: Tapes::within(TAPES_BYTES) }
    }
}

impl Runner for Local {
    fn run(&self, job: &Job, stop: &Stop<'_>) -> Result<Option<Finished>> {
        let observer = Observer { watch: &mut Unwatched, stop: stop.asked, keep: Keep::default() };
        let replayed = self.replay(&job.plan, job.part, observer).map_err(|error| job.named_error(error))?;
        if replayed.outcome.interrupted {
            return Ok(None);
        }
        let warnings = replayed.warnings.iter().map(|warning| job.named(warning)).collect();
        Ok(Some(Finished { metrics: metric::of_run(&replayed), warnings }))
    }
}

impl Local {
    /// Replays a part of what `plan` says.
    pub(crate) fn replay(&self, plan: &Plan, part: Part, observer: Observer<'_>) -> Result<Replayed> {
        let of_tape =
            |tape: &Tape, observer| replay_tape(plan, tape, tape.first(part.of(tape.requests())), observer);
        match &plan.workload {
            // There is nothing to read, so nothing to share.
            WorkloadPlan::Synthetic(_) if part.is_whole() => replay(plan, observer),
            WorkloadPlan::Synthetic(_) => of_tape(&Tapes::read(plan)?, observer),
            WorkloadPlan::Trace { .. } => of_tape(&*self.tapes.of(plan)?, observer),
        }
    }
}
