//! Entries that requests touched: why, how it went, and where the time went.

use wavetank_model::{Answer, IoTimes, Nanos, Operation, TierRole, Touch};

use crate::storage::{ReasonCounts, Setting, TimeSplit, TouchesSummary};

#[derive(Debug)]
pub(super) struct Touches {
    /// In the order of `Why`.
    reasons: [ReasonCounts; 5],
    tiers: Vec<ByTier>,
    elsewhere: Nanos,
}

#[derive(Clone, Copy, Debug, Default)]
struct ByTier {
    hits: u64,
    hit_bytes: u64,
    read: Spent,
    written: Spent,
}

#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    total: Nanos,
    device: Nanos,
}

impl Spent {
    fn add(&mut self, times: IoTimes) {
        self.total += times.total;
        self.device += times.device;
    }
}

impl Touches {
    pub(super) fn new(tiers: usize) -> Self {
        Self { reasons: Default::default(), tiers: vec![ByTier::default(); tiers], elsewhere: Nanos::ZERO }
    }

    /// Reads that were served from a tier, and their bytes.
    pub(super) fn hits_of(&self, tier: usize) -> (u64, u64) {
        (self.tiers[tier].hits, self.tiers[tier].hit_bytes)
    }

    pub(super) fn record(&mut self, touch: &Touch) {
        let reason = &mut self.reasons[touch.why as usize];
        match (touch.operation, touch.answer) {
            (_, Answer::Hit(_)) => {
                reason.hits += 1;
                reason.hit_bytes += touch.bytes;
            }
            (_, Answer::Missed) => reason.misses += 1,
            (Operation::Read, _) => reason.failed_reads += 1,
            (Operation::Write, Answer::Stored(_)) => {
                reason.stored += 1;
                reason.stored_bytes += touch.bytes;
            }
            (Operation::Write, Answer::Existed) => {
                reason.existed += 1;
                reason.existed_bytes += touch.bytes;
            }
            (Operation::Write, Answer::Refused) => reason.refused += 1,
            (Operation::Write, Answer::Failed) => reason.failed_writes += 1,
        }
        match touch.answer {
            Answer::Hit(tier) => {
                let tier = &mut self.tiers[usize::from(tier)];
                tier.hits += 1;
                tier.hit_bytes += touch.bytes;
                tier.read.add(touch.times);
            }
            Answer::Stored(tier) => self.tiers[usize::from(tier)].written.add(touch.times),
            _ => self.elsewhere += touch.times.total,
        }
    }

    /// `memory` is what the tiers in memory took themselves: the times of a touch have in them what made room
    /// for it below.
    pub(super) fn summary(&self, setting: &Setting, memory: Nanos) -> TouchesSummary {
        let [prompt, history, prefill, document, decode] = self.reasons;
        let mut time = TimeSplit { elsewhere: self.elsewhere, ..TimeSplit::default() };
        for (tier, role) in self.tiers.iter().zip(&setting.tiers) {
            if *role == TierRole::Storage {
                (time.storage_read, time.storage_read_device) = (tier.read.total, tier.read.device);
                (time.storage_write, time.storage_write_device) = (tier.written.total, tier.written.device);
            } else {
                time.lane_wait += tier.read.total + tier.written.total;
            }
        }
        time.memory = memory.min(time.lane_wait);
        time.lane_wait = time.lane_wait.since(time.memory);
        TouchesSummary { prompt, history, prefill, document, decode, time }
    }
}
