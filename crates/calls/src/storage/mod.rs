//! The storage layer for many callers at a time, on the wall clock and with bytes.
//!
//! The engine decides under one lock, and says what is to be done with bytes; callers and threads in the
//! background do it. Whoever keeps a journal can make the same calls again with the same outcomes.

mod background;
mod close;
mod copy;
mod deadlines;
mod fetches;
mod journal;
mod look;
mod named;
mod names;
mod open;
mod presence;
mod set;
mod state;
mod status;
mod tenant;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use wavetank_model::{Error, Fate, KeyId, LayoutId, Prefetch, Result, StorageCall, WriteMode};

use self::journal::thread_number;
pub use self::journal::{Called, Journal};
pub use self::named::{Blank, Got, Held, Hold, Lookup, Only, Set, SetManner, Then};
use self::state::{Ending, Incoming, Load, Shared, State};
pub use self::status::{Status, TierStatus};
use crate::background::Background;
use crate::bytes::{Keeping, Object, Wanted};
use crate::prefetch::Fetching;

/// How a storage layer runs, besides its plan.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageOptions {
    /// How long an eviction loop sleeps before it looks.
    pub eviction_sleep: Duration,
    /// Prefetches that load at a time; the others wait.
    pub prefetches_in_flight: usize,
    /// What stays in tiers whose bytes outlive the process.
    pub keeping: Keeping,
    /// How much may be on its way to each tier behind, and from all of them; more is copied later, or is a
    /// miss. A quarter of memory each when absent.
    pub under_way_bytes: Option<u64>,
    /// How long closing waits for devices.
    pub closing: Duration,
}

impl Default for StorageOptions {
    /// As the reference.
    fn default() -> Self {
        Self {
            eviction_sleep: Duration::from_secs(1),
            prefetches_in_flight: 8,
            keeping: Keeping::Nothing,
            under_way_bytes: None,
            closing: Duration::from_secs(30),
        }
    }
}

/// The storage layer. Dropping it ends what is under way and removes what was written behind, unless that is
/// kept; so does [`Storage::close`], which says whether that worked.
pub struct Storage {
    shared: Arc<Shared>,
    loaders: Vec<JoinHandle<Option<()>>>,
    porters: Vec<JoinHandle<Option<()>>>,
    loops: Vec<JoinHandle<()>>,
    /// What was found in each tier behind.
    recovered: Vec<TierStatus>,
    closing: Duration,
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
            state.tell(Some(self.thread), || StorageCall::ReadExit { keys }, None);
        }
    }
}

/// A prefetch that was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrefetchHandle(u64);

impl Storage {
    /// Begins to write objects of `bytes` each, which `layout` names. What was granted can be written.
    pub fn reserve_write(&self, keys: &[KeyId], layout: LayoutId, bytes: u64) -> (Vec<Fate>, Writing) {
        let mut fates = Vec::with_capacity(keys.len());
        {
            let mut state = self.shared.lock();
            state.know(keys.iter().copied());
            state.engine.reserve_write(keys, bytes, &mut fates);
            let mode = WriteMode::New;
            let call = || StorageCall::ReserveWrite { keys: keys.into(), layout, mode };
            state.tell(Some(thread_number()), call, Some(&fates));
            state.follow(&mut Incoming::default());
        }
        let granted = keys.iter().zip(&fates).filter(|(_, fate)| **fate == Fate::Done);
        let object = |(key, _): (&KeyId, &Fate)| (*key, self.shared.pool.object(bytes as usize));
        let objects = granted.map(object).collect();
        (fates, Writing { objects })
    }

    /// Ends the writing of objects: who was granted them too late or lost them is told.
    pub fn finish_write(&self, writing: Writing) -> Vec<Fate> {
        let keys: Vec<KeyId> = writing.keys().collect();
        let mut incoming = Incoming::of(writing.objects);
        let mut fates = Vec::with_capacity(keys.len());
        let mut state = self.shared.lock();
        state.engine.finish_write(&keys, &mut fates);
        let call = || StorageCall::FinishWrite { keys: keys.into() };
        state.tell(Some(thread_number()), call, Some(&fates));
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
        let wanted = state.wanted(&asked, &fetching);
        asked.handle = (!wanted.is_empty()).then_some(handle);
        let call = || StorageCall::SubmitPrefetch(Box::new(asked.clone()));
        state.tell(Some(thread_number()), call, Some(&fates));
        if wanted.is_empty() {
            fates.clear();
            state.engine.end_prefetch(&asked, fetching, &[], &mut fates);
            state.follow(&mut Incoming::default());
            state.prefetches.insert(handle, Some(fates));
            return Ok(PrefetchHandle(handle));
        }
        state.prefetches.insert(handle, None);
        state.load(Load { handle, asked: Box::new(asked), fetching, wanted, ending: Ending::Query });
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
        let state = self.shared.waiting();
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
        state.tell(Some(thread), call, Some(&fates));
        if fates.iter().all(|fate| *fate == Fate::Done) {
            let resident = |key: &KeyId| Arc::clone(state.resident(*key).expect("what is read is in memory"));
            let objects = keys.iter().map(|key| (*key, resident(key))).collect();
            return Some(Reading { objects, shared: Arc::clone(&self.shared), thread });
        }
        state.engine.read_refused(keys);
        let call = || StorageCall::ReadExit { keys: keys.into() };
        state.tell(Some(thread), call, None);
        state.follow(&mut Incoming::default());
        None
    }

    /// Gives objects back, each `locks` times.
    pub fn finish_read(&self, keys: &[KeyId], locks: u32) -> Vec<Fate> {
        let mut fates = Vec::with_capacity(keys.len());
        let mut state = self.shared.lock();
        state.know(keys.iter().copied());
        state.engine.finish_read(keys, locks, &mut fates);
        let call = || StorageCall::FinishRead { keys: keys.into(), locks };
        state.tell(Some(thread_number()), call, Some(&fates));
        state.follow(&mut Incoming::default());
        fates
    }

    /// Bytes of objects in memory, and in each tier behind it.
    pub fn used(&self) -> (u64, Vec<u64>) {
        let state = self.shared.lock();
        let (l1, behind) = state.engine.used();
        (l1 - state.names.bytes(), behind)
    }

    /// What happened besides calls so far.
    pub fn background(&self) -> Background {
        self.shared.lock().engine.background().clone()
    }

    /// Waits until nothing is under way to or from a tier behind. Eviction loops go on.
    pub fn settle(&self) {
        let state = self.shared.waiting();
        let waited = self.shared.ended.wait_while(state, |state| state.under_way > 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl State {
    /// What a prefetch has to load.
    fn wanted(&self, asked: &Prefetch, fetching: &Fetching) -> Vec<Wanted> {
        let wanted = |(adapter, key)| {
            let bytes = self.engine.bytes_behind(adapter, key);
            Wanted { adapter, key, name: self.name(key), bytes }
        };
        fetching.loads(asked).map(wanted).collect()
    }

    /// Has something loaded.
    fn load(&mut self, load: Load) {
        self.flow.loading += load.wanted.iter().map(|wanted| wanted.bytes).sum::<u64>();
        self.flow.loads += 1;
        self.under_way += 1;
        let is_sent = self.loads.as_ref().is_some_and(|loads| loads.send(load).is_ok());
        assert!(is_sent, "what is behind memory can be loaded until the storage layer is closed");
    }
}
