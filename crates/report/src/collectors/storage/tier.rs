//! What was done in one tier, and what it took.

use wavetank_model::{IoTimes, Nanos, TierRole};

use crate::storage::{Busy, LaneSummary, MoveSummary, SizeClass, SizeSummary, TierSummary, TierUse, Traffic};
use crate::{Latencies, Spread};

const MIB: u64 = 1 << 20;

/// One tier.
#[derive(Debug, Default)]
pub(super) struct Tier {
    pub(super) reads: Lane,
    pub(super) writes: Lane,
    pub(super) demoted_out: Move,
    pub(super) demoted_in: Move,
    pub(super) promoted_out: Move,
    pub(super) promoted_in: Move,
    pub(super) evictions: u64,
    pub(super) drops: u64,
    pub(super) failures: u64,
    pub(super) traffic: Traffic,
    pub(super) busy: Busy,
    pub(super) whole_run: Traffic,
}

impl Tier {
    /// What reads and writes for callers took of the tier itself, both together.
    pub(super) fn both_ways(&self) -> Spread {
        let mut both = self.reads.service.clone();
        both.absorb(&self.writes.service);
        both.spread()
    }

    /// The time that reads and writes for callers took of the tier itself.
    pub(super) fn service(&self) -> Nanos {
        self.reads.service.sum() + self.writes.service.sum()
    }

    pub(super) fn summary(
        &self,
        role: TierRole,
        (hits, hit_bytes): (u64, u64),
        at_end: TierUse,
    ) -> TierSummary {
        TierSummary {
            role,
            hits,
            hit_bytes,
            reads: self.reads.summary(),
            writes: self.writes.summary(),
            demoted_out: self.demoted_out.summary(),
            demoted_in: self.demoted_in.summary(),
            promoted_out: self.promoted_out.summary(),
            promoted_in: self.promoted_in.summary(),
            evictions: self.evictions,
            drops: self.drops,
            failures: self.failures,
            traffic: self.traffic,
            busy: self.busy,
            whole_run: self.whole_run,
            at_end,
        }
    }
}

/// Reads, or writes, for callers.
#[derive(Debug, Default)]
pub(super) struct Lane {
    bytes: u64,
    total: Latencies,
    device: Latencies,
    host: Latencies,
    wait: Latencies,
    service: Latencies,
    sizes: [Size; SizeClass::ALL.len()],
}

/// Operations on entries of about one size.
#[derive(Debug, Default)]
struct Size {
    bytes: u64,
    device: Latencies,
    device_per_mib: Latencies,
}

impl Lane {
    pub(super) fn record(&mut self, bytes: u64, times: IoTimes) {
        self.bytes += bytes;
        self.total.record(times.total);
        self.device.record(times.device);
        self.host.record(times.host);
        self.wait.record(times.total.since(times.device));
        // Both overlap, so their sum may be more than there was.
        self.service.record((times.host + times.device).min(times.total));
        if bytes > 0 {
            self.sizes[SizeClass::of(bytes) as usize].record(bytes, times.device);
        }
    }

    fn summary(&self) -> LaneSummary {
        let sizes = self.sizes.iter().zip(SizeClass::ALL).filter(|(size, _)| size.device.count() > 0);
        LaneSummary {
            operations: self.total.count(),
            bytes: self.bytes,
            total: self.total.spread(),
            device: self.device.spread(),
            host: self.host.spread(),
            wait: self.wait.spread(),
            service: self.service.spread(),
            sizes: sizes.map(|(size, class)| size.summary(class)).collect(),
        }
    }
}

impl Size {
    fn record(&mut self, bytes: u64, device: Nanos) {
        self.bytes += bytes;
        self.device.record(device);
        self.device_per_mib.record(Nanos((device.0 as f64 * MIB as f64 / bytes as f64).round() as u64));
    }

    fn summary(&self, class: SizeClass) -> SizeSummary {
        SizeSummary {
            class,
            bytes: self.bytes,
            device: self.device.spread(),
            device_per_mib: self.device_per_mib.spread(),
        }
    }
}

/// Entries that went to another tier, or came from it.
#[derive(Debug, Default)]
pub(super) struct Move {
    bytes: u64,
    total: Latencies,
}

impl Move {
    pub(super) fn record(&mut self, bytes: u64, times: IoTimes) {
        self.bytes += bytes;
        self.total.record(times.total);
    }

    fn summary(&self) -> MoveSummary {
        MoveSummary { operations: self.total.count(), bytes: self.bytes, total: self.total.spread() }
    }
}
