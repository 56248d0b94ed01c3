//! What goes on behind callers: objects are stored and deleted, prefetches load, eviction loops look.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wavetank_model::{Fate, KeyId, StorageCall};

use super::state::{Errand, Incoming, Load, Shared, Stop};
use crate::bytes::{Freight, Object};

/// Pieces at a device at a time: of the one thread that stores, and of each that loads.
const STORE_DEPTH: usize = 8;
const LOAD_DEPTH: usize = 4;

/// Stores and deletes in one tier behind, in the order it was decided.
pub(super) struct Porter {
    shared: Arc<Shared>,
    adapter: usize,
    freight: Freight,
    /// What was written and takes longer by the plan, by when it ends.
    slow: Vec<Written>,
}

/// Objects that were written, or not.
struct Written {
    ends: Instant,
    keys: Vec<KeyId>,
    failed: Vec<KeyId>,
    errands: u64,
}

impl Porter {
    pub(super) fn new(shared: &Arc<Shared>, adapter: usize) -> io::Result<Self> {
        let freight = Freight::new(&shared.depots[adapter], &shared.pool, STORE_DEPTH)?;
        Ok(Self { shared: Arc::clone(shared), adapter, freight, slow: Vec::new() })
    }

    /// Until nobody sends errands any more and all that were sent are done.
    pub(super) fn run(mut self, errands: &Receiver<Errand>) {
        while let Some(errand) = self.next(errands) {
            let mut errand = Some(errand);
            while let Some(one) = errand.take() {
                match one {
                    Errand::Store(objects) => errand = self.store(objects, errands),
                    Errand::Delete(key) => self.delete(key),
                }
            }
        }
    }

    /// The next errand; what ends meanwhile ends.
    fn next(&mut self, errands: &Receiver<Errand>) -> Option<Errand> {
        loop {
            self.end_due();
            let Some(first) = self.slow.iter().map(|written| written.ends).min() else {
                return errands.recv().ok();
            };
            let left = first.saturating_duration_since(Instant::now());
            match errands.recv_timeout(left) {
                Ok(errand) => return Some(errand),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(left),
            }
        }
    }

