//! What goes on behind callers: objects are stored and deleted, prefetches load, eviction loops look.
//!
//! A device that fails is a miss, one that breaks down with a panic fails from then on.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wavetank_model::{Fate, KeyId, StorageCall};

use super::look::held;
use super::state::{Ending, Errand, Incoming, Load, Locked, Shared, Stop};
use crate::bytes::{Freight, Object, Parcel, Wanted};

/// Pieces at a device at a time: of the one thread that stores, and of each that loads.
const STORE_DEPTH: usize = 8;
const LOAD_DEPTH: usize = 4;

/// Objects that leave a tier at a time: nobody waits longer for the lock.
pub(super) const STEP: u64 = 256;

/// How long others may come before the next step.
pub(super) const PAUSE: Duration = Duration::from_micros(50);

/// Objects that are stored together, at most, unless one errand has more; and what they take of memory. So
/// much is under the lock at a time when they have arrived.
const BATCH: usize = 256;
const BATCH_BYTES: u64 = 64 << 20;

/// What one thread carries, until it breaks down.
struct Carrier(Option<Freight>);

impl Carrier {
    /// Does something with bytes; nothing if that breaks down, or did before.
    fn work<R>(&mut self, work: impl FnOnce(&mut Freight) -> R) -> Option<R> {
        let freight = self.0.as_mut()?;
        let done = catch_unwind(AssertUnwindSafe(|| work(freight))).ok();
        if done.is_none() {
            // What is half done in it is not looked at again, nor dropped, which may break down too.
            std::mem::forget(self.0.take());
        }
        done
    }
}

/// Stores and deletes in one tier behind, in the order it was decided.
pub(super) struct Porter {
    shared: Arc<Shared>,
    adapter: usize,
    carrier: Carrier,
    /// What was written and takes longer by the plan, by when it ends and its number.
    slow: BTreeMap<(Instant, u64), Written>,
    /// How often a key is among that, and when the last of it ends.
    coming: HashMap<KeyId, (u32, Instant)>,
    batches: u64,
}

/// Objects that were written, or not.
struct Written {
    keys: Vec<KeyId>,
    failed: Vec<KeyId>,
    /// What they took of memory.
    taken: u64,
    errands: u64,
}

impl Porter {
    pub(super) fn new(shared: &Arc<Shared>, adapter: usize) -> io::Result<Self> {
        let freight = Freight::new(&shared.depots[adapter], &shared.pool, STORE_DEPTH)?;
        Ok(Self {
            shared: Arc::clone(shared),
            adapter,
            carrier: Carrier(Some(freight)),
            slow: BTreeMap::new(),
            coming: HashMap::new(),
            batches: 0,
        })
    }

    /// Until nobody sends errands any more and all that were sent are done.
    pub(super) fn run(mut self, errands: &Receiver<Errand>) {
        while let Some(errand) = self.next(errands) {
            let mut errand = Some(errand);
            while let Some(one) = errand.take() {
                match one {
                    Errand::Store(parcels) => errand = self.store(parcels, errands),
                    Errand::Delete(key, name) => self.delete(key, &name),
                }
            }
        }
    }

    /// The next errand; what ends meanwhile ends.
    fn next(&mut self, errands: &Receiver<Errand>) -> Option<Errand> {
        loop {
            self.end_due();
            let Some(&(first, _)) = self.slow.keys().next() else { return errands.recv().ok() };
            let left = first.saturating_duration_since(Instant::now());
            match errands.recv_timeout(left) {
                Ok(errand) => return Some(errand),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(left),
            }
        }
    }

