//! Entries that left, remembered by fingerprint in the order in which they did.

use hashbrown::HashTable;

use crate::recency::{Noted, Recency};

#[derive(Debug, Default)]
struct Ghost {
    fingerprint: u64,
    bytes: u64,
}

/// A list of ghosts; whoever fills it bounds it with `forget_oldest`.
#[derive(Debug, Default)]
pub(crate) struct Ghosts {
    /// Found by fingerprint, which is a hash already.
    numbers: HashTable<u32>,
    rows: Vec<Noted<Ghost>>,
    vacant: Vec<u32>,
    order: Recency,
    bytes: u64,
}

impl Ghosts {
    /// What they weighed, together.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether `fingerprint` left and is remembered.
    pub(crate) fn contains(&self, fingerprint: u64) -> bool {
        self.numbers.find(fingerprint, |&number| self.fingerprint(number) == fingerprint).is_some()
    }

    /// Remembers an entry as the last that left.
    pub(crate) fn push(&mut self, fingerprint: u64, bytes: u64) {
        self.take(fingerprint);
        let number = self.vacant.pop().unwrap_or(self.rows.len() as u32);
        if number as usize == self.rows.len() {
            self.rows.push(Noted::default());
        }
        self.rows[number as usize].note = Ghost { fingerprint, bytes };
        self.order.push(&mut self.rows, number);
        self.bytes += bytes;
        let rows = &self.rows;
        self.numbers.insert_unique(fingerprint, number, |&other| rows[other as usize].note.fingerprint);
    }

    /// Forgets `fingerprint`; says whether it was remembered.
    pub(crate) fn take(&mut self, fingerprint: u64) -> bool {
        let rows = &self.rows;
        let same = |&number: &u32| rows[number as usize].note.fingerprint == fingerprint;
        let Ok(found) = self.numbers.find_entry(fingerprint, same) else {
            return false;
        };
        let (number, _) = found.remove();
        self.order.remove(&mut self.rows, number);
        self.bytes -= self.rows[number as usize].note.bytes;
        self.vacant.push(number);
        true
    }

    /// Forgets the one that left first; says whether there was one.
    pub(crate) fn forget_oldest(&mut self) -> bool {
        self.order.oldest().is_some_and(|number| self.take(self.fingerprint(number)))
    }

    fn fingerprint(&self, number: u32) -> u64 {
        self.rows[number as usize].note.fingerprint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn are_forgotten_in_order_and_counted() {
        let mut ghosts = Ghosts::default();
        for (fingerprint, bytes) in [(7, 10), (8, 20), (7, 30), (9, 40)] {
            ghosts.push(fingerprint, bytes);
        }
        assert_eq!(ghosts.bytes(), 90, "7 is remembered once, as it left last");
        assert!(ghosts.forget_oldest());
        assert!(!ghosts.contains(8) && ghosts.contains(7));
        assert!(ghosts.take(7) && !ghosts.take(7));
        ghosts.push(10, 1);
        assert!(ghosts.forget_oldest() && ghosts.forget_oldest() && !ghosts.forget_oldest());
        assert_eq!((ghosts.bytes(), ghosts.rows.len()), (0, 3), "rows are used again");
    }
}
