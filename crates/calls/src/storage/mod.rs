//! The storage layer for many callers at a time, on the wall clock and with bytes.
//!
//! The engine decides under one lock, and says what is to be done with bytes; callers and threads in the
//! background do it. Whoever keeps a journal can make the same calls again with the same outcomes.

mod background;
mod journal;
mod named;
mod names;
mod state;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wavetank_model::{Error, Fate, KeyId, LayoutId, Prefetch, Result, StorageCall, WriteMode};

use self::background::{Loader, Porter, evict};
pub use self::journal::Journal;
use self::journal::thread_number;
pub use self::named::{Blank, Got, Held, Lookup, Only, Set, SetManner, Then};
use self::state::{Incoming, Load, Shared, State, Stop};
use crate::bytes::{Depot, Object, Pool, start, start_with};
use crate::engine::{Background, Engine, Tempo};
use crate::plan::Plan;

/// How a storage layer runs, besides its plan.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageOptions {
    /// How long an eviction loop sleeps before it looks.
    pub eviction_sleep: Duration,
    /// Prefetches that load at a time; the others wait.
    pub prefetches_in_flight: usize,
}

impl Default for StorageOptions {
    /// As the reference.
    fn default() -> Self {
        Self { eviction_sleep: Duration::from_secs(1), prefetches_in_flight: 8 }
    }
}

/// The storage layer. Dropping it ends what is under way and removes what was written behind; so does
/// [`Storage::close`], which says whether that worked.
pub struct Storage {
    shared: Arc<Shared>,
    loaders: Vec<JoinHandle<Option<()>>>,
    porters: Vec<JoinHandle<Option<()>>>,
    loops: Vec<JoinHandle<()>>,
}

/// Objects that a caller may write: each has the length that was asked for, and whatever was there before.
#[derive(Default)]
pub struct Writing {
    objects: Vec<(KeyId, Object)>,
}

impl Writing {
    /// The objects, in the order of the call.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (KeyId, &mut [u8])> {
        self.objects.iter_mut().map(|(key, object)| (*key, &mut **object))
    }

    /// Their keys.
    pub fn keys(&self) -> impl Iterator<Item = KeyId> + '_ {
        self.objects.iter().map(|(key, _)| *key)
    }

    /// Parts with the objects that `is_wanted` says, in their order.
    pub fn split(&mut self, mut is_wanted: impl FnMut(KeyId) -> bool) -> Self {
        Self { objects: self.objects.extract_if(.., |(key, _)| is_wanted(*key)).collect() }
    }
}

/// Objects that are being read; they live as long as this does.
pub struct Reading {
    objects: Vec<(KeyId, Arc<Object>)>,
    shared: Arc<Shared>,
    thread: u32,
}

impl Reading {
    /// The objects, in the order of the call.
    pub fn iter(&self) -> impl Iterator<Item = (KeyId, &Arc<Object>)> {
        self.objects.iter().map(|(key, object)| (*key, object))
    }
}

impl Drop for Reading {
    /// The read ends. Its locks stay until they are given back.
    fn drop(&mut self) {
        if self.shared.journal.is_some() {
            let keys = self.objects.iter().map(|(key, _)| *key).collect();
            let state = self.shared.lock();
            self.shared.tell(&state, Some(self.thread), || StorageCall::ReadExit { keys }, None);
        }
    }
}

/// A prefetch that was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrefetchHandle(u64);

impl Storage {
    /// An empty one. `journal` hears of all that happens, if there is one.
    pub fn open(plan: &Plan, options: &StorageOptions, journal: Option<Arc<dyn Journal>>) -> Result<Self> {
        let depots = plan.adapters.iter().enumerate().map(|(number, adapter)| Depot::open(adapter, number));
        let shared = Arc::new(Shared {
            begun: Instant::now(),
            depots: depots.collect::<Result<_>>()?,
            pool: Pool::new(plan.l1.capacity_bytes),
            journal,
            state: Mutex::new(State::new(Engine::new(plan, &Tempo::Told)?)),
            ended: Condvar::new(),
            stop: (Mutex::new(Stop::NotYet), Condvar::new()),
        });
        // Whatever fails from here on, dropping it ends the threads that there are.
        let mut storage = Self { shared, loaders: Vec::new(), porters: Vec::new(), loops: Vec::new() };
        if !plan.adapters.is_empty() {
            storage.start_porters()?;
            storage.start_loaders(options.prefetches_in_flight)?;
        }
        let behind = plan.adapters.iter().map(|adapter| adapter.eviction.is_some());
        for tier in [true].into_iter().chain(behind).enumerate().filter_map(|(tier, can)| can.then_some(tier))
        {
            let (shared, sleep) = (Arc::clone(&storage.shared), options.eviction_sleep);
            storage.loops.push(start("evict", move || evict(&shared, tier, sleep))?);
        }
        Ok(storage)
    }