    /// Stores objects together with those that are next in the queue; what comes after them.
    fn store(&mut self, parcels: Vec<Parcel>, queue: &Receiver<Errand>) -> Option<Errand> {
        let Batch { mut parcels, errands, after } = Batch::of(parcels, queue);
        let begun = Instant::now();
        let keys: Vec<KeyId> = parcels.iter().map(|parcel| parcel.key).collect();
        let taken = parcels.iter().map(|parcel| parcel.taken).sum();
        let bytes = parcels.iter().map(|parcel| parcel.object.len() as u64).sum();
        self.drop_outdated(&mut parcels);
        let failed = self.write(&parcels);
        drop(parcels);
        // Copies of one object end in the order they began.
        let others = keys.iter().filter_map(|key| Some(self.coming.get(key)?.1)).max();
        let ends = begun + self.shared.depots[self.adapter].takes(bytes);
        let ends = others.map_or(ends, |other| ends.max(other));
        for key in &keys {
            let count = self.coming.get(key).map_or(0, |(count, _)| *count);
            self.coming.insert(*key, (count + 1, ends));
        }
        self.batches += 1;
        self.slow.insert((ends, self.batches), Written { keys, failed, taken, errands });
        self.end_due();
        after
    }

    /// What was removed since need not be written.
    fn drop_outdated(&self, parcels: &mut Vec<Parcel>) {
        let state = self.shared.lock();
        let is_slow = |key: &KeyId| self.coming.contains_key(key);
        let is_outdated = |key: &KeyId| state.engine.is_outdated_copy(self.adapter, *key);
        parcels.retain(|parcel| is_slow(&parcel.key) || !is_outdated(&parcel.key));
    }

    /// Writes objects; those that failed. What an earlier object of such a name left is removed.
    fn write(&mut self, parcels: &[Parcel]) -> Vec<KeyId> {
        let failed = self.carrier.work(|freight| freight.put_parcels(parcels));
        let Some(failed) = failed else { return parcels.iter().map(|parcel| parcel.key).collect() };
        let lost: HashSet<KeyId> = failed.iter().copied().collect();
        for parcel in parcels.iter().filter(|parcel| lost.contains(&parcel.key)) {
            self.carrier.work(|freight| freight.remove_named(&parcel.name));
        }
        failed
    }

    /// Tells of what has taken as long as it does.
    fn end_due(&mut self) {
        let now = Instant::now();
        while let Some(first) = self.slow.first_entry().filter(|first| first.key().0 <= now) {
            let Written { keys, failed, taken, errands } = first.remove();
            self.count_out(&keys);
            let mut state = self.shared.lock();
            state.engine.end_copy(self.adapter, &keys, &failed);
            state.flow.storing[self.adapter] -= taken;
            state.flow.stores -= keys.len() as u64;
            let fates = outcome(&keys, &failed);
            let tier = self.adapter as u8 + 1;
            let call = || StorageCall::StoreCompleted { tier, keys: keys.into() };
            state.tell(None, call, Some(&fates));
            state.follow(&mut Incoming::default());
            state.catch_up(self.adapter);
            self.shared.end(&mut state, errands);
        }
    }

    fn count_out(&mut self, keys: &[KeyId]) {
        for key in keys {
            let left = self.coming.get_mut(key).map(|(count, _)| {
                *count -= 1;
                *count
            });
            if left == Some(0) {
                self.coming.remove(key);
            }
        }
    }

    /// Deletes what is not there for the engine: a copy may have ended since it was decided, or be about to.
    fn delete(&mut self, key: KeyId, name: &[u8]) {
        let is_coming = self.coming.contains_key(&key);
        let is_there = is_coming || self.shared.lock().engine.is_behind(self.adapter, key);
        if !is_there {
            self.carrier.work(|freight| freight.remove_named(name));
        }
        let mut state = self.shared.lock();
        state.deleted(key);
        self.shared.end(&mut state, 1);
    }
}

/// Objects that are stored together.
struct Batch {
    parcels: Vec<Parcel>,
    errands: u64,
    /// What was found in the queue after them.
    after: Option<Errand>,
}

