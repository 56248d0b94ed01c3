//! Least recently used: entries leave in order of their last use. Mattson et al., "Evaluation techniques for
//! storage hierarchies", IBM Systems Journal 9(2), 1970, which also gives the inclusion law.

use super::{Entry, Eviction, Resident, Slot};
use crate::recency::{Links, Recency, row_of};

pub(super) const ENTRY: Entry = Entry {
    name: "lru",
    about: "the least recently used entry leaves",
    has_quotas: false,
    remembers: false,
    scales: true,
    build: |_| Ok(Box::new(Lru::default())),
};

#[derive(Default)]
struct Lru {
    links: Vec<Links>,
    order: Recency,
}

impl Eviction for Lru {
    fn insert(&mut self, slot: Slot, _: &Resident) {
        row_of(&mut self.links, slot);
        self.order.push(&mut self.links, slot);
    }

    fn touch(&mut self, slot: Slot) {
        self.order.renew(&mut self.links, slot);
    }

    fn victim(&mut self, _: &Resident, evictable: &mut dyn FnMut(Slot) -> bool) -> Option<Slot> {
        self.order.oldest_where(&mut self.links, evictable)
    }

    fn evict(&mut self, slot: Slot) {
        self.order.remove(&mut self.links, slot);
    }

    fn remove(&mut self, slot: Slot) {
        self.order.remove(&mut self.links, slot);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::super::tests::{Seen, accesses, keys, residents_after};
    use super::*;

    fn textbook(capacity: usize, stream: &[u64]) -> Vec<Seen> {
        let mut order = VecDeque::new();
        let mut seen = Vec::new();
        for &key in stream {
            if let Some(at) = order.iter().position(|&other| other == key) {
                order.remove(at);
                seen.push(Seen::Hit);
            } else if order.len() == capacity {
                seen.push(Seen::Evicted(order.pop_front().unwrap()));
            } else {
                seen.push(Seen::Entered);
            }
            order.push_back(key);
        }
        seen
    }

    proptest! {
        /// Broken by a `touch` that does nothing.
        #[test]
        fn agrees_with_the_textbook(capacity in 1usize..12, stream in keys(20)) {
            let lru = Box::new(Lru::default());
            prop_assert_eq!(accesses(lru, capacity, &stream), textbook(capacity, &stream));
        }

        /// The inclusion law. Broken by any order that depends on the capacity, and by `fifo`'s (Belady's
        /// anomaly).
        #[test]
        fn a_larger_cache_holds_all_of_a_smaller_one(capacity in 1usize..12, stream in keys(20)) {
            let small = residents_after(Box::new(Lru::default()), capacity, &stream);
            let large = residents_after(Box::new(Lru::default()), capacity + 1, &stream);
            prop_assert!(small.is_subset(&large), "{:?} in {:?}", small, large);
        }
    }
}
