//! Nobody leaves: a full tier stays as it is until entries are deleted. LMCache's `noop`.

use super::{Entry, Eviction, Resident, Slot};

pub(super) const ENTRY: Entry = Entry {
    name: "noop",
    about: "nothing is evicted; a full tier refuses",
    has_quotas: false,
    remembers: false,
    scales: true,
    build: |_| Ok(Box::new(Noop)),
};

struct Noop;

impl Eviction for Noop {
    fn insert(&mut self, _: Slot, _: &Resident) {}
    fn touch(&mut self, _: Slot) {}
    fn victim(&mut self, _: &Resident, _: &mut dyn FnMut(Slot) -> bool) -> Option<Slot> {
        None
    }
    fn evict(&mut self, _: Slot) {}
    fn remove(&mut self, _: Slot) {}
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Seen, accesses};
    use super::*;

    #[test]
    fn the_first_entries_stay() {
        let seen = accesses(Box::new(Noop), 2, &[1, 2, 3, 1, 3]);
        assert_eq!(seen, [Seen::Entered, Seen::Entered, Seen::Refused, Seen::Hit, Seen::Refused]);
    }
}
