//! Recorded calls, made again with bytes.
//!
//! The engine decides in the time of the recording and in its order, as without bytes, so that the outcomes
//! are the same at every pace. The bytes follow: a few threads make the calls, each those of some callers in
//! the order they were decided, one more for each tier behind stores and deletes. Who needs bytes that are
//! still being produced waits for them.

mod latencies;
mod promise;
mod report;
#[cfg(test)]
mod tests;
mod worker;

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wavetank_model::{Fate, KeyId, Nanos, Result};

pub(crate) use self::latencies::Latencies;
pub use self::latencies::Spread;
use self::promise::{Arrival, Promise};
pub use self::report::{AdapterTimes, CallTimes, Moved, PlayReport};
use self::report::{Kind, Measured};
use self::worker::{Backlog, Call, Errand, Ground, Job, Loading, Porter, Step, Storing, Worker};
use crate::bytes::{Depot, Keeping, Pool, start_with};
use crate::note::{Happened, Note};
use crate::replay::{Act, Both, Listener, Made, Manner, Recording, Tally, replay};

/// How calls are made again with bytes.
#[derive(Clone, Debug)]
pub struct PlayOptions {
    /// When.
    pub pace: Pace,
    /// Threads that make them.
    pub threads: usize,
    /// What objects hold.
    pub contents: Contents,
    /// Which latencies are kept besides their spread.
    pub keep: Keep,
    /// Set by whoever wants it to end early: what is at a device is finished, and nothing that waits.
    pub stop: Arc<AtomicBool>,
}

/// Which latencies are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// None.
    #[default]
    Nothing,
    /// That of each call.
    Each,
}

/// When calls are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// As fast as they can be.
    Max,
    /// When they were, so many times as fast.
    Recorded(f64),
}

/// What objects hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Nothing.
    Zeros,
    /// Bytes of this seed and of their key, which are compared when they are read.
    Seeded(u64),
}

/// Jobs that wait for one thread: so far the decisions are ahead.
const QUEUE: usize = 64;
/// How long a sleep is before somebody looks whether to go on.
const NAP: Duration = Duration::from_millis(20);

/// Makes the calls of `recording` again, with bytes in memory and in the tiers of the plan. What is written
/// there is removed at the end, and nothing else is touched. `also` hears of every call when it is handed
/// out.
pub fn play(
    recording: &Recording<'_>,
    manner: &Manner,
    options: &PlayOptions,
    also: Option<&mut dyn Listener>,
) -> Result<(Tally, PlayReport)> {
    let plan = &manner.plan;
    let depots = plan
        .adapters
        .iter()
        .enumerate()
        .map(|(number, adapter)| Depot::open(adapter, number, Keeping::Nothing));
    let ground = Arc::new(Ground {
        depots: depots.collect::<Result<_>>()?,
        pool: Pool::new(plan.l1.capacity_bytes),
        contents: options.contents,
        keep: options.keep,
        stop: Arc::clone(&options.stop),
    });
    let mut crew = Crew::hire(&ground, options.threads)?;
    let begun = Instant::now();
    let director = Director::new(recording, (manner, options), &crew);
    let mut listeners = Both(director, also);
    let tally = replay(recording, manner, Some(&mut listeners));
    let interrupted = listeners.0.interrupted;
    drop(listeners);
    let measured = crew.finish(plan.adapters.len());
    // All may have been decided, and not all of it done.
    let interrupted = interrupted || options.stop.load(Ordering::Relaxed);
    let wall = Nanos(begun.elapsed().as_nanos() as u64);
    let notes = ground.depots.iter().flat_map(Depot::notes).collect();
    let Ok(ground) = Arc::try_unwrap(ground) else { unreachable!("the threads have ended") };
    ground.depots.into_iter().try_for_each(Depot::clean)?;
    let tally = Tally { interrupted, ..tally? };
    Ok((tally, measured.report(wall, interrupted, notes)))
}

/// The threads, and the ways to them.
struct Crew {
    jobs: Vec<SyncSender<Job>>,
    errands: Vec<Sender<(Errand, u64)>>,
    backlogs: Vec<Arc<Backlog>>,
    workers: Vec<JoinHandle<Option<Measured>>>,
    porters: Vec<JoinHandle<Option<Measured>>>,
}

