//! The threads that move bytes. Each takes its work in the order it was decided, and waits only for work that
//! was decided before: the earliest that is not done is never waiting, so nothing waits for ever. After a
//! stop what they have in hand is finished, and the rest given up, so that nobody waits for that either.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use wavetank_model::{KeyId, Nanos};
use wavetank_store::payload;

use super::promise::{Arrival, Promise};
use super::report::{Gauge, Kind, Measured};
use super::{Contents, Keep, NAP};
use crate::bytes::{Depot, Freight, Object, Pool};

/// Pieces at a device at a time: of a thread that makes calls, and of the one that stores.
const LOAD_DEPTH: usize = 8;
const STORE_DEPTH: usize = 8;

/// What threads share.
pub(super) struct Ground {
    pub(super) depots: Vec<Depot>,
    pub(super) pool: Arc<Pool>,
    pub(super) contents: Contents,
    pub(super) keep: Keep,
    pub(super) stop: Arc<AtomicBool>,
}

impl Ground {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sleeps, unless it is stopped.
    fn sleep_until(&self, moment: Instant) {
        loop {
            let left = moment.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_stopped() {
                return;
            }
            std::thread::sleep(left.min(NAP));
        }
    }
}

/// A call, or what happened in the background before one.
pub(super) struct Job {
    pub(super) call: Option<Call>,
    pub(super) steps: Vec<Step>,
}

/// A call that is measured.
pub(super) struct Call {
    pub(super) kind: Kind,
    /// When it was due, where there is a pace.
    pub(super) due: Option<Instant>,
    /// Its place among those that are.
    pub(super) number: u64,
}

/// What is done with bytes.
pub(super) enum Step {
    /// An object is written.
    Fill { key: KeyId, bytes: u64, promise: Arc<Promise> },
    /// It can be read from now on.
    Publish(Arc<Promise>),
    /// Objects come from a tier behind.
    Load { adapter: usize, objects: Vec<Loading> },
    /// Objects are read.
    Read(Vec<(KeyId, Arc<Promise>)>),
}

impl Step {
    /// It is not done, and nobody waits for it.
    fn give_up(self) {
        match self {
            Self::Fill { promise, .. } | Self::Publish(promise) => promise.give_up(),
            Self::Load { objects, .. } => objects.iter().for_each(|object| object.promise.give_up()),
            Self::Read(_) => {}
        }
    }
}

/// An object that comes from a tier behind.
pub(super) struct Loading {
    pub(super) key: KeyId,
    pub(super) bytes: u64,
    pub(super) from: Arc<Arrival>,
    pub(super) promise: Arc<Promise>,
}

/// Makes calls.
pub(super) struct Worker {
    ground: Arc<Ground>,
    freights: Vec<Freight>,
    measured: Measured,
    /// Where objects that are read are copied to.
    desk: Vec<u8>,
}

/// What steps of a job did.
#[derive(Default)]
struct Sum {
    bytes: u64,
    errors: u64,
    wrong: u64,
}

impl Worker {
    pub(super) fn new(ground: &Arc<Ground>) -> io::Result<Self> {
        let freight = |depot: &Depot| Freight::new(depot, &ground.pool, LOAD_DEPTH);
        Ok(Self {
            freights: ground.depots.iter().map(freight).collect::<io::Result<_>>()?,
            measured: Measured::new(ground.depots.len()),
            ground: Arc::clone(ground),
            desk: Vec::new(),
        })
    }

    pub(super) fn run(mut self, jobs: &Receiver<Job>) -> Measured {
        while let Ok(Job { call, steps }) = jobs.recv() {
            let (begun, mut sum) = (Instant::now(), Sum::default());
            let mut read = Vec::new();
            for step in steps {
                if self.ground.is_stopped() {
                    step.give_up();
                } else {
                    self.step(step, &mut sum, &mut read);
                }
            }
            if let Some(call) = call {
                self.record(&call, begun, &sum);
            }
            // Comparing is not part of the call.
            sum.wrong += read.iter().filter(|(key, object)| !self.is_right(*key, object)).count() as u64;
            self.measured.wrong += sum.wrong;
        }
        self.measured
    }