impl Batch {
    /// Some objects and those that are next in the queue. Two of one name are never written at a time: the
    /// later one has to be last.
    fn of(parcels: Vec<Parcel>, queue: &Receiver<Errand>) -> Self {
        let mut keys: HashSet<KeyId> = parcels.iter().map(|parcel| parcel.key).collect();
        let mut bytes: u64 = parcels.iter().map(|parcel| parcel.taken).sum();
        let mut batch = Self { parcels, errands: 1, after: None };
        while batch.after.is_none() && batch.parcels.len() < BATCH && bytes < BATCH_BYTES {
            match queue.try_recv() {
                Ok(Errand::Store(more)) if more.iter().all(|parcel| !keys.contains(&parcel.key)) => {
                    keys.extend(more.iter().map(|parcel| parcel.key));
                    bytes += more.iter().map(|parcel| parcel.taken).sum::<u64>();
                    batch.parcels.extend(more);
                    batch.errands += 1;
                }
                Ok(other) => batch.after = Some(other),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        batch
    }
}

/// Loads what prefetches need, one prefetch at a time.
pub(super) struct Loader {
    shared: Arc<Shared>,
    carriers: Vec<Carrier>,
}

impl Loader {
    pub(super) fn new(shared: &Arc<Shared>) -> io::Result<Self> {
        let freights = shared.depots.iter().map(|depot| Freight::new(depot, &shared.pool, LOAD_DEPTH));
        let carriers = freights.map(|freight| Ok(Carrier(Some(freight?))));
        Ok(Self { carriers: carriers.collect::<io::Result<_>>()?, shared: Arc::clone(shared) })
    }

    /// Until nobody sends prefetches any more and all that were sent are over.
    pub(super) fn run(mut self, loads: &Mutex<Receiver<Load>>) {
        loop {
            let next = loads.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(load) = next else { break };
            let objects = self.load(&load.wanted);
            end(&self.shared, load, Incoming::of(objects));
        }
    }

    fn load(&mut self, wanted: &[Wanted]) -> Vec<(KeyId, Object)> {
        let (begun, mut slowest) = (Instant::now(), Duration::ZERO);
        let mut objects = Vec::new();
        for (adapter, carrier) in self.carriers.iter_mut().enumerate() {
            let mut once: Vec<&Wanted> = wanted.iter().filter(|wanted| wanted.adapter == adapter).collect();
            // A key may be asked for twice.
            once.sort_unstable_by_key(|wanted| wanted.key);
            once.dedup_by_key(|wanted| wanted.key);
            let bytes = once.iter().map(|wanted| wanted.bytes).sum();
            slowest = slowest.max(self.shared.depots[adapter].takes(bytes));
            objects.extend(carrier.work(|freight| freight.load_named(&once)).unwrap_or_default());
        }
        std::thread::sleep(slowest.saturating_sub(begun.elapsed()));
        objects
    }
}

/// A prefetch is over: what it was for goes on.
fn end(shared: &Arc<Shared>, load: Load, mut incoming: Incoming) {
    let Load { handle, asked, fetching, wanted, ending } = load;
    let keys: Vec<KeyId> = wanted.iter().map(|wanted| wanted.key).collect();
    let failed: Vec<KeyId> = keys.iter().copied().filter(|key| !incoming.has(*key)).collect();
    let mut fates = Vec::new();
    let mut state = shared.lock();
    state.flow.loading -= wanted.iter().map(|wanted| wanted.bytes).sum::<u64>();
    state.flow.loads -= 1;
    state.engine.end_prefetch(&asked, fetching, &failed, &mut fates);
    let came = outcome(&keys, &failed);
    let call = || StorageCall::PrefetchCompleted { handle, keys: keys.into() };
    state.tell(None, call, Some(&came));
    state.follow(&mut incoming);
    let mut cells = asked.rows.iter().flat_map(|row| &row.keys).copied();
    match ending {
        Ending::Query => {
            state.prefetches.insert(handle, Some(fates));
            shared.end(&mut state, 1);
        }
        Ending::Fetch(then) => {
            let cell = cells.by_ref().zip(fates).next().expect("someone wants one object");
            let (object, others) = state.fetched(handle, cell);
            ended(shared, state);
            for then in [then].into_iter().chain(others) {
                called(|| then(object.clone()));
            }
        }
        Ending::Look(then) => {
            let held = held(shared, &state, cells, fates);
            ended(shared, state);
            called(|| then(held));
        }
    }
}

fn ended(shared: &Shared, mut state: Locked<'_>) {
    shared.end(&mut state, 1);
}

/// Calls someone else's code: what breaks down there has said so, and ends nothing here.
pub(super) fn called(then: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(then));
}

/// The eviction loop of a tier: it sleeps, then looks. That of memory also lets go of what has had its time.
pub(super) fn evict(shared: &Shared, tier: usize, sleep: Duration) {
    let (stop, stopped) = &shared.stop;
    loop {
        let guard = stop.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = stopped.wait_timeout_while(guard, sleep, |stop| *stop == Stop::NotYet);
        if *waited.unwrap_or_else(PoisonError::into_inner).0 == Stop::Now {
            return;
        }
        if tier == 0 {
            while expire(shared) > 0 {
                std::thread::sleep(PAUSE);
            }
        }
        let mut asked = asked(shared, tier);
        while asked > 0 {
            let left = pass(shared, tier, asked.min(STEP));
            asked = if left < asked.min(STEP) { 0 } else { asked - left };
            // Who waits for the lock would not get it from a thread that takes it again at once.
            std::thread::sleep(if asked > 0 { PAUSE } else { Duration::ZERO });
        }
    }
}

/// How many objects are to leave a tier.
fn asked(shared: &Shared, tier: usize) -> u64 {
    let state = shared.lock();
    let share = || (tier > 0 && state.has_many_names()).then(|| state.engine.share(tier));
    state.engine.asked(tier).or_else(share).unwrap_or(0)
}

/// Lets up to `most` objects leave a tier, if it still has reason to; how many.
fn pass(shared: &Shared, tier: usize, most: u64) -> u64 {
    let mut state = shared.lock();
    let most = Some(most as u32);
    // A look that finds no reason changes nothing.
    let Some(left) = state.engine.pass_up_to(tier, most) else { return 0 };
    let evicted = left as u32;
    state.tell(None, || StorageCall::EvictionPass { tier: tier as u8, evicted, most }, None);
    state.follow(&mut Incoming::default());
    left
}

/// Removes some of what has had its time; how many.
fn expire(shared: &Shared) -> usize {
    let mut state = shared.lock();
    let due = state.deadlines.due(STEP as usize);
    for &key in &due {
        state.remove(key);
        state.deadlines.remove(key);
    }
    state.follow(&mut Incoming::default());
    due.len()
}

fn outcome(keys: &[KeyId], failed: &[KeyId]) -> Vec<Fate> {
    let failed: HashSet<&KeyId> = failed.iter().collect();
    keys.iter().map(|key| if failed.contains(key) { Fate::Failed } else { Fate::Done }).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use wavetank_store::Existing;

    use super::*;
    use crate::bytes::Pool;

    fn parcel(pool: &Arc<Pool>, key: u32, taken: u64) -> Parcel {
        let (object, name) = (Arc::new(pool.object(1)), key.to_le_bytes().into());
        let existing = Existing::Replace;
        Parcel { key: KeyId(key), name, object, taken, existing, number: 0, expires_s: 0 }
    }

    /// Broken by: a batch of all that is queued, one that is bounded by objects or by bytes only, and two
    /// objects of one name in one.
    #[test]
    fn a_backlog_is_stored_in_batches() {
        let (pool, (sender, queue)) = (Pool::new(None), channel());
        let send = |key, taken| sender.send(Errand::Store(vec![parcel(&pool, key, taken)])).unwrap();
        (1..1000).for_each(|key| send(key, 1));
        let sizes: Vec<usize> = std::iter::repeat_with(|| queue.try_recv().ok())
            .map_while(|first| match first? {
                Errand::Store(parcels) => Some(Batch::of(parcels, &queue).parcels.len()),
                Errand::Delete(..) => None,
            })
            .collect();
        assert_eq!(sizes, [256, 256, 256, 231]);
        (1..5).for_each(|key| send(key, BATCH_BYTES / 2));
        assert_eq!(Batch::of(vec![parcel(&pool, 0, 0)], &queue).errands, 3);
        send(3, 1);
        let batch = Batch::of(vec![parcel(&pool, 0, 0)], &queue);
        assert_eq!((batch.errands, batch.after.is_none()), (3, true));
        let batch = Batch::of(vec![parcel(&pool, 3, 0)], &queue);
        assert!(batch.errands == 1 && matches!(batch.after, Some(Errand::Store(_))));
    }
}