impl Crew {
    fn hire(ground: &Arc<Ground>, threads: usize) -> Result<Self> {
        let mut crew =
            Self { jobs: vec![], errands: vec![], backlogs: vec![], workers: vec![], porters: vec![] };
        for _ in 0..threads.max(1) {
            let (sender, jobs) = sync_channel(QUEUE);
            let ground = Arc::clone(ground);
            let make = move || Worker::new(&ground);
            crew.workers.push(start_with("call", make, move |worker| worker.run(&jobs))?);
            crew.jobs.push(sender);
        }
        for adapter in 0..ground.depots.len() {
            let (sender, errands) = channel();
            let (ground, backlog) = (Arc::clone(ground), Backlog::new());
            crew.backlogs.push(Arc::clone(&backlog));
            let make = move || Porter::new(&ground, adapter, backlog);
            crew.porters.push(start_with("store", make, move |porter| porter.run(&errands))?);
            crew.errands.push(sender);
        }
        Ok(crew)
    }

    /// Waits for all that is to be done, and gathers what was measured.
    fn finish(&mut self, adapters: usize) -> Measured {
        let mut all = Measured::new(adapters);
        self.jobs.clear();
        self.errands.clear();
        for thread in self.workers.drain(..).chain(self.porters.drain(..)) {
            match thread.join() {
                Ok(measured) => measured.into_iter().for_each(|measured| all.absorb(measured)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    }
}

/// Turns decisions into work.
struct Director<'a> {
    layout_bytes: &'a [u64],
    options: &'a PlayOptions,
    jobs: Vec<SyncSender<Job>>,
    errands: Vec<Sender<(Errand, u64)>>,
    backlogs: Vec<Arc<Backlog>>,
    /// Calls from here on are measured, and made at their pace.
    from: Nanos,
    /// When the first of them was made: now, and in the recording.
    first: Option<(Instant, Nanos)>,
    /// Calls that are measured, so far.
    measured: u64,
    /// Prefetches so far: without threads, a prefetch and what follows it are one caller's.
    chains: usize,
    /// What an object of each key takes.
    bytes: Vec<u64>,
    staged: Vec<Option<Arc<Promise>>>,
    resident: Vec<Option<Arc<Promise>>>,
    behind: Vec<Tier>,
    /// Whether it ends before the recording does.
    interrupted: bool,
}

/// What a tier behind has, or will have.
#[derive(Default)]
struct Tier {
    /// Copies on their way.
    coming: HashMap<KeyId, VecDeque<Arc<Arrival>>>,
    present: HashMap<KeyId, Arc<Arrival>>,
    /// Loads that have not ended in the time of the recording.
    on_way: HashMap<KeyId, VecDeque<Arc<Promise>>>,
    /// Who loads each object, or did.
    loading: HashMap<KeyId, Vec<Weak<Promise>>>,
}

/// Work that follows from a decision.
#[derive(Default)]
struct Work {
    steps: Vec<Step>,
    errands: Vec<(usize, Errand, u64)>,
}

impl<'a> Director<'a> {
    fn new(recording: &Recording<'a>, how: (&Manner, &'a PlayOptions), crew: &Crew) -> Self {
        let (manner, options) = how;
        let adapters = manner.plan.adapters.len();
        let nothing = || std::iter::repeat_with(|| None).take(recording.keys).collect();
        Self {
            layout_bytes: recording.layout_bytes,
            options,
            jobs: crew.jobs.clone(),
            errands: crew.errands.clone(),
            backlogs: crew.backlogs.clone(),
            from: manner.scope.from,
            first: None,
            measured: 0,
            chains: 0,
            bytes: vec![0; recording.keys],
            staged: nothing(),
            resident: nothing(),
            behind: std::iter::repeat_with(Tier::default).take(adapters).collect(),
            interrupted: false,
        }
    }

    /// Sleeps until a call is due; when that was.
    fn wait_for(&mut self, at: Nanos) -> Option<Instant> {
        let (begun, first) = *self.first.get_or_insert_with(|| (Instant::now(), at));
        let Pace::Recorded(speed) = self.options.pace else { return None };
        let offset = Duration::try_from_secs_f64(at.since(first).as_seconds() / speed);
        let due = begun + offset.unwrap_or(NAP);
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_stopped() {
                return Some(due);
            }
            std::thread::sleep(left.min(NAP));
        }
    }

    fn is_stopped(&self) -> bool {
        self.options.stop.load(Ordering::Relaxed)
    }

