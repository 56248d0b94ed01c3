//! What few objects have at a time: writers, readers, ways to and from tiers behind. It is kept beside the
//! table of all objects, so that those that lie still cost nothing of it.

use hashbrown::HashTable;
use wavetank_model::{KeyId, Nanos};

use crate::lock::Lock;

/// What is going on with an object.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Busy {
    /// What it takes where it is being written.
    pub(crate) staged: Option<u64>,
    pub(crate) reads: Lock,
    pub(crate) write: Lock,
    /// Its length, from the beginning of a write to the end of its copies.
    pub(crate) bytes: u64,
    /// Copies of it under way to tiers behind.
    pub(crate) copies: u32,
    /// Loads of it under way from there, each with room of its own.
    pub(crate) loads: u32,
    /// That room.
    pub(crate) coming: u64,
    /// Prefetches that hold it and wait for something else.
    pub(crate) waits: u32,
    /// What began before this removal brings nothing, and holds nothing.
    pub(crate) removed: u64,
}

impl Busy {
    /// Whether the object has to stay.
    pub(crate) fn keeps(&self, now: Nanos) -> bool {
        self.copies > 0
            || self.loads > 0
            || self.reads.is_held(now)
            || (self.staged.is_some() && self.write.is_held(now))
    }

    /// Whether it could leave if it was not being copied.
    pub(crate) fn keeps_for_copies_only(&self, now: Nanos) -> bool {
        self.copies > 0 && !Self { copies: 0, ..*self }.keeps(now)
    }

    /// A load ends: the room it had.
    pub(crate) fn end_load(&mut self) -> u64 {
        let taken = self.coming / u64::from(self.loads);
        self.loads -= 1;
        self.coming -= taken;
        taken
    }

    /// Nothing is going on any more, expired locks that nobody gave back aside.
    fn is_over(&self) -> bool {
        self.staged.is_none()
            && self.reads.is_free()
            && self.write.is_free()
            && self.copies == 0
            && self.loads == 0
            && self.waits == 0
    }
}

impl Passing for Busy {
    fn is_over(&self) -> bool {
        Self::is_over(self)
    }
}

impl Passing for u32 {
    fn is_over(&self) -> bool {
        *self == 0
    }
}

/// Something that does not last.
pub(crate) trait Passing: Default {
    /// Nothing is left of it.
    fn is_over(&self) -> bool;
}

/// What is going on with few of many objects.
#[derive(Debug, Default)]
pub(crate) struct Sparse<T> {
    rows: HashTable<(KeyId, T)>,
}

/// Every object with which something is going on.
pub(crate) type BusyTable = Sparse<Busy>;

impl<T: Passing> Sparse<T> {
    pub(crate) fn of(&self, key: KeyId) -> Option<&T> {
        self.rows.find(mix(key), |row| row.0 == key).map(|row| &row.1)
    }

    pub(crate) fn row(&mut self, key: KeyId) -> &mut T {
        let entry = self.rows.entry(mix(key), |row| row.0 == key, |row| mix(row.0));
        &mut entry.or_insert_with(|| (key, T::default())).into_mut().1
    }

    /// Changes what is going on with `key`, if there is anything, and forgets it once that is over; whether
    /// it is.
    pub(crate) fn change<R>(&mut self, key: KeyId, change: impl FnOnce(&mut T) -> R) -> Option<(R, bool)> {
        let mut row = self.rows.find_entry(mix(key), |row| row.0 == key).ok()?;
        let result = change(&mut row.get_mut().1);
        let is_over = row.get().1.is_over();
        if is_over {
            row.remove();
        }
        Some((result, is_over))
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &(KeyId, T)> {
        self.rows.iter()
    }
}

/// Keys are small numbers in a row: their bits have to be spread.
fn mix(key: KeyId) -> u64 {
    let spread = u64::from(key.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    spread ^ (spread >> 32)
}
