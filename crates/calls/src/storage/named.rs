//! Objects by name, for servers: what clients write, read, hold and remove.
//!
//! An object is written before it has its name: readers see what was there before or all that is new.

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use wavetank_model::{Fate, FetchPolicy, KeyId};

use super::Storage;
use super::background::{PAUSE, STEP, called};
use super::look::{Begun, Kept, held};
use super::state::{Ending, Incoming, Shared};
use crate::bytes::Object;

/// Room in memory for an object that has no name yet, with whatever was there before. Dropped, it is given
/// back.
pub struct Blank {
    object: Option<Object>,
    /// What it takes of memory.
    taken: u64,
    shared: Weak<Shared>,
}

impl Blank {
    /// Where its bytes go.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.object.as_deref_mut().unwrap_or_default()
    }
}

impl Drop for Blank {
    fn drop(&mut self) {
        if let (Some(_), Some(shared)) = (&self.object, self.shared.upgrade()) {
            shared.lock().take_unnamed(self.taken);
        }
    }
}

/// Which objects may be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Only {
    /// Any.
    #[default]
    Any,
    /// Those that are not there.
    Absent,
    /// Those that are there.
    Present,
}

/// How an object is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetManner {
    /// Only if.
    pub only: Only,
    /// When it is not there any more, if ever.
    pub expires: Option<SystemTime>,
}

/// What became of a write.
pub struct Set {
    /// `Done`, or why not: `Resident`, `Absent`, or `NoMemory` where its tenant may not have so much.
    pub fate: Fate,
    /// What was there before, as far as memory had it.
    pub before: Option<Arc<Object>>,
}

/// Where an object is.
pub enum Got {
    /// In memory.
    Here(Arc<Object>),
    /// Behind memory: [`Storage::fetch`] brings it.
    Behind,
    /// Nowhere.
    Absent,
}

/// Where an object is that is to stay there.
pub enum Hold {
    /// In memory, where it stays as long as it is held.
    Here(Held),
    /// Behind memory: [`Storage::look`] brings it.
    Behind,
    /// Nowhere.
    Absent,
}

/// What a request looks up.
pub struct Lookup<'a> {
    /// A row per rank and object group with a name per chunk; rows are of one length.
    pub rows: &'a [Vec<&'a [u8]>],
    /// Which of the objects found are of use.
    pub policy: FetchPolicy,
    /// The request's name outside.
    pub request: &'a str,
}

/// Objects that stay in memory as long as this does, row by row. Those that are not there hold nothing.
pub struct Held {
    pub(super) cells: Vec<Option<(KeyId, Arc<Object>)>>,
    /// What became of each cell.
    pub fates: Vec<Fate>,
    pub(super) shared: Weak<Shared>,
}

impl Held {
    /// The object of a cell, if it is held.
    pub fn object(&self, cell: usize) -> Option<&Arc<Object>> {
        self.cells.get(cell)?.as_ref().map(|(_, object)| object)
    }

    /// Cells that are held.
    pub fn count(&self) -> usize {
        self.cells.iter().flatten().count()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.count() == 0 {
            return;
        }
        if let Some(shared) = self.shared.upgrade() {
            shared.lock().give_back(self.cells.iter().flatten());
        }
    }
}

/// Who is told when what was looked up is in memory, or has failed: called once, from some thread, holding no
/// lock.
pub type Then<T> = Box<dyn FnOnce(T) + Send>;

impl Storage {
    /// Room for an object of `bytes`; others leave memory for it where they have to, a few at a time. None
    /// where that would not help: too much is held or being copied, or it is larger than memory.
    pub fn room(&self, bytes: u64) -> Option<Blank> {
        let taken = self.shared.make_room(bytes)?;
        let object = Some(self.shared.pool.object(bytes as usize));
        Some(Blank { object, taken, shared: Arc::downgrade(&self.shared) })
    }

    /// Gives what was written its name. What had that name before is nowhere any more, nor does a copy of it
    /// that is under way come back.
    pub fn set(&self, name: &[u8], mut blank: Blank, manner: SetManner) -> Set {
        let object = Arc::new(blank.object.take().expect("it is there until it is dropped"));
        let mut state = self.shared.lock();
        state.take_unnamed(blank.taken);
        state.set(name, object, manner)
    }

    /// An object, if it is in memory; where it is otherwise. It counts as used.
    pub fn get(&self, name: &[u8]) -> Got {
        self.shared.lock().get(name)
    }

