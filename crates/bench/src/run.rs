//! A run: the store is opened, emptied and filled, users ask, the window opens and closes.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use wavetank_model::{BenchEvent, Error, Nanos, Result, Sink, TierRole};
use wavetank_store::backend::Backend;
use wavetank_store::{Flow, Store, Usage};

use crate::clock::{Clock, Face, Hands};
use crate::desk::{Desk, lock};
use crate::document::Library;
use crate::fill::{Filled, Filler};
use crate::floor::{Floor, Ground};
use crate::kernel::{self, KernelIo};
use crate::log::{Log, LogWriter};
use crate::overheard::{Calls, Overheard};
use crate::plan::{Plan, Time};
use crate::scale::ScaleStep;
use crate::sources::{self, Recording};
use crate::stack;

/// Who watches a run, and may end it.
pub struct Observer<'a> {
    /// Takes note of everything.
    pub sink: &'a mut (dyn Sink<BenchEvent> + Send),
    /// Shows how it goes.
    pub watch: &'a mut (dyn Watch + Send),
    /// Raised to end the run with what it has.
    pub stop: &'a AtomicBool,
    /// Told of every call on the store, from the first entry that is written.
    pub calls: Option<Arc<dyn Calls>>,
}

/// Someone who looks at a run now and then.
pub trait Watch {
    /// How it goes.
    fn pulse(&mut self, pulse: &Pulse);

    /// So many bytes of `what` were written before the first request.
    fn filling(&mut self, what: &str, bytes: u64) {
        let _ = (what, bytes);
    }
}

/// Nobody looks.
pub struct Unwatched;

impl Watch for Unwatched {
    fn pulse(&mut self, _pulse: &Pulse) {}
}

/// How a run goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Pulse {
    /// The run's time.
    pub at: Nanos,
    /// When it ends at the latest.
    pub of: Nanos,
    /// Whether it still warms up.
    pub warming: bool,
    /// Requests served so far.
    pub served: u64,
    /// Generated tokens per second so far.
    pub tokens_per_second: f64,
    /// P95 of end-to-end latency so far.
    pub p95_ms: f64,
    /// Requests that wait.
    pub queued: u64,
    /// Users now.
    pub users: u32,
    /// Bytes in each tier, and what it holds.
    pub fill: Vec<(TierRole, u64, Option<u64>)>,
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its time was over.
    Duration,
    /// Everything asked was answered.
    Drained,
    /// The autoscaler found what it sought.
    PeakFound,
    /// Someone wanted it to.
    Interrupted,
    /// It could not go on.
    Failed(String),
}

/// What a run leaves besides events.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Why it ended.
    pub ended: Ended,
    /// What was written before the first request.
    pub filled: Filled,
    /// The autoscaler's decisions.
    pub steps: Vec<ScaleStep>,
    /// What each tier holds at the end.
    pub usage: Vec<Usage>,
    /// What went to each tier while the window was open, by I/O thread.
    pub flows: Vec<Vec<Flow>>,
    /// What does not work here as it should.
    pub notes: Vec<String>,
    /// What the kernel counted between the first request and the last byte; absent where it does not count.
    pub kernel: Option<KernelIo>,
    /// Events that were lost, which makes the numbers too small.
    pub lost_events: u64,
    /// Copies that could not be deleted.
    pub unremoved: u64,
    /// Real time from the first request to the end.
    pub wall_seconds: f64,
    /// Processor time of this process meanwhile.
    pub cpu_seconds: f64,
}

/// How many of the store's events may wait to be looked at.
const EVENTS: usize = 1 << 15;

/// What a run needs besides its plan.
#[derive(Clone, Copy, Default)]
pub struct Given<'a> {
    /// Where its requests come from, if from a recording.
    pub recording: Option<&'a Recording>,
    /// What stands for its devices, if they are modelled.
    pub devices: Option<&'a Devices>,
}

/// Modelled devices.
pub struct Devices {
    /// What they move, and everything follows.
    pub clock: wavetank_store::Clock,
    /// One for each tier.
    pub backends: Vec<Arc<dyn Backend>>,
}

