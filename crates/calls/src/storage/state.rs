//! What all threads of the storage layer share. Decisions are made under one lock; no byte moves under it,
//! and no object is freed under it.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use wavetank_model::{Fate, KeyId, Nanos, Prefetch, Recorded, StorageCall};
use xxhash_rust::xxh3::xxh3_64;

use super::background::{PAUSE, STEP};
use super::deadlines::Deadlines;
use super::fetches::Fetches;
use super::journal::{Called, Journal, thread_number};
use super::names::Names;
use super::presence::Presence;
use super::tenant::TenantBytes;
use super::{Held, Then};
use crate::bytes::{Depot, Object, Parcel, Pool, Wanted};
use crate::engine::Engine;
use crate::grow::grow;
use crate::label::Label;
use crate::note::{Happened, Note};
use crate::prefetch::Fetching;

/// What threads share.
pub(super) struct Shared {
    pub(super) begun: Instant,
    pub(super) depots: Vec<Depot>,
    pub(super) pool: Arc<Pool>,
    pub(super) journal: Option<Arc<dyn Journal>>,
    pub(super) state: Mutex<State>,
    /// Something in the background has ended.
    pub(super) ended: Condvar,
    /// Eviction loops stop.
    pub(super) stop: (Mutex<Stop>, Condvar),
}

/// Whether eviction loops go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    NotYet,
    Now,
}

/// What changes.
pub(super) struct State {
    pub(super) engine: Engine,
    /// Names of objects, where callers give them.
    pub(super) names: Names,
    pub(super) deadlines: Deadlines,
    pub(super) tenants: TenantBytes,
    /// Objects in memory, by key.
    residents: Vec<Option<Arc<Object>>>,
    pub(super) presence: Presence,
    pub(super) fetches: Fetches,
    /// Objects that are not wanted any more, until the lock is given back.
    trash: Trash,
    /// Prefetches whose outcome nobody has asked for; absent while they are under way.
    pub(super) prefetches: HashMap<u64, Option<Vec<Fate>>>,
    pub(super) handles: u64,
    /// Where objects to be stored and deleted go, a queue for each tier behind; none at the end.
    pub(super) errands: Vec<Sender<Errand>>,
    /// Where prefetches go that have something to load.
    pub(super) loads: Option<Sender<Load>>,
    /// Errands and loads that have not ended.
    pub(super) under_way: u64,
    pub(super) flow: Flow,
    /// Room in memory that is being made for objects that are to be written.
    pub(super) promised: u64,
    /// Deletions under way of each key: its number is not given to another name meanwhile.
    deletions: HashMap<KeyId, u32>,
    /// Objects that were written so far: of two of one name the later has the higher number, in every tier.
    pub(super) written: u64,
    journal: Option<Arc<dyn Journal>>,
    notes: Vec<Note>,
    /// Keys that may be known no more.
    idle: Vec<KeyId>,
    pub(super) fates: Vec<Fate>,
}

/// What is on its way to tiers behind and from there, and how much may be.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    /// Bytes on their way to each tier.
    pub(super) storing: Vec<u64>,
    /// More is copied later.
    pub(super) storing_most: u64,
    /// Tiers to which nothing is copied that was put off: what they have is about to go.
    pub(super) ending: Vec<bool>,
    /// Bytes on their way from all tiers.
    pub(super) loading: u64,
    /// More is not brought.
    pub(super) loading_most: u64,
    /// Objects under way to tiers behind, and prefetches that load.
    pub(super) stores: u64,
    pub(super) loads: u64,
    /// Objects that were behind memory and not brought, because too much was under way.
    pub(super) refused_loads: u64,
}

/// Something to be done in a tier behind.
pub(super) enum Errand {
    Store(Vec<Parcel>),
    Delete(KeyId, Box<[u8]>),
}

/// A prefetch with something to load.
pub(super) struct Load {
    pub(super) handle: u64,
    pub(super) asked: Box<Prefetch>,
    pub(super) fetching: Fetching,
    pub(super) wanted: Vec<Wanted>,
    pub(super) ending: Ending,
}

/// Who is told of the end of a prefetch.
pub(super) enum Ending {
    /// Whoever asks.
    Query,
    /// Someone who wants its only object.
    Fetch(Then<Option<Arc<Object>>>),
    /// Someone who wants to hold what came.
    Look(Then<Held>),
}

/// Objects on their way into memory.
#[derive(Default)]
pub(super) struct Incoming {
    /// Most often there is one.
    first: Option<(KeyId, Arc<Object>)>,
    more: HashMap<KeyId, Arc<Object>>,
}

impl Incoming {
    pub(super) fn one(key: KeyId, object: Arc<Object>) -> Self {
        Self { first: Some((key, object)), more: HashMap::new() }
    }

    pub(super) fn of(objects: impl IntoIterator<Item = (KeyId, Object)>) -> Self {
        let more = objects.into_iter().map(|(key, object)| (key, Arc::new(object)));
        Self { first: None, more: more.collect() }
    }

