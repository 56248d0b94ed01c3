//! A list of dense slots in order of last use, linked through the slots themselves.

/// "No slot".
const NONE: u32 = u32::MAX;

/// Slots that a look for the oldest walks past before it puts those it passed behind all others.
const PASSED_AT_MOST: u32 = 64;

/// The two links a slot carries.
#[derive(Clone, Copy, Debug)]
pub struct Links {
    older: u32,
    newer: u32,
}

impl Default for Links {
    fn default() -> Self {
        Self { older: NONE, newer: NONE }
    }
}

impl Links {
    /// The next slot towards the most recently used one.
    pub(crate) fn newer(&self) -> Option<u32> {
        (self.newer != NONE).then_some(self.newer)
    }

    /// The next slot towards the least recently used one.
    pub fn older(&self) -> Option<u32> {
        (self.older != NONE).then_some(self.older)
    }
}

/// A row that is nothing but its links.
impl AsMut<Links> for Links {
    fn as_mut(&mut self) -> &mut Links {
        self
    }
}

/// A slot's links and what its owner notes of it.
#[derive(Debug, Default)]
pub(crate) struct Noted<T> {
    pub(crate) links: Links,
    pub(crate) note: T,
}

impl<T> AsMut<Links> for Noted<T> {
    fn as_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// The row of `slot`, made if this is the first time it is used.
pub(crate) fn row_of<T: Default>(rows: &mut Vec<T>, slot: u32) -> &mut T {
    let at = slot as usize;
    if rows.len() <= at {
        // By an eighth: half a table of nothing is a lot of memory.
        if rows.capacity() <= at {
            rows.reserve_exact((at + 1).max(rows.len() + rows.len() / 8 + 64) - rows.len());
        }
        rows.resize_with(at + 1, T::default);
    }
    &mut rows[at]
}

/// The ends of the list; the links live in the caller's slots.
#[derive(Debug)]
pub struct Recency {
    oldest: u32,
    newest: u32,
    len: u32,
}

impl Default for Recency {
    fn default() -> Self {
        Self { oldest: NONE, newest: NONE, len: 0 }
    }
}

impl Recency {
    /// How many slots are listed.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds `slot` as the most recently used.
    pub fn push<T: AsMut<Links>>(&mut self, slots: &mut [T], slot: u32) {
        *slots[slot as usize].as_mut() = Links { older: self.newest, newer: NONE };
        match self.newest {
            NONE => self.oldest = slot,
            newest => slots[newest as usize].as_mut().newer = slot,
        }
        self.newest = slot;
        self.len += 1;
    }

    /// The least recently used slot.
    pub(crate) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// The least recently used slot that `accepts` takes. Where many slots before it are not accepted they
    /// become the most recently used, so that the next look need not pass them again.
    pub(crate) fn oldest_where<T: AsMut<Links>>(
        &mut self,
        slots: &mut [T],
        accepts: &mut dyn FnMut(u32) -> bool,
    ) -> Option<u32> {
        let (mut at, mut passed) = (self.oldest(), 0);
        while let Some(slot) = at {
            if accepts(slot) {
                self.leave_behind(slots, slot, passed);
                break;
            }
            passed += 1;
            at = slots[slot as usize].as_mut().newer();
        }
        at
    }

    /// A look has come to `slot` and passed all so many before it: if they are many they become the most
    /// recently used, in their order.
    pub(crate) fn leave_behind<T: AsMut<Links>>(&mut self, slots: &mut [T], slot: u32, passed: u32) {
        let older = slots[slot as usize].as_mut().older;
        if passed <= PASSED_AT_MOST || older == NONE {
            return;
        }
        slots[self.newest as usize].as_mut().newer = self.oldest;
        slots[self.oldest as usize].as_mut().older = self.newest;
        slots[older as usize].as_mut().newer = NONE;
        slots[slot as usize].as_mut().older = NONE;
        (self.oldest, self.newest) = (slot, older);
    }

    /// Makes `slot`, which is listed, the most recently used.
    pub fn renew<T: AsMut<Links>>(&mut self, slots: &mut [T], slot: u32) {
        self.remove(slots, slot);
        self.push(slots, slot);
    }