    /// Stores objects together with those that are next in the queue; what comes after them.
    fn store(&mut self, mut objects: Vec<(KeyId, Arc<Object>)>, queue: &Receiver<Errand>) -> Option<Errand> {
        let (mut errands, mut after) = (1, None);
        while after.is_none() {
            match queue.try_recv() {
                Ok(Errand::Store(more)) => {
                    objects.extend(more);
                    errands += 1;
                }
                Ok(delete) => after = Some(delete),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        let (begun, bytes) = (Instant::now(), objects.iter().map(|(_, object)| object.len() as u64).sum());
        let failed = self.freight.put(&objects);
        let keys = objects.into_iter().map(|(key, _)| key).collect();
        let ends = begun + self.shared.depots[self.adapter].takes(bytes);
        self.slow.push(Written { ends, keys, failed, errands });
        self.end_due();
        after
    }

    /// Tells of what has taken as long as it does.
    fn end_due(&mut self) {
        let now = Instant::now();
        let mut due: Vec<Written> = self.slow.extract_if(.., |written| written.ends <= now).collect();
        due.sort_by_key(|written| written.ends);
        for Written { keys, failed, errands, .. } in due {
            let mut state = self.shared.lock();
            state.engine.end_copy(self.adapter, &keys, &failed);
            let fates = outcome(&keys, &failed);
            let tier = self.adapter as u8 + 1;
            let call = || StorageCall::StoreCompleted { tier, keys: keys.into() };
            self.shared.tell(&state, None, call, Some(&fates));
            state.follow(&mut Incoming::new());
            self.shared.end(&mut state, errands);
        }
    }

    /// Deletes what is not there for the engine: a copy may have ended since it was decided, or be about to.
    fn delete(&mut self, key: KeyId) {
        let is_coming = self.slow.iter().any(|written| written.keys.contains(&key));
        let is_there = is_coming || self.shared.lock().engine.is_behind(self.adapter, key);
        if !is_there {
            self.freight.remove(key);
        }
        let mut state = self.shared.lock();
        self.shared.end(&mut state, 1);
    }
}

/// Loads what prefetches need, one prefetch at a time.
pub(super) struct Loader {
    shared: Arc<Shared>,
    freights: Vec<Freight>,
}

impl Loader {
    pub(super) fn new(shared: &Arc<Shared>) -> io::Result<Self> {
        let freights = shared.depots.iter().map(|depot| Freight::new(depot, &shared.pool, LOAD_DEPTH));
        Ok(Self { freights: freights.collect::<io::Result<_>>()?, shared: Arc::clone(shared) })
    }

    /// Until nobody sends prefetches any more and all that were sent are over.
    pub(super) fn run(mut self, loads: &Mutex<Receiver<Load>>) {
        loop {
            let next = loads.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(load) = next else { break };
            let incoming = self.load(&load.wanted);
            self.end(load, incoming);
        }
    }

    fn load(&mut self, wanted: &[(usize, KeyId, u64)]) -> Incoming {
        let (begun, mut slowest) = (Instant::now(), Duration::ZERO);
        let mut incoming = Incoming::new();
        for (adapter, freight) in self.freights.iter_mut().enumerate() {
            let from_here = wanted.iter().filter(|(from, ..)| *from == adapter);
            let mut once: Vec<(KeyId, u64)> = from_here.map(|&(_, key, bytes)| (key, bytes)).collect();
            // A key may be asked for twice.
            once.sort_unstable();
            once.dedup();
            let bytes = once.iter().map(|(_, bytes)| bytes).sum();
            slowest = slowest.max(self.shared.depots[adapter].takes(bytes));
            incoming.extend(freight.load(&once));
        }
        std::thread::sleep(slowest.saturating_sub(begun.elapsed()));
        incoming
    }

    fn end(&self, load: Load, mut incoming: Incoming) {
        let Load { handle, asked, fetching, wanted } = load;
        let keys: Vec<KeyId> = wanted.iter().map(|(_, key, _)| *key).collect();
        let failed: Vec<KeyId> = keys.iter().copied().filter(|key| !incoming.contains_key(key)).collect();
        let mut fates = Vec::new();
        let mut state = self.shared.lock();
        state.engine.end_prefetch(&asked, fetching, &failed, &mut fates);
        let came = outcome(&keys, &failed);
        let call = || StorageCall::PrefetchCompleted { handle, keys: keys.into() };
        self.shared.tell(&state, None, call, Some(&came));
        state.follow(&mut incoming);
        state.prefetches.insert(handle, Some(fates));
        self.shared.end(&mut state, 1);
    }
}

/// The eviction loop of a tier: it sleeps, then looks.
pub(super) fn evict(shared: &Shared, tier: usize, sleep: Duration) {
    let (stop, stopped) = &shared.stop;
    loop {
        let guard = stop.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = stopped.wait_timeout_while(guard, sleep, |stop| *stop == Stop::NotYet);
        if *waited.unwrap_or_else(PoisonError::into_inner).0 == Stop::Now {
            return;
        }
        let mut state = shared.lock();
        // A look that finds no reason changes nothing.
        let Some(evicted) = state.engine.pass(tier) else { continue };
        let evicted = u32::try_from(evicted).unwrap_or(u32::MAX);
        let call = || StorageCall::EvictionPass { tier: tier as u8, evicted };
        shared.tell(&state, None, call, None);
        state.follow(&mut Incoming::new());
    }
}

fn outcome(keys: &[KeyId], failed: &[KeyId]) -> Vec<Fate> {
    keys.iter().map(|key| if failed.contains(key) { Fate::Failed } else { Fate::Done }).collect()
}
