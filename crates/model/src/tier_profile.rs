//! What a backend of the store was measured to do, by operation, size and queue depth.
//!
//! `wavetank profile tier` writes it and a modelled medium is drawn from it, so that it holds what was seen
//! and nothing fitted.

mod again;
mod check;
mod sped;
mod sustained;
#[cfg(test)]
mod testing;
mod together;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use again::TierAgain;
pub use sustained::Sustained;

/// Names the layout of a profile.
pub const TIER_LAYOUT: &str = "wavetank-tier/1";
/// Which quantiles of latencies a profile holds; the last is the longest that was seen.
pub const TIER_QUANTILES: [f64; 10] = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0];

/// A measured backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierProfile {
    /// [`TIER_LAYOUT`].
    pub layout: String,
    /// Whether it was ended before all points were measured.
    pub partial: bool,
    /// Where and when it was measured.
    pub origin: TierOrigin,
    /// How it was measured.
    pub settings: TierSettings,
    /// What writing comes to when it goes on; absent where that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sustained: Option<Sustained>,
    /// What reads of what was just moved take, nearest first after a read and after a write; none where that
    /// was not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<TierAgain>,
    /// Every point, in the order they were measured.
    pub points: Vec<TierPoint>,
}

/// Where and when a backend was measured; what could not be found out is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierOrigin {
    /// The backend's name.
    pub backend: String,
    /// Its directory, device number or address; empty where there is none.
    pub location: String,
    /// When, in UTC.
    pub date: String,
    /// The version that measured.
    pub wavetank: String,
    /// The processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Cores that could be used.
    pub cores: u32,
    /// The kernel's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The drive or GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The kind of file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<String>,
}

/// How a backend was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierSettings {
    /// How often all points were gone through; a point that was not measured in all of them says so itself.
    pub passes: u32,
    /// How long each point was measured in all passes together, at least.
    pub seconds_per_point: f64,
    /// How long writing went on; 0 where it was not measured.
    pub sustained_seconds: f64,
    /// How much of each size was written before anything was measured, at most, …
    pub working_set_bytes: u64,
    /// … and how many entries at most.
    pub entries_max: u64,
    /// Points with more bytes in flight were left out.
    pub in_flight_bytes_max: u64,
    /// Threads that asked, each with a queue of its own; no more of them than operations in flight.
    pub threads: u32,
    /// What chose entries and contents.
    pub seed: u64,
}

/// What a write goes over: taking room that was never used costs a file system and a memory more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TierRoom {
    /// What was there before.
    #[default]
    Used,
    /// Nothing.
    New,
}

impl TierRoom {
    fn is_used(&self) -> bool {
        *self == Self::Used
    }
}

/// What was seen with as many operations of one size in flight as the queue is deep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierPoint {
    /// Which share of the operations were reads.
    pub read_share: f64,
    /// What writes went over.
    #[serde(default, skip_serializing_if = "TierRoom::is_used")]
    pub room: TierRoom,
    /// Bytes of an entry, which an operation reads or writes whole.
    pub bytes: u64,
    /// Operations in flight, of all threads together.
    pub depth: u32,
    /// How many ended while it was measured.
    pub operations: u64,
    /// How many of them were reads.
    pub reads: u64,
    /// How long it was measured.
    pub seconds: f64,
    /// All of their bytes over that time.
    pub bytes_per_second: f64,
    /// The bandwidth of each pass.
    pub pass_bytes_per_second: Vec<f64>,
    /// How long one operation kept the thread that asked from anything else, on average: its processor time,
    /// and what else it waited for besides the device, as for a file to be made. Making the bytes that are
    /// written is not in it; 0 where it was not measured.
    #[serde(default)]
    pub busy_us: f64,
    /// How many ended at once, on average; 0 where threads slept too little to see it.
    #[serde(default)]
    pub ended_at_once: f64,
    /// How long reads took; absent where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<TierLatency>,
    /// How long writes took; absent where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<TierLatency>,
}

/// How long operations took from being asked for to the end, as the storage benchmark reports it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierLatency {
    /// The mean.
    pub mean_us: f64,
    /// The mean of the time with at least one piece at the device.
    pub device_mean_us: f64,
    /// At [`TIER_QUANTILES`]: of n operations the one that ⌈q·n⌉ of them took at most, so that a quantile
    /// above 1 − 1/n is the longest that was seen and says nothing of what is rarer.
    pub quantiles_us: [f64; TIER_QUANTILES.len()],
}

/// What is wrong with a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierFlaw {
    /// In which list of the profile, and where in it, if in one.
    pub place: Option<(&'static str, usize)>,
    /// Which field.
    pub field: &'static str,
    /// What it has to be.
    pub rule: &'static str,
}

impl fmt::Display for TierFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" {}", self.field, self.rule)?;
        self.place.map_or(Ok(()), |(list, number)| write!(f, " (number {} of {list})", number + 1))
    }
}
