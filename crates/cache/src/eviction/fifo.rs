//! First in, first out: use changes nothing. Belady, Nelson and Shedler, "An anomaly in space-time
//! characteristics of certain programs running in a paging machine", CACM 12(6), 1969.

use super::{Entry, Eviction, Resident, Slot};
use crate::recency::{Links, Recency, row_of};

pub(super) const ENTRY: Entry = Entry {
    name: "fifo",
    about: "the entry that came first leaves, used or not",
    has_quotas: false,
    remembers: false,
    scales: true,
    build: |_| Ok(Box::new(Fifo::default())),
};

#[derive(Default)]
struct Fifo {
    links: Vec<Links>,
    order: Recency,
}

impl Eviction for Fifo {
    fn insert(&mut self, slot: Slot, _: &Resident) {
        row_of(&mut self.links, slot);
        self.order.push(&mut self.links, slot);
    }

    fn touch(&mut self, _: Slot) {}

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

    use super::super::tests::{Seen, accesses, keys};
    use super::*;

    fn textbook(capacity: usize, stream: &[u64]) -> Vec<Seen> {
        let mut queue = VecDeque::new();
        let mut seen = Vec::new();
        for &key in stream {
            if queue.contains(&key) {
                seen.push(Seen::Hit);
                continue;
            }
            let full = queue.len() == capacity;
            seen.push(if full { Seen::Evicted(queue.pop_front().unwrap()) } else { Seen::Entered });
            queue.push_back(key);
        }
        seen
    }

    proptest! {
        /// Broken by a `touch` that renews.
        #[test]
        fn agrees_with_the_textbook(capacity in 1usize..12, stream in keys(20)) {
            let fifo = Box::new(Fifo::default());
            prop_assert_eq!(accesses(fifo, capacity, &stream), textbook(capacity, &stream));
        }
    }
}
