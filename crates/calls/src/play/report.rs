//! What a replay with bytes measured.

use serde::Serialize;

use super::latencies::{Latencies, Spread};
use wavetank_model::Nanos;

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlayReport {
    /// From the first call to the end of the last piece of work.
    pub wall_ns: u64,
    /// Whether it ended before the recording did.
    pub interrupted: bool,
    /// Calls that were decided when it was ended early, and whose bytes did not move any more.
    pub dropped: u64,
    /// From when calls were due to when they were begun; it is part of their latencies.
    pub late: Spread,
    /// Calls, by what they are.
    pub calls: Vec<CallTimes>,
    /// Tiers behind memory.
    pub adapters: Vec<AdapterTimes>,
    /// Objects that were read and held other bytes than were written.
    pub wrong: u64,
    /// What does not work as it should, in words.
    pub notes: Vec<String>,
    /// How long each call took, in their order, where that is kept; nothing if it was dropped.
    #[serde(skip)]
    pub each: Vec<Option<Nanos>>,
}

/// Calls of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallTimes {
    /// What they are.
    pub call: &'static str,
    /// How many of them lacked bytes because a device had failed.
    pub failed: u64,
    /// Objects whose bytes were not there because a device had failed.
    pub errors: u64,
    /// Bytes that were written, loaded or read.
    pub bytes: u64,
    /// From when a call was due, or at full pace from when it began, to its end.
    pub latency: Spread,
}

/// What went to and came from a tier behind memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AdapterTimes {
    /// Batches of objects that were stored.
    pub stored: Moved,
    /// Batches of objects that were loaded.
    pub loaded: Moved,
}

/// Batches of objects that were moved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// Objects.
    pub objects: u64,
    /// Objects that a device failed to move.
    pub errors: u64,
    /// Bytes.
    pub bytes: u64,
    /// Of each batch.
    pub latency: Spread,
}

/// Calls by what they are, in the order of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Prefetch,
    ReserveWrite,
    FinishWrite,
    ReadEnter,
    ReadExit,
    FinishRead,
}

pub(super) const KINDS: [(Kind, &str); 6] = [
    (Kind::Prefetch, "submit_prefetch_task"),
    (Kind::ReserveWrite, "reserve_write"),
    (Kind::FinishWrite, "finish_write"),
    (Kind::ReadEnter, "read_prefetched_results.enter"),
    (Kind::ReadExit, "read_prefetched_results.exit"),
    (Kind::FinishRead, "finish_read_prefetched"),
];

/// One row as it fills.
#[derive(Clone, Debug, Default)]
pub(super) struct Gauge {
    pub(super) objects: u64,
    /// Calls with errors.
    pub(super) failed: u64,
    pub(super) errors: u64,
    pub(super) bytes: u64,
    pub(super) latencies: Latencies,
}

impl Gauge {
    fn absorb(&mut self, other: Self) {
        self.objects += other.objects;
        self.failed += other.failed;
        self.errors += other.errors;
        self.bytes += other.bytes;
        self.latencies.absorb(other.latencies);
    }

    fn moved(self) -> Moved {
        let Self { objects, errors, bytes, latencies, .. } = self;
        Moved { objects, errors, bytes, latency: latencies.spread() }
    }
}

/// What one thread measured.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) calls: [Gauge; KINDS.len()],
    pub(super) loads: Vec<Gauge>,
    pub(super) stores: Vec<Gauge>,
    pub(super) wrong: u64,
    pub(super) late: Latencies,
    /// Calls by their place.
    pub(super) each: Vec<(u64, Option<Nanos>)>,
    /// Calls that were given up.
    pub(super) dropped: u64,
}

impl Measured {
    pub(super) fn new(adapters: usize) -> Self {
        let empty = || vec![Gauge::default(); adapters];
        Self {
            calls: Default::default(),
            loads: empty(),
            stores: empty(),
            wrong: 0,
            late: Latencies::default(),
            each: Vec::new(),
            dropped: 0,
        }
    }

    pub(super) fn absorb(&mut self, other: Self) {
        self.calls.iter_mut().zip(other.calls).for_each(|(ours, theirs)| ours.absorb(theirs));
        self.loads.iter_mut().zip(other.loads).for_each(|(ours, theirs)| ours.absorb(theirs));
        self.stores.iter_mut().zip(other.stores).for_each(|(ours, theirs)| ours.absorb(theirs));
        self.wrong += other.wrong;
        self.late.absorb(other.late);
        self.each.extend(other.each);
        self.dropped += other.dropped;
    }

    pub(super) fn report(mut self, wall: Nanos, interrupted: bool, notes: Vec<String>) -> PlayReport {
        self.each.sort_unstable_by_key(|(number, _)| *number);
        let row = |((_, call), gauge): (&(Kind, &'static str), Gauge)| CallTimes {
            call,
            failed: gauge.failed,
            errors: gauge.errors,
            bytes: gauge.bytes,
            latency: gauge.latencies.spread(),
        };
        let adapters = self.stores.into_iter().zip(self.loads);
        let adapter = |(stored, loaded): (Gauge, Gauge)| AdapterTimes {
            stored: stored.moved(),
            loaded: loaded.moved(),
        };
        PlayReport {
            wall_ns: wall.0,
            interrupted,
            dropped: self.dropped,
            late: self.late.spread(),
            calls: KINDS.iter().zip(self.calls).map(row).collect(),
            adapters: adapters.map(adapter).collect(),
            wrong: self.wrong,
            notes,
            each: self.each.into_iter().map(|(_, took)| took).collect(),
        }
    }
}
