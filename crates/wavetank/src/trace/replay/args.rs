//! What the user typed to make recorded calls again. Nothing is interpreted here; `plan` does that.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use wavetank_calls::{Expect, LoadPolicy, Mode, StorePolicy};

/// The flags of `wavetank trace replay` for recordings of calls, by their names; `None` was not typed.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(
    missing_docs,
    reason = "each field is the flag of the same name, described by the command line's help"
)]
pub struct CallReplayArgs {
    pub recording: String,
    pub storage: StorageArgs,
    pub from_s: Option<f64>,
    pub to_s: Option<f64>,
    pub rounds: Option<u32>,
    pub expect: Option<Expect>,
    pub pace: Option<CallPace>,
    pub threads: Option<u32>,
    pub payload: Option<Payload>,
    /// The same calls on other storage.
    pub against: Vec<CallVariant>,
}

/// What calls are made on, and how they are taken.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(
    missing_docs,
    reason = "each field is the flag of the same name, described by the command line's help"
)]
pub struct StorageArgs {
    pub l1_size_gb: Option<f64>,
    pub l1_align_bytes: Option<u64>,
    pub l1_write_ttl_seconds: Option<f64>,
    pub l1_read_ttl_seconds: Option<f64>,
    pub eviction_policy: Option<String>,
    pub eviction_trigger_watermark: Option<f64>,
    pub eviction_ratio: Option<f64>,
    pub l2_adapter: Vec<String>,
    pub l2_store_policy: Option<StorePolicy>,
    pub l2_prefetch_policy: Option<LoadPolicy>,
    pub store_delay_ms: Option<f64>,
    pub background: Option<BackgroundWork>,
    pub ticks: Option<PathBuf>,
    pub tick_phase_s: Option<f64>,
    pub tick_work_ms: Option<f64>,
    pub mode: Option<Mode>,
}

/// Other storage, as it was typed and on top of what it stands against.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallVariant {
    /// The flags as typed.
    pub flags: String,
    /// What they mean alone.
    pub storage: StorageArgs,
}

impl StorageArgs {
    /// These, and `base` where nothing was typed. A flag of loops or of the background replaces all of them.
    pub(super) fn on_top_of(&self, base: &Self) -> Self {
        let typed = self.clone();
        let paces = self.paces_background();
        let background = if paces { self } else { base };
        let several =
            |typed: Vec<String>, base: &[String]| if typed.is_empty() { base.to_vec() } else { typed };
        Self {
            l1_size_gb: typed.l1_size_gb.or(base.l1_size_gb),
            l1_align_bytes: typed.l1_align_bytes.or(base.l1_align_bytes),
            l1_write_ttl_seconds: typed.l1_write_ttl_seconds.or(base.l1_write_ttl_seconds),
            l1_read_ttl_seconds: typed.l1_read_ttl_seconds.or(base.l1_read_ttl_seconds),
            eviction_policy: typed.eviction_policy.or_else(|| base.eviction_policy.clone()),
            eviction_trigger_watermark: typed.eviction_trigger_watermark.or(base.eviction_trigger_watermark),
            eviction_ratio: typed.eviction_ratio.or(base.eviction_ratio),
            l2_adapter: several(typed.l2_adapter, &base.l2_adapter),
            l2_store_policy: typed.l2_store_policy.or(base.l2_store_policy),
            l2_prefetch_policy: typed.l2_prefetch_policy.or(base.l2_prefetch_policy),
            store_delay_ms: typed.store_delay_ms.or(base.store_delay_ms),
            background: background.background,
            ticks: background.ticks.clone(),
            tick_phase_s: background.tick_phase_s,
            tick_work_ms: background.tick_work_ms,
            mode: typed.mode.or(base.mode),
        }
    }

    fn paces_background(&self) -> bool {
        self.background.is_some() || self.has_ticks()
    }

    /// Whether it says when eviction loops look.
    pub(super) fn has_ticks(&self) -> bool {
        self.ticks.is_some() || self.tick_phase_s.is_some() || self.tick_work_ms.is_some()
    }
}

/// Who says when work in the background is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackgroundWork {
    /// The recording.
    Recorded,
    /// The clock of the replay.
    Simulated,
}

/// How fast calls are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallPace {
    /// At once, on a clock of their own, without bytes.
    #[default]
    Virtual,
    /// As fast as bytes move.
    Max,
    /// At their times, so many times faster.
    Recorded(f64),
}

/// What objects hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// Zeros.
    #[default]
    Zeros,
    /// Bytes drawn from a seed.
    Seeded,
}
