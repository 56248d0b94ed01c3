//! Objects on their way to tiers behind: at once, or later where too much is on its way already.

use std::sync::Arc;

use wavetank_model::{Fate, KeyId, StorageCall};
use wavetank_store::Existing;

use super::background::STEP;
use super::state::{Errand, Incoming, State};
use crate::bytes::Parcel;

impl State {
    /// Sends objects to a tier behind, unless too much is on its way there or others wait for that to end.
    pub(super) fn copy(&mut self, adapter: usize, keys: &[KeyId]) {
        let parcels: Vec<Parcel> = keys.iter().map(|key| self.parcel(*key, self.written)).collect();
        let bytes: u64 = parcels.iter().map(|parcel| parcel.taken).sum();
        let storing = self.flow.storing.get(adapter).copied().unwrap_or(0);
        let has_room = storing + bytes <= self.flow.storing_most;
        if storing > 0 && (!has_room || self.engine.late(adapter).next().is_some()) {
            self.engine.postpone_copy(adapter, keys, self.written);
            let tier = adapter as u8 + 1;
            let fates = vec![Fate::NoMemory; keys.len()];
            self.tell(None, || StorageCall::StoreCompleted { tier, keys: keys.into() }, Some(&fates));
            return;
        }
        self.send_parcels(adapter, parcels);
    }

    /// Begins some of the copies to a tier behind that were put off, the oldest first, as far as not too much
    /// is on its way then. Something is on its way there as long as any are left.
    pub(super) fn catch_up(&mut self, adapter: usize) {
        let mut storing = self.flow.storing[adapter];
        let late = self.engine.late(adapter).filter(|_| !self.flow.ending[adapter]).take(STEP as usize);
        let parcels = late.map(|late| self.parcel(late.key, late.stamp));
        let fits = |parcel: &Parcel| {
            let is_first = storing == 0;
            storing += parcel.taken;
            is_first || storing <= self.flow.storing_most
        };
        let parcels: Vec<Parcel> = parcels.take_while(fits).collect();
        if parcels.is_empty() {
            return;
        }
        let keys: Vec<KeyId> = parcels.iter().map(|parcel| parcel.key).collect();
        self.engine.resume_copy(adapter, &keys);
        let tier = adapter as u8 + 1;
        self.tell(None, || StorageCall::StoreBegun { tier, keys: keys.into() }, None);
        for parcel in parcels {
            self.send_parcels(adapter, vec![parcel]);
        }
        self.follow(&mut Incoming::default());
    }

    fn send_parcels(&mut self, adapter: usize, parcels: Vec<Parcel>) {
        let bytes: u64 = parcels.iter().map(|parcel| parcel.taken).sum();
        let count = parcels.len() as u64;
        if self.send(adapter, Errand::Store(parcels)) {
            self.flow.storing[adapter] += bytes;
            self.flow.stores += count;
        }
    }

    /// An object in memory, to be stored with this number.
    fn parcel(&self, key: KeyId, number: u64) -> Parcel {
        let object = Arc::clone(self.resident(key).expect("what is copied is in memory"));
        let until_s = |until_ms: u64| u32::try_from(until_ms / 1000).unwrap_or(u32::MAX).max(1);
        let expires_s = self.deadlines.of(key).map_or(0, until_s);
        // Under a name there may be something else now; under a number there is always the same.
        let is_named = self.names.of(key).is_some();
        let existing = if is_named { Existing::Replace } else { Existing::Keep };
        let (name, taken) = (self.name(key), self.engine.taken_by(object.len() as u64));
        Parcel { key, name, object, taken, existing, number, expires_s }
    }
}
