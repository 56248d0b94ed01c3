//! What the user typed for a suite. Nothing is interpreted here; `plan` does that.

use std::path::PathBuf;

use crate::bench::args::GpuTier;
use crate::bench::trials::TrialCount;

/// The flags of `wavetank bench suite` that make the plan, by their names; `None` and `false` were not typed.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(
    missing_docs,
    reason = "each field is the flag of the same name, described by the command line's help"
)]
pub struct SuiteArgs {
    pub model: Option<String>,
    pub cache_dir: Option<PathBuf>,
    pub tier_duration: Option<f64>,
    pub saturation_duration: Option<f64>,
    pub realistic_duration: Option<f64>,
    pub autoscale_duration: Option<f64>,
    pub workloads: Option<String>,
    pub users_baseline: Option<u32>,
    pub users_high: Option<u32>,
    pub enable_rag: bool,
    pub rag_num_docs: Option<u32>,
    pub seed: Option<u64>,
    pub trials: Option<TrialCount>,
    pub cooldown: Option<f64>,
    pub drop_page_cache: bool,
    pub gpu_tier: Option<GpuTier>,
    pub storage_capacity_gb: Option<f64>,
    pub io_threads: Option<u32>,
    pub io_depth: Option<u32>,
    pub quick: bool,
}
