//! The event loop: arrivals, workers, and the order of things inside one instant (spec/replay.md 5.1).

mod exchange;
mod retired;
mod scale;
mod tiered;

use std::collections::BTreeMap;
use std::iter;
use std::ops::Add;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use wavetank_cache::Change;
use wavetank_model::{
    Error, Nanos, RejectReason, Request, RequestId, Result, ServeEvent, ServeSink, WorkerId, WorkerRole,
    WorkerStage, Workload,
};

use crate::arrivals::Arrivals;
use crate::engines::{Engine, Flow, Horizon, Job, Seat, Signal, Work};
use crate::handoff::Handoffs;
use crate::roster::Roster;
use crate::routers::{Fleet, KvConfig, Needs, Placement, Router};
use crate::tiers::TierWork;
use crate::timing::Timing;
use crate::traffic::Tap;
use crate::wakes::Wakes;
use crate::{Plan, Provenance, engines, routers, scaling};
use scale::Scaler;
use tiered::Tiered;

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// What each worker did.
    pub work: Vec<Work>,
    /// The end of the last pass.
    pub end: Nanos,
    /// Where the time of the passes came from, if a measured model gave any of it.
    pub provenance: Option<Provenance>,
    /// GPUs of a worker, by pool.
    pub gpus: Vec<u32>,
    /// What each worker did of requests.
    pub roles: Vec<WorkerRole>,
    /// How often a scaling policy looked; `None` where the number of workers could not change.
    pub ticks: Option<u64>,
    /// What each tier did, fastest first; none where there are none.
    pub tiers: Vec<TierWork>,
}

impl Outcome {
    /// What all workers did together.
    pub fn total(&self) -> Work {
        self.work.iter().copied().sum()
    }
}

/// Simulates `plan` under `workload`. Everything that happens goes to `sink`; raising `stop` ends the run
/// early, with what has happened so far reported.
pub fn run(
    plan: &Plan,
    workload: &mut dyn Workload,
    sink: &mut ServeSink<'_>,
    stop: &AtomicBool,
) -> Result<Outcome> {
    let Some(policy) = scaling::policy(plan)? else { return World::build(plan, workload, sink)?.run(stop) };
    let Some(tick) = policy.first_tick() else { return World::build(plan, workload, sink)?.run(stop) };
    let scaler = Scaler::of(plan, policy, tick);
    let mut tap = Tap { sink, meter: Rc::clone(&scaler.meter) };
    let mut world = World::build(plan, workload, &mut tap)?;
    world.scaler = Some(scaler);
    world.coupled = true;
    world.introduce();
    world.run(stop)
}

struct World<'r, 's> {
    now: Nanos,
    /// The instant entered last; `None` before the first.
    entered: Option<Nanos>,
    /// Whether the passes of this instant have started, so that what is sent to a worker now missed them.
    late: bool,
    ends_by: Nanos,
    arrivals: Arrivals<'r>,
    router: Box<dyn Router>,
    workers: Vec<Box<dyn Engine>>,
    /// One per pool.
    timings: Vec<Rc<dyn Timing>>,
    roster: Roster,
    /// Who changes the number of workers, if anyone does.
    scaler: Option<Scaler>,
    sink: &'r mut ServeSink<'s>,
    arrived: u32,
    /// Whether what happens on a worker concerns anyone else: completions cause arrivals, or the router asks.
    /// If not, a worker is advanced only when it gets a request.
    coupled: bool,
    /// Prompts on their way to decode workers, if there are any.
    handoffs: Option<Handoffs>,
    /// Prompts computed in this instant, in order.
    held: Vec<RequestId>,
    /// Requests arrived in this instant that need room on a decode worker before they are computed.
    homeless: Vec<RequestId>,
    /// Requests that wait in the router, and since when.
    queued: BTreeMap<RequestId, (Job, Nanos)>,
    wakes: Wakes,
    /// Decode workers that could start nothing in this instant, although requests wait there.
    gated: Vec<WorkerId>,
    /// Workers that ended a pass in no time, and decode workers that kept room in vain.
    roused: Vec<WorkerId>,
    /// Workers that may start a pass in this instant.
    touched: Vec<WorkerId>,
    signals: Vec<Signal>,
    changes: Vec<Change>,
    tiers: Tiered,
}

/// Simulated time between two looks at the stop flag once no request arrives any more.
const SLICE: Nanos = Nanos(60_000_000_000);

