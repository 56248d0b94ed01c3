//! What was moved a moment ago is read sooner: it is still near who copies it.

use serde::{Deserialize, Serialize};

/// Reads of entries in turn, one at a time: each finds what was read this many bytes ago.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierAgain {
    /// Bytes that were read from the beginning of one read of an entry to that of its next.
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
