//! What memory notes of every object.

use std::ops::Index;

use wavetank_model::KeyId;

use crate::grow::grow;

/// An object, as far as memory knows it: what it takes where it is resident, and marks. Eight bytes, because
/// there are many.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Record(pub(crate) u64);

impl Record {
    pub(crate) const RESIDENT: u64 = 1;
    /// It leaves with its last reader.
    pub(crate) const TEMPORARY: u64 = 2;
    /// The policy knows it.
    pub(crate) const TRACKED: u64 = 4;
    /// Something may be going on with it: there is a row of the table of those.
    pub(crate) const BUSY: u64 = 8;
    /// It is to be copied to a tier behind later.
    pub(crate) const LATE: u64 = 16;
    pub(crate) const MARKS: u32 = 5;

    pub(crate) fn has(self, mark: u64) -> bool {
        self.0 & mark != 0
    }

    pub(crate) fn mark(&mut self, mark: u64) {
        self.0 |= mark;
    }

    pub(crate) fn unmark(&mut self, mark: u64) {
        self.0 &= !mark;
    }

    pub(crate) fn resident(self) -> Option<u64> {
        self.has(Self::RESIDENT).then_some(self.0 >> Self::MARKS)
    }

    /// What it takes where nothing is going on with it.
    fn idle(self) -> u64 {
        self.resident().filter(|_| !self.has(Self::BUSY)).unwrap_or(0)
    }

    /// It is there, and takes so much.
    pub(crate) fn enter(&mut self, taken: u64) {
        let marks = self.0 & (Self::TRACKED | Self::BUSY);
        self.0 = taken << Self::MARKS | marks | Self::RESIDENT;
    }

    /// It is not there any more; what it took.
    pub(crate) fn leave(&mut self) -> u64 {
        let taken = self.resident().unwrap_or(0);
        self.0 &= Self::TRACKED | Self::BUSY;
        taken
    }
}

/// The objects by key, and what of memory is theirs to leave.
#[derive(Debug, Default)]
pub(crate) struct Records {
    rows: Vec<Record>,
    idle: u64,
}

impl Records {
    /// Makes room for keys up to and without `keys`.
    pub(crate) fn grow(&mut self, keys: usize) {
        grow(&mut self.rows, keys);
    }

    /// Changes what is noted of an object.
    pub(crate) fn change<R>(&mut self, key: KeyId, change: impl FnOnce(&mut Record) -> R) -> R {
        let row = &mut self.rows[key.0 as usize];
        let before = row.idle();
        let result = change(row);
        self.idle = self.idle - before + row.idle();
        result
    }

    /// What objects take with which nothing is going on.
    pub(crate) fn idle(&self) -> u64 {
        self.idle
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Record> {
        self.rows.iter()
    }
}

impl Index<KeyId> for Records {
    type Output = Record;
    fn index(&self, key: KeyId) -> &Record {
        &self.rows[key.0 as usize]
    }
}
