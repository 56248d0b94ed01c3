//! The thread that makes spans of events and sends them away.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use tokio::runtime;
use tokio::time::{Instant, sleep};
use wavetank_model::{CacheEvent, Error, ErrorKind, Nanos, Result};

use crate::assembly::{Assembler, Moment, SessionCounts};
use crate::bus::{Bus, Queue};
use crate::exporters::{Exporter, Target};
use crate::lane::{Lane, Setting};
use crate::plan::TracePlan;
use crate::span::Span;
use crate::status::{Exported, TraceStatus};
use crate::tally::Tally;

/// Between two looks at the queue.
const TICK: Duration = Duration::from_millis(20);
/// Spans of a batch: about a megabyte, a quarter of what receivers take by default.
const BATCH: usize = 2048;

/// Spans on their way from events to where they go.
pub struct Tracer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    queue: Arc<Queue>,
    stop: AtomicBool,
    sessions: Mutex<SessionCounts>,
    tallies: Vec<(String, Arc<Tally>)>,
}

impl Tracer {
    /// Opens where spans go and starts the thread.
    pub fn start(plan: TracePlan) -> Result<Self> {
        let opened = plan.targets.iter().map(|target| target.open()).collect::<Result<Vec<_>>>()?;
        let tallies = plan.targets.iter().map(|target| (target.name(), Arc::default())).collect();
        let shared = Arc::new(Shared {
            queue: Arc::new(Queue::new(plan.queue_events, plan.assembly.sampling.commands)),
            stop: AtomicBool::new(false),
            sessions: Mutex::default(),
            tallies,
        });
        let refused = |error: std::io::Error| {
            Error::new(ErrorKind::Io, format!("cannot start the thread of spans: {error}")).source(error)
        };
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(refused)?;
        let seen = Arc::clone(&shared);
        let work = move || runtime.block_on(async { Worker::start(plan, &seen, opened).run().await });
        let thread = thread::Builder::new().name("spans".to_owned()).spawn(work).map_err(refused)?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Where events are published.
    pub fn bus(&self) -> Bus {
        Bus::to(&self.shared.queue)
    }

    /// What became of events and spans so far.
    pub fn status(&self) -> TraceStatus {
        let Shared { queue, sessions, tallies, .. } = &*self.shared;
        TraceStatus {
            queued_events: queue.depth() as u64,
            events: queue.taken(),
            lost_events: queue.lost(),
            sessions: *sessions.lock().unwrap_or_else(PoisonError::into_inner),
            exports: tallies.iter().map(|(name, tally)| tally.exports(name)).collect(),
        }
    }

    /// Ends what is open, sends what waits for as long as the plan allows, and says what became of all.
    pub fn finish(&self) -> Exported {
        self.shared.stop.store(true, Ordering::Release);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // If it panicked, the counts say what was not sent.
            let _ = thread.join();
        }
        self.status()
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.finish();
    }
}

/// What the thread does.
struct Worker<'s> {
    shared: &'s Shared,
    lanes: Vec<Lane>,
    started: Instant,
    assembler: Assembler,
    events: Vec<CacheEvent>,
    /// Spans that wait to be sent together.
    spans: Vec<Span>,
    /// When the first of them came.
    since: Instant,
    gather: Duration,
    flush: Duration,
}

impl<'s> Worker<'s> {
    /// On the runtime, where tasks can be started.
    fn start(plan: TracePlan, shared: &'s Shared, exporters: Vec<Box<dyn Exporter>>) -> Self {
        let resource = Arc::new(plan.resource);
        let each = plan.targets.into_iter().zip(&shared.tallies).zip(exporters);
        let lane = |((target, named), exporter): ((Target, &(String, Arc<Tally>)), _)| {
            let (resource, tally) = (Arc::clone(&resource), Arc::clone(&named.1));
            let (patience, tell) = (plan.patience, Arc::clone(&plan.tell));
            Lane::start(exporter, Setting { target, resource, patience, tally, tell })
        };
        Self {
            shared,
            lanes: each.map(lane).collect(),
            started: Instant::now(),
            assembler: Assembler::new(plan.assembly),
            events: Vec::new(),
            spans: Vec::new(),
            since: Instant::now(),
            gather: plan.gather,
            flush: plan.flush,
        }
    }

    async fn run(mut self) {
        loop {
            let is_last = self.shared.stop.load(Ordering::Acquire);
            self.gather(is_last);
            if is_last {
                break;
            }
            sleep(TICK).await;
        }
        let deadline = Instant::now() + self.flush;
        for lane in self.lanes {
            lane.finish(deadline).await;
        }
    }

    /// Makes spans of what waits and hands on those that are enough or old enough.
    fn gather(&mut self, is_last: bool) {
        self.shared.queue.take(&mut self.events);
        self.events.drain(..).for_each(|event| self.assembler.record(event));
        let now = Moment { wall: wall_clock(), elapsed: nanos(self.started.elapsed()) };
        match is_last {
            true => self.assembler.end_all(now),
            false => self.assembler.pass_time(now),
        }
        if self.spans.is_empty() {
            self.since = Instant::now();
        }
        self.spans.extend(self.assembler.finished());
        let is_due = is_last || self.since.elapsed() >= self.gather;
        while self.spans.len() >= BATCH || (is_due && !self.spans.is_empty()) {
            let batch: Arc<[Span]> = self.spans.drain(..self.spans.len().min(BATCH)).collect();
            self.lanes.iter().for_each(|lane| lane.offer(&batch));
            self.since = Instant::now();
        }
        *self.shared.sessions.lock().unwrap_or_else(PoisonError::into_inner) = self.assembler.counts();
    }
}

/// Since 1970.
fn wall_clock() -> Nanos {
    nanos(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

fn nanos(span: Duration) -> Nanos {
    Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}
