//! The calls, and what happens between them.

use std::collections::VecDeque;

use serde::Serialize;
use wavetank_model::{Fate, KeyId, Nanos, Result};

use crate::background::{Background, Behind};
use crate::copies::Copying;
use crate::l1::L1;
use crate::l2::Adapter;
use crate::label::{Label, Labels};
use crate::note::{Happened, Note, Notes};
use crate::plan::Plan;
use crate::prefetch::Found;
use crate::tick::{Loop, Ticks};

/// The storage layer on a clock that its caller moves.
///
/// Keys are dense numbers: the caller names a new one before it is used (`know`).
pub struct Engine {
    pub(crate) plan: Plan,
    pub(crate) now: Nanos,
    pub(crate) l1: L1,
    pub(crate) adapters: Vec<Adapter>,
    /// Copies under way to tiers behind, by when they end; where the clock says so.
    pub(crate) copies: VecDeque<Copying>,
    pub(crate) by_clock: bool,
    loops: Vec<Loop>,
    pub(crate) labels: Labels,
    /// Objects that were taken out so far, whoever held them.
    pub(crate) removals: u64,
    /// Kept between prefetches, so that each need not allocate.
    pub(crate) found: Vec<Found>,
    pub(crate) loads: Vec<KeyId>,
    pub(crate) counts: Background,
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

impl Engine {
    /// An empty one.
    pub fn new(plan: &Plan, tempo: &Tempo) -> Result<Self> {
        let tenants = plan.tenants();
        let adapters = plan.adapters.iter().map(|adapter| Adapter::new(adapter, &tenants));
        let adapters = adapters.collect::<Result<Vec<_>>>()?;
        let loops = match tempo {
            Tempo::Clock(ticks) => {
                (0..=adapters.len()).map(|at| Loop::new(ticks.get(at).unwrap_or(&Ticks::Never))).collect()
            }
            Tempo::Told => Vec::new(),
        };
        let counts =
            Background { adapters: vec![Behind::default(); adapters.len()], ..Background::default() };
        Ok(Self {
            l1: L1::new(&plan.l1, &tenants)?,
            loops,
            by_clock: *tempo != Tempo::Told,
            adapters,
            plan: plan.clone(),
            now: Nanos::ZERO,
            copies: VecDeque::new(),
            labels: Labels::of(plan)?,
            removals: 0,
            found: Vec::new(),
            loads: Vec::new(),
            counts,
            notes: Notes::default(),
        })
    }

    /// Keys below `keys` may be used.
    pub(crate) fn know(&mut self, keys: usize) {
        self.l1.grow(keys);
        self.adapters.iter_mut().for_each(|adapter| adapter.grow(keys));
    }

    /// From now on notes are kept until they are taken.
    pub(crate) fn keep_notes(&mut self) {
        self.notes.keep();
    }

