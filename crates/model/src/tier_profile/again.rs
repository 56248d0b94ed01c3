//! What was moved a moment ago is read sooner: it is still near who copies it.

use serde::{Deserialize, Serialize};

use crate::Operation;

/// Reads of entries in turn, one at a time: each finds what was moved this many bytes ago.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierAgain {
    /// What was done to an entry before it was read.
    pub after: Operation,
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
    pub(super) fn sped(&self, factor: f64) -> Self {
        Self { mean_us: self.mean_us / factor, ..self.clone() }
    }
}
