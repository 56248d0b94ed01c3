//! The event loop: arrivals, workers, and the order of things inside one instant (spec/replay.md 5.1).

use std::sync::atomic::{AtomicBool, Ordering};

use wavetank_model::{
    InFlight, Nanos, RequestId, Result, ServeEvent, ServeSink, SessionId, WorkerId, Workload,
};

use crate::arrivals::Arrivals;
use crate::engines::{Engine, Horizon, Job, Work};
use crate::routers::Router;
use crate::wakes::Wakes;
use crate::{Plan, engines, routers};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// What all workers did.
    pub work: Work,
}

/// Simulates `plan` under `workload`. Everything that happens goes to `sink`; raising `stop` ends the run
/// early, with what has happened so far reported.
pub fn run(
    plan: &Plan,
    workload: &mut dyn Workload,
    sink: &mut ServeSink<'_>,
    stop: &AtomicBool,
) -> Result<Outcome> {
    let mut world = World::build(plan, workload, sink)?;
    while let Some(now) = world.next_instant() {
        if stop.load(Ordering::Relaxed) {
            return Ok(world.outcome(true));
        }
        world.enter(now);
        world.complete_passes()?;
        world.release_arrivals()?;
        world.start_passes()?;
    }
    let drained = world.drain(stop)?;
    Ok(world.outcome(!drained))
}

struct World<'r, 's> {
    now: Nanos,
    /// The instant entered last; `None` before the first.
    entered: Option<Nanos>,
    /// Whether this instant was entered before: its passes have started, so what arrives now missed them.
    late: bool,
    ends_by: Nanos,
    arrivals: Arrivals<'r>,
    router: Box<dyn Router>,
    workers: Vec<Box<dyn Engine>>,
    sink: &'r mut ServeSink<'s>,
    arrived: u32,
    /// Whether completions cause arrivals. If not, a worker is advanced only when it gets a request: what it
    /// does in between concerns nobody else.
    coupled: bool,
    turns: InFlight<Turn>,
    wakes: Wakes,
    /// Workers that may start a pass in this instant.
    touched: Vec<WorkerId>,
    finished: Vec<RequestId>,
}

/// What the schedule needs to know when a request ends.
struct Turn {
    session: SessionId,
    turn: u32,
    think: Option<Nanos>,
}

/// Simulated time between two looks at the stop flag once no request arrives any more.
const SLICE: Nanos = Nanos(60_000_000_000);

impl<'r, 's> World<'r, 's> {
    fn build(plan: &Plan, workload: &'r mut dyn Workload, sink: &'r mut ServeSink<'s>) -> Result<Self> {
        let workers: Result<Vec<_>> =
            (0..plan.num_workers).map(|id| engines::build(&plan.engine, WorkerId(id))).collect();
        let arrivals = Arrivals::of(workload, plan.load)?;
        Ok(Self {
            now: Nanos::ZERO,
            entered: None,
            late: false,
            ends_by: plan.max_sim_time.unwrap_or(Nanos::MAX),
            coupled: arrivals.depend_on_completions(),
            arrivals,
            router: routers::build(&plan.router_mode, plan.num_workers)?,
            workers: workers?,
            sink,
            arrived: 0,
            turns: InFlight::default(),
            wakes: Wakes::of(plan.num_workers),
            touched: Vec::new(),
            finished: Vec::new(),
        })
    }

    /// The next time at which anything passes between the workers and the rest of the world.
    fn next_instant(&mut self) -> Option<Nanos> {
        let arrival = self.arrivals.next_at(self.now);
        let next = [arrival, self.wakes.next()].into_iter().flatten().min();
        next.filter(|&next| next <= self.ends_by)
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
            self.take_leave(worker);
        }
        Ok(())
    }

    /// Requests whose last pass has ended leave.
    fn take_leave(&mut self, worker: WorkerId) {
        self.workers[worker.index()].take_finished(&mut self.finished);
        for request in self.finished.drain(..) {
            let Turn { session, turn, think } =
                self.turns.remove(request).expect("a finished request was in flight");
            self.arrivals.ended(session, turn, think, self.now);
        }
    }

    /// Requests that are ready now are placed and submitted.
    fn release_arrivals(&mut self) -> Result<()> {
        while let Some(arrival) = self.arrivals.pop(self.now)? {
            let (id, request) = (RequestId(self.arrived), arrival.request);
            self.arrived += 1;
            self.sink.record(&ServeEvent::RequestArrived { request: id, at: arrival.at, details: &request });
            let worker = self.router.place(&request);
            let missed = self.late && !self.touched.contains(&worker);
            self.advance(worker, self.now + Nanos(u64::from(missed)))?;
            if self.coupled {
                let turn = Turn { session: request.session, turn: request.turn, think: request.think };
                self.turns.insert(id, turn);
                self.touched.push(worker);
            }
            let job = Job { id, prompt: request.prompt, output_tokens: request.output_tokens };
            self.workers[worker.index()].submit(job, self.now);
        }
        Ok(())
    }

    /// Workers between passes that have something to do start one, in order of their numbers. A pass that
    /// takes no time is over at once and followed by the next.
    fn start_passes(&mut self) -> Result<()> {
        self.touched.sort_unstable();
        self.touched.dedup();
        for position in 0..self.touched.len() {
            let worker = self.touched[position];
            let wake = loop {
                self.advance(worker, self.now + Nanos(1))?;
                match self.workers[worker.index()].wake() {
                    Some(at) if at == self.now => self.take_leave(worker),
                    wake => break wake,
                }
            };
            self.wakes.set(worker, wake);
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
        while !self.coupled && engine.take_finished(&mut self.finished) {
            self.finished.clear();
            engine.advance(horizon, self.sink)?;
        }
        Ok(())
    }

    /// Once nothing arrives any more, every worker runs to its end. Tells whether all got there.
    fn drain(&mut self, stop: &AtomicBool) -> Result<bool> {
        for id in 0..self.workers.len() as u32 {
            while let Some(wake) = self.workers[id as usize].wake() {
                if stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                self.advance(WorkerId(id), wake + SLICE)?;
            }
        }
        Ok(true)
    }

    fn outcome(&self, interrupted: bool) -> Outcome {
        let work = self.workers.iter().map(|worker| worker.work()).sum();
        Outcome { interrupted, work }
    }
}
