//! Calls on a KV store as a serving engine makes them (spec/storage-trace.md 1.6 and 2), and what background
//! work of the store a recording holds. Keys and layouts are numbers of a [`crate::KeyTable`].

use crate::{Fate, KeyId, LayoutId, Nanos, Prefetch, Row};

/// Keys in the order of the call.
pub type Keys = Box<[KeyId]>;

/// One call or one piece of background work, as recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// When it was made, from the start of the recording.
    pub at: Nanos,
    /// The same in the recording's own numbers; absent where it has none.
    pub clock: Option<Clock>,
    /// How long the call took.
    pub duration: Option<Nanos>,
    /// Which thread made it.
    pub thread: Option<u32>,
    /// What became of each key, in the order of [`StorageCall::keys`].
    pub outcome: Option<Box<[Fate]>>,
    /// Bytes of memory that objects took which were being written and had no name yet.
    pub unnamed: u64,
    /// The call.
    pub call: StorageCall,
}

impl Recorded {
    /// A call at a time, with nothing else known of it.
    pub fn plain(at: Nanos, call: StorageCall) -> Self {
        Self { at, clock: None, duration: None, thread: None, outcome: None, unnamed: 0, call }
    }
}

/// Clocks read when a call was made. Floating point, because files hold them so and are written again as
/// they were.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// Seconds since the start of the recording.
    pub mono_s: f64,
    /// Seconds since 1970.
    pub wall_s: f64,
}

/// A call on the store, or background work of it.
#[derive(Clone, Debug, PartialEq)]
pub enum StorageCall {
    /// Asks for room for objects; each key of the call is granted or refused.
    ReserveWrite {
        /// The objects.
        keys: Keys,
        /// What each of them holds.
        layout: LayoutId,
        /// Which keys may be written.
        mode: WriteMode,
    },
    /// Makes reserved objects visible.
    FinishWrite {
        /// The objects.
        keys: Keys,
    },
    /// Looks objects up in all tiers, loads them into the first and locks what is found.
    SubmitPrefetch(Box<Prefetch>),
    /// Begins reading objects that a prefetch has locked.
    ReadEnter {
        /// The objects.
        keys: Keys,
    },
    /// Ends reading them.
    ReadExit {
        /// The objects.
        keys: Keys,
    },
    /// Releases locks of a prefetch.
    FinishRead {
        /// The objects.
        keys: Keys,
        /// Locks released of each.
        locks: u32,
    },
    /// The eviction loop of a tier did its work: the first tier is 0.
    EvictionPass {
        /// The tier.
        tier: u8,
        /// Objects it removed.
        evicted: u32,
        /// How many it was to remove at most, and even if it would not have by itself; absent where it did
        /// as it does.
        most: Option<u32>,
    },
    /// Objects were stored in a lower tier, or will be later: what held them for it is released.
    StoreCompleted {
        /// The tier.
        tier: u8,
        /// The objects.
        keys: Keys,
    },
    /// Copies of objects to a lower tier begin that were put off: their [`Self::StoreCompleted`] said
    /// [`Fate::NoMemory`].
    StoreBegun {
        /// The tier.
        tier: u8,
        /// The objects.
        keys: Keys,
    },
    /// What a prefetch had to load has come or has failed: it is over.
    PrefetchCompleted {
        /// The one with this [`Prefetch::handle`].
        handle: u64,
        /// The objects that had to come from lower tiers.
        keys: Keys,
    },
    /// Objects were in a lower tier before the first call: an earlier process left them.
    Found {
        /// The tier.
        tier: u8,
        /// The objects, from the first that will leave to the last.
        keys: Keys,
        /// What each of them holds.
        layout: LayoutId,
    },
    /// Objects left the store, for reasons of its own.
    Removed {
        /// The objects.
        keys: Keys,
    },
    /// So many calls are missing here: the recorder could not keep up.
    Gap {
        /// Calls that were not recorded.
        lost: u64,
    },
}

impl StorageCall {
    /// The keys of the call; rows of a prefetch one after the other.
    pub fn keys(&self) -> impl Iterator<Item = KeyId> + '_ {
        let (keys, rows): (&[KeyId], &[Row]) = match self {
            Self::ReserveWrite { keys, .. }
            | Self::FinishWrite { keys }
            | Self::ReadEnter { keys }
            | Self::ReadExit { keys }
            | Self::FinishRead { keys, .. }
            | Self::StoreCompleted { keys, .. }
            | Self::StoreBegun { keys, .. }
            | Self::PrefetchCompleted { keys, .. }
            | Self::Found { keys, .. }
            | Self::Removed { keys } => (keys, &[]),
            Self::SubmitPrefetch(prefetch) => (&[], &prefetch.rows),
            Self::EvictionPass { .. } | Self::Gap { .. } => (&[], &[]),
        };
        keys.iter().chain(rows.iter().flat_map(|row| &row.keys)).copied()
    }

    /// Gives every key and every layout of the call another number.
    pub fn renumber(
        &mut self,
        mut key: impl FnMut(KeyId) -> KeyId,
        mut layout: impl FnMut(LayoutId) -> LayoutId,
    ) {
        match self {
            Self::ReserveWrite { keys, layout: of, .. } | Self::Found { keys, layout: of, .. } => {
                keys.iter_mut().for_each(|one| *one = key(*one));
                *of = layout(*of);
            }
            Self::FinishWrite { keys }
            | Self::ReadEnter { keys }
            | Self::ReadExit { keys }
            | Self::FinishRead { keys, .. }
            | Self::StoreCompleted { keys, .. }
            | Self::StoreBegun { keys, .. }
            | Self::PrefetchCompleted { keys, .. }
            | Self::Removed { keys } => keys.iter_mut().for_each(|one| *one = key(*one)),
            Self::SubmitPrefetch(prefetch) => {
                for row in &mut prefetch.rows {
                    row.keys.iter_mut().for_each(|one| *one = key(*one));
                    row.layout = layout(row.layout);
                }
            }
            Self::EvictionPass { .. } | Self::Gap { .. } => {}
        }
    }
}

/// Which keys a reservation may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteMode {
    /// Those that are not there.
    #[default]
    New,
    /// Those that are there.
    Update,
    /// Any.
    All,
}
