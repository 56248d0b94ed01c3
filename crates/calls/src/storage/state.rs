//! What all threads of the storage layer share. Decisions are made under one lock; no byte moves under it.

use std::collections::HashMap;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use wavetank_model::{Fate, KeyId, Nanos, Prefetch, Recorded, StorageCall};

use super::journal::Journal;
use super::names::Names;
use crate::bytes::{Depot, Object, Pool};
use crate::engine::Engine;
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
    /// Objects in memory, by key.
    residents: Vec<Option<Arc<Object>>>,
    /// Prefetches whose outcome nobody has asked for; absent while they are under way.
    pub(super) prefetches: HashMap<u64, Option<Vec<Fate>>>,
    pub(super) handles: u64,
    /// Where objects to be stored and deleted go, a queue for each tier behind; none at the end.
    pub(super) errands: Vec<Sender<Errand>>,
    /// Where prefetches go that have something to load.
    pub(super) loads: Option<Sender<Load>>,
    /// Errands and loads that have not ended.
    pub(super) under_way: u64,
    notes: Vec<Note>,
}

/// Something to be done in a tier behind.
pub(super) enum Errand {
    Store(Vec<(KeyId, Arc<Object>)>),
    Delete(KeyId),
}

/// A prefetch with something to load: each object with its tier behind and its length.
pub(super) struct Load {
    pub(super) handle: u64,
    pub(super) asked: Box<Prefetch>,
    pub(super) fetching: Fetching,
    pub(super) wanted: Vec<(usize, KeyId, u64)>,
}

/// Objects on their way into memory.
pub(super) type Incoming = HashMap<KeyId, Object>;

impl State {
    pub(super) fn new(mut engine: Engine) -> Self {
        engine.keep_notes();
        Self {
            engine,
            names: Names::default(),
            residents: Vec::new(),
            prefetches: HashMap::new(),
            handles: 0,
            errands: Vec::new(),
            loads: None,
            under_way: 0,
            notes: Vec::new(),
        }
    }

    /// Keys may be used.
    pub(super) fn know(&mut self, keys: impl Iterator<Item = KeyId>) {
        let Some(most) = keys.map(|key| key.0 as usize + 1).max() else { return };
        if self.residents.len() < most {
            // Twice as many: keys come one by one, and tables are copied when they grow.
            let most = most.next_power_of_two();
            self.residents.resize(most, None);
            self.engine.know(most);
        }
    }

    /// An object that can be read.
    pub(super) fn resident(&self, key: KeyId) -> Arc<Object> {
        let object = self.residents[key.0 as usize].as_ref();
        Arc::clone(object.expect("what the engine has in memory has bytes"))
    }

    /// Does to bytes what the engine decided; objects that come are taken from `incoming`.
    pub(super) fn follow(&mut self, incoming: &mut Incoming) {
        let mut notes = std::mem::take(&mut self.notes);
        self.engine.take_notes(&mut notes);
        for note in notes.drain(..) {
            match note.what {
                Happened::Admitted(key) | Happened::Loaded(_, key) => {
                    let object = incoming.remove(&key).expect("an object that comes has bytes");
                    self.residents[key.0 as usize] = Some(Arc::new(object));
                }
                Happened::Freed(key) => self.residents[key.0 as usize] = None,
                Happened::Copying(adapter, keys) => {
                    let objects = keys.iter().map(|key| (*key, self.resident(*key))).collect();
                    self.send(adapter, Errand::Store(objects));
                }
                Happened::Deleted(adapter, key) => self.send(adapter, Errand::Delete(key)),
                Happened::Staged(_)
                | Happened::Unstaged(_)
                | Happened::Loading(..)
                | Happened::Unloaded(..)
                | Happened::Copied(..)
                | Happened::Lost(..)
                | Happened::Passed(..)
                | Happened::Fetched(..)
                | Happened::Removed(_) => {}
            }
        }
        self.notes = notes;
    }

    fn send(&mut self, adapter: u8, errand: Errand) {
        let queue = self.errands.get(usize::from(adapter));
        let is_sent = queue.is_some_and(|queue| queue.send(errand).is_ok());
        self.under_way += u64::from(is_sent);
    }
}

impl Shared {
    /// The state, at this moment of its clock.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.engine.advance(Nanos(self.begun.elapsed().as_nanos() as u64));
        state
    }

    /// Writes down what happened, if someone does.
    pub(super) fn tell(
        &self,
        state: &State,
        thread: Option<u32>,
        call: impl FnOnce() -> StorageCall,
        fates: Option<&[Fate]>,
    ) {
        if let Some(journal) = &self.journal {
            let outcome = fates.map(Into::into);
            let at = state.engine.now();
            journal.record(Recorded { thread, outcome, ..Recorded::plain(at, call()) });
        }
    }

    /// So many pieces of background work have ended.
    pub(super) fn end(&self, state: &mut State, count: u64) {
        state.under_way -= count;
        self.ended.notify_all();
    }
}