impl<'r, 's> World<'r, 's> {
    fn build(plan: &Plan, workload: &'r mut dyn Workload, sink: &'r mut ServeSink<'s>) -> Result<Self> {
        let (engine, workers) = (&plan.engine, plan.num_workers);
        let handoffs = Handoffs::of(plan)?;
        // Active blocks are those of requests that decode: they do not count where prompts are computed.
        let tracks = plan.router_config.router_track_active_blocks && handoffs.is_none();
        let config = KvConfig { router_track_active_blocks: tracks, ..plan.router_config.clone() };
        let fleet = Fleet { workers, engine, config: &config, seed: plan.seed };
        let router = routers::build(&plan.router_mode, &fleet)?;
        let (mut workers, mut timings): (Vec<Box<dyn Engine>>, _) = (Vec::new(), Vec::new());
        let decode = plan.decode.as_ref().map(|pool| (&pool.engine, pool.num_workers));
        for (config, count) in iter::once((engine, plan.num_workers)).chain(decode) {
            let timing = config.timing.build()?;
            timings.push(Rc::clone(&timing));
            for _ in 0..count {
                let worker = WorkerId(workers.len() as u32);
                workers.push(engines::build(Seat { worker, config, timing: &timing })?);
            }
        }
        let tiers = Tiered::of(plan, &mut workers)?;
        if router.needs() == Needs::Caches {
            let prefilling = plan.num_workers as usize;
            workers[..prefilling].iter_mut().for_each(|worker| worker.watch_cache());
            tiers.watch();
        }
        let fleet_size = workers.len() as u32;
        let arrivals = Arrivals::of(workload, plan.load)?;
        Ok(Self {
            now: Nanos::ZERO,
            entered: None,
            late: false,
            ends_by: plan.max_sim_time.unwrap_or(Nanos::MAX),
            coupled: arrivals.depend_on_completions()
                || router.needs() > Needs::Arrivals
                || handoffs.is_some()
                || tiers.are_shared(),
            arrivals,
            router,
            roster: Roster::of(plan),
            scaler: None,
            workers,
            timings,
            sink,
            arrived: 0,
            queued: BTreeMap::new(),
            wakes: Wakes::of(fleet_size),
            handoffs,
            held: Vec::new(),
            homeless: Vec::new(),
            gated: Vec::new(),
            roused: Vec::new(),
            touched: Vec::new(),
            signals: Vec::new(),
            changes: Vec::new(),
            tiers,
        })
    }

    fn run(mut self, stop: &AtomicBool) -> Result<Outcome> {
        while let Some(now) = self.next_instant() {
            if stop.load(Ordering::Relaxed) {
                return Ok(self.outcome(true));
            }
            if now == Nanos::MAX {
                return Err(Error::usage("simulated time goes beyond 584 years").hint(
                    "a bandwidth is too small, or a latency too long; --max-sim-time-seconds ends a run",
                ));
            }
            self.enter(now);
            self.complete_passes()?;
            self.welcome()?;
            self.end_transfers()?;
            self.settle_shared_tiers()?;
            self.release_arrivals()?;
            self.settle()?;
            self.dismiss();
            if self.scale()? {
                self.settle()?;
                self.dismiss();
            }
        }
        let drained = self.drain(stop)?;
        self.end_tiers();
        Ok(self.outcome(!drained))
    }

    /// Prompts move on and passes start, until nothing more comes of it in this instant.
    fn settle(&mut self) -> Result<()> {
        self.hand_off()?;
        self.start_passes()?;
        while self.ask_for_room()? {
            self.hand_off()?;
            self.start_passes()?;
        }
        Ok(())
    }

    fn next_instant(&mut self) -> Option<Nanos> {
        let next = self.next_exchange();
        let next = [next, self.next_change(next)].into_iter().flatten().min();
        next.filter(|&next| next <= self.ends_by)
    }

    /// The next time at which anything passes between the workers and the rest of the world.
    fn next_exchange(&mut self) -> Option<Nanos> {
        let arrival = self.arrivals.next_at(self.now);
        let transfer = self.handoffs.as_ref().and_then(Handoffs::next_arrival);
        let load = self.tiers.next(self.now);
        [arrival, self.wakes.next(), transfer, load].into_iter().flatten().min()
    }

    fn enter(&mut self, now: Nanos) {
        self.late = self.entered == Some(now);
        self.entered = Some(now);
        self.now = now;
    }

    /// Passes end now, in order of their workers.
    fn complete_passes(&mut self) -> Result<()> {
        self.wakes.take_due(self.now, &mut self.touched);
        for position in 0..self.touched.len() {
            let worker = self.touched[position];
            self.advance(worker, self.now)?;
            self.complete_pass(worker)?;
            self.note_pass_end(worker);
        }
        Ok(())
    }

