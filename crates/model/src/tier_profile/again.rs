//! What was moved a moment ago is read sooner: it is still near who copies it.

use serde::{Deserialize, Serialize};

use crate::Operation;

/// Reads of entries in turn, one at a time: each finds what was moved this many bytes ago.
///
/// What a cache keeps may depend on more than that: some take in what was fetched from memory only when it is
/// asked for again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierAgain {
    /// What was done to an entry before it was read.
    pub after: Operation,
    /// How often in a row it had been read again before, as near; the highest number stands for more. After a
    /// write this begins anew.
    pub repeats: u32,
    /// Bytes that were moved from the beginning of that to that of the read.
    pub apart_bytes: u64,
    /// Bytes of an entry.
    pub bytes: u64,
    /// How many reads ended while it was measured.
    pub operations: u64,
    /// How long they took on average.
    pub mean_us: f64,
}

impl TierAgain {
    /// Whether the other one differs in nothing but how far apart things were.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.after, self.repeats) == (other.after, other.repeats)
    }

    pub(super) fn sped(&self, factor: f64) -> Self {
        Self { mean_us: self.mean_us / factor, ..self.clone() }
    }
}
