//! What came of a replay.

use serde::Serialize;
use wavetank_model::{Fate, Nanos};

use super::listen::Act;
use crate::background::Background;
use crate::play::{Latencies, Spread};

/// What became of the keys of all calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    /// Whether it was ended before the recording was.
    pub interrupted: bool,
    /// Calls that were made.
    pub calls: u64,
    /// The same by operation.
    pub operations: Operations,
    /// When the first of them was made.
    pub began: Nanos,
    /// When the last one was.
    pub ended: Nanos,
    /// How long prefetches took, where time is simulated.
    #[serde(skip)]
    pub(crate) took: Latencies,
    /// Prefetches among them.
    pub prefetches: u64,
    /// Keys they asked for.
    pub asked: u64,
    /// Keys they found in memory.
    pub hits_l1: u64,
    /// Keys they brought from behind.
    pub hits_l2: u64,
    /// Keys they did not find.
    pub misses: u64,
    /// Keys they found behind and had no memory for.
    pub misses_no_memory: u64,
    /// Keys that were read.
    pub read: u64,
    /// Keys of reads that were refused, and could not be read.
    pub read_failed: u64,
    /// Keys that were given back.
    pub released: u64,
    /// Keys that should have been given back and were not held.
    pub release_failed: u64,
    /// Keys that were held beyond what the recording says that its caller found; the caller gave them back
    /// before its next prefetch.
    pub surplus: u64,
    /// Keys that were held as recorded, and the recording does not give back; the caller gave them back
    /// before its next prefetch, if there is one.
    pub leaked: u64,
    /// Keys that were written.
    pub stored: u64,
    /// Keys whose writing ended and had not begun, or for too long.
    pub store_failed: u64,
    /// Keys that were not written because they were there.
    pub refused_resident: u64,
    /// Keys that were not written because another writer had them.
    pub refused_staged: u64,
    /// Keys that were not written for want of memory.
    pub refused_no_memory: u64,
    /// Keys of recorded reservations that a caller which decides itself did not write: it had found them.
    pub writes_left: u64,
    /// Keys of recorded reads that such a caller did not read: it had not looked for them.
    pub reads_left: u64,
    /// Keys that such a caller did not find and did not write: nothing says how long they are.
    pub unsized_misses: u64,
    /// Keys whose lock had been held for too long.
    pub expired: u64,
    /// Prefetches of which it is known what they should find.
    pub prefetches_compared: u64,
    /// Prefetches whose hits are not as recorded.
    pub prefetches_that_differ: u64,
    /// Reservations of which it is known what they should be granted.
    pub writes_compared: u64,
    /// Reservations whose grants are not as recorded.
    pub writes_that_differ: u64,
    /// Reads, releases and ends of writes that were compared.
    pub others_compared: u64,
    /// Reads, releases and ends of writes whose outcome is not as recorded; where none is recorded, that not
    /// all of their keys were done.
    pub others_that_differ: u64,
    /// Keys found in another tier than recorded.
    pub tiers_that_differ: u64,
    /// Recorded passes of eviction loops that let another number of objects leave now.
    pub passes_that_differ: u64,
    /// Keys that a recording wanted and were put in.
    pub forced_in: u64,
    /// Keys that a recording did not want and were taken out.
    pub forced_out: u64,
    /// The first call with another outcome than recorded.
    pub first_divergence: Option<Divergence>,
    /// Objects that readers hold at the end.
    pub held_at_end: u64,
    /// Bytes in memory at the end.
    pub used_l1: u64,
    /// Bytes in each tier behind it at the end.
    pub used_l2: Vec<u64>,
    /// What happened besides calls.
    pub background: Background,
}

/// Calls by operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Operations {
    /// Prefetches; one fails where a device does.
    pub prefetch: Count,
    /// Reservations; a refusal is no failure.
    pub reserve_write: Count,
    /// Ends of writes; one fails that had not begun, or for too long.
    pub finish_write: Count,
    /// Reads; one fails of which an object cannot be read.
    pub read_enter: Count,
    /// Ends of reads.
    pub read_exit: Count,
    /// Releases; one fails of which an object is not held.
    pub release: Count,
}

/// Calls of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// How many.
    pub calls: u64,
    /// How many of them failed.
    pub failed: u64,
}

impl Act<'_> {
    /// Whether a call with these fates failed; a miss and a refusal are outcomes, no failures.
    pub fn has_failed(&self, fates: &[Fate]) -> bool {
        match self {
            Self::Prefetch(_) | Self::Reserve { .. } => fates.contains(&Fate::Failed),
            Self::Exit(_) => false,
            _ => fates.iter().any(|fate| *fate != Fate::Done),
        }
    }
}

impl Tally {
    /// Counts a call.
    pub(super) fn count(&mut self, at: Nanos, act: &Act<'_>, fates: &[Fate]) {
        let operations = &mut self.operations;
        let count = match act {
            Act::Prefetch(_) => &mut operations.prefetch,
            Act::Reserve { .. } => &mut operations.reserve_write,
            Act::FinishWrite(_) => &mut operations.finish_write,
            Act::Enter(_) => &mut operations.read_enter,
            Act::Exit(_) => &mut operations.read_exit,
            Act::Release(..) => &mut operations.release,
            Act::GiveBack(..) => return,
        };
        self.began = if self.calls == 0 { at } else { self.began };
        self.ended = at;
        self.calls += 1;
        count.calls += 1;
        count.failed += u64::from(act.has_failed(fates));
    }

    /// Whether every outcome that is known was met.
    pub fn is_faithful(&self) -> bool {
        self.first_divergence.is_none() && self.tiers_that_differ == 0 && self.passes_that_differ == 0
    }

    /// How long prefetches took, where time is simulated.
    pub fn took(&self) -> Spread {
        self.took.clone().spread()
    }

    /// Calls whose outcome was compared.
    pub fn compared(&self) -> u64 {
        self.prefetches_compared + self.writes_compared + self.others_compared
    }

    /// Counts keys whose lock had been held for too long.
    pub(super) fn expire(&mut self, fates: &[Fate]) {
        self.expired += fates.iter().filter(|fate| **fate == Fate::Expired).count() as u64;
    }
}

/// A call with another outcome than recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Divergence {
    /// Which call, from 0.
    pub call: u64,
    /// When it was made.
    pub at: Nanos,
    /// What it is.
    pub what: &'static str,
    /// Keys that were found or granted as recorded.
    pub expected: u64,
    /// Keys that were found or granted now.
    pub got: u64,
    /// A key that was not, or should not have been.
    pub key: u32,
}
