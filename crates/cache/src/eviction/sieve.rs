//! SIEVE: Zhang, Yang, Yue, Vigfusson and Rashmi, "SIEVE is simpler than LRU", NSDI 2024, Algorithm 1.
//!
//! One queue in order of entry that is never reordered, a mark on entries that were used, and a hand that
//! moves from the oldest to the newest and round again: it clears marks as it passes and stops at the first
//! entry without one. The hand stays where the last victim was. A busy entry is passed and keeps its mark.
//!
//! It comes round only by passing marks. Where many entries come that are used once, or only after others
//! came, it stops a few entries before the newest, takes those, and what it passed stays for good.

use super::{Entry, Eviction, Resident, Slot};
use crate::recency::{Noted, Recency, row_of};

pub(super) const ENTRY: Entry = Entry {
    name: "sieve",
    about: "a hand sweeps the queue and takes the first entry not used since its last round",
    has_quotas: false,
    remembers: false,
    scales: false,
    build: |_| Ok(Box::new(Sieve::default())),
};

#[derive(Default)]
struct Sieve {
    /// Each slot with its mark.
    rows: Vec<Noted<bool>>,
    queue: Recency,
    /// Where to look next; nowhere means at the oldest.
    hand: Option<Slot>,
}

impl Eviction for Sieve {
    fn insert(&mut self, slot: Slot, _: &Resident) {
        row_of(&mut self.rows, slot).note = false;
        self.queue.push(&mut self.rows, slot);
    }

    fn touch(&mut self, slot: Slot) {
        self.rows[slot as usize].note = true;
    }

    fn victim(&mut self, _: &Resident, evictable: &mut dyn FnMut(Slot) -> bool) -> Option<Slot> {
        // One round clears every mark it may clear, so a second one finds a victim if there is any.
        for _ in 0..2 * u64::from(self.queue.len()) {
            let slot = self.hand.or(self.queue.oldest())?;
            let row = &mut self.rows[slot as usize];
            self.hand = Some(slot);
            if evictable(slot) && !std::mem::take(&mut row.note) {
                return Some(slot);
            }
            self.hand = row.links.newer();
        }
        None
    }

    fn evict(&mut self, slot: Slot) {
        self.remove(slot);
    }

    fn remove(&mut self, slot: Slot) {
        if self.hand == Some(slot) {
            self.hand = self.rows[slot as usize].links.newer();
        }
        self.queue.remove(&mut self.rows, slot);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::super::tests::{Seen, accesses, keys};
    use super::*;

    /// (key, visited) from the oldest to the newest, and the hand as a place in it.
    fn textbook(capacity: usize, stream: &[u64]) -> Vec<Seen> {
        let mut queue: VecDeque<(u64, bool)> = VecDeque::new();
        let mut hand = 0;
        let mut seen = Vec::new();
        for &key in stream {
            if let Some(entry) = queue.iter_mut().find(|entry| entry.0 == key) {
                entry.1 = true;
                seen.push(Seen::Hit);
                continue;
            }
            if queue.len() == capacity {
                hand %= capacity;
                while queue[hand].1 {
                    queue[hand].1 = false;
                    hand = (hand + 1) % capacity;
                }
                seen.push(Seen::Evicted(queue.remove(hand).unwrap().0));
                // Past the newest: the next look is at the oldest, not at what enters now.
                hand = if hand == capacity - 1 { 0 } else { hand };
            } else {
                seen.push(Seen::Entered);
            }
            queue.push_back((key, false));
        }
        seen
    }

    proptest! {
        /// Broken by marks that are not cleared, by a hand that starts over, and by entering at the hand.
        #[test]
        fn agrees_with_the_textbook(capacity in 1usize..12, stream in keys(20)) {
            let sieve = Box::new(Sieve::default());
            prop_assert_eq!(accesses(sieve, capacity, &stream), textbook(capacity, &stream));
        }
    }

    /// Broken by an `insert` that does not clear the mark.
    #[test]
    fn a_mark_does_not_outlive_its_entry() {
        let (mut sieve, entry) = (Sieve::default(), Resident { fingerprint: 0, bytes: 1, tenant: 0 });
        sieve.insert(0, &entry);
        sieve.touch(0);
        sieve.remove(0);
        sieve.insert(0, &entry);
        sieve.insert(1, &entry);
        assert_eq!(sieve.victim(&entry, &mut |_| true), Some(0));
    }

    #[test]
    fn busy_entries_keep_their_mark() {
        let (mut sieve, entry) = (Sieve::default(), Resident { fingerprint: 0, bytes: 1, tenant: 0 });
        for slot in 0..3 {
            sieve.insert(slot, &entry);
            sieve.touch(slot);
        }
        assert_eq!(sieve.victim(&entry, &mut |_| false), None);
        assert_eq!(sieve.victim(&entry, &mut |slot| slot != 0), Some(1), "a round clears 1 and 2");
        let marks: Vec<bool> = sieve.rows.iter().map(|row| row.note).collect();
        assert_eq!(marks, [true, false, false]);
    }
}
