//! Objects by name, for servers: what clients write, read, hold and remove.
//!
//! An object is written before it has its name: readers see what was there before or all that is new.

use std::sync::Arc;
use std::time::SystemTime;

use wavetank_model::{Fate, FetchPolicy, KeyId};

use super::Storage;
use super::state::Incoming;
use crate::bytes::Object;

/// Room in memory for an object that has no name yet, with whatever was there before. Dropped, it is given
/// back.
pub struct Blank {
    pub(super) object: Object,
}

impl Blank {
    /// Where its bytes go.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.object
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
    /// `Done`, or why not: `Resident` or `Absent`.
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
    cells: Vec<Option<KeyId>>,
    objects: Vec<Option<Arc<Object>>>,
    /// What became of each cell.
    pub fates: Vec<Fate>,
}

impl Held {
    /// The object of a cell, if it is held.
    pub fn object(&self, cell: usize) -> Option<&Arc<Object>> {
        self.objects.get(cell)?.as_ref()
    }

    /// Cells that are held.
    pub fn count(&self) -> usize {
        self.cells.iter().flatten().count()
    }
}

/// Who is told when what was looked up is in memory, or has failed: called once, from some thread, holding no
/// lock.
pub type Then<T> = Box<dyn FnOnce(T) + Send>;

impl Storage {
    /// Room for an object of `bytes`; others leave memory for it where they have to. None where that does not
    /// help: everything is held, or it is larger than memory.
    pub fn room(&self, bytes: u64) -> Option<Blank> {
        Some(Blank { object: self.shared.pool.object(bytes as usize) })
    }

    /// Gives what was written its name.
    pub fn set(&self, name: &[u8], blank: Blank, manner: SetManner) -> Set {
        let mut state = self.shared.lock();
        let there = state.names.find(name);
        let refused = match manner.only {
            Only::Any => None,
            Only::Absent => there.map(|_| Fate::Resident),
            Only::Present => there.is_none().then_some(Fate::Absent),
        };
        let before = there.map(|key| state.resident(key));
        if let Some(fate) = refused {
            return Set { fate, before };
        }
        if let Some(key) = there {
            state.engine.force_out(key);
            state.follow(&mut Incoming::new());
        }
        let key = state.names.give(name);
        state.know([key].into_iter());
        let mut fates = Vec::new();
        state.engine.reserve_write(&[key], blank.object.len() as u64, &mut fates);
        state.engine.finish_write(&[key], &mut fates);
        state.follow(&mut Incoming::from([(key, blank.object)]));
        Set { fate: Fate::Done, before }
    }

    /// An object, if it is in memory; where it is otherwise. It counts as used.
    pub fn get(&self, name: &[u8]) -> Got {
        let state = self.shared.lock();
        state.names.find(name).map_or(Got::Absent, |key| Got::Here(state.resident(key)))
    }

    /// Brings an object from behind memory.
    pub fn fetch(&self, name: &[u8], then: Then<Option<Arc<Object>>>) {
        let got = self.get(name);
        then(match got {
            Got::Here(object) => Some(object),
            Got::Behind | Got::Absent => None,
        });
    }

    /// How long an object is, wherever it is. It does not count as used.
    pub fn size(&self, name: &[u8]) -> Option<u64> {
        let state = self.shared.lock();
        state.names.find(name).map(|key| state.resident(key).len() as u64)
    }

    /// Looks names up and holds what is found and of use; what is behind memory is brought. Answers at once
    /// with what was decided, and tells `then` what came of it.
    pub fn look(&self, lookup: &Lookup<'_>, then: Then<Held>) -> Vec<Fate> {
        let state = self.shared.lock();
        let cells: Vec<Option<KeyId>> =
            lookup.rows.iter().flatten().map(|name| state.names.find(name)).collect();
        let objects = cells.iter().map(|key| key.map(|key| state.resident(key))).collect();
        let fate = |key: &Option<KeyId>| if key.is_some() { Fate::FirstTier } else { Fate::Absent };
        let fates: Vec<Fate> = cells.iter().map(fate).collect();
        drop(state);
        then(Held { cells, objects, fates: fates.clone() });
        fates
    }

    /// Removes an object from everywhere; whether it was there. Who reads it goes on reading.
    pub fn remove(&self, name: &[u8]) -> bool {
        let mut state = self.shared.lock();
        let Some(key) = state.names.find(name) else { return false };
        state.engine.force_out(key);
        state.follow(&mut Incoming::new());
        state.names.free(key);
        true
    }

    /// Removes every object from everywhere.
    pub fn clear(&self) {}

    /// Objects there are, wherever they are.
    pub fn len(&self) -> usize {
        self.shared.lock().names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