    fn record(&mut self, call: &Call, begun: Instant, sum: &Sum) {
        let keeps = self.ground.keep == Keep::Each;
        if self.ground.is_stopped() {
            // What is missing now was given up, and tells nothing of a device.
            self.measured.dropped += 1;
            self.measured.each.extend(keeps.then_some((call.number, None)));
            return;
        }
        let gauge = &mut self.measured.calls[call.kind as usize];
        gauge.bytes += sum.bytes;
        gauge.errors += sum.errors;
        gauge.failed += u64::from(sum.errors > 0);
        let worked = begun.elapsed();
        let late = call.due.map_or(Duration::ZERO, |due| begun.saturating_duration_since(due));
        let took = nanos(late + worked);
        gauge.latencies.record(took);
        self.measured.late.record(nanos(late));
        self.measured.each.extend(keeps.then_some((call.number, Some(took))));
    }

    fn step(&mut self, step: Step, sum: &mut Sum, read: &mut Vec<(KeyId, Arc<Object>)>) {
        match step {
            Step::Fill { key, bytes, promise } => {
                let mut object = self.ground.pool.object(bytes as usize);
                self.ground.contents.write(key, &mut object);
                promise.fill(object);
                sum.bytes += bytes;
            }
            Step::Publish(promise) => sum.errors += u64::from(!promise.publish()),
            Step::Load { adapter, objects } => self.load(adapter, objects, sum),
            Step::Read(objects) => {
                for (key, promise) in objects {
                    let Some(object) = promise.wait() else {
                        sum.errors += 1;
                        continue;
                    };
                    self.desk.clear();
                    self.desk.extend_from_slice(&object);
                    sum.bytes += object.len() as u64;
                    read.push((key, object));
                }
            }
        }
    }

    fn load(&mut self, adapter: usize, objects: Vec<Loading>, sum: &mut Sum) {
        let there: Vec<bool> = objects.iter().map(|object| self.is_there(&object.from)).collect();
        let begun = Instant::now();
        let wanted = objects.iter().zip(there).filter(|(_, there)| *there);
        let wanted: Vec<(KeyId, u64)> = wanted.map(|(object, _)| (object.key, object.bytes)).collect();
        let bytes = wanted.iter().map(|(_, bytes)| bytes).sum();
        let mut came: std::collections::HashMap<KeyId, Object> =
            self.freights[adapter].load(&wanted).into_iter().collect();
        self.ground.sleep_until(begun + self.ground.depots[adapter].takes(bytes));
        let failed = u64::from(!self.ground.is_stopped());
        let gauge = &mut self.measured.loads[adapter];
        gauge.latencies.record(Nanos(begun.elapsed().as_nanos() as u64));
        for Loading { key, promise, .. } in objects {
            let object = came.remove(&key);
            match &object {
                Some(object) => {
                    gauge.objects += 1;
                    gauge.bytes += object.len() as u64;
                    sum.bytes += object.len() as u64;
                }
                None => {
                    gauge.errors += failed;
                    sum.errors += failed;
                }
            }
            promise.arrive(object);
        }
    }

    /// Waits for a copy behind; whether it is there.
    fn is_there(&self, copy: &Arrival) -> bool {
        let at = copy.wait();
        at.inspect(|at| self.ground.sleep_until(*at)).is_some()
    }

    fn is_right(&self, key: KeyId, object: &Object) -> bool {
        self.ground.contents.is_right(key, object)
    }
}

fn nanos(span: Duration) -> Nanos {
    Nanos(span.as_nanos() as u64)
}

impl Contents {
    fn seed_of(self, key: KeyId) -> Option<u64> {
        match self {
            Self::Zeros => None,
            Self::Seeded(seed) => Some(seed ^ (u64::from(key.0) << 32 | u64::from(key.0))),
        }
    }

    fn write(self, key: KeyId, out: &mut [u8]) {
        match self.seed_of(key) {
            None => out.fill(0),
            Some(seed) => payload::fill(seed, 0, out),
        }
    }

    fn is_right(self, key: KeyId, object: &[u8]) -> bool {
        let Some(seed) = self.seed_of(key) else { return true };
        let mut block = [0; BLOCK];
        (0..).step_by(BLOCK).zip(object.chunks(BLOCK)).all(|(offset, chunk)| {
            let made = &mut block[..chunk.len()];
            payload::fill(seed, offset, made);
            made == chunk
        })
    }
}

