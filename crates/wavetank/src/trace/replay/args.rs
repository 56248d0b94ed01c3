//! What the user typed to make recorded calls again. Nothing is interpreted here; `plan` does that.

use std::path::PathBuf;

use wavetank_calls::{LoadPolicy, Mode, StorePolicy};

/// The flags of `wavetank trace replay` for recordings of calls, by their names; `None` was not typed.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(
    missing_docs,
    reason = "each field is the flag of the same name, described by the command line's help"
)]
pub struct CallReplayArgs {
    pub recording: String,
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
    pub ticks: Option<PathBuf>,
    pub tick_phase_s: Option<f64>,
    pub tick_work_ms: Option<f64>,
    pub mode: Option<Mode>,
}
