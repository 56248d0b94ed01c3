//! Workers that come and go: what a scaling policy wants, within its limits (spec/replay.md 9).
//!
//! New workers have numbers of their own. One that is not wanted any more is cancelled if it still starts,
//! the newest first; otherwise the active one with the highest number finishes what it has and leaves.

use std::cell::RefCell;
use std::rc::Rc;

use wavetank_model::{Nanos, Result, ServeEvent, WorkerId, WorkerStage};

use super::World;
use super::retired::Retired;
use crate::engines::{self, Seat, Work};
use crate::routers::Needs;
use crate::scaling::{Decision, Limits, Policy, Target};
use crate::snapshot::{PoolState, Snapshot, WorkerState};
use crate::traffic::Meter;
use crate::{EngineConfig, Plan};

/// A policy and what it needs to be obeyed.
pub(super) struct Scaler {
    policy: Box<dyn Policy>,
    pub(super) meter: Rc<RefCell<Meter>>,
    /// What workers run, by pool.
    engines: Vec<EngineConfig>,
    limits: Vec<Limits>,
    max_gpus: Option<u32>,
    next_tick: Option<Nanos>,
    pub(super) ticks: u64,
    /// When the policy looked last, and how long each worker had been busy then.
    looked: Nanos,
    busy: Vec<Nanos>,
}

impl Scaler {
    /// Of a plan that has one, whose policy looks first at `tick`.
    pub(super) fn of(plan: &Plan, policy: Box<dyn Policy>, tick: Nanos) -> Self {
        let config = plan.scaling.as_ref().expect("a policy has a configuration");
        let engines = std::iter::once(&plan.engine).chain(plan.decode.iter().map(|pool| &pool.engine));
        Self {
            policy,
            meter: Rc::default(),
            engines: engines.cloned().collect(),
            limits: config.limits.clone(),
            max_gpus: config.max_gpus,
            next_tick: Some(tick),
            ticks: 0,
            looked: Nanos::ZERO,
            busy: Vec::new(),
        }
    }
}

impl World<'_, '_> {
    /// Tells of the workers that are there from the start.
    pub(super) fn introduce(&mut self) {
        for worker in (0..self.roster.workers()).map(WorkerId) {
            self.tell(worker);
        }
    }

    /// When the fleet changes next, or a policy looks at it; never once all is done. `exchange` is when
    /// anything else happens.
    pub(super) fn next_change(&self, exchange: Option<Nanos>) -> Option<Nanos> {
        let scaler = self.scaler.as_ref()?;
        if exchange.is_none() && self.arrivals.in_flight() == 0 {
            return None;
        }
        let ready = self.roster.next_ready();
        // Where nothing can happen any more, looking on would take forever.
        let stuck = exchange.is_none() && ready.is_none() && self.ends_by == Nanos::MAX;
        let tick = scaler.next_tick.filter(|_| !stuck);
        [ready, tick].into_iter().flatten().min()
    }

    /// Workers that have started take requests from now on.
    pub(super) fn welcome(&mut self) -> Result<()> {
        while let Some(worker) = self.roster.ready(self.now) {
            self.turn(worker, WorkerStage::Active);
            self.join(worker);
            self.release_queued()?;
        }
        Ok(())
    }

    /// Workers that have finished what they had are gone.
    pub(super) fn dismiss(&mut self) {
        for position in (0..self.roster.draining().len()).rev() {
            let worker = self.roster.draining()[position];
            let is_done = self.roster.requests(worker) == 0 && self.workers[worker.index()].wake().is_none();
            if is_done {
                self.retire(worker);
            }
        }
    }