    fn start_porters(&mut self) -> Result<()> {
        for adapter in 0..self.shared.depots.len() {
            let (sender, errands) = channel();
            let shared = Arc::clone(&self.shared);
            let porter =
                start_with("store", move || Porter::new(&shared, adapter), move |it| it.run(&errands))?;
            self.porters.push(porter);
            self.shared.lock().errands.push(sender);
        }
        Ok(())
    }

    fn start_loaders(&mut self, count: usize) -> Result<()> {
        let (sender, loads) = channel();
        let loads = Arc::new(Mutex::new(loads));
        for _ in 0..count.max(1) {
            let (shared, loads) = (Arc::clone(&self.shared), Arc::clone(&loads));
            let loader = start_with("load", move || Loader::new(&shared), move |it| it.run(&loads))?;
            self.loaders.push(loader);
        }
        self.shared.lock().loads = Some(sender);
        Ok(())
    }

    /// Begins to write objects of `bytes` each, which `layout` names. What was granted can be written.
    pub fn reserve_write(&self, keys: &[KeyId], layout: LayoutId, bytes: u64) -> (Vec<Fate>, Writing) {
        let mut fates = Vec::with_capacity(keys.len());
        {
            let mut state = self.shared.lock();
            state.know(keys.iter().copied());
            state.engine.reserve_write(keys, bytes, &mut fates);
            let mode = WriteMode::New;
            let call = || StorageCall::ReserveWrite { keys: keys.into(), layout, mode };
            self.shared.tell(&state, Some(thread_number()), call, Some(&fates));
            state.follow(&mut Incoming::new());
        }
        let granted = keys.iter().zip(&fates).filter(|(_, fate)| **fate == Fate::Done);
        let object = |(key, _): (&KeyId, &Fate)| (*key, self.shared.pool.object(bytes as usize));
        let objects = granted.map(object).collect();
        (fates, Writing { objects })
    }

    /// Ends the writing of objects: who was granted them too late or lost them is told.
    pub fn finish_write(&self, writing: Writing) -> Vec<Fate> {
        let keys: Vec<KeyId> = writing.keys().collect();
        let mut incoming: Incoming = writing.objects.into_iter().collect();
        let mut fates = Vec::with_capacity(keys.len());
        let mut state = self.shared.lock();
        state.engine.finish_write(&keys, &mut fates);
        let call = || StorageCall::FinishWrite { keys: keys.into() };
        self.shared.tell(&state, Some(thread_number()), call, Some(&fates));
        state.follow(&mut incoming);
        fates
    }

    /// Looks objects up in all tiers, holds what is found and of use, and loads what is not in memory, in the
    /// background.
    pub fn submit_prefetch(&self, mut asked: Prefetch) -> Result<PrefetchHandle> {
        let columns = asked.columns();
        if columns == 0 || asked.rows.iter().any(|row| row.keys.len() != columns) {
            return Err(Error::usage("a prefetch has rows of equal length, at least one key each"));
        }
        let mut fates = Vec::new();
        let mut state = self.shared.lock();
        state.know(asked.rows.iter().flat_map(|row| &row.keys).copied());
        state.handles += 1;
        let handle = state.handles;
        let fetching = state.engine.begin_prefetch(&asked, &mut fates);
        let of = |(adapter, key)| (adapter, key, state.engine.bytes_behind(adapter, key));
        let wanted: Vec<(usize, KeyId, u64)> = fetching.loads(&asked).map(of).collect();
        asked.handle = (!wanted.is_empty()).then_some(handle);
        let call = || StorageCall::SubmitPrefetch(Box::new(asked.clone()));
        self.shared.tell(&state, Some(thread_number()), call, Some(&fates));
        if wanted.is_empty() {
            fates.clear();
            state.engine.end_prefetch(&asked, fetching, &[], &mut fates);
            state.follow(&mut Incoming::new());
            state.prefetches.insert(handle, Some(fates));
            return Ok(PrefetchHandle(handle));
        }
        state.prefetches.insert(handle, None);
        let load = Load { handle, asked: Box::new(asked), fetching, wanted };
        let is_sent = state.loads.as_ref().is_some_and(|loads| loads.send(load).is_ok());
        assert!(is_sent, "what is behind memory can be loaded until the storage layer is closed");
        state.under_way += 1;
        Ok(PrefetchHandle(handle))
    }

