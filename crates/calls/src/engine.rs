//! The calls, and what happens between them.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Serialize;
use wavetank_model::{Fate, KeyId, Nanos, Result};

use crate::l1::L1;
use crate::l2::Adapter;
use crate::note::{Happened, Note, Notes};
use crate::plan::{Plan, StorePolicy};
use crate::prefetch::Found;
use crate::tick::{Loop, Ticks};

/// The storage layer on a clock that its caller moves.
///
/// Keys are dense numbers: the caller names a new one before it is used ([`Engine::know`]).
pub struct Engine {
    pub(crate) plan: Plan,
    pub(crate) now: Nanos,
    pub(crate) l1: L1,
    pub(crate) adapters: Vec<Adapter>,
    /// Copies under way to tiers behind, by when they end; where the clock says so.
    copies: VecDeque<Copying>,
    by_clock: bool,
    loops: Vec<Loop>,
    /// What an object of each key takes.
    bytes: Vec<u64>,
    /// Kept between prefetches, so that each need not allocate.
    pub(crate) found: Vec<Found>,
    pub(crate) loads: Vec<KeyId>,
    counts: Background,
    pub(crate) notes: Notes,
}

/// Who says when work in the background is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tempo {
    /// The clock: the loops of memory and of each adapter look at these times (those that are not given
    /// never), and copies take as long as the plan says.
    Clock(Vec<Ticks>),
    /// The caller: a recording knows, or threads that do the work.
    Told,
}

/// Objects on their way to a tier behind.
struct Copying {
    ends: Nanos,
    adapter: usize,
    keys: Arc<[KeyId]>,
}

/// What happened besides calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Background {
    /// In memory.
    pub l1: Passes,
    /// In each tier behind it.
    pub adapters: Vec<Behind>,
}

/// What a tier's eviction loop did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Passes {
    /// Objects that left.
    pub evicted: u64,
    /// Looks that found the tier full enough.
    pub passes: u64,
}

/// What happened in a tier behind memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Behind {
    /// What its loop did.
    #[serde(flatten)]
    pub evictions: Passes,
    /// Objects that were copied to it.
    pub copied: u64,
    /// Objects that found no room there.
    pub dropped: u64,
    /// Objects that a device failed to write or read.
    pub failed: u64,
    /// Objects that were loaded from it.
    pub loaded: u64,
}

impl Background {
    /// The sum over all tiers behind memory.
    pub fn behind(&self) -> Behind {
        self.adapters.iter().fold(Behind::default(), |sum, tier| Behind {
            evictions: Passes {
                evicted: sum.evictions.evicted + tier.evictions.evicted,
                passes: sum.evictions.passes + tier.evictions.passes,
            },
            copied: sum.copied + tier.copied,
            dropped: sum.dropped + tier.dropped,
            failed: sum.failed + tier.failed,
            loaded: sum.loaded + tier.loaded,
        })
    }

    /// What happened since it was `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let adapters = self.adapters.iter().zip(&earlier.adapters);
        Self {
            l1: self.l1.since(earlier.l1),
            adapters: adapters
                .map(|(now, then)| Behind {
                    evictions: now.evictions.since(then.evictions),
                    copied: now.copied - then.copied,
                    dropped: now.dropped - then.dropped,
                    failed: now.failed - then.failed,
                    loaded: now.loaded - then.loaded,
                })
                .collect(),
        }
    }
}

impl Passes {
    fn since(self, earlier: Self) -> Self {
        Self { evicted: self.evicted - earlier.evicted, passes: self.passes - earlier.passes }
    }

    fn add(&mut self, left: Option<u64>) {
        self.passes += u64::from(left.is_some());
        self.evicted += left.unwrap_or(0);
    }
}

impl Engine {
    /// An empty one.
    pub fn new(plan: &Plan, tempo: &Tempo) -> Result<Self> {
        let adapters = plan.adapters.iter().map(Adapter::new).collect::<Result<Vec<_>>>()?;
        let loops = match tempo {
            Tempo::Clock(ticks) => {
                (0..=adapters.len()).map(|at| Loop::new(ticks.get(at).unwrap_or(&Ticks::Never))).collect()
            }
            Tempo::Told => Vec::new(),
        };
        let counts =
            Background { adapters: vec![Behind::default(); adapters.len()], ..Background::default() };
        Ok(Self {
            l1: L1::new(&plan.l1)?,
            loops,
            by_clock: *tempo != Tempo::Told,
            adapters,
            plan: plan.clone(),
            now: Nanos::ZERO,
            copies: VecDeque::new(),
            bytes: Vec::new(),
            found: Vec::new(),
            loads: Vec::new(),
            counts,
            notes: Notes::default(),
        })
    }

