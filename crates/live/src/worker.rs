//! A live worker: a thread that runs the passes of one engine, each for as long as its model says.
//!
//! Passes follow each other at the times the model gives them, so that what one ends late the next one makes
//! up for, and errors of timers do not add up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvError, Sender};
use std::thread::{self, JoinHandle};

use wavetank_model::{Error, ErrorKind, Nanos, RequestId, Result, WorkerId};
use wavetank_sim::engines::{self, Engine, Horizon, Job, Seat, Work};
use wavetank_sim::{EngineConfig, Provenance};

use crate::clock::{Clock, sharpen_timers};
use crate::pass::{Facts, Pass};

/// What a worker is told.
#[derive(Debug)]
pub(crate) enum Order {
    /// The run begins.
    Begin(Clock),
    /// A request is here.
    Take(Job),
    /// Nobody waits for a request any more.
    Drop(RequestId),
}

/// What a worker tells.
#[derive(Debug)]
pub(crate) enum Report {
    /// A pass is over.
    Passed(Pass),
    /// A request was given up before its end.
    Dropped(RequestId),
    /// It cannot go on.
    Failed(Error),
}

/// What a worker has done in all.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) work: Work,
    /// Where the time of its passes came from, if a measured model gave any of it.
    pub(crate) provenance: Option<Provenance>,
    pub(crate) gpus: u32,
}

/// What a worker is made of.
pub(crate) struct Desk {
    pub(crate) worker: WorkerId,
    pub(crate) config: EngineConfig,
    /// Whether changes of its cache are told.
    pub(crate) shows_cache: bool,
    pub(crate) orders: Receiver<Order>,
    pub(crate) stop: Arc<AtomicBool>,
}

/// Starts a worker, which says in `ready` whether its engine could be built. It ends when nobody orders any
/// more and nothing is left to do, or when it is stopped.
pub(crate) fn start(
    desk: Desk,
    ready: Sender<Result<()>>,
    tell: impl FnMut(Report) + Send + 'static,
) -> Result<JoinHandle<Done>> {
    let name = format!("worker {}", desk.worker.0);
    let started = thread::Builder::new().name(name).spawn(move || live(&desk, ready, tell));
    started.map_err(|error| {
        Error::new(ErrorKind::Io, format!("cannot start a worker: {error}"))
            .at("--num-workers")
            .hint("every live worker is a thread")
    })
}

/// The life of a worker.
fn live(desk: &Desk, ready: Sender<Result<()>>, mut tell: impl FnMut(Report)) -> Done {
    sharpen_timers();
    let config = &desk.config;
    let built = config.timing.build().and_then(|timing| {
        let engine = engines::build(Seat { worker: desk.worker, config, timing: &timing })?;
        Ok((timing, engine))
    });
    let (timing, mut engine) = match built {
        Ok(built) => built,
        Err(error) => {
            // Whoever starts workers waits for all of them.
            let _ = ready.send(Err(error));
            return Done::default();
        }
    };
    if desk.shows_cache {
        engine.watch_cache();
    }
    let _ = ready.send(Ok(()));
    drop(ready);
    if let Ok(Order::Begin(clock)) = desk.orders.recv() {
        let ran = Worker { desk, clock, engine: engine.as_mut(), ahead: Facts::default() }.run(&mut tell);
        ran.unwrap_or_else(|error| tell(Report::Failed(error)));
    }
    Done { work: engine.work(), provenance: timing.provenance(), gpus: timing.gpus() }
}

struct Worker<'d> {
    desk: &'d Desk,
    clock: Clock,
    engine: &'d mut dyn Engine,
    /// What the pass after the one at hand computes, if it is scheduled already.
    ahead: Facts,
}

impl Worker<'_> {
    fn run(&mut self, tell: &mut impl FnMut(Report)) -> Result<()> {
        let mut rest = Rest::Needed;
        // One that is late never waits, and would not look at whether to stop.
        while self.take_orders(rest, tell).is_ok() && !self.desk.stop.load(Ordering::Relaxed) {
            let start = self.clock.now();
            let modelled = self.engine.boundary();
            let mut facts = std::mem::take(&mut self.ahead);
            let one_pass = Horizon { starts_before: modelled + Nanos(1), ends_by: Nanos::MAX };
            self.engine.advance(one_pass, &mut facts)?;
            let mut signals = Vec::new();
            self.engine.take_signals(&mut signals);
            rest = if facts.is_empty() && signals.is_empty() { Rest::Needed } else { Rest::None };
            if rest == Rest::Needed {
                continue;
            }
            let due = self.engine.boundary();
            self.ahead = facts.later(due.max(modelled + Nanos(1)));
            let Some(end) = self.clock.wait_until(due, &self.desk.stop) else { return Ok(()) };
            let mut changes = Vec::new();
            self.engine.take_changes(due, &mut changes);
            let (worker, modelled) = (self.desk.worker, due - modelled);
            tell(Report::Passed(Pass { worker, start, end, modelled, due, facts, signals, changes }));
        }
        Ok(())
    }

    /// Takes what was ordered since the last pass; a worker that rests waits for an order. An error says that
    /// none will come.
    fn take_orders(&mut self, rest: Rest, tell: &mut impl FnMut(Report)) -> Result<(), RecvError> {
        if rest == Rest::Needed {
            let order = self.desk.orders.recv()?;
            self.obey(order, tell);
        }
        while let Ok(order) = self.desk.orders.try_recv() {
            self.obey(order, tell);
        }
        Ok(())
    }

    fn obey(&mut self, order: Order, tell: &mut impl FnMut(Report)) {
        match order {
            Order::Begin(_) => unreachable!("a run begins once"),
            Order::Take(job) => self.engine.submit(job, self.clock.now()),
            Order::Drop(request) => {
                // One that has ended was told with its last pass.
                if self.engine.cancel(request, self.clock.now()) {
                    self.ahead.forget(request);
                    tell(Report::Dropped(request));
                }
            }
        }
    }
}

/// Whether there is nothing to do before the next order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Needed,
    None,
}
