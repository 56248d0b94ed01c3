//! A list of dense slots in order of last use, linked through the slots themselves.

/// "No slot".
const NONE: u32 = u32::MAX;

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
    pub fn take_oldest<T: AsMut<Links>>(&mut self, slots: &mut [T], count: u32, mut taken: impl FnMut(u32)) {
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
}
