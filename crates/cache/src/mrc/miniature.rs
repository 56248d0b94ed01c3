//! One cache of one capacity under one policy, on blocks of which each may stand for several.

use hashbrown::HashTable;

use super::cut::Part;
use super::tally::Strata;
use super::{Rule, Sizes};
use crate::eviction::{Eviction, Resident, Slot};

/// "Not there".
const NONE: Slot = Slot::MAX;

#[derive(Clone, Copy, Debug)]
struct Held {
    id: u64,
    size: u64,
    is_there: bool,
}

/// What all caches of a sample have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) rule: Rule,
    pub(super) sizes: Sizes,
    /// What a block stands for.
    pub(super) one_in: u64,
}

/// A cache.
pub(super) struct Miniature {
    policy: Box<dyn Eviction>,
    terms: Terms,
    capacity: u64,
    used: u64,
    /// Slots by identity, which is a hash already.
    numbers: HashTable<Slot>,
    held: Vec<Held>,
    free: Vec<Slot>,
    found: Vec<Slot>,
    served: Strata,
}

impl Miniature {
    pub(super) fn of(policy: Box<dyn Eviction>, capacity: u64, terms: Terms) -> Self {
        Self {
            policy,
            terms,
            capacity,
            used: 0,
            numbers: HashTable::new(),
            held: Vec::new(),
            free: Vec::new(),
            found: Vec::new(),
            served: Strata::default(),
        }
    }

    /// What it served, with what that stands for.
    pub(super) fn served(&self) -> Strata {
        self.served
    }

    /// Looks `parts` up as the cache is, then uses them or lets them enter, from the last to the first.
    pub(super) fn access(&mut self, parts: &[Part], tenant: u32) {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        found.extend(parts.iter().map(|part| self.find(part.id)));
        self.count(parts, &found);
        for (part, &slot) in parts.iter().zip(&found).rev() {
            self.give_back(part, slot, tenant);
        }
        self.found = found;
    }

    fn count(&mut self, parts: &[Part], found: &[Slot]) {
        for (part, &slot) in parts.iter().zip(found) {
            if slot != NONE {
                self.served.add(part, self.terms.one_in);
            } else if self.terms.rule == Rule::Prefix {
                return;
            }
        }
    }

    fn find(&self, id: u64) -> Slot {
        let same = |&slot: &Slot| self.held[slot as usize].id == id;
        self.numbers.find(id, same).copied().unwrap_or(NONE)
    }

    /// A block was in slot `seen` when the request came, but others of its prompt may have driven it out
    /// since, or brought it.
    fn give_back(&mut self, part: &Part, seen: Slot, tenant: u32) {
        let slot = match self.held.get(seen as usize) {
            Some(held) if held.is_there && held.id == part.id => seen,
            _ => self.find(part.id),
        };
        let size = self.terms.sizes.of(part.weight) * self.terms.one_in;
        let entry = Resident { fingerprint: part.id, bytes: size, tenant };
        if slot == NONE {
            self.admit(&entry);
        } else if self.held[slot as usize].size == size {
            self.policy.touch(slot);
        } else {
            self.policy.remove(slot);
            self.leave(slot);
            self.admit(&entry);
        }
    }

    /// Lets an entry in, if it can ever fit and somebody leaves for it.
    fn admit(&mut self, entry: &Resident) {
        if entry.bytes > self.capacity {
            return;
        }
        while self.used + entry.bytes > self.capacity || !self.policy.admits(entry) {
            let Some(victim) = self.policy.victim(entry, &mut |_| true) else { return };
            self.policy.evict(victim);
            self.leave(victim);
        }
        let held = Held { id: entry.fingerprint, size: entry.bytes, is_there: true };
        let slot = self.free.pop().unwrap_or(self.held.len() as Slot);
        match self.held.get_mut(slot as usize) {
            Some(place) => *place = held,
            None => self.held.push(held),
        }
        self.used += entry.bytes;
        let held = &self.held;
        self.numbers.insert_unique(entry.fingerprint, slot, |&other| held[other as usize].id);
        self.policy.insert(slot, entry);
    }

    fn leave(&mut self, slot: Slot) {
        let held = &mut self.held[slot as usize];
        held.is_there = false;
        self.used -= held.size;
        if let Ok(entry) = self.numbers.find_entry(held.id, |&other| other == slot) {
            entry.remove();
        }
        self.free.push(slot);
    }
}