    /// The cache has changed, then requests get their first token or leave.
    fn complete_pass(&mut self, worker: WorkerId) -> Result<()> {
        self.show_cache(worker);
        let mut signals = std::mem::take(&mut self.signals);
        self.workers[worker.index()].take_signals(&mut signals);
        for signal in signals.drain(..) {
            self.notice(worker, signal)?;
        }
        self.signals = signals;
        Ok(())
    }

    /// Tells the router and the schedule, and lets go whom the router now lets go.
    fn notice(&mut self, worker: WorkerId, signal: Signal) -> Result<()> {
        let decoding = self.roster.decodes(worker);
        match signal {
            Signal::Prefilled(_) if decoding => {}
            Signal::Prefilled(request) => self.router.prefilled(request, self.now),
            Signal::Held(request) => {
                self.router.ended(request, self.now);
                self.held.push(request);
            }
            Signal::Ended(request) | Signal::Rejected(request) => {
                self.roster.done(worker);
                match self.handoffs.as_mut() {
                    Some(handoffs) if decoding => handoffs.ended(request, self.now),
                    Some(handoffs) => {
                        self.roused.extend(handoffs.rejected(request, self.now));
                        self.router.ended(request, self.now);
                    }
                    None => self.router.ended(request, self.now),
                }
                match signal {
                    Signal::Rejected(_) => self.arrivals.given_up(request, self.now),
                    _ => self.arrivals.served(request, self.now),
                }
            }
        }
        self.release_queued()
    }

    /// Requests that are ready now reach the router.
    fn release_arrivals(&mut self) -> Result<()> {
        if self.router.needs() == Needs::Caches && self.arrivals.next_at(self.now) == Some(self.now) {
            self.show_caches()?;
        }
        while let Some(arrival) = self.arrivals.pop(self.now)? {
            let (id, request) = (RequestId(self.arrived), arrival.request);
            self.arrived += 1;
            self.sink.record(&ServeEvent::RequestArrived { request: id, at: arrival.at, details: &request });
            if self.coupled {
                self.arrivals.entered(id, &request);
            }
            if let Some(reason) = self.handoffs.as_ref().and_then(|handoffs| handoffs.refuse(&request)) {
                self.refuse(id, reason);
                continue;
            }
            if let Some(handoffs) = &mut self.handoffs {
                handoffs.began(id, request.clone(), self.now);
            }
            match self.handoffs.as_ref().map(|handoffs| handoffs.flow) {
                Some(Flow::DestinationFirst) => self.homeless.push(id),
                Some(Flow::SourceFirst) | None => self.route(id, &request)?,
            }
        }
        Ok(())
    }

    /// Finds a worker that computes the prompt of a request, or a place in the router's queue.
    fn route(&mut self, id: RequestId, request: &Request) -> Result<()> {
        let job = Job::of(id, request);
        match self.router.arrive(id, request, self.now) {
            Some(placement) => self.dispatch(job, placement, None),
            None => {
                self.queued.insert(id, (job, self.now));
                self.release_queued()
            }
        }
    }

    /// Gives a request up before it reaches a worker.
    fn refuse(&mut self, request: RequestId, reason: RejectReason) {
        let decode_pool = self.roster.pools() - 1;
        let worker = self.roster.staged(decode_pool, WorkerStage::Active).next();
        let (worker, at) = (worker.expect("there is always a worker"), self.now);
        self.sink.record(&ServeEvent::RequestRejected { request, worker, at, reason });
        self.arrivals.given_up(request, self.now);
    }

    /// Lets go whom the router lets go.
    fn release_queued(&mut self) -> Result<()> {
        while let Some(placement) = self.router.release(self.now) {
            let (job, since) = self.queued.remove(&placement.request).expect("it was queued");
            self.dispatch(job, placement, Some(since))?;
        }
        Ok(())
    }

    /// Hands a request to its worker.
    fn dispatch(&mut self, job: Job, placement: Placement, queued_since: Option<Nanos>) -> Result<()> {
        let Placement { request, worker, overlap_tokens } = placement;
        let (worker, at) = (self.roster.member(0, worker), self.now);
        self.sink.record(&ServeEvent::RequestRouted { request, worker, at, queued_since, overlap_tokens });
        let missed = self.late && !self.touched.contains(&worker);
        self.advance(worker, self.now + Nanos(u64::from(missed)))?;
        if self.coupled {
            self.touched.push(worker);
            self.roster.given(worker);
        }
        if let Some(handoffs) = &mut self.handoffs {
            handoffs.placed(request, worker);
        }
        self.workers[worker.index()].submit(job, self.now);
        Ok(())
    }