    /// If the policy looks now and nothing else happens any more in this instant, does what it says. Tells
    /// whether the fleet changed.
    pub(super) fn scale(&mut self) -> Result<bool> {
        let due = self.scaler.as_ref().is_some_and(|scaler| scaler.next_tick == Some(self.now));
        if !due || self.next_exchange() == Some(self.now) {
            return Ok(false);
        }
        let snapshot = self.snapshot()?;
        let scaler = self.scaler.as_mut().expect("it looks now");
        let Decision { targets, next_tick } = scaler.policy.tick(&snapshot);
        scaler.next_tick = next_tick.filter(|&next| next > self.now);
        scaler.ticks += 1;
        let mut changed = false;
        // Who leaves makes room for who comes.
        for target in &targets {
            changed |= self.shrink(target);
        }
        for target in &targets {
            changed |= self.extend(target)?;
        }
        if changed {
            self.release_queued()?;
        }
        Ok(changed)
    }

    fn snapshot(&mut self) -> Result<Snapshot> {
        for worker in (0..self.roster.workers()).map(WorkerId) {
            if self.wakes.is_set(worker) {
                self.advance(worker, self.now)?;
            }
        }
        let pools = (0..self.roster.pools()).map(|pool| self.pool_state(pool)).collect();
        let busy = (0..self.roster.workers()).map(|worker| self.busy(WorkerId(worker))).collect();
        let scaler = self.scaler.as_mut().expect("somebody looks");
        (scaler.looked, scaler.busy) = (self.now, busy);
        let traffic = scaler.meter.borrow_mut().take(self.now);
        Ok(Snapshot { ordinal: scaler.ticks, now: self.now, traffic, pools })
    }

    fn pool_state(&self, pool: usize) -> PoolState {
        let here = |&worker: &WorkerId| {
            self.roster.pool_of(worker) == pool && self.roster.stage(worker) != WorkerStage::Gone
        };
        let workers = (0..self.roster.workers()).map(WorkerId).filter(here);
        PoolState {
            role: self.roster.role(pool),
            queued: if pool == 0 { self.queued.len() as u32 } else { 0 },
            workers: workers.map(|worker| self.worker_state(worker, pool)).collect(),
        }
    }

    fn worker_state(&self, worker: WorkerId, pool: usize) -> WorkerState {
        let scaler = self.scaler.as_ref().expect("somebody looks");
        let (engine, config) = (&self.workers[worker.index()], &scaler.engines[pool]);
        let occupancy = engine.occupancy();
        let room = self.handoffs.as_ref().map_or(0, |h| h.commands[worker.index()].reservations.len());
        let before = scaler.busy.get(worker.index()).copied().unwrap_or_default();
        let busy = self.busy(worker).since(before).as_seconds();
        let span = self.now.since(scaler.looked).as_seconds();
        WorkerState {
            worker,
            stage: self.roster.stage(worker),
            waiting: occupancy.waiting + room as u32,
            running: occupancy.running,
            blocks_in_use: engine.work().blocks_in_use,
            blocks: u64::from(config.num_gpu_blocks) * u64::from(config.data_parallel_ranks.max(1)),
            busy_share: if span > 0.0 { (busy / span).min(1.0) } else { 0.0 },
        }
    }

    /// How long a worker was in passes up to now; the pass in flight counts as far as it is.
    fn busy(&self, worker: WorkerId) -> Nanos {
        let engine = &self.workers[worker.index()];
        let Work { busy, .. } = engine.work();
        busy.since(engine.boundary().since(self.now))
    }

    /// Fewer workers, if a target asks for fewer.
    fn shrink(&mut self, target: &Target) -> bool {
        let Some(pool) = self.pool_called(target) else { return false };
        let from = self.roster.strength(pool);
        let to = target.workers.max(self.limits(pool).min);
        if to >= from {
            return false;
        }
        self.tell_target(target, (from, to));
        for _ in to..from {
            let newest = self.roster.staged(pool, WorkerStage::Starting).next_back();
            match newest {
                Some(worker) => self.retire(worker),
                None => self.begin_draining(pool),
            }
        }
        true
    }

    fn begin_draining(&mut self, pool: usize) {
        let last = self.roster.staged(pool, WorkerStage::Active).next_back();
        let worker = last.expect("a pool that shrinks has workers");
        self.turn(worker, WorkerStage::Draining);
        let seat = self.roster.seat(worker);
        match self.handoffs.as_mut().filter(|_| pool > 0) {
            Some(handoffs) => handoffs.router.left(seat),
            None => self.router.left(seat),
        }
    }

