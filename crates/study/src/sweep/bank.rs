//! Where results come from: kept ones are found, the others are run and kept.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use wavetank::Plan;
use wavetank_model::{Error, Result};

use super::Setting;
use super::finished::Finished;
use super::job::Job;
use super::point::{Part, Planner, Point};
use super::runner::{Runner, Stop};
use super::store::Store;

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
    runner: &'a dyn Runner,
    store: Mutex<Store>,
    /// Raised to end what runs; its results are not kept.
    pub(crate) stop: Stop<'a>,
    ran: AtomicUsize,
}

impl<'a> Bank<'a> {
    pub(crate) fn of(planner: &'a Planner<'a>, store: Store, setting: &'a Setting<'a>) -> Self {
        let Setting { runner, stop, .. } = *setting;
        Self { planner, runner, store: Mutex::new(store), stop: Stop::of(stop), ran: AtomicUsize::new(0) }
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
        let Some(finished) = self.runner.run(&Job::of(plan.clone(), part), &self.stop)? else {
            return Ok(None);
        };
        self.ran.fetch_add(1, Ordering::Relaxed);
        self.store().keep(hash, finished).map(Some)
    }
}
