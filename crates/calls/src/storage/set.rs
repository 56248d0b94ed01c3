//! Writing objects by name, as it is decided under the lock.

use std::sync::Arc;
use std::time::SystemTime;

use wavetank_model::{Fate, KeyId, StorageCall, WriteMode};

use super::deadlines::since_1970_ms;
use super::journal::thread_number;
use super::look::layout;
use super::named::{Only, Set, SetManner};
use super::state::{Incoming, State};
use crate::bytes::Object;

impl State {
    pub(super) fn take_unnamed(&mut self, taken: u64) {
        self.engine.set_unnamed(self.engine.unnamed() - taken);
    }

    /// Takes room for an object without a name; how much.
    pub(super) fn make_room(&mut self, bytes: u64) -> Option<u64> {
        let taken = self.engine.room_of(bytes)?;
        self.engine.set_unnamed(self.engine.unnamed() + taken);
        if !self.engine.fits() {
            self.make_fit();
            self.follow(&mut Incoming::default());
        }
        if !self.engine.fits() {
            self.take_unnamed(taken);
            return None;
        }
        Some(taken)
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