    /// More workers, if a target asks for more and there are GPUs for them.
    fn extend(&mut self, target: &Target) -> Result<bool> {
        let Some(pool) = self.pool_called(target) else { return Ok(false) };
        let from = self.roster.strength(pool);
        let wanted = target.workers.min(self.limits(pool).max);
        let to = wanted.min(from.saturating_add(self.affordable(pool)));
        if to <= from {
            return Ok(false);
        }
        self.tell_target(target, (from, to));
        for _ in from..to {
            self.hire(pool)?;
        }
        Ok(true)
    }

    /// Workers of a pool that the GPUs left over are enough for.
    fn affordable(&self, pool: usize) -> u32 {
        let Some(most) = self.scaler.as_ref().and_then(|scaler| scaler.max_gpus) else { return u32::MAX };
        let here = (0..self.roster.workers()).map(WorkerId);
        let here = here.filter(|&worker| self.roster.stage(worker) != WorkerStage::Gone);
        let taken: u32 = here.map(|worker| self.timings[self.roster.pool_of(worker)].gpus()).sum();
        most.saturating_sub(taken) / self.timings[pool].gpus().max(1)
    }

    /// A new worker, which takes requests at once or when it has started.
    fn hire(&mut self, pool: usize) -> Result<()> {
        let scaler = self.scaler.as_ref().expect("somebody hires");
        let config = &scaler.engines[pool];
        let starts = !config.startup_time.is_zero();
        let stage = if starts { WorkerStage::Starting } else { WorkerStage::Active };
        let worker = self.roster.enter(pool, stage, self.now + config.startup_time);
        let mut engine = engines::build(Seat { worker, config, timing: &self.timings[pool] })?;
        if pool == 0 && self.router.needs() == Needs::Caches {
            engine.watch_cache();
        }
        self.workers.push(engine);
        self.wakes.grow();
        if let Some(handoffs) = &mut self.handoffs {
            handoffs.grow((pool > 0).then_some(worker));
        }
        self.tell(worker);
        if !starts {
            self.join(worker);
        }
        Ok(())
    }

    /// The router of its pool learns of a worker.
    fn join(&mut self, worker: WorkerId) {
        let seat = self.roster.seat(worker);
        match self.handoffs.as_mut().filter(|_| self.roster.decodes(worker)) {
            Some(handoffs) => handoffs.router.joined(seat),
            None => self.router.joined(seat),
        }
    }

    /// A worker is gone; only what it did is kept.
    fn retire(&mut self, worker: WorkerId) {
        self.turn(worker, WorkerStage::Gone);
        self.wakes.set(worker, None);
        let engine = &mut self.workers[worker.index()];
        *engine = Box::new(Retired::of(engine.as_ref()));
    }

    fn turn(&mut self, worker: WorkerId, stage: WorkerStage) {
        self.roster.set(worker, stage);
        self.tell(worker);
    }

    fn tell(&mut self, worker: WorkerId) {
        let (pool, stage) = (self.roster.role(self.roster.pool_of(worker)), self.roster.stage(worker));
        self.sink.record(&ServeEvent::WorkerChanged { worker, pool, at: self.now, stage });
    }

    fn tell_target(&mut self, target: &Target, (from, to): (u32, u32)) {
        let Target { pool, workers, reason } = target;
        let limited = format!("{reason}; {workers} wanted, {to} allowed");
        let reason = if to == *workers { reason } else { &limited };
        self.sink.record(&ServeEvent::PoolScaled { pool: *pool, at: self.now, from, to, reason });
    }

    fn pool_called(&self, target: &Target) -> Option<usize> {
        (0..self.roster.pools()).find(|&pool| self.roster.role(pool) == target.pool)
    }

    fn limits(&self, pool: usize) -> Limits {
        self.scaler.as_ref().expect("somebody scales").limits[pool]
    }
}
