//! The calls, and what happens between them.

use std::collections::VecDeque;

use serde::Serialize;
use wavetank_model::{Fate, KeyId, Nanos, Result};

use crate::l1::L1;
use crate::l2::Adapter;
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
    /// Copies under way to tiers behind, by when they end.
    copies: VecDeque<Copying>,
    loops: Vec<Loop>,
    /// What an object of each key takes.
    bytes: Vec<u64>,
    pub(crate) found: Vec<Found>,
    counts: Background,
}

/// Objects on their way to all tiers behind.
struct Copying {
    ends: Nanos,
    objects: Vec<(KeyId, u64)>,
}

/// What happened besides calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Background {
    /// Objects that left memory.
    pub l1_evictions: u64,
    /// Passes of its loop that found it full enough.
    pub l1_passes: u64,
    /// Objects that left tiers behind.
    pub l2_evictions: u64,
    /// Passes of their loops that found them full enough.
    pub l2_passes: u64,
    /// Objects that were copied behind.
    pub copied: u64,
    /// Objects that found no room there.
    pub dropped: u64,
}

impl Engine {
    /// An empty one. Loops are that of memory and one for each adapter; those that are not given never look.
    pub fn new(plan: &Plan, ticks: &[Ticks]) -> Result<Self> {
        let adapters = plan.adapters.iter().map(Adapter::new).collect::<Result<Vec<_>>>()?;
        let loops = (0..=adapters.len()).map(|at| Loop::new(ticks.get(at).unwrap_or(&Ticks::Never)));
        Ok(Self {
            l1: L1::new(&plan.l1)?,
            loops: loops.collect(),
            adapters,
            plan: plan.clone(),
            now: Nanos::ZERO,
            copies: VecDeque::new(),
            bytes: Vec::new(),
            found: Vec::new(),
            counts: Background::default(),
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

    /// What happened besides calls so far.
    pub fn background(&self) -> Background {
        self.counts
    }

    /// Bytes in memory, and in each tier behind it.
    pub fn used(&self) -> (u64, Vec<u64>) {
        (self.l1.used(), self.adapters.iter().map(Adapter::used).collect())
    }

    /// Objects that readers hold.
    pub fn held(&self) -> u64 {
        self.l1.held(self.now)
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
            match what {
                0 => self.end_copies(),
                1 => self.look_at_l1(at),
                adapter => self.look_at_adapter(adapter - 2, at),
            }
        }
        self.now = self.now.max(to);
    }

    /// Begins to write objects of `bytes` each. `fates` gets what became of each key, as everywhere.
    pub fn reserve_write(&mut self, keys: &[KeyId], bytes: u64, fates: &mut Vec<Fate>) {
        let first = fates.len();
        self.l1.reserve(keys, bytes, self.now, fates);
        let granted = keys.iter().zip(&fates[first..]).filter(|(_, fate)| **fate == Fate::Done);
        granted.for_each(|(key, _)| self.bytes[key.0 as usize] = bytes);
    }

    /// Ends the writing of objects; what is new goes on to the tiers behind. An object that came another way
    /// meanwhile is written all the same.
    pub fn finish_write(&mut self, keys: &[KeyId], fates: &mut Vec<Fate>) {
        let mut objects = Vec::new();
        for &key in keys {
            let fate = self.l1.admit(key, self.now);
            if fate == Fate::Done && !self.adapters.is_empty() {
                self.l1.copying(key);
                objects.push((key, self.bytes[key.0 as usize]));
            }
            fates.push(if fate == Fate::Resident { Fate::Done } else { fate });
        }
        if !objects.is_empty() {
            self.begin_copies(objects);
        }
    }

    /// Which objects can be read: those that are there and held.
    pub fn read_enter(&self, keys: &[KeyId], fates: &mut Vec<Fate>) {
        fates.extend(keys.iter().map(|&key| self.l1.readable(key, self.now)));
    }

    /// Ends a read that was refused because one of its objects could not be read: the others lose a lock.
    pub fn read_refused(&mut self, keys: &[KeyId]) {
        for &key in keys {
            let _ = self.l1.release(key, 1, self.now);
        }
    }

    /// Gives objects back, each `locks` times.
    pub fn finish_read(&mut self, keys: &[KeyId], locks: u32, fates: &mut Vec<Fate>) {
        fates.extend(keys.iter().map(|&key| self.l1.release(key, locks, self.now)));
    }

    /// Puts an object into memory and locks it, as if it had been found: a recording knows better.
    pub fn force_in(&mut self, key: KeyId, bytes: u64, readers: u32) {
        if !self.l1.is_resident(key) {
            self.l1.load(key, bytes, true);
        }
        self.l1.hold(key, readers, self.now);
    }

    /// Takes an object out of every tier: a recording knows better.
    pub fn force_out(&mut self, key: KeyId) {
        self.l1.tear_out(key);
        self.adapters.iter_mut().for_each(|adapter| adapter.forget(key));
    }

    /// What an object of `key` takes, as far as one was written.
    pub fn bytes_of(&self, key: KeyId) -> u64 {
        self.bytes[key.0 as usize]
    }

    /// Copies go on side by side; the slowest tier decides when the objects are let go.
    fn begin_copies(&mut self, objects: Vec<(KeyId, u64)>) {
        let bytes: u64 = objects.iter().map(|(_, bytes)| bytes).sum();
        let rates = self.plan.adapters.iter().filter_map(|adapter| adapter.bytes_per_second);
        let slowest = rates.map(|rate| bytes as f64 / rate).fold(0.0, f64::max);
        let ends = self.now + self.plan.store_delay + Nanos::from_seconds(slowest);
        let place = self.copies.partition_point(|copying| copying.ends <= ends);
        self.copies.insert(place, Copying { ends, objects });
    }

    fn end_copies(&mut self) {
        let Some(Copying { objects, .. }) = self.copies.pop_front() else { return };
        for adapter in &mut self.adapters {
            let dropped = adapter.store(&objects);
            self.counts.dropped += dropped;
            self.counts.copied += objects.len() as u64 - dropped;
        }
        for &(key, _) in &objects {
            self.l1.copied(key);
            if self.plan.store_policy == StorePolicy::SkipL1 {
                self.l1.forget(key, self.now);
            }
        }
    }

    fn look_at_l1(&mut self, at: Nanos) {
        let left = self.l1.pass(at);
        self.loops[0].passed(at, left.is_some());
        self.counts.l1_passes += u64::from(left.is_some());
        self.counts.l1_evictions += left.unwrap_or(0);
    }

    fn look_at_adapter(&mut self, number: usize, at: Nanos) {
        let left = self.adapters[number].pass();
        self.loops[number + 1].passed(at, left.is_some());
        self.counts.l2_passes += u64::from(left.is_some());
        self.counts.l2_evictions += left.unwrap_or(0);
    }
}

#[cfg(test)]
mod tests;
