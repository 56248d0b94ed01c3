//! What a prefetch asks a KV store for (spec/storage-trace.md 2.3 and 2.4).

use crate::{Keys, LayoutId};

/// What a prefetch asks for: a grid with a row per object group and rank and a column per chunk of the
/// prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefetch {
    /// At least one, of equal length.
    pub rows: Box<[Row]>,
    /// Locks taken of each object found.
    pub readers: u32,
    /// Which of the objects found are kept.
    pub policy: FetchPolicy,
    /// Whether locks stay.
    pub lock: LockMode,
    /// The request's name outside.
    pub request: Box<str>,
    /// Looks into the first tier only.
    pub skip_l2: bool,
    /// Names it where its end is recorded too; absent where it is over at once.
    pub handle: Option<u64>,
}

impl Prefetch {
    /// The longest prefix of `rows`, held for one reader.
    pub fn of(rows: impl Into<Box<[Row]>>) -> Self {
        Self {
            rows: rows.into(),
            readers: 1,
            policy: FetchPolicy::Prefix,
            lock: LockMode::Lock,
            request: "".into(),
            skip_l2: false,
            handle: None,
        }
    }

    /// Chunks asked for.
    pub fn columns(&self) -> usize {
        self.rows.first().map_or(0, |row| row.keys.len())
    }
}

/// One row of a prefetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// One key per chunk.
    pub keys: Keys,
    /// The object group.
    pub group: u32,
    /// What each object holds.
    pub layout: LayoutId,
    /// Chunks at the end of a prefix that must be there for it to be of use; 0 or less: all of them.
    pub window: i32,
}

/// Which of the objects found a prefetch keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchPolicy {
    /// Those of the longest prefix that can be served.
    Prefix,
    /// All.
    Full,
}

/// Whether a prefetch leaves what it found locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Until they are released.
    Lock,
    /// It only brings them near.
    NoLock,
}