    /// Keys below `keys` may be used.
    pub fn know(&mut self, keys: usize) {
        self.l1.grow(keys);
        self.adapters.iter_mut().for_each(|adapter| adapter.grow(keys));
        if self.bytes.len() < keys {
            self.bytes.resize(keys, 0);
        }
    }

    /// From now on notes are kept until they are taken.
    pub fn keep_notes(&mut self) {
        self.notes.keep();
    }

    /// Moves the notes kept since the last time to the end of `into`.
    pub fn take_notes(&mut self, into: &mut Vec<Note>) {
        self.notes.take(into);
    }

    /// What happened besides calls so far.
    pub fn background(&self) -> &Background {
        &self.counts
    }

    /// Bytes in memory, and in each tier behind it.
    pub fn used(&self) -> (u64, Vec<u64>) {
        (self.l1.used(), self.adapters.iter().map(Adapter::used).collect())
    }

    /// Objects that readers hold.
    pub fn held(&self) -> u64 {
        self.l1.held(self.now)
    }

    /// What time it is.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// What an object of `key` takes in the tier behind with this number; 0 where it is not there.
    pub fn bytes_behind(&self, adapter: usize, key: KeyId) -> u64 {
        self.adapters[adapter].bytes_of(key)
    }

    /// Whether the tier behind with this number has an object of `key`.
    pub fn is_behind(&self, adapter: usize, key: KeyId) -> bool {
        self.adapters[adapter].has(key)
    }

    /// Lets time pass: eviction loops look and copies end, in the order of their times.
    pub fn advance(&mut self, to: Nanos) {
        loop {
            let copy = self.copies.front().map(|copying| (copying.ends, 0));
            let looks = self.loops.iter().enumerate();
            let looks = looks.filter_map(|(at, looping)| Some((looping.next()?, at + 1)));
            let Some((at, what)) = copy.into_iter().chain(looks).min().filter(|(at, _)| *at <= to) else {
                break;
            };
            self.now = self.now.max(at);
            match what.checked_sub(1) {
                None => self.end_first_copy(),
                Some(tier) => {
                    let left = self.pass(tier);
                    self.loops[tier].passed(at, left.is_some());
                }
            }
        }
        self.now = self.now.max(to);
    }

    /// The eviction loop of a tier looks, memory being 0: how many objects left, if it had reason to look.
    pub fn pass(&mut self, tier: usize) -> Option<u64> {
        let left = match tier.checked_sub(1) {
            None => {
                let left = self.l1.pass(self.now, &mut self.notes);
                self.counts.l1.add(left);
                left
            }
            Some(adapter) => {
                let left = self.adapters[adapter].pass((self.now, adapter as u8), &mut self.notes);
                self.counts.adapters[adapter].evictions.add(left);
                left
            }
        };
        let evicted = left.unwrap_or(0) as u32;
        self.notes.add(self.now, || Happened::Passed(tier as u8, evicted));
        left
    }

    /// Begins to write objects of `bytes` each. `fates` gets what became of each key, as everywhere.
    pub fn reserve_write(&mut self, keys: &[KeyId], bytes: u64, fates: &mut Vec<Fate>) {
        let first = fates.len();
        self.l1.reserve(keys, bytes, self.now, fates);
        for (&key, _) in keys.iter().zip(&fates[first..]).filter(|(_, fate)| **fate == Fate::Done) {
            self.bytes[key.0 as usize] = bytes;
            self.notes.add(self.now, || Happened::Staged(key));
        }
    }

    /// Ends the writing of objects; what is new goes on to the tiers behind. An object that came another way
    /// meanwhile is written all the same.
    pub fn finish_write(&mut self, keys: &[KeyId], fates: &mut Vec<Fate>) {
        let mut admitted = Vec::new();
        for &key in keys {
            let fate = self.l1.admit(key, self.now);
            match fate {
                Fate::Done => {
                    self.notes.add(self.now, || Happened::Admitted(key));
                    admitted.push(key);
                }
                Fate::Resident => self.notes.add(self.now, || Happened::Unstaged(key)),
                _ => {}
            }
            fates.push(if fate == Fate::Resident { Fate::Done } else { fate });
        }
        if !admitted.is_empty() && !self.adapters.is_empty() {
            self.begin_copies(&admitted.into());
        }
    }

    /// Which objects can be read: those that are there and held.
    pub fn read_enter(&self, keys: &[KeyId], fates: &mut Vec<Fate>) {
        fates.extend(keys.iter().map(|&key| self.l1.readable(key, self.now)));
    }

