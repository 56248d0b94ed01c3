//! What happens to entries in a store of tiers, as facts in the past tense. Simulated and real stores emit
//! them.

use std::fmt;

use crate::Nanos;

/// One fact about one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreEvent {
    /// When, since the store was opened.
    pub at: Nanos,
    /// The key's hash.
    pub key: u64,
    /// The entry's length; zero where it is not known.
    pub bytes: u64,
    /// What happened.
    pub fact: StoreFact,
    /// What it took.
    pub times: IoTimes,
}

/// What happened to an entry. Tiers are numbered from the fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFact {
    /// Written to a tier for the first time.
    Stored {
        /// Where.
        tier: u8,
    },
    /// Asked to be written and there already.
    Existed,
    /// Read.
    Hit {
        /// Where it was.
        tier: u8,
    },
    /// Asked for and not there.
    Missed,
    /// Moved down to make room.
    Demoted {
        /// Where it was.
        from: u8,
        /// Where it is.
        to: u8,
    },
    /// Its copy left a tier, another one stays.
    Dropped {
        /// Where it left.
        tier: u8,
    },
    /// Moved or copied up after a hit.
    Promoted {
        /// Where it was.
        from: u8,
        /// Where it is.
        to: u8,
    },
    /// Left the store to make room.
    Evicted {
        /// Where it was.
        tier: u8,
    },
    /// Removed on request.
    Removed,
    /// No tier could take it.
    Refused,
    /// A device refused, or gave back other bytes than it was given; the copy there is gone.
    Failed {
        /// Which tier.
        tier: u8,
    },
}

/// Where an operation's time went. Host and device time overlap: one piece is made while another is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoTimes {
    /// From being asked for to being begun.
    pub queue: Nanos,
    /// Spent by this process on its behalf: making bytes, checksums, copies, opening and naming files.
    pub host: Nanos,
    /// With at least one of its pieces at the device.
    pub device: Nanos,
    /// From being asked for to its end.
    pub total: Nanos,
}

impl fmt::Display for StoreFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stored { tier } => write!(f, "stored in {tier}"),
            Self::Existed => f.write_str("existed"),
            Self::Hit { tier } => write!(f, "hit in {tier}"),
            Self::Missed => f.write_str("missed"),
            Self::Demoted { from, to } => write!(f, "demoted from {from} to {to}"),
            Self::Dropped { tier } => write!(f, "dropped from {tier}"),
            Self::Promoted { from, to } => write!(f, "promoted from {from} to {to}"),
            Self::Evicted { tier } => write!(f, "evicted from {tier}"),
            Self::Removed => f.write_str("removed"),
            Self::Refused => f.write_str("refused"),
            Self::Failed { tier } => write!(f, "failed in {tier}"),
        }
    }
}

/// The decision without its time: `<key> <bytes> <fact>`.
impl fmt::Display for StoreEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x} {} {}", self.key, self.bytes, self.fact)
    }
}