    /// Moves the notes kept since the last time to the end of `into`.
    pub(crate) fn take_notes(&mut self, into: &mut Vec<Note>) {
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
    pub(crate) fn bytes_behind(&self, adapter: usize, key: KeyId) -> u64 {
        self.adapters[adapter].bytes_of(key)
    }

    /// Whether the tier behind with this number has an object of `key`.
    pub(crate) fn is_behind(&self, adapter: usize, key: KeyId) -> bool {
        self.adapters[adapter].has(key)
    }

    /// Says what a key is to policies.
    pub fn label(&mut self, key: KeyId, label: Label) {
        self.labels.give(key, label);
    }

    /// Whose a key is.
    pub(crate) fn tenant_of(&self, key: KeyId) -> u32 {
        self.labels.tenant(key)
    }

    /// Says whose a key is.
    pub(crate) fn label_tenant(&mut self, key: KeyId, tenant: u32) {
        self.labels.give_tenant(key, tenant);
    }

    /// Whether anything is known of `key`, in any tier or on its way.
    pub(crate) fn knows(&self, key: KeyId) -> bool {
        self.l1.knows(key) || self.adapters.iter().any(|adapter| adapter.knows(key))
    }

    /// The length of an object of `key`, in the first tier behind that has it.
    pub(crate) fn bytes_anywhere_behind(&self, key: KeyId) -> Option<u64> {
        self.adapters.iter().find(|adapter| adapter.has(key)).map(|adapter| adapter.bytes_of(key))
    }

    /// What an object of so many bytes takes of memory.
    pub(crate) fn taken_by(&self, bytes: u64) -> u64 {
        self.l1.aligned(bytes)
    }

    /// Whether so much more fits into memory.
    pub(crate) fn has_room(&self, taken: u64) -> bool {
        self.l1.has_room(taken)
    }

    /// How much more fits into memory.
    pub fn free(&self) -> u64 {
        self.l1.free()
    }

    /// What could leave memory: objects with which nothing is going on.
    pub(crate) fn could_free(&self) -> u64 {
        self.l1.idle()
    }

    /// Whether notes are kept that were not taken.
    pub(crate) fn has_notes(&self) -> bool {
        self.notes.are_kept()
    }

    /// Whether there is an object of `key` in any tier.
    pub fn is_there(&self, key: KeyId) -> bool {
        self.l1.is_resident(key) || self.adapters.iter().any(|adapter| adapter.has(key))
    }

    /// What memory holds; no limit when absent.
    pub fn capacity(&self) -> Option<u64> {
        self.plan.l1.capacity_bytes
    }

    /// What the tier behind with this number holds; no limit when absent.
    pub(crate) fn capacity_behind(&self, adapter: usize) -> Option<u64> {
        self.plan.adapters[adapter].capacity_bytes
    }

    /// Objects in memory, and in each tier behind it.
    pub fn counts(&self) -> (u64, Vec<u64>) {
        (self.l1.count(), self.adapters.iter().map(Adapter::count).collect())
    }

    /// Bytes in memory of objects that are being written and have no name yet.
    pub fn unnamed(&self) -> u64 {
        self.l1.unnamed()
    }

    /// So many bytes of memory are taken by objects that have no name yet.
    pub(crate) fn set_unnamed(&mut self, bytes: u64) {
        self.l1.set_unnamed(bytes);
        self.notes.unnamed = bytes;
    }

    /// An object of `key` is in the tier behind with this number from before; whether it has room.
    pub fn restore(&mut self, adapter: usize, key: KeyId, bytes: u64) -> bool {
        self.adapters[adapter].restore(key, bytes, &self.labels)
    }

    /// Lets time pass: eviction loops look and copies end, in the order of their times.
    pub fn advance(&mut self, to: Nanos) {
        if !self.by_clock {
            self.now = self.now.max(to);
            return;
        }
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
        self.pass_up_to(tier, None)
    }

    /// The same, where so many objects are to leave whatever the loop would do: a pass may be made in steps,
    /// and a write may need room at once.
    pub(crate) fn pass_up_to(&mut self, tier: usize, most: Option<u32>) -> Option<u64> {
        let asked = most.map(u64::from).or_else(|| self.asked(tier));
        let left = asked.map(|asked| self.take_out(tier, asked));
        self.count_pass(tier, left);
        let evicted = left.unwrap_or(0) as u32;
        self.notes.add(self.now, || Happened::Passed(tier as u8, evicted, most));
        left
    }

    /// How many objects the loop of a tier would take out now, if it had reason to.
    pub fn asked(&self, tier: usize) -> Option<u64> {
        match tier.checked_sub(1) {
            None => self.l1.asked(),
            Some(adapter) => self.adapters[adapter].asked(),
        }
    }

    /// How many objects its loop takes out at a time, whether it has reason to or not.
    pub fn share(&self, tier: usize) -> u64 {
        match tier.checked_sub(1) {
            None => self.l1.share(),
            Some(adapter) => self.adapters[adapter].share(),
        }
    }

    fn take_out(&mut self, tier: usize, most: u64) -> u64 {
        let when = (self.now, &mut self.notes);
        let left = match tier.checked_sub(1) {
            None => self.l1.take_out(most, |_| true, when),
            Some(adapter) => self.adapters[adapter].take_out(most, adapter as u8, when),
        };
        self.count_left();
        left
    }

    fn count_pass(&mut self, tier: usize, left: Option<u64>) {
        match tier.checked_sub(1) {
            None => self.counts.l1.add(left),
            Some(adapter) => self.counts.adapters[adapter].evictions.add(left),
        }
    }

    /// Lets up to `most` objects leave memory until `bytes` more fit; how many left. They leave as in a pass
    /// of its loop that was to take so many.
    pub(crate) fn make_free(&mut self, bytes: u64, most: u64) -> u64 {
        let Some(capacity) = self.plan.l1.capacity_bytes else { return 0 };
        let when = (self.now, &mut self.notes);
        let left = self.l1.take_out(most, |used| used.saturating_add(bytes) > capacity, when);
        self.count_left();
        if left > 0 {
            self.count_pass(0, Some(left));
            self.notes.add(self.now, || Happened::Passed(0, left as u32, Some(left as u32)));
        }
        left
    }

    /// Begins to write objects of `bytes` each. `fates` gets what became of each key, as everywhere.
    pub fn reserve_write(&mut self, keys: &[KeyId], bytes: u64, fates: &mut Vec<Fate>) {
        let first = fates.len();
        self.l1.reserve((keys, bytes), self.now, &self.labels, (fates, &mut self.notes));
        self.count_left();
        for (&key, _) in keys.iter().zip(&fates[first..]).filter(|(_, fate)| **fate == Fate::Done) {
            self.notes.add(self.now, || Happened::Staged(key));
        }
    }

    /// Ends the writing of objects; what is new goes on to the tiers behind. An object that came another way
    /// meanwhile is written all the same.
    pub fn finish_write(&mut self, keys: &[KeyId], fates: &mut Vec<Fate>) {
        let (mut admitted, has_tiers) = (Vec::new(), !self.adapters.is_empty());
        for &key in keys {
            let bytes = self.l1.bytes_of(key);
            let fate = self.l1.admit(key, self.now);
            match fate {
                Fate::Done => {
                    self.notes.add(self.now, || Happened::Admitted(key));
                    admitted.extend(has_tiers.then_some((key, bytes)));
                }
                Fate::Resident => self.notes.add(self.now, || Happened::Unstaged(key)),
                _ => {}
            }
            fates.push(if fate == Fate::Resident { Fate::Done } else { fate });
        }
        if !admitted.is_empty() {
            self.begin_copies(&admitted);
        }
    }

    /// Which objects can be read: those that are there and held.
    pub fn read_enter(&self, keys: &[KeyId], fates: &mut Vec<Fate>) {
        fates.extend(keys.iter().map(|&key| self.l1.readable(key, self.now)));
    }

    /// Ends a read that was refused because one of its objects could not be read: the others lose a lock.
    pub(crate) fn read_refused(&mut self, keys: &[KeyId]) {
        for &key in keys {
            let _ = self.release(key, 1);
        }
    }

    /// Gives objects back, each `locks` times.
    pub(crate) fn finish_read(&mut self, keys: &[KeyId], locks: u32, fates: &mut Vec<Fate>) {
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
    pub(crate) fn force_in(&mut self, key: KeyId, bytes: u64, readers: u32) {
        if !self.l1.is_resident(key) {
            self.l1.expect(key, bytes, self.now, (&self.labels, &mut self.notes));
            self.count_left();
            self.l1.arrive(key, true);
            self.notes.add(self.now, || Happened::Staged(key));
            self.notes.add(self.now, || Happened::Admitted(key));
        }
        self.l1.hold(key, readers, self.now);
    }

    /// Takes an object out of every tier, whoever holds it; what is on its way is not wanted any more.
    /// Whether it was in any.
    pub(crate) fn force_out(&mut self, key: KeyId) -> bool {
        self.removals += 1;
        let mut was_there = self.l1.tear_out(key, self.removals);
        if was_there {
            self.notes.add(self.now, || Happened::Freed(key));
        }
        for (number, adapter) in (0..).zip(&mut self.adapters) {
            adapter.outdate(key);
            if adapter.forget(key) {
                was_there = true;
                self.notes.add(self.now, || Happened::Deleted(number, key));
            }
        }
        was_there
    }

    /// Uses an object in memory as a prefetch of it alone, a read and its end do; whether it was there.
    pub(crate) fn use_resident(&mut self, key: KeyId) -> bool {
        if self.l1.is_plain(key) {
            self.l1.touch(key);
            return true;
        }
        if !self.l1.is_resident(key) {
            return false;
        }
        self.l1.hold(key, 1, self.now);
        self.l1.touch(key);
        let _ = self.release(key, 1);
        true
    }

    pub(crate) fn loaded(&mut self, adapter: usize, keys: &[KeyId], failed: u64) {
        self.adapters[adapter].loaded(keys);
        self.counts.adapters[adapter].loaded += keys.len() as u64;
        self.counts.adapters[adapter].failed += failed;
    }
}

#[cfg(test)]
mod tests;