    pub(super) fn has(&self, key: KeyId) -> bool {
        self.first.as_ref().is_some_and(|(first, _)| *first == key) || self.more.contains_key(&key)
    }

    fn take(&mut self, key: KeyId) -> Arc<Object> {
        let first = self.first.take_if(|(first, _)| *first == key).map(|(_, object)| object);
        first.or_else(|| self.more.remove(&key)).expect("an object that comes has bytes")
    }
}

/// Objects that nobody wants; most often there is one.
#[derive(Default)]
struct Trash {
    first: Option<Arc<Object>>,
    more: Vec<Arc<Object>>,
}

impl Trash {
    fn add(&mut self, object: Option<Arc<Object>>) {
        match self.first {
            None => self.first = object,
            Some(_) => self.more.extend(object),
        }
    }
}

impl State {
    pub(super) fn new(mut engine: Engine, tenants: TenantBytes, journal: Option<Arc<dyn Journal>>) -> Self {
        engine.keep_notes();
        Self {
            engine,
            names: Names::default(),
            deadlines: Deadlines::default(),
            tenants,
            residents: Vec::new(),
            presence: Presence::default(),
            fetches: Fetches::default(),
            trash: Trash::default(),
            prefetches: HashMap::new(),
            handles: 0,
            errands: Vec::new(),
            loads: None,
            under_way: 0,
            flow: Flow::default(),
            promised: 0,
            deletions: HashMap::new(),
            written: 0,
            journal,
            notes: Vec::new(),
            idle: Vec::new(),
            fates: Vec::new(),
        }
    }

    /// Keys may be used.
    pub(super) fn know(&mut self, keys: impl Iterator<Item = KeyId>) {
        let Some(most) = keys.map(|key| key.0 as usize + 1).max() else { return };
        if self.residents.len() < most {
            grow(&mut self.residents, most);
            self.presence.grow(most);
            self.engine.know(most);
        }
    }

    /// An object in memory.
    pub(super) fn resident(&self, key: KeyId) -> Option<&Arc<Object>> {
        self.residents.get(key.0 as usize)?.as_ref()
    }

    /// A number for `name`, which has none. The name takes room in memory as long as it has one.
    pub(super) fn number(&mut self, name: &[u8]) -> KeyId {
        let key = self.names.give(name);
        self.engine.set_unnamed(self.engine.unnamed() + name.len() as u64);
        self.know([key].into_iter());
        let tenant = self.tenants.named(name);
        // 0 is nobody.
        self.engine.label(key, Label { tenant, fingerprint: xxh3_64(name).max(1) });
        key
    }

    /// What an object is called in the tiers behind.
    pub(super) fn name(&self, key: KeyId) -> Box<[u8]> {
        self.names.of(key).map_or_else(|| key.0.to_le_bytes().into(), Into::into)
    }

    /// Does to bytes what the engine decided; objects that come are taken from `incoming`.
    pub(super) fn follow(&mut self, incoming: &mut Incoming) {
        let mut notes = std::mem::take(&mut self.notes);
        self.engine.take_notes(&mut notes);
        while !notes.is_empty() {
            self.written += 1;
            for note in notes.drain(..) {
                self.follow_one(note.what, incoming);
            }
            // What is not copied is told to the engine, which has more to say then.
            self.engine.take_notes(&mut notes);
        }
        self.notes = notes;
        self.free_numbers();
    }

    fn follow_one(&mut self, what: Happened, incoming: &mut Incoming) {
        match what {
            Happened::Admitted(key) | Happened::Loaded(_, key) => {
                let object = incoming.take(key);
                self.tenants.enter(self.engine.tenant_of(key), object.len());
                self.residents[key.0 as usize] = Some(object);
                self.notice(key);
            }
            Happened::Freed(key) => {
                let object = self.residents[key.0 as usize].take();
                let bytes = object.as_ref().map_or(0, |object| object.len());
                self.tenants.leave(self.engine.tenant_of(key), bytes);
                self.trash.add(object);
                self.notice(key);
                self.idle.push(key);
            }
            Happened::Copying(adapter, keys) => self.copy(usize::from(adapter), &keys),
            Happened::Deleted(adapter, key) => {
                let errand = Errand::Delete(key, self.name(key));
                if self.send(usize::from(adapter), errand) {
                    *self.deletions.entry(key).or_default() += 1;
                }
                self.notice(key);
                self.idle.push(key);
            }
            Happened::Unstaged(key) | Happened::Unloaded(_, key) => self.idle.push(key),
            Happened::Copied(_, keys) => {
                keys.iter().for_each(|key| self.notice(*key));
                self.idle.extend(&keys);
            }
            Happened::Postponed(_, keys) => self.idle.extend(&keys),
            Happened::Staged(_)
            | Happened::Loading(..)
            | Happened::Lost(..)
            | Happened::Resumed(..)
            | Happened::Passed(..)
            | Happened::Fetched(..)
            | Happened::Found(..)
            | Happened::Removed(_) => {}
        }
    }

