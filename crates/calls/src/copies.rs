//! Copies of objects in memory to the tiers behind it: when they begin, are put off, and end.

use std::collections::HashSet;
use std::sync::Arc;

use wavetank_model::{KeyId, Nanos};

use crate::engine::Engine;
use crate::l2::Way;
use crate::late::Waiting;
use crate::note::Happened;
use crate::plan::StorePolicy;

/// Objects on their way to a tier behind.
pub(crate) struct Copying {
    pub(crate) ends: Nanos,
    adapter: usize,
    keys: Arc<[KeyId]>,
}

impl Engine {
    /// Copies go on side by side; an object is let go when the last of its copies has ended.
    pub(crate) fn begin_copies(&mut self, objects: &[(KeyId, u64)]) {
        let keys: Arc<[KeyId]> = objects.iter().map(|(key, _)| *key).collect();
        let bytes: u64 = objects.iter().map(|(_, bytes)| bytes).sum();
        for adapter in 0..self.adapters.len() {
            for &(key, bytes) in objects {
                self.l1.copying(key, bytes);
                self.adapters[adapter].begin_way(key);
            }
            self.notes.add(self.now, || Happened::Copying(adapter as u8, keys.iter().copied().collect()));
            if self.by_clock {
                let rate = self.plan.adapters[adapter].bytes_per_second;
                let takes = rate.map_or(0.0, |rate| bytes as f64 / rate);
                let ends = self.now + self.plan.store_delay + Nanos::from_seconds(takes);
                let place = self.copies.partition_point(|copying| copying.ends <= ends);
                self.copies.insert(place, Copying { ends, adapter, keys: Arc::clone(&keys) });
            }
        }
    }

    pub(crate) fn end_first_copy(&mut self) {
        if let Some(Copying { adapter, keys, .. }) = self.copies.pop_front() {
            self.end_copy(adapter, &keys, &[]);
        }
    }

    /// Objects have arrived in the tier behind with this number, but for those that a device `failed` to
    /// write. Keys that were not on their way are left alone, and so are those whose object is gone.
    pub(crate) fn end_copy(&mut self, adapter: usize, keys: &[KeyId], failed: &[KeyId]) {
        let (mut written, mut outdated) = (Vec::new(), Vec::new());
        let ways: Vec<Way> = keys.iter().map(|key| self.adapters[adapter].end_way(*key)).collect();
        let lost: HashSet<KeyId> = failed.iter().copied().collect();
        for (&key, way) in keys.iter().zip(&ways) {
            match way {
                Way::Current if !lost.contains(&key) => written.push((key, self.l1.bytes_of(key))),
                Way::Outdated => outdated.push(key),
                Way::Current | Way::None => {}
            }
        }
        let (now, number, mut left) = (self.now, adapter as u8, Vec::new());
        let mut dropped = Vec::new();
        self.adapters[adapter].store(&written, &mut dropped, (&self.labels, |key| left.push(key)));
        let counts = &mut self.counts.adapters[adapter];
        counts.evictions.evicted += left.len() as u64;
        counts.dropped += dropped.len() as u64;
        counts.copied += (written.len() - dropped.len()) as u64;
        counts.failed += failed.len() as u64;
        if !failed.is_empty() {
            self.notes.add(now, || Happened::Lost(number, failed.into()));
        }
        self.notes.add(now, || Happened::Copied(number, keys.into()));
        for key in dropped.into_iter().chain(outdated).chain(left) {
            self.notes.add(now, || Happened::Deleted(number, key));
        }
        self.let_go(keys, &ways);
    }

    /// Objects whose copies to the tier behind with this number began last are copied later: too much is on
    /// its way there. Until then they may leave memory. `stamp` is told again with them ([`Self::late`]).
    pub(crate) fn postpone_copy(&mut self, adapter: usize, keys: &[KeyId], stamp: u64) {
        let mut ways = Vec::with_capacity(keys.len());
        for &key in keys {
            let way = self.adapters[adapter].drop_way(key);
            // An object that is there already is not written again.
            let is_wanted = way != Way::None && !self.adapters[adapter].has(key);
            if is_wanted && self.l1.is_resident(key) {
                self.l1.postpone(adapter, Waiting { key, bytes: self.l1.bytes_of(key), stamp });
            }
            ways.push(way);
        }
        self.counts.adapters[adapter].postponed += keys.len() as u64;
        self.notes.add(self.now, || Happened::Postponed(adapter as u8, keys.into()));
        self.let_go(keys, &ways);
    }

    /// Copies to the tier behind with this number that were put off begin; other keys are left alone.
    pub(crate) fn resume_copy(&mut self, adapter: usize, keys: &[KeyId]) {
        let mut begun = Vec::with_capacity(keys.len());
        for &key in keys {
            if self.l1.resume(adapter, key).is_some() {
                self.adapters[adapter].begin_way(key);
                begun.push(key);
            }
        }
        self.notes.add(self.now, || Happened::Resumed(adapter as u8, begun.into()));
    }

    /// What is to be copied later to the tier behind with this number, the oldest first.
    pub fn late(&self, adapter: usize) -> impl Iterator<Item = &Waiting> {
        self.l1.late().of(adapter)
    }

    /// How many objects are to be copied later to each tier behind.
    pub(crate) fn late_counts(&self) -> Vec<u64> {
        (0..self.adapters.len()).map(|adapter| self.l1.late().len(adapter) as u64).collect()
    }

    /// Copies have ended: an object whose last it was may leave memory, unless one is to begin.
    fn let_go(&mut self, keys: &[KeyId], ways: &[Way]) {
        for (&key, _) in keys.iter().zip(ways).filter(|(_, way)| **way != Way::None) {
            let was_last = self.l1.copied(key) && !self.l1.is_late(key);
            let leaves = was_last && self.plan.store_policy == StorePolicy::SkipL1;
            if leaves && self.l1.forget(key, self.now) {
                self.notes.add(self.now, || Happened::Freed(key));
            }
        }
    }

    /// Whether the next copy of `key` to the tier behind with this number that ends is of no use any more.
    pub(crate) fn is_outdated_copy(&self, adapter: usize, key: KeyId) -> bool {
        self.adapters[adapter].is_outdated(key)
    }
}