    /// What became of each cell of a prefetch, row by row, once it is over; said once.
    pub fn query(&self, handle: PrefetchHandle) -> Option<Vec<Fate>> {
        let mut state = self.shared.lock();
        state.prefetches.get(&handle.0)?.as_ref()?;
        state.prefetches.remove(&handle.0).flatten()
    }

    /// As [`Self::query`], once it is over; absent if that was said before.
    pub fn wait(&self, handle: PrefetchHandle) -> Option<Vec<Fate>> {
        let state = self.shared.lock();
        let is_under_way = |state: &mut State| matches!(state.prefetches.get(&handle.0), Some(None));
        let waited = self.shared.ended.wait_while(state, is_under_way);
        waited.unwrap_or_else(PoisonError::into_inner).prefetches.remove(&handle.0).flatten()
    }

    /// Objects that the caller holds, all of them or none: where one cannot be read, those that can lose a
    /// lock.
    pub fn read_prefetched(&self, keys: &[KeyId]) -> Option<Reading> {
        let thread = thread_number();
        let mut fates = Vec::with_capacity(keys.len());
        let mut state = self.shared.lock();
        state.know(keys.iter().copied());
        state.engine.read_enter(keys, &mut fates);
        let call = || StorageCall::ReadEnter { keys: keys.into() };
        self.shared.tell(&state, Some(thread), call, Some(&fates));
        if fates.iter().all(|fate| *fate == Fate::Done) {
            let objects = keys.iter().map(|key| (*key, state.resident(*key))).collect();
            return Some(Reading { objects, shared: Arc::clone(&self.shared), thread });
        }
        state.engine.read_refused(keys);
        let call = || StorageCall::ReadExit { keys: keys.into() };
        self.shared.tell(&state, Some(thread), call, None);
        state.follow(&mut Incoming::new());
        None
    }

    /// Gives objects back, each `locks` times.
    pub fn finish_read(&self, keys: &[KeyId], locks: u32) -> Vec<Fate> {
        let mut fates = Vec::with_capacity(keys.len());
        let mut state = self.shared.lock();
        state.know(keys.iter().copied());
        state.engine.finish_read(keys, locks, &mut fates);
        let call = || StorageCall::FinishRead { keys: keys.into(), locks };
        self.shared.tell(&state, Some(thread_number()), call, Some(&fates));
        state.follow(&mut Incoming::new());
        fates
    }

    /// Bytes in memory, and in each tier behind it.
    pub fn used(&self) -> (u64, Vec<u64>) {
        self.shared.lock().engine.used()
    }

    /// What happened besides calls so far.
    pub fn background(&self) -> Background {
        self.shared.lock().engine.background().clone()
    }

    /// Waits until nothing is under way to or from a tier behind. Eviction loops go on.
    pub fn settle(&self) {
        let state = self.shared.lock();
        let waited = self.shared.ended.wait_while(state, |state| state.under_way > 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Ends what is under way, and removes what was written.
    pub fn close(mut self) -> Result<()> {
        self.end_threads();
        let shared = Arc::clone(&self.shared);
        drop(self);
        match Arc::try_unwrap(shared) {
            Ok(shared) => shared.depots.into_iter().try_for_each(Depot::clean),
            Err(_) => Err(Error::usage("objects are still being read")),
        }
    }

    /// Loads end first, because they end in stores and deletions; those are the last.
    fn end_threads(&mut self) {
        let (stop, stopped) = &self.shared.stop;
        *stop.lock().unwrap_or_else(PoisonError::into_inner) = Stop::Now;
        stopped.notify_all();
        self.loops.drain(..).for_each(joined);
        self.shared.lock().loads = None;
        self.loaders.drain(..).for_each(joined);
        self.settle();
        self.shared.lock().errands.clear();
        self.porters.drain(..).for_each(joined);
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        self.end_threads();
    }
}

fn joined<T>(thread: JoinHandle<T>) {
    // A thread that panicked has said so.
    let _ = thread.join();
}
