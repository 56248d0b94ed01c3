//! Tiers behind the workers of a pool, as the event loop sees them.
//!
//! A worker's own tiers are its own business. Shared ones tie workers together: what one writes others find,
//! and all wait for each other there. So they are advanced only when every worker has been brought up to now,
//! and nobody sees what is written later.

use wavetank_model::{Error, Nanos, Result, WorkerId};

use super::World;
use crate::Plan;
use crate::engines::Engine;
use crate::tiers::{Pool, TierRef, TierWork, refusal};

/// The tiers of a run.
pub(super) struct Tiered {
    pool: Option<Pool>,
}

impl Tiered {
    /// Builds the tiers of a plan and gives every worker its own.
    pub(super) fn of(plan: &Plan, workers: &mut [Box<dyn Engine>]) -> Result<Self> {
        if let Some(reason) = plan.decode.as_ref().and_then(|pool| refusal(&pool.engine)) {
            return Err(Error::usage(reason));
        }
        if plan.engine.tiers.is_empty() {
            return Ok(Self { pool: None });
        }
        let pool = Pool::of(&plan.engine, plan.num_workers, plan.seed)?;
        for (number, worker) in (0..plan.num_workers).zip(workers) {
            worker.attach_tiers(pool.stack(&plan.engine, WorkerId(number)));
        }
        Ok(Self { pool: Some(pool) })
    }

    /// How many workers have tiers: the first ones.
    fn workers(&self) -> u32 {
        self.pool.as_ref().map_or(0, |pool| pool.workers.len() as u32)
    }

    fn shared(&self) -> &[TierRef] {
        self.pool.as_ref().map_or(&[], Pool::shared)
    }

    /// Whether workers share any.
    pub(super) fn are_shared(&self) -> bool {
        !self.shared().is_empty()
    }

    /// When something happens in a shared tier that somebody waits for; not before `now`.
    pub(super) fn next(&self, now: Nanos) -> Option<Nanos> {
        let tiers = self.shared().iter();
        let waited = tiers.filter(|tier| tier.borrow().is_read());
        waited.filter_map(|tier| tier.borrow().next()).min().map(|at| at.max(now))
    }

    /// Keeps track of what is in them.
    pub(super) fn watch(&self) {
        if let Some(pool) = &self.pool {
            pool.watch();
        }
    }

    /// What each tier did by the end of the last pass.
    pub(super) fn work(&self, end: Nanos) -> Vec<TierWork> {
        self.pool.as_ref().map_or_else(Vec::new, |pool| pool.work(end))
    }
}

impl World<'_, '_> {
    /// Everything happens in shared tiers that happens up to now, when every worker has got there. Where
    /// nobody asks and nothing comes that somebody waits for, that can be done later just as well.
    pub(super) fn settle_shared_tiers(&mut self) -> Result<()> {
        if !self.tiers.are_shared() || !self.are_tiers_asked() {
            return Ok(());
        }
        let workers = self.tiers.workers();
        for worker in (0..workers).map(WorkerId) {
            self.advance(worker, self.now)?;
            self.workers[worker.index()].settle_tiers(self.now, self.sink);
        }
        for tier in self.tiers.shared() {
            tier.borrow_mut().advance(self.now, self.sink);
        }
        for worker in (0..workers).map(WorkerId) {
            let engine = &mut self.workers[worker.index()];
            engine.settle_tiers(self.now, self.sink);
            // To others nothing has happened: they go on as they planned.
            if engine.may_ask_tiers() {
                self.touched.push(worker);
            }
        }
        Ok(())
    }

    /// Whether somebody may look into shared tiers now, or something may have come from them.
    fn are_tiers_asked(&mut self) -> bool {
        let may_ask = |worker: &WorkerId| self.workers[worker.index()].may_ask_tiers();
        self.tiers.next(self.now) == Some(self.now)
            || self.touched.iter().any(may_ask)
            || !self.queued.is_empty()
            || self.handoffs.is_some()
            || self.arrivals.next_at(self.now) == Some(self.now)
    }

    /// Shows the router what the tiers behind every worker hold now; working workers have been brought up to
    /// now.
    pub(super) fn show_tiers(&mut self) {
        let Some(pool) = &self.tiers.pool else { return };
        for (worker, _) in self.workers.iter_mut().zip(&pool.workers) {
            worker.settle_tiers(self.now, self.sink);
        }
        let router = &mut self.router;
        pool.take_changes(|worker, tier, change| router.tier_changed(worker, tier, change));
    }

    /// Nothing is computed any more: what is under way ends.
    pub(super) fn end_tiers(&mut self) {
        let Some(pool) = &self.tiers.pool else { return };
        for (worker, _) in self.workers.iter_mut().zip(&pool.workers) {
            worker.settle_tiers(self.ends_by, self.sink);
        }
        for tier in pool.shared() {
            tier.borrow_mut().advance(self.ends_by, self.sink);
        }
    }
}