/// Runs `plan`. What is written stays until the next run, or until [`clean`](crate::clean).
///
/// # Panics
/// When something is not given that the plan needs.
pub fn run(
    plan: &Plan,
    given: Given<'_>,
    observer: Observer<'_>,
    log: Option<&mut LogWriter<'_>>,
) -> Result<Outcome> {
    // All for as long as this function.
    let (sink, stop) = (&mut *observer.sink, observer.stop);
    let watch: &mut (dyn Watch + Send) = &mut *observer.watch;
    let store = stack::open(plan, given.devices)?;
    stack::clear(&store)?;
    let hands = Hands::default();
    if let Some(calls) = observer.calls {
        let face = match plan.time {
            Time::Wall => None,
            Time::Virtual => Some(Face::Virtual(hands.clone())),
            Time::Modelled => Some(Face::of_store(store.clock())),
        };
        store.attach(Arc::new(Overheard { calls, face }));
    }
    let events = store.listen(EVENTS);
    let mut log = log.map(|write| Log::new(plan, &mut *write));
    let library = Library::new(&plan.habits.documents, plan.bytes_per_token, plan.seed);
    let mut filler =
        Filler { plan, store: &store, events: &events, log: log.as_mut(), stop, watch: &mut *watch };
    let filled = filler.fill(&library)?;
    let watch = Mutex::new(watch);
    let source = sources::source(plan, library, given.recording);
    let left = Mutex::new(Left::default());
    let (kernel, processor) = (KernelIo::now(), kernel::cpu_seconds());
    let clock = Clock::start(match plan.time {
        Time::Wall | Time::Modelled => Face::of_store(store.clock()),
        Time::Virtual => Face::Virtual(hands),
    });
    let ground = Ground { store: Arc::clone(&store), events, sink, stop, log };
    let floor = Mutex::new(Floor::new(plan, source, ground));
    let place = Place { plan, clock: &clock, store: &store, floor: &floor, watch: &watch, left: &left };
    let worked = std::thread::scope(|scope| {
        let work = || work(&place);
        let others: Vec<_> = (1..plan.lanes().0).map(|_| scope.spawn(work)).collect();
        let mine = work();
        others.into_iter().map(|other| other.join().expect("a thread of the run")).fold(mine, Result::and)
    });
    worked?;
    let wall_seconds = clock.wall().as_secs_f64();
    let (kernel, cpu_seconds) = (KernelIo::since(kernel), kernel::cpu_seconds() - processor);
    // Nothing of it went through the kernel.
    let kernel = kernel.filter(|_| plan.time != Time::Modelled);
    let floor = floor.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (ended, scaler, lost_events) = floor.finish(clock.now());
    let (usage, notes) = (store.usage(), store.notes());
    let Left { flows, unremoved } = left.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Outcome {
        ended: ended.unwrap_or(Ended::Duration),
        filled,
        steps: scaler.map(|scaler| scaler.steps).unwrap_or_default(),
        usage,
        flows,
        notes,
        kernel,
        lost_events,
        unremoved,
        wall_seconds,
        cpu_seconds,
    })
}

/// What threads work on.
struct Place<'a, 'f> {
    plan: &'a Plan,
    clock: &'a Clock,
    store: &'a Arc<Store>,
    floor: &'a Mutex<Floor<'f>>,
    watch: &'a Mutex<&'f mut (dyn Watch + Send)>,
    left: &'a Mutex<Left>,
}

/// What threads leave when they are done.
#[derive(Default)]
struct Left {
    flows: Vec<Vec<Flow>>,
    unremoved: u64,
}

/// One thread: its lane is gone when this returns, and with it all that was at devices.
fn work(place: &Place<'_, '_>) -> Result<()> {
    let Place { plan, clock, store, floor, watch, left } = *place;
    let lane = store.lane(plan.lanes().1).map_err(|error| {
        let told = format!("cannot open a queue: {error}");
        lock(floor).close(clock.now(), Ended::Failed(told.clone()));
        Error::usage(told).hint("fewer --io-threads or a smaller --io-depth need less locked memory")
    })?;
    let mut desk = Desk::new(plan, clock, lane);
    let flows = desk.work(floor, watch);
    let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
    left.flows.push(flows);
    left.unremoved += desk.lane.unremoved();
    Ok(())
}

#[cfg(test)]
mod tests;