    /// What a call says of the length of objects.
    fn learn(&mut self, act: &Act<'_>) {
        match act {
            Act::Reserve { keys, layout } => {
                let bytes = self.layout_bytes[layout.0 as usize];
                keys.iter().for_each(|key| self.bytes[key.0 as usize] = bytes);
            }
            Act::Prefetch(asked) => {
                for row in &asked.rows {
                    let bytes = self.layout_bytes[row.layout.0 as usize];
                    let unknown = |key: &&KeyId| self.bytes[key.0 as usize] == 0;
                    let keys: Vec<KeyId> = row.keys.iter().filter(unknown).copied().collect();
                    keys.iter().for_each(|key| self.bytes[key.0 as usize] = bytes);
                }
            }
            _ => {}
        }
    }

    fn follow(&mut self, notes: &[Note]) -> Work {
        let mut work = Work::default();
        let mut loads: Vec<Vec<Loading>> = self.behind.iter().map(|_| Vec::new()).collect();
        for note in notes {
            match &note.what {
                Happened::Staged(key) => {
                    self.staged[key.0 as usize] = Some(self.fill(*key, &mut work));
                }
                Happened::Unstaged(key) => self.staged[key.0 as usize] = None,
                Happened::Admitted(key) => self.admit(*key, &mut work),
                Happened::Loading(adapter, key) => {
                    let loading = self.load(usize::from(*adapter), *key);
                    loads[usize::from(*adapter)].push(loading);
                }
                Happened::Loaded(adapter, key) => {
                    self.resident[key.0 as usize] = self.loaded(usize::from(*adapter), *key);
                }
                Happened::Unloaded(adapter, key) => drop(self.loaded(usize::from(*adapter), *key)),
                Happened::Freed(key) => self.resident[key.0 as usize] = None,
                Happened::Copying(adapter, keys) | Happened::Resumed(adapter, keys) => {
                    self.copy(usize::from(*adapter), keys, &mut work);
                }
                Happened::Copied(adapter, keys) => self.copied(usize::from(*adapter), keys),
                Happened::Postponed(adapter, keys) => self.drop_copy(usize::from(*adapter), keys, &mut work),
                Happened::Deleted(adapter, key) => self.delete(usize::from(*adapter), *key, &mut work),
                Happened::Lost(..)
                | Happened::Passed(..)
                | Happened::Fetched(..)
                | Happened::Found(..)
                | Happened::Removed(_) => {}
            }
        }
        for (adapter, objects) in loads.into_iter().enumerate().filter(|(_, objects)| !objects.is_empty()) {
            work.steps.push(Step::Load { adapter, objects });
        }
        work
    }

    fn bytes_of(&self, key: KeyId) -> u64 {
        self.bytes[key.0 as usize]
    }

    fn fill(&self, key: KeyId, work: &mut Work) -> Arc<Promise> {
        let (bytes, promise) = (self.bytes_of(key), Arc::new(Promise::default()));
        work.steps.push(Step::Fill { key, bytes, promise: Arc::clone(&promise) });
        promise
    }

    /// An object that was put in because a recording knew better may have taken the place of a writer's.
    fn admit(&mut self, key: KeyId, work: &mut Work) {
        let promise = self.staged[key.0 as usize].take().unwrap_or_else(|| self.fill(key, work));
        self.resident[key.0 as usize] = Some(Arc::clone(&promise));
        work.steps.push(Step::Publish(promise));
    }

    fn load(&mut self, adapter: usize, key: KeyId) -> Loading {
        let (bytes, promise) = (self.bytes_of(key), Arc::new(Promise::default()));
        let tier = &mut self.behind[adapter];
        tier.on_way.entry(key).or_default().push_back(Arc::clone(&promise));
        let loading = tier.loading.entry(key).or_default();
        loading.retain(|promise| promise.strong_count() > 0);
        loading.push(Arc::downgrade(&promise));
        // A recording may tell of copies that were never begun.
        let from = tier.present.get(&key).cloned().unwrap_or_else(Arrival::never);
        Loading { key, bytes, from, promise }
    }

    /// A load of `key` has ended in the time of the recording.
    fn loaded(&mut self, adapter: usize, key: KeyId) -> Option<Arc<Promise>> {
        let on_way = &mut self.behind[adapter].on_way;
        let promises = on_way.get_mut(&key)?;
        let promise = promises.pop_front();
        if promises.is_empty() {
            on_way.remove(&key);
        }
        promise
    }

    fn copy(&mut self, adapter: usize, keys: &[KeyId], work: &mut Work) {
        let (mut objects, mut bytes) = (Vec::new(), 0);
        for &key in keys {
            let arrival = Arc::new(Arrival::default());
            self.behind[adapter].coming.entry(key).or_default().push_back(Arc::clone(&arrival));
            let promise = self.resident[key.0 as usize].clone().expect("what is copied is there");
            bytes += self.bytes_of(key);
            objects.push(Storing { key, promise, arrival });
        }
        work.errands.push((adapter, Errand::Store(objects), bytes));
    }

