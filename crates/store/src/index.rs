//! Which entries there are, by key, in shards that are locked one at a time and never across I/O.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wavetank_cache::{Slot, TierId, TierSet};
use wavetank_model::Fate;

use crate::backend::{Birth, Found, Held, NewEntry};
use crate::call::{Deed, Voice};
use crate::key::Key;

/// An entry of the store, wherever its copies are.
pub(crate) struct Stored {
    pub(crate) key: Key,
    pub(crate) bytes: u64,
    pub(crate) recipe: Option<u64>,
    pub(crate) birth: Birth,
    /// Its place in the ledger.
    pub(crate) slot: Slot,
    checksum: AtomicU64,
    /// Written by this process, or found right since: a reader need not check it.
    trusted: AtomicBool,
    readers: AtomicU32,
    copies: Mutex<[Option<Arc<dyn Held>>; TierSet::MOST]>,
}

/// Someone reads the entry: it is no victim meanwhile.
pub(crate) struct Reading(pub(crate) Arc<Stored>);

impl Stored {
    /// An entry to be written.
    pub(crate) fn new(entry: &NewEntry<'_>, slot: Slot) -> Self {
        let NewEntry { bytes, recipe, birth, .. } = *entry;
        let (checksum, trusted) = (AtomicU64::new(0), AtomicBool::new(true));
        let (readers, copies) = (AtomicU32::new(0), Mutex::default());
        Self { key: entry.key.clone(), bytes, recipe, birth, slot, checksum, trusted, readers, copies }
    }

    /// An entry of an earlier process, which is checked when it is read.
    pub(crate) fn found(found: &Found, slot: Slot) -> Self {
        let (checksum, trusted) = (AtomicU64::new(found.checksum), AtomicBool::new(false));
        let entry = NewEntry { key: &found.key, bytes: found.bytes, recipe: None, birth: found.birth };
        Self { checksum, trusted, ..Self::new(&entry, slot) }
    }

    pub(crate) fn as_new(&self) -> NewEntry<'_> {
        NewEntry { key: &self.key, bytes: self.bytes, recipe: self.recipe, birth: self.birth }
    }

    pub(crate) fn checksum(&self) -> u64 {
        self.checksum.load(Ordering::Acquire)
    }

    pub(crate) fn seal(&self, checksum: u64) {
        self.checksum.store(checksum, Ordering::Release);
    }

    pub(crate) fn is_trusted(&self) -> bool {
        self.trusted.load(Ordering::Acquire)
    }

    pub(crate) fn trust(&self) {
        self.trusted.store(true, Ordering::Release);
    }

    pub(crate) fn is_read(&self) -> bool {
        self.readers.load(Ordering::Acquire) > 0
    }

    fn copies(&self) -> MutexGuard<'_, [Option<Arc<dyn Held>>; TierSet::MOST]> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The copy in `tier`.
    pub(crate) fn copy(&self, tier: TierId) -> Option<Arc<dyn Held>> {
        self.copies()[usize::from(tier)].clone()
    }

    /// The fastest copy and where it is.
    pub(crate) fn fastest(&self) -> Option<(TierId, Arc<dyn Held>)> {
        let copies = self.copies();
        let (tier, held) = copies.iter().enumerate().find_map(|(tier, held)| Some((tier, held.as_ref()?)))?;
        Some((tier as TierId, Arc::clone(held)))
    }

    pub(crate) fn keep(&self, tier: TierId, held: Arc<dyn Held>) {
        let before = self.copies()[usize::from(tier)].replace(held);
        debug_assert!(before.is_none(), "a tier has one copy of an entry");
    }

    /// Takes the copy in `tier` if it is still `held`: another one may have come in its place.
    pub(crate) fn release_if(&self, tier: TierId, held: &Arc<dyn Held>) -> Option<Arc<dyn Held>> {
        let place = &mut self.copies()[usize::from(tier)];
        place.take_if(|there| std::ptr::addr_eq(Arc::as_ptr(there), Arc::as_ptr(held)))
    }

    pub(crate) fn release(&self, tier: TierId) -> Option<Arc<dyn Held>> {
        self.copies()[usize::from(tier)].take()
    }

    /// Takes all copies: `(tier, copy)`.
    pub(crate) fn release_all(&self) -> Vec<(TierId, Arc<dyn Held>)> {
        let mut copies = self.copies();
        let all = copies.iter_mut().enumerate();
        all.filter_map(|(tier, held)| Some((tier as TierId, held.take()?))).collect()
    }
}

impl Reading {
    pub(crate) fn new(entry: Arc<Stored>) -> Self {
        entry.readers.fetch_add(1, Ordering::AcqRel);
        Self(entry)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What a key stands for.
#[derive(Clone)]
enum State {
    /// Someone writes it, who has this number, and nobody else should.
    Claimed(u64),
    Ready(Arc<Stored>),
}

/// A writer's claim on a key.
pub(crate) struct Claim {
    key: Key,
    number: u64,
}

impl Claim {
    fn stands(&self, state: Option<&State>) -> bool {
        matches!(state, Some(State::Claimed(number)) if *number == self.number)
    }
}

/// The map from keys to entries.
pub(crate) struct Index {
    shards: Vec<Mutex<HashMap<Key, State, KeyHash>>>,
    claims: AtomicU64,
}

type KeyHash = std::hash::BuildHasherDefault<Fingerprint>;

/// Keys bring their hash.
#[derive(Default)]
pub(crate) struct Fingerprint(u64);

impl std::hash::Hasher for Fingerprint {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys hash as one number");
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

const SHARDS: usize = 64;

impl Index {
    pub(crate) fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), claims: AtomicU64::new(0) }
    }