/// Contents are compared in parts of this size, a multiple of the payload's own block.
const BLOCK: usize = 64 * 1024;

/// Something to be done in a tier behind.
pub(super) enum Errand {
    Store(Vec<Storing>),
    /// An object goes, once those who load it have.
    Delete {
        key: KeyId,
        loading: Vec<Weak<Promise>>,
    },
}

/// An object on its way to a tier behind.
pub(super) struct Storing {
    pub(super) key: KeyId,
    pub(super) promise: Arc<Promise>,
    pub(super) arrival: Arc<Arrival>,
}

/// Bytes that wait to be stored: memory holds them although the engine may not count them any more.
pub(super) struct Backlog {
    bytes: Mutex<u64>,
    less: Condvar,
}

/// So many may wait; one batch always may.
const BACKLOG_BYTES: u64 = 256 << 20;

impl Backlog {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { bytes: Mutex::new(0), less: Condvar::new() })
    }

    /// Waits until `bytes` more may wait.
    pub(super) fn add(&self, bytes: u64) {
        let held = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |held: &mut u64| *held > 0 && *held + bytes > BACKLOG_BYTES;
        *self.less.wait_while(held, is_full).unwrap_or_else(PoisonError::into_inner) += bytes;
    }

    fn remove(&self, bytes: u64) {
        *self.bytes.lock().unwrap_or_else(PoisonError::into_inner) -= bytes;
        self.less.notify_all();
    }
}

/// Stores and deletes in one tier behind, in the order it was decided.
pub(super) struct Porter {
    ground: Arc<Ground>,
    adapter: usize,
    freight: Freight,
    backlog: Arc<Backlog>,
    measured: Measured,
    /// When the last object that was stored is there.
    last: Instant,
}

impl Porter {
    pub(super) fn new(ground: &Arc<Ground>, adapter: usize, backlog: Arc<Backlog>) -> io::Result<Self> {
        Ok(Self {
            freight: Freight::new(&ground.depots[adapter], &ground.pool, STORE_DEPTH)?,
            measured: Measured::new(ground.depots.len()),
            ground: Arc::clone(ground),
            adapter,
            backlog,
            last: Instant::now(),
        })
    }

    pub(super) fn run(mut self, errands: &Receiver<(Errand, u64)>) -> Measured {
        while let Ok((errand, bytes)) = errands.recv() {
            match errand {
                // What is there is removed in the end.
                Errand::Delete { .. } if self.ground.is_stopped() => {}
                Errand::Store(objects) if self.ground.is_stopped() => {
                    objects.iter().for_each(|object| object.arrival.came(None));
                }
                Errand::Store(objects) => self.store(objects),
                Errand::Delete { key, loading } => {
                    // A promise that is gone was kept.
                    loading.iter().filter_map(Weak::upgrade).for_each(|promise| drop(promise.wait()));
                    self.freight.remove(key);
                }
            }
            self.backlog.remove(bytes);
        }
        self.ground.sleep_until(self.last);
        self.measured
    }

    fn store(&mut self, objects: Vec<Storing>) {
        let there = |storing: &Storing| Some((storing.key, storing.promise.wait()?));
        let batch: Vec<(KeyId, Arc<Object>)> = objects.iter().filter_map(there).collect();
        let begun = Instant::now();
        let bytes: u64 = batch.iter().map(|(_, object)| object.len() as u64).sum();
        let failed = self.freight.put(&batch);
        let ends = (begun + self.ground.depots[self.adapter].takes(bytes)).max(Instant::now());
        self.last = self.last.max(ends);
        let not_stored = u64::from(!self.ground.is_stopped());
        let Gauge { objects: stored, errors, bytes: moved, latencies, .. } =
            &mut self.measured.stores[self.adapter];
        latencies.record(Nanos((ends - begun).as_nanos() as u64));
        for Storing { key, arrival, .. } in objects {
            let object = batch.iter().find(|(other, _)| *other == key).filter(|_| !failed.contains(&key));
            match object {
                Some((_, object)) => {
                    *stored += 1;
                    *moved += object.len() as u64;
                }
                None => *errors += not_stored,
            }
            arrival.came(object.map(|_| ends));
        }
    }
}
