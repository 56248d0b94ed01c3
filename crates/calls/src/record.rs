//! What memory notes of every object.

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