    /// Ends a read that was refused because one of its objects could not be read: the others lose a lock.
    pub fn read_refused(&mut self, keys: &[KeyId]) {
        for &key in keys {
            let _ = self.release(key, 1);
        }
    }

    /// Gives objects back, each `locks` times.
    pub fn finish_read(&mut self, keys: &[KeyId], locks: u32, fates: &mut Vec<Fate>) {
        fates.extend(keys.iter().map(|&key| self.release(key, locks)));
    }

    pub(crate) fn release(&mut self, key: KeyId, locks: u32) -> Fate {
        let fate = self.l1.release(key, locks, self.now);
        if fate == Fate::Done && !self.l1.is_resident(key) {
            self.notes.add(self.now, || Happened::Freed(key));
        }
        fate
    }

    /// Puts an object into memory and locks it, as if it had been found: a recording knows better.
    pub fn force_in(&mut self, key: KeyId, bytes: u64, readers: u32) {
        if !self.l1.is_resident(key) {
            self.l1.expect(key, bytes);
            self.l1.arrive(key, true);
            self.notes.add(self.now, || Happened::Staged(key));
            self.notes.add(self.now, || Happened::Admitted(key));
        }
        self.l1.hold(key, readers, self.now);
    }

    /// Takes an object out of every tier: a recording knows better.
    pub fn force_out(&mut self, key: KeyId) {
        if self.l1.is_resident(key) {
            self.l1.tear_out(key);
            self.notes.add(self.now, || Happened::Freed(key));
        }
        for (number, adapter) in (0..).zip(&mut self.adapters) {
            if adapter.forget(key) {
                self.notes.add(self.now, || Happened::Deleted(number, key));
            }
        }
    }

    /// What an object of `key` takes, as far as one was written.
    pub fn bytes_of(&self, key: KeyId) -> u64 {
        self.bytes[key.0 as usize]
    }

    /// Copies go on side by side; an object is let go when the last of its copies has ended.
    fn begin_copies(&mut self, keys: &Arc<[KeyId]>) {
        let bytes: u64 = keys.iter().map(|key| self.bytes_of(*key)).sum();
        for adapter in 0..self.adapters.len() {
            keys.iter().for_each(|key| self.l1.copying(*key));
            self.notes.add(self.now, || Happened::Copying(adapter as u8, keys.iter().copied().collect()));
            if self.by_clock {
                let rate = self.plan.adapters[adapter].bytes_per_second;
                let takes = rate.map_or(0.0, |rate| bytes as f64 / rate);
                let ends = self.now + self.plan.store_delay + Nanos::from_seconds(takes);
                let place = self.copies.partition_point(|copying| copying.ends <= ends);
                self.copies.insert(place, Copying { ends, adapter, keys: Arc::clone(keys) });
            }
        }
    }

    fn end_first_copy(&mut self) {
        if let Some(Copying { adapter, keys, .. }) = self.copies.pop_front() {
            self.end_copy(adapter, &keys, &[]);
        }
    }

    /// Objects have arrived in the tier behind with this number, but for those that a device `failed` to
    /// write. Keys that were not on their way are left alone.
    pub fn end_copy(&mut self, adapter: usize, keys: &[KeyId], failed: &[KeyId]) {
        let written: Vec<(KeyId, u64)> = keys
            .iter()
            .filter(|key| self.l1.is_copying(**key) && !failed.contains(key))
            .map(|&key| (key, self.bytes_of(key)))
            .collect();
        let mut dropped = Vec::new();
        self.adapters[adapter].store(&written, &mut dropped);
        let counts = &mut self.counts.adapters[adapter];
        counts.dropped += dropped.len() as u64;
        counts.copied += (written.len() - dropped.len()) as u64;
        counts.failed += failed.len() as u64;
        if !failed.is_empty() {
            self.notes.add(self.now, || Happened::Lost(adapter as u8, failed.into()));
        }
        self.notes.add(self.now, || Happened::Copied(adapter as u8, keys.into()));
        for key in dropped {
            self.notes.add(self.now, || Happened::Deleted(adapter as u8, key));
        }
        for &key in keys {
            let was_last = self.l1.copied(key);
            let leaves = was_last && self.plan.store_policy == StorePolicy::SkipL1;
            if leaves && self.l1.forget(key, self.now) {
                self.notes.add(self.now, || Happened::Freed(key));
            }
        }
    }

    pub(crate) fn loaded(&mut self, adapter: usize, keys: &[KeyId], failed: u64) {
        self.adapters[adapter].loaded(keys);
        self.counts.adapters[adapter].loaded += keys.len() as u64;
        self.counts.adapters[adapter].failed += failed;
    }
}

#[cfg(test)]
mod tests;