    pub(super) fn send(&mut self, adapter: usize, errand: Errand) -> bool {
        let is_sent = self.errands.get(adapter).is_some_and(|queue| queue.send(errand).is_ok());
        self.under_way += u64::from(is_sent);
        is_sent
    }

    /// Looks whether there is an object of `key`, for those that count.
    pub(super) fn notice(&mut self, key: KeyId) {
        self.presence.note(key, self.engine.is_there(key));
    }

    /// Whether names take so much of memory that tiers behind have to let objects go: only then do they get
    /// less. Those of what is being deleted there are about to go.
    pub(super) fn has_many_names(&self) -> bool {
        let each = self.names.bytes() / (self.names.len() as u64).max(1);
        let stay = self.names.bytes().saturating_sub(self.deletions.len() as u64 * each);
        self.engine.capacity().is_some_and(|capacity| stay > capacity / 2)
    }

    /// A deletion in a tier behind has ended.
    pub(super) fn deleted(&mut self, key: KeyId) {
        if let Some(left) = self.deletions.get_mut(&key) {
            *left -= 1;
            if *left == 0 {
                self.deletions.remove(&key);
            }
        }
        self.idle.push(key);
        self.free_numbers();
    }

    /// Numbers that nothing is known under can be given to other names.
    fn free_numbers(&mut self) {
        while let Some(key) = self.idle.pop() {
            if !self.is_known(key) {
                self.free_number(key);
            }
        }
    }

    /// Whether anything is known under a number.
    pub(super) fn is_known(&self, key: KeyId) -> bool {
        self.engine.knows(key) || (!self.deletions.is_empty() && self.deletions.contains_key(&key))
    }

    pub(super) fn free_number(&mut self, key: KeyId) {
        if let Some(name) = self.names.free(key) {
            self.take_unnamed(name.len() as u64);
            self.deadlines.remove(key);
            self.tenants.forget(self.engine.tenant_of(key));
        }
    }

    /// Takes an object out of every tier, and says so; whether there was one.
    pub(super) fn remove(&mut self, key: KeyId) -> bool {
        let was_there = self.engine.force_out(key);
        self.fetches.outdate(key);
        if was_there {
            let keys = || [key].into();
            self.tell(Some(thread_number()), || StorageCall::Removed { keys: keys() }, None);
        }
        was_there
    }

    /// Removes what the names with the numbers from `first` on stand for, a step of them; whether there are
    /// more.
    pub(super) fn remove_some(&mut self, first: u32) -> bool {
        let last = first.saturating_add(STEP as u32);
        for key in (first..last).map(KeyId) {
            if self.names.of(key).is_some() {
                self.remove(key);
            }
        }
        self.follow(&mut Incoming::default());
        (last as usize) < self.names.numbers()
    }

    /// Writes down what happened, if someone does.
    pub(super) fn tell(
        &self,
        thread: Option<u32>,
        call: impl FnOnce() -> StorageCall,
        fates: Option<&[Fate]>,
    ) {
        if let Some(journal) = &self.journal {
            let (outcome, unnamed) = (fates.map(Into::into), self.engine.unnamed());
            let at = self.engine.now();
            let recorded = Recorded { thread, outcome, unnamed, ..Recorded::plain(at, call()) };
            journal.record(recorded, Called(&self.names));
        }
    }

    /// Whether someone writes down what happens.
    pub(super) fn is_told(&self) -> bool {
        self.journal.is_some()
    }
}

/// The state, while nobody else has it. What was thrown away is freed after it is given back.
pub(super) struct Locked<'a>(Option<MutexGuard<'a, State>>);

impl Deref for Locked<'_> {
    type Target = State;
    fn deref(&self) -> &State {
        self.0.as_ref().expect("it is given back last")
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.0.as_mut().expect("it is given back last")
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let trash = std::mem::take(&mut self.trash);
        drop(self.0.take());
        drop(trash);
    }
}

impl Shared {
    /// The state, at this moment of its clock.
    pub(super) fn lock(&self) -> Locked<'_> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.engine.advance(Nanos(self.begun.elapsed().as_nanos() as u64));
        Locked(Some(state))
    }

    /// Takes room for an object of `bytes` that has no name yet; how much. Others get the lock in between.
    pub(super) fn make_room(&self, bytes: u64) -> Option<u64> {
        let mut state = self.lock();
        let mut demand = state.demand(bytes)?;
        while !state.supply(&mut demand)? {
            drop(state);
            std::thread::sleep(PAUSE);
            state = self.lock();
        }
        Some(demand.taken)
    }

    /// The state, to wait with.
    pub(super) fn waiting(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many pieces of background work have ended.
    pub(super) fn end(&self, state: &mut State, count: u64) {
        state.under_way -= count;
        self.ended.notify_all();
    }
}
