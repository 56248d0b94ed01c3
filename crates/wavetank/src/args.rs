//! What the user typed for a replay. Nothing is interpreted here; `plan` does that.

use std::path::PathBuf;

use serde_json::Value;
use wavetank_sim::{ConcurrencyUnit, LinkScope};
use wavetank_trace::Fill;

/// The flags of `wavetank replay`, by their names; `None` and `false` were not typed.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(
    missing_docs,
    reason = "each field is the flag of the same name, described by the command line's help"
)]
pub struct ReplayArgs {
    pub trace_files: Vec<String>,
    pub input_tokens: Option<u32>,
    pub output_tokens: Option<u32>,
    pub request_count: Option<u32>,
    pub arrival_interval_ms: Option<f64>,
    pub request_rate: Option<f64>,
    pub arrival_seed: Option<u64>,
    pub turns_per_session: Option<u32>,
    pub shared_prefix_ratio: Option<f64>,
    pub num_prefix_groups: Option<u32>,
    pub inter_turn_delay_ms: Option<f64>,
    pub num_workers: Option<u32>,
    pub num_prefill_workers: Option<u32>,
    pub num_decode_workers: Option<u32>,
    /// `--kv-link-gbps`, in gigabytes.
    pub kv_link_gbps: Option<f64>,
    /// `--kv-link-scope`.
    pub kv_link_scope: Option<LinkScope>,
    /// `--kv-link-latency-us`.
    pub kv_link_latency_us: Option<f64>,
    pub replay_concurrency: Option<u32>,
    pub concurrency_unit: Option<ConcurrencyUnit>,
    pub replay_mode: Option<String>,
    pub router_mode: Option<String>,
    pub arrival_speedup_ratio: Option<f64>,
    pub trace_format: Option<String>,
    pub trace_block_size: Option<u32>,
    pub fill: Option<Fill>,
    pub trace_shared_prefix_ratio: Option<f64>,
    pub trace_num_prefix_groups: Option<u32>,
    pub clamp_input: bool,
    pub extra_engine_args: Option<String>,
    pub prefill_engine_args: Option<String>,
    pub decode_engine_args: Option<String>,
    pub router_config: Option<String>,
    /// `--tier`, as texts or as tables.
    pub tiers: Vec<Value>,
    /// `--timing`.
    pub timing: Option<String>,
    pub router_policy_config: Option<PathBuf>,
    pub model_name: Option<String>,
    pub autoscale: Option<String>,
    pub autoscale_config: Option<String>,
    pub planner_config: Option<String>,
    pub benchmark_granularity: Option<u32>,
    /// The `--aic-*` flags that were typed, by name.
    pub aic: Vec<(&'static str, String)>,
    pub max_sim_time_seconds: Option<f64>,
    pub sla_ttft_ms: Option<f64>,
    pub sla_itl_ms: Option<f64>,
    pub sla_e2e_ms: Option<f64>,
    pub seed: Option<u64>,
}