    /// Brings every working worker up to now and shows the router what their caches hold.
    fn show_caches(&mut self) -> Result<()> {
        for id in (0..self.workers.len() as u32).map(WorkerId) {
            // A worker without a wake is idle, and was shown when its last pass ended.
            if self.wakes.is_set(id) {
                self.advance(id, self.now)?;
                self.show_cache(id);
            }
        }
        self.show_tiers();
        Ok(())
    }

    fn show_cache(&mut self, worker: WorkerId) {
        self.workers[worker.index()].take_changes(self.now, &mut self.changes);
        let seat = self.roster.seat(worker);
        for change in self.changes.drain(..) {
            self.router.cache_changed(seat, change);
        }
    }

    /// Workers between passes that have something to do start one, in order of their numbers. A pass that
    /// takes no time is over at once and followed by the next.
    fn start_passes(&mut self) -> Result<()> {
        self.late = true;
        self.touched.sort_unstable();
        self.touched.dedup();
        let mut position = 0;
        while let Some(&worker) = self.touched.get(position) {
            let wake = loop {
                self.advance(worker, self.now + Nanos(1))?;
                match self.workers[worker.index()].wake() {
                    Some(at) if at == self.now => {
                        self.complete_pass(worker)?;
                        self.note_pass_end(worker);
                        self.roused.push(worker);
                    }
                    wake => break wake,
                }
            };
            let engine = &self.workers[worker.index()];
            if engine.boundary() <= self.now && engine.is_held_back() {
                self.gated.push(worker);
            }
            let waits = self.handoffs.as_ref().is_some_and(|h| h.commands[worker.index()].wait());
            let wake = if waits && engine.boundary() > self.now { Some(engine.boundary()) } else { wake };
            self.wakes.set(worker, wake);
            position += 1;
        }
        self.touched.clear();
        Ok(())
    }

    /// Runs the passes of one worker that start before `starts_before`; when completions matter, up to the
    /// first one.
    fn advance(&mut self, worker: WorkerId, starts_before: Nanos) -> Result<()> {
        let horizon = Horizon { starts_before, ends_by: self.ends_by };
        let engine = &mut self.workers[worker.index()];
        engine.advance(horizon, self.sink)?;
        while !self.coupled && engine.take_signals(&mut self.signals) {
            self.signals.clear();
            engine.advance(horizon, self.sink)?;
        }
        Ok(())
    }

    /// Once nothing arrives any more, every worker runs to its end. Tells whether all got there.
    fn drain(&mut self, stop: &AtomicBool) -> Result<bool> {
        for id in 0..self.workers.len() as u32 {
            while let Some(wake) = self.workers[id as usize].wake() {
                assert!(!self.coupled || self.ends_by < Nanos::MAX, "worker {id} was left with work");
                if stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                self.advance(WorkerId(id), wake + SLICE)?;
            }
        }
        Ok(true)
    }

    /// Where the time of all pools came from; a pool by formula counts with the time it was busy.
    fn provenance(&self) -> Option<Provenance> {
        let of_pool =
            |pool| (0..self.roster.workers()).map(WorkerId).filter(move |&w| self.roster.pool_of(w) == pool);
        let busy_ms = |pool| of_pool(pool).map(|w| self.workers[w.index()].work().busy.as_ms()).sum();
        let of = |(pool, timing): (usize, &Rc<dyn Timing>)| {
            timing.provenance().unwrap_or_else(|| Provenance::of_formula(busy_ms(pool)))
        };
        let measured = self.timings.iter().any(|timing| timing.provenance().is_some());
        measured.then(|| self.timings.iter().enumerate().map(of).fold(Provenance::default(), Add::add))
    }

    fn outcome(&self, interrupted: bool) -> Outcome {
        Outcome {
            interrupted,
            work: self.workers.iter().map(|worker| worker.work()).collect(),
            end: self.end(),
            provenance: self.provenance(),
            gpus: self.timings.iter().map(|timing| timing.gpus()).collect(),
            roles: (0..self.roster.workers())
                .map(|w| self.roster.role(self.roster.pool_of(WorkerId(w))))
                .collect(),
            ticks: self.scaler.as_ref().map(|scaler| scaler.ticks),
            tiers: self.tiers.work(self.end()),
        }
    }

    /// The end of the last pass.
    fn end(&self) -> Nanos {
        self.workers.iter().map(|worker| worker.boundary()).max().unwrap_or_default()
    }
}