    /// Copies have arrived in the time of the recording.
    fn copied(&mut self, adapter: usize, keys: &[KeyId]) {
        let Tier { coming, present, .. } = &mut self.behind[adapter];
        for key in keys {
            let Some(arrivals) = coming.get_mut(key) else { continue };
            if let Some(arrival) = arrivals.pop_front() {
                present.entry(*key).or_insert(arrival);
            }
            if arrivals.is_empty() {
                coming.remove(key);
            }
        }
    }

    /// The copies that began last do not count: their bytes go, unless there are others.
    fn drop_copy(&mut self, adapter: usize, keys: &[KeyId], work: &mut Work) {
        for key in keys {
            let Tier { coming, present, .. } = &mut self.behind[adapter];
            let Some(arrivals) = coming.get_mut(key) else { continue };
            arrivals.pop_back();
            if arrivals.is_empty() {
                coming.remove(key);
            }
            if !present.contains_key(key) {
                self.delete(adapter, *key, work);
            }
        }
    }

    /// An object goes, unless it is about to come again: then its bytes stay.
    fn delete(&mut self, adapter: usize, key: KeyId, work: &mut Work) {
        let Tier { coming, present, loading, .. } = &mut self.behind[adapter];
        present.remove(&key);
        if !coming.contains_key(&key) {
            let loading = loading.remove(&key).unwrap_or_default();
            work.errands.push((adapter, Errand::Delete { key, loading }, 0));
        }
    }

    /// Hands work out; whether it was taken.
    fn hand_out(&mut self, worker: usize, call: Option<Call>, work: Work) -> ControlFlow<()> {
        let Work { steps, errands } = work;
        if call.is_some() || !steps.is_empty() {
            let sent = self.jobs[worker].send(Job { call, steps });
            if sent.is_err() {
                return ControlFlow::Break(());
            }
        }
        for (adapter, errand, bytes) in errands {
            self.backlogs[adapter].add(bytes);
            if self.errands[adapter].send((errand, bytes)).is_err() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn call(&mut self, act: &Act<'_>, due: Option<Instant>) -> Call {
        self.measured += 1;
        Call { kind: kind_of(act), due, number: self.measured - 1 }
    }

    /// The thread that makes the calls of a caller.
    fn worker_of(&mut self, thread: Option<u32>, act: &Act<'_>) -> usize {
        self.chains += usize::from(matches!(act, Act::Prefetch(_)));
        thread.map_or(self.chains, |thread| thread as usize) % self.jobs.len()
    }
}

impl Listener for Director<'_> {
    fn made(&mut self, made: &Made<'_>) -> Result<ControlFlow<()>> {
        if self.is_stopped() {
            self.interrupted = true;
            return Ok(ControlFlow::Break(()));
        }
        let worker = self.worker_of(made.thread, &made.act);
        let before = self.follow(made.before);
        if self.hand_out(worker, None, before).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.learn(&made.act);
        let is_measured = made.at >= self.from && !matches!(made.act, Act::GiveBack(..));
        let due = if is_measured { self.wait_for(made.at) } else { None };
        // Objects are read as they are now, whatever the call changes.
        let read = match made.act {
            Act::Enter(keys) if made.fates.iter().all(|fate| *fate == Fate::Done) => {
                let object = |key: &KeyId| Some((*key, self.resident[key.0 as usize].clone()?));
                Some(Step::Read(keys.iter().filter_map(object).collect()))
            }
            _ => None,
        };
        let mut work = self.follow(made.because);
        work.steps.extend(read);
        let call = is_measured.then(|| self.call(&made.act, due));
        Ok(self.hand_out(worker, call, work))
    }

    fn ended(&mut self, after: &[Note]) -> Result<()> {
        if self.interrupted {
            return Ok(());
        }
        let work = self.follow(after);
        let _ = self.hand_out(0, None, work);
        Ok(())
    }
}

fn kind_of(act: &Act<'_>) -> Kind {
    match act {
        Act::Prefetch(_) => Kind::Prefetch,
        Act::Reserve { .. } => Kind::ReserveWrite,
        Act::FinishWrite(_) => Kind::FinishWrite,
        Act::Enter(_) => Kind::ReadEnter,
        Act::Exit(_) => Kind::ReadExit,
        Act::Release(..) | Act::GiveBack(..) => Kind::FinishRead,
    }
}
