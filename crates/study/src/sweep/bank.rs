//! Where results come from: kept ones are found, the others are run and kept.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use wavetank::{Keep, Observer, Plan, Replayed, Tapes, Unwatched, WorkloadPlan, replay, replay_tape};
use wavetank_model::{Error, Result};
use wavetank_trace::Tape;

use super::metric;
use super::point::{Part, Planner, Point};
use super::store::{Finished, Store};

/// Traces that are held at a time take about so much, besides the one in use.
const TAPES_BYTES: usize = 128 << 20;

/// Someone who watches a sweep; called from any thread.
pub trait Onlooker: Sync {
    /// How many points there are, and how many of them are kept from before; 0 where that depends on results.
    fn expect(&self, points: usize, kept: usize);
    /// A point is done.
    fn done(&self);
}

/// Results by plan; many threads ask at a time.
pub(crate) struct Bank<'a> {
    pub(crate) planner: &'a Planner<'a>,
    tapes: Tapes,
    store: Mutex<Store>,
    /// Raised to end what runs; its results are not kept.
    pub(crate) stop: &'a AtomicBool,
    ran: AtomicUsize,
}

impl<'a> Bank<'a> {
    pub(crate) fn of(planner: &'a Planner<'a>, store: Store, stop: &'a AtomicBool) -> Self {
        let (tapes, ran) = (Tapes::within(TAPES_BYTES), AtomicUsize::new(0));
        Self { planner, tapes, store: Mutex::new(store), stop, ran }
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many were run, not found.
    pub(crate) fn ran(&self) -> usize {
        self.ran.load(Ordering::Relaxed)
    }

    /// What is known without a run.
    pub(crate) fn kept(&self, hash: &str) -> Option<Arc<Finished>> {
        self.store().find(hash)
    }

    /// The result of the point with these values, with its cost; nothing when it was stopped.
    pub(crate) fn result(&self, values: &[Value], hash: &str) -> Result<Option<Arc<Finished>>> {
        let named =
            |error: Error| Error::new(error.kind(), format!("{}: {error}", self.planner.describe(values)));
        let plan = self.planner.plan(values).map_err(named)?;
        self.priced(&plan, hash, Part::Whole).map_err(named)
    }

    /// The result of a part of a plan, with its cost.
    pub(crate) fn part(&self, plan: &Plan, part: Part) -> Result<Option<Arc<Finished>>> {
        self.priced(plan, &self.planner.hash(plan, part)?, part)
    }

    /// What is known of a point without a run, with its cost.
    pub(crate) fn found(&self, point: &Point) -> Result<Option<Arc<Finished>>> {
        let kept = self.kept(&point.hash);
        kept.map(|kept| self.with_cost(&self.planner.plan(&point.values)?, kept)).transpose()
    }

    fn priced(&self, plan: &Plan, hash: &str, part: Part) -> Result<Option<Arc<Finished>>> {
        let finished = match self.kept(hash) {
            Some(kept) => Some(kept),
            None => self.run(plan, hash, part)?,
        };
        finished.map(|finished| self.with_cost(plan, finished)).transpose()
    }

    fn with_cost(&self, plan: &Plan, finished: Arc<Finished>) -> Result<Arc<Finished>> {
        let fleet = self.planner.spec.cost.as_ref().map_or(Ok(None), |cost| cost.fleet(plan))?;
        let Some(fleet) = fleet else { return Ok(finished) };
        let mut priced = Finished::clone(&finished);
        fleet.derive(&mut priced.metrics);
        Ok(Arc::new(priced))
    }

    fn run(&self, plan: &Plan, hash: &str, part: Part) -> Result<Option<Arc<Finished>>> {
        let observer = Observer { watch: &mut Unwatched, stop: self.stop, keep: Keep::default() };
        let replayed = match (&plan.workload, part) {
            // There is nothing to read, so nothing to share.
            (WorkloadPlan::Synthetic(_), Part::Whole) => replay(plan, observer)?,
            (WorkloadPlan::Synthetic(_), _) => replay_part(plan, &Tapes::read(plan)?, part, observer)?,
            (WorkloadPlan::Trace { .. }, _) => replay_part(plan, &*self.tapes.of(plan)?, part, observer)?,
        };
        if replayed.outcome.interrupted {
            return Ok(None);
        }
        self.ran.fetch_add(1, Ordering::Relaxed);
        let metrics = metric::of_run(plan, &replayed);
        let finished = Finished { metrics, warnings: replayed.warnings };
        self.store().keep(hash, finished).map(Some)
    }
}

fn replay_part(plan: &Plan, tape: &Tape, part: Part, observer: Observer<'_>) -> Result<Replayed> {
    replay_tape(plan, tape, tape.first(part.of(tape.requests())), observer)
}
