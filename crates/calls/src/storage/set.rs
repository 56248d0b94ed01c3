//! Writing objects by name, as it is decided under the lock.

use std::sync::Arc;
use std::time::SystemTime;

use wavetank_model::{Fate, KeyId, StorageCall, WriteMode};

use super::background::STEP;
use super::deadlines::since_1970_ms;
use super::journal::thread_number;
use super::look::layout;
use super::named::{Only, Set, SetManner};
use super::state::{Incoming, State};
use crate::bytes::Object;

/// Room that is being taken.
pub(super) struct Demand {
    pub(super) taken: u64,
    /// What of it is not taken yet.
    missing: u64,
}

impl State {
    /// So much less of memory is taken by what is no object: room for one without a name, or a name.
    pub(super) fn take_unnamed(&mut self, taken: u64) {
        self.engine.set_unnamed(self.engine.unnamed() - taken);
    }

    /// Lets up to `most` objects leave memory until so much more fits; how many left.
    pub(super) fn make_free(&mut self, bytes: u64, most: u64) -> u64 {
        let left = self.engine.make_free(bytes, most);
        if left > 0 {
            let evicted = u32::try_from(left).unwrap_or(u32::MAX);
            let call = || StorageCall::EvictionPass { tier: 0, evicted, most: Some(evicted) };
            self.tell(None, call, None);
        }
        left
    }

    /// How many objects may leave at a time for so much room: not more than it takes where their names leave
    /// with them, which is not seen before they have.
    fn step(&self, missing: u64) -> u64 {
        let name = self.names.bytes() / (self.names.len() as u64).max(1);
        let is_enough = missing / name.max(1) + 1;
        if self.flow.storing.is_empty() { is_enough.min(STEP) } else { STEP }
    }

    /// What could be used of memory for an object once all has left that can. A name leaves with its object,
    /// unless that is behind memory as well.
    pub(super) fn available(&self) -> u64 {
        let names = if self.flow.storing.is_empty() { self.names.bytes() } else { 0 };
        let room = self.engine.free().saturating_add(self.engine.could_free() + names);
        room.saturating_sub(self.promised)
    }

    /// Begins to take room for an object without a name; nothing if there cannot be so much.
    pub(super) fn demand(&mut self, bytes: u64) -> Option<Demand> {
        let taken = self.engine.taken_by(bytes);
        if taken > self.available() {
            return None;
        }
        self.promised += taken;
        Some(Demand { taken, missing: taken })
    }

    /// Takes some of that room, letting a few objects leave for it: whether that was all. Nothing if no more
    /// can be had: others were faster.
    pub(super) fn supply(&mut self, demand: &mut Demand) -> Option<bool> {
        let left = self.make_free(demand.missing, self.step(demand.missing));
        if left > 0 {
            self.follow(&mut Incoming::default());
        }
        let got = demand.missing.min(self.engine.free());
        self.engine.set_unnamed(self.engine.unnamed() + got);
        self.promised -= got;
        demand.missing -= got;
        if demand.missing == 0 || left > 0 {
            return Some(demand.missing == 0);
        }
        self.promised -= demand.missing;
        self.take_unnamed(demand.taken - demand.missing);
        None
    }

    /// The number of a name under which something is known. What has had its time is gone.
    pub(super) fn live(&mut self, name: &[u8]) -> Option<KeyId> {
        let key = self.names.find(name)?;
        if self.deadlines.is_over(key) {
            self.remove(key);
            self.deadlines.remove(key);
            self.follow(&mut Incoming::default());
            return None;
        }
        Some(key)
    }

    pub(super) fn set(&mut self, name: &[u8], object: Arc<Object>, manner: SetManner) -> Set {
        let known = self.live(name);
        let there = known.filter(|key| self.engine.is_there(*key));
        let before = there.and_then(|key| self.resident(key).cloned());
        let refused = match manner.only {
            Only::Any => None,
            Only::Absent => there.map(|_| Fate::Resident),
            Only::Present => there.is_none().then_some(Fate::Absent),
        };
        if let Some(fate) = refused {
            return Set { fate, before };
        }
        // Something may be known of a name that is nowhere: a copy of what was there is under way.
        let known = known.or_else(|| self.names.find(name));
        let key = known.unwrap_or_else(|| self.number(name));
        // What is there stays if the new one cannot be written.
        let bytes = object.len() as u64;
        let is_refused = match there {
            Some(key) => !self.engine.could_replace(key, bytes),
            None => self.engine.is_above_quota(key, bytes),
        };
        if is_refused {
            self.free_if_unknown(key);
            return Set { fate: Fate::NoMemory, before };
        }
        if there.is_some() {
            self.remove(key);
        } else {
            // There was room for the object; its name needs some of its own.
            while self.make_free(self.engine.taken_by(bytes), 1) > 0 {
                self.follow(&mut Incoming::default());
            }
        }
        let fate = self.write(key, object, manner.expires);
        Set { fate, before }
    }

    /// Writes an object whose key has none: room was taken for it.
    pub(super) fn write(&mut self, key: KeyId, object: Arc<Object>, expires: Option<SystemTime>) -> Fate {
        let (keys, bytes) = ([key], object.len() as u64);
        let mut fates = std::mem::take(&mut self.fates);
        fates.clear();
        self.engine.reserve_write(&keys, bytes, &mut fates);
        let (layout, mode) = (layout(bytes), WriteMode::New);
        let call = || StorageCall::ReserveWrite { keys: keys.into(), layout, mode };
        self.tell(Some(thread_number()), call, Some(&fates));
        let fate = fates[0];
        if fate == Fate::Done {
            fates.clear();
            self.engine.finish_write(&keys, &mut fates);
            let call = || StorageCall::FinishWrite { keys: keys.into() };
            self.tell(Some(thread_number()), call, Some(&fates));
            self.deadlines.set(key, expires.map(since_1970_ms));
            self.follow(&mut Incoming::one(key, object));
        } else {
            self.follow(&mut Incoming::default());
            self.free_if_unknown(key);
        }
        self.fates = fates;
        fate
    }

    pub(super) fn free_if_unknown(&mut self, key: KeyId) {
        if !self.is_known(key) {
            self.free_number(key);
        }
    }
}