    fn shard(&self, key: &Key) -> MutexGuard<'_, HashMap<Key, State, KeyHash>> {
        self.shards[key.shard(SHARDS)].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entry of `key`.
    pub(crate) fn find(&self, key: &Key) -> Option<Arc<Stored>> {
        self.read(key).map(|reading| Arc::clone(&reading.0))
    }

    /// The entry of `key`, held for reading.
    pub(crate) fn read(&self, key: &Key) -> Option<Reading> {
        match self.shard(key).get(key) {
            Some(State::Ready(entry)) => Some(Reading::new(Arc::clone(entry))),
            _ => None,
        }
    }

    /// The entry of `key`, held for reading, and the fastest tier it is in. An entry without a copy is on its
    /// way out: it is gone from here on, as if whoever takes it out had been quicker.
    pub(crate) fn look_up(&self, key: &Key, voice: Voice<'_>) -> Option<(Reading, TierId)> {
        let tell = |deed, fate, bytes| voice.tell(deed, fate, (key, bytes));
        let mut shard = self.shard(key);
        let Some(State::Ready(entry)) = shard.get(key) else {
            tell(Deed::LookUp, Fate::Absent, 0);
            return None;
        };
        let bytes = entry.bytes;
        let Some((tier, _)) = entry.fastest() else {
            shard.remove(key);
            tell(Deed::Leave, Fate::Done, bytes);
            tell(Deed::LookUp, Fate::Absent, 0);
            return None;
        };
        let reading = Reading::new(Arc::clone(entry));
        let fate = if tier == 0 { Fate::FirstTier } else { Fate::LowerTier };
        tell(Deed::LookUp, fate, bytes);
        Some((reading, tier))
    }

    pub(crate) fn contains(&self, key: &Key) -> bool {
        matches!(self.shard(key).get(key), Some(State::Ready(_)))
    }

    /// Claims `key` for a writer; nothing when it is there or being written, which `refused` is told.
    pub(crate) fn claim(&self, key: &Key, refused: impl FnOnce(Fate)) -> Option<Claim> {
        match self.shard(key).entry(key.clone()) {
            Place::Occupied(there) => {
                refused(if matches!(there.get(), State::Ready(_)) { Fate::Resident } else { Fate::Staged });
                None
            }
            Place::Vacant(free) => {
                let number = self.claims.fetch_add(1, Ordering::Relaxed);
                free.insert(State::Claimed(number));
                Some(Claim { key: key.clone(), number })
            }
        }
    }

    /// Gives up a claim.
    pub(crate) fn disclaim(&self, claim: &Claim) {
        let mut shard = self.shard(&claim.key);
        if claim.stands(shard.get(&claim.key)) {
            shard.remove(&claim.key);
        }
    }

    /// Makes `entry` the one of its key if the claim on it still stands: someone may have replaced it
    /// meanwhile.
    pub(crate) fn redeem(&self, claim: &Claim, entry: &Arc<Stored>, tell: impl FnOnce(Fate)) -> bool {
        let mut shard = self.shard(&claim.key);
        let there = shard.get(&claim.key);
        if !claim.stands(there) {
            tell(if matches!(there, Some(State::Ready(_))) { Fate::Resident } else { Fate::Absent });
            return false;
        }
        shard.insert(claim.key.clone(), State::Ready(Arc::clone(entry)));
        tell(Fate::Done);
        true
    }

    /// Makes `entry` the one of its key; gives the one before.
    pub(crate) fn publish(&self, entry: Arc<Stored>, tell: impl FnOnce(Fate)) -> Option<Arc<Stored>> {
        let mut shard = self.shard(&entry.key);
        let before = shard.insert(entry.key.clone(), State::Ready(Arc::clone(&entry)));
        tell(Fate::Done);
        match before {
            Some(State::Ready(before)) => Some(before),
            _ => None,
        }
    }

    /// Takes the entry of `key` out; a claim on it stands.
    pub(crate) fn take(&self, key: &Key, voice: Voice<'_>) -> Option<Arc<Stored>> {
        let mut shard = self.shard(key);
        let Some(State::Ready(entry)) = shard.get(key) else { return None };
        let entry = Arc::clone(entry);
        shard.remove(key);
        voice.tell(Deed::Leave, Fate::Done, (key, entry.bytes));
        Some(entry)
    }

    /// Takes `entry` out if it is still the one of its key.
    pub(crate) fn forget(&self, entry: &Arc<Stored>, voice: Voice<'_>) {
        let mut shard = self.shard(&entry.key);
        if matches!(shard.get(&entry.key), Some(State::Ready(there)) if Arc::ptr_eq(there, entry)) {
            shard.remove(&entry.key);
            voice.tell(Deed::Leave, Fate::Done, (&entry.key, entry.bytes));
        }
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        let ready = |state: &State| matches!(state, State::Ready(_));
        let shards = self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner));
        shards.map(|shard| shard.values().filter(|state| ready(state)).count()).sum()
    }

    /// Every entry, in no order.
    pub(crate) fn all(&self) -> Vec<Arc<Stored>> {
        let shards = self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner));
        let entry = |state: &State| match state {
            State::Ready(entry) => Some(Arc::clone(entry)),
            State::Claimed(_) => None,
        };
        shards.flat_map(|shard| shard.values().filter_map(entry).collect::<Vec<_>>()).collect()
    }
}