    /// Brings an object from behind memory, once for all who ask while it comes. Where too much is under way
    /// already it is not brought.
    pub fn fetch(&self, name: &[u8], then: Then<Option<Arc<Object>>>) {
        let room = self.room_to_fetch(name);
        let mut state = self.shared.lock();
        room.into_iter().for_each(|taken| state.take_unnamed(taken));
        let key = match (state.get(name), state.names.find(name)) {
            (Got::Behind, Some(key)) => key,
            (got, _) => {
                drop(state);
                return called(|| then(got.here()));
            }
        };
        let Some(then) = state.fetches.join(key, then) else { return };
        let lookup = Lookup { rows: &[vec![name]], policy: FetchPolicy::Prefix, request: "" };
        let asked = state.grid(&lookup);
        let begun = state.begin(asked);
        let Some(load) = begun.load else {
            let cell = begun.asked.rows.first().and_then(|row| row.keys.first().copied());
            let object = state.give(cell.zip(begun.fates.first().copied()));
            drop(state);
            return called(|| then(object));
        };
        let load = load.with(begun.asked, Ending::Fetch(then));
        state.fetches.begin(key, load.handle);
        state.load(load);
    }

    /// Takes room for an object that is behind memory, a few others leaving at a time; none if there is room.
    fn room_to_fetch(&self, name: &[u8]) -> Option<u64> {
        let bytes = self.shared.lock().needs_room(name)?;
        self.shared.make_room(bytes)
    }

    /// How long an object is, wherever it is. It does not count as used.
    pub fn size(&self, name: &[u8]) -> Option<u64> {
        let mut state = self.shared.lock();
        let key = state.live(name)?;
        let here = state.resident(key).map(|object| object.len() as u64);
        here.or_else(|| state.engine.bytes_anywhere_behind(key))
    }

    /// Until when an object is there, wherever it is; absent inside where it stays, outside where there is
    /// none. It does not count as used.
    pub fn expires(&self, name: &[u8]) -> Option<Option<SystemTime>> {
        let mut state = self.shared.lock();
        let key = state.live(name).filter(|key| state.engine.is_there(*key))?;
        let until = |until_ms| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(until_ms));
        Some(state.deadlines.of(key).and_then(until))
    }

    /// Holds an object that is in memory, so that it stays. It counts as used.
    pub fn hold(&self, name: &[u8]) -> Hold {
        let mut state = self.shared.lock();
        let Some(key) = state.live(name) else { return Hold::Absent };
        if state.resident(key).is_none() {
            return if state.engine.is_there(key) { Hold::Behind } else { Hold::Absent };
        }
        let asked = state.row_of(key);
        let begun = state.begin(asked);
        let cells = begun.asked.rows.iter().flat_map(|row| &row.keys).copied();
        Hold::Here(held(&self.shared, &state, cells, begun.fates))
    }

    /// Looks names up and holds what is found and of use; what is behind memory is brought. Answers at once
    /// with what was decided, and tells `then` what came of it.
    pub fn look(&self, lookup: &Lookup<'_>, then: Then<Held>) -> Vec<Fate> {
        let (room, kept) = self.room_to_look(lookup);
        let mut state = self.shared.lock();
        room.into_iter().for_each(|taken| state.take_unnamed(taken));
        let asked = state.grid(lookup);
        if asked.columns() == 0 {
            let held = Held { cells: Vec::new(), fates: Vec::new(), shared: Weak::new() };
            drop(state);
            called(|| then(held));
            return Vec::new();
        }
        let Begun { asked, fates, load } = state.begin(asked);
        state.give_back(kept.iter());
        if let Some(load) = load {
            state.load(load.with(asked, Ending::Look(then)));
            return fates;
        }
        let cells = asked.rows.iter().flat_map(|row| &row.keys).copied();
        let held = held(&self.shared, &state, cells, fates.clone());
        drop(state);
        called(|| then(held));
        fates
    }

    /// Takes room for what a lookup has to bring, a few others leaving at a time, and holds what it finds in
    /// memory meanwhile.
    fn room_to_look(&self, lookup: &Lookup<'_>) -> (Option<u64>, Kept) {
        let needed = self.shared.lock().hold_for(lookup);
        let Some((bytes, held)) = needed else { return (None, Vec::new()) };
        (self.shared.make_room(bytes), held)
    }

    /// Removes an object from everywhere; whether it was there. Who reads it goes on reading.
    pub fn remove(&self, name: &[u8]) -> bool {
        let mut state = self.shared.lock();
        let Some(key) = state.live(name) else { return false };
        let was_there = state.remove(key);
        state.follow(&mut Incoming::default());
        was_there
    }

    /// Removes every object that is there from everywhere, a few at a time. What others write meanwhile may
    /// be removed too, or stay.
    pub fn clear(&self) {
        let mut first = 0;
        while self.shared.lock().remove_some(first) {
            first += STEP as u32;
            std::thread::sleep(PAUSE);
        }
    }

    /// Objects there are, wherever they are.
    pub fn len(&self) -> usize {
        self.shared.lock().presence.count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Got {
    fn here(self) -> Option<Arc<Object>> {
        match self {
            Self::Here(object) => Some(object),
            Self::Behind | Self::Absent => None,
        }
    }
}

#[cfg(test)]
mod tests;