    /// Adds `slot` just newer than `anchor`, which is listed; without one, as the least recently used.
    pub(crate) fn push_after<T: AsMut<Links>>(&mut self, slots: &mut [T], anchor: Option<u32>, slot: u32) {
        let older = anchor.unwrap_or(NONE);
        let newer = match anchor {
            Some(anchor) => std::mem::replace(&mut slots[anchor as usize].as_mut().newer, slot),
            None => std::mem::replace(&mut self.oldest, slot),
        };
        match newer {
            NONE => self.newest = slot,
            newer => slots[newer as usize].as_mut().older = slot,
        }
        *slots[slot as usize].as_mut() = Links { older, newer };
        self.len += 1;
    }

    /// Takes `slot` out of the list.
    pub fn remove<T: AsMut<Links>>(&mut self, slots: &mut [T], slot: u32) {
        let Links { older, newer } = *slots[slot as usize].as_mut();
        match older {
            NONE => self.oldest = newer,
            older => slots[older as usize].as_mut().newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => slots[newer as usize].as_mut().older = older,
        }
        self.len -= 1;
    }

    /// Takes out the `count` least recently used slots, oldest first, and hands each to `taken`.
    ///
    /// # Panics
    /// When there are fewer.
    pub(crate) fn take_oldest<T: AsMut<Links>>(
        &mut self,
        slots: &mut [T],
        count: u32,
        mut taken: impl FnMut(u32),
    ) {
        for _ in 0..count {
            let slot = self.oldest;
            self.oldest = slots[slot as usize].as_mut().newer;
            taken(slot);
        }
        self.len -= count;
        match self.oldest {
            NONE => self.newest = NONE,
            oldest => slots[oldest as usize].as_mut().older = NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Slot(Links);
    impl AsMut<Links> for Slot {
        fn as_mut(&mut self) -> &mut Links {
            &mut self.0
        }
    }

    #[test]
    fn leaves_in_order_of_use() {
        let mut slots: Vec<Slot> = (0..4).map(|_| Slot::default()).collect();
        let mut list = Recency::default();
        for slot in [2, 0, 3, 1] {
            list.push(&mut slots, slot);
        }
        list.remove(&mut slots, 3);
        list.remove(&mut slots, 2);
        list.push(&mut slots, 2);
        let mut order = Vec::new();
        list.take_oldest(&mut slots, 2, |slot| order.push(slot));
        list.push(&mut slots, 3);
        list.take_oldest(&mut slots, 2, |slot| order.push(slot));
        assert_eq!(order, [0, 1, 2, 3]);
        assert!(list.is_empty());
    }

    /// Broken by: leaving those that were passed where they are, which every look then passes again, or
    /// putting them elsewhere than behind all others in their order.
    #[test]
    fn many_that_are_passed_are_passed_once() {
        let (pinned, free) = (1000, 500);
        let mut links = vec![Links::default(); pinned as usize + free];
        let mut list = Recency::default();
        (0..links.len() as u32).for_each(|slot| list.push(&mut links, slot));
        let mut looks = 0;
        for expected in (pinned..).take(free) {
            let mut is_free = |slot: u32| {
                looks += 1;
                slot >= pinned
            };
            assert_eq!(list.oldest_where(&mut links, &mut is_free), Some(expected));
            list.remove(&mut links, expected);
        }
        assert_eq!(looks, pinned + free as u32);
        assert_eq!(list.oldest_where(&mut links, &mut |slot| slot == PASSED_AT_MOST), Some(PASSED_AT_MOST));
        let mut order = Vec::new();
        list.take_oldest(&mut links, pinned, |slot| order.push(slot));
        assert!(order.iter().copied().eq(0..pinned), "a few that are passed stay where they are");
    }

    #[test]
    fn is_filled_between_slots_and_walked() {
        let mut links = vec![Links::default(); 5];
        let mut list = Recency::default();
        list.push_after(&mut links, None, 3);
        list.push_after(&mut links, None, 1);
        list.push_after(&mut links, Some(1), 2);
        list.push_after(&mut links, Some(3), 4);
        list.renew(&mut links, 1);
        assert_eq!(list.oldest_where(&mut links, &mut |slot| slot != 2), Some(3));
        assert_eq!(list.oldest_where(&mut links, &mut |_| false), None);
        let mut order = Vec::new();
        list.take_oldest(&mut links, 4, |slot| order.push(slot));
        assert_eq!(order, [2, 3, 4, 1]);
    }
}
