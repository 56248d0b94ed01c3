//! What became of one key of a storage call.

/// What became of a key. The numbers are what recordings hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Fate {
    /// Done as asked: granted, admitted, readable, released.
    Done = 0,
    /// Not there: a miss of a prefetch, or a key no one knows.
    Absent = 1,
    /// Refused: it is there already.
    Resident = 2,
    /// Refused: another writer has it.
    Staged = 3,
    /// Refused: no memory.
    NoMemory = 4,
    /// Refused: no lock is held.
    Unlocked = 5,
    /// Refused: the lock was held too long.
    Expired = 6,
    /// Found in the first tier.
    FirstTier = 7,
    /// Found in a lower tier and loaded.
    LowerTier = 8,
    /// A device failed.
    Failed = 9,
}

impl Fate {
    /// Every one, in the order of its number.
    pub const ALL: [Self; 10] = [
        Self::Done,
        Self::Absent,
        Self::Resident,
        Self::Staged,
        Self::NoMemory,
        Self::Unlocked,
        Self::Expired,
        Self::FirstTier,
        Self::LowerTier,
        Self::Failed,
    ];

    /// The one with this number.
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a fate out of place in the list.
    #[test]
    fn numbers_are_places() {
        for (place, fate) in (0u8..).zip(Fate::ALL) {
            assert_eq!((fate as u8, Fate::of_number(place)), (place, Some(fate)));
        }
        assert_eq!(Fate::of_number(10), None);
    }
}
