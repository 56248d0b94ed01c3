//! What the user typed for a storage benchmark. Nothing is interpreted here; `plan` does that.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wavetank_bench::{Load, ScaleMode};
use wavetank_cache::{Promotion, WritePolicy};
use wavetank_report::storage::Profile;

use super::trials::TrialCount;

/// The flags of `wavetank bench` that make the plan, by their names; `None` and `false` were not typed.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(
    missing_docs,
    reason = "each field is the flag of the same name, described by the command line's help"
)]
pub struct BenchArgs {
    pub model: Option<String>,
    pub num_users: Option<u32>,
    pub duration: Option<f64>,
    pub warmup: Option<f64>,
    pub seed: Option<u64>,
    pub config: Option<PathBuf>,
    pub gpu_mem_gb: Option<f64>,
    pub num_gpus: Option<u32>,
    pub tensor_parallel: Option<u32>,
    pub gpu_tier: Option<GpuTier>,
    pub gpu_device: Option<u32>,
    pub cpu_mem_gb: Option<f64>,
    pub cpu_mem_backed: bool,
    pub cache_dir: Option<PathBuf>,
    pub storage_capacity_gb: Option<f64>,
    pub backend: Option<String>,
    pub backend_options: Vec<String>,
    pub storage_location: Option<String>,
    pub eviction: Option<String>,
    pub promotion: Option<Promotion>,
    pub write_policy: Option<WritePolicy>,
    pub read_policy: Option<ReadPolicy>,
    pub durable: bool,
    pub verify: bool,
    pub keep_cache: bool,
    pub simulate: Vec<String>,
    pub io_threads: Option<u32>,
    pub io_depth: Option<u32>,
    pub max_concurrent_allocs: Option<u32>,
    pub generation_mode: Option<GenerationMode>,
    pub load: Option<Load>,
    pub persona_mix: Option<String>,
    pub queue_limit: Option<u64>,
    pub aging: Option<f64>,
    pub disable_multi_turn: bool,
    pub disable_prefix_caching: bool,
    pub enable_rag: bool,
    pub rag_num_docs: Option<u32>,
    pub enable_autoscaling: bool,
    pub autoscaler_mode: Option<ScaleMode>,
    pub target_saturation: Option<f64>,
    pub scale_interval: Option<f64>,
    pub trace: Option<String>,
    pub trace_format: Option<String>,
    pub trace_block_size: Option<u32>,
    pub dataset_path: Option<String>,
    pub max_conversations: Option<u64>,
    pub tokenizer: Option<Tokenizer>,
    pub use_burst_trace: bool,
    pub burst_trace_path: Option<String>,
    pub trace_speedup: Option<f64>,
    pub replay_cycles: Option<u64>,
    pub request_rate: Option<f64>,
    pub max_requests: Option<u64>,
    pub validation_trace: Option<PathBuf>,
    pub precondition: bool,
    pub precondition_size_gb: Option<f64>,
    pub precondition_threads: Option<u32>,
    pub prefill_only: bool,
    pub decode_only: bool,
    pub io_trace_log: Option<PathBuf>,
    pub enable_latency_tracing: bool,
    pub performance_profile: Option<Profile>,
    pub pass_read_p95_ms: Option<f64>,
    pub pass_write_p95_ms: Option<f64>,
    pub pass_cpu_p95_ms: Option<f64>,
    pub pass_hit_rate: Option<f64>,
    pub pass_read_gbps: Option<f64>,
    pub pass_write_gbps: Option<f64>,
    pub trials: Option<TrialCount>,
    pub trials_ci: Option<f64>,
    pub trials_max: Option<u32>,
    pub cooldown: Option<f64>,
    pub drop_page_cache: bool,
    pub strict: bool,
    pub rank: Option<u32>,
    pub ranks: Option<u32>,
}

/// What the GPU tier is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuTier {
    /// Device memory where there is a driver; otherwise nothing, unless memory was asked for.
    #[default]
    Auto,
    /// Device memory.
    Cuda,
    /// A model of a GPU.
    Sim,
    /// Nothing.
    Off,
}

/// How generating tokens takes time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GenerationMode {
    /// None at all.
    None,
    /// 2 ms a token.
    Fast,
    /// 30 ms a token.
    #[default]
    Realistic,
    /// 30 ms a token on a virtual clock.
    Deterministic,
}

/// How often generating reads an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadPolicy {
    /// Once, and once more for every batch of tokens.
    #[default]
    PerBatch,
    /// Once.
    Once,
}

/// How the tokens of a text are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tokenizer {
    /// By the vocabulary `cl100k_base`.
    #[default]
    Tiktoken,
    /// By its characters.
    Characters,
}

/// The choice that `word` names, for a parser of flags; an error lists the words there are.
pub fn choice<T: DeserializeOwned>(word: &str) -> Result<T, String> {
    serde_json::from_value(Value::String(word.to_owned())).map_err(|error| error.to_string())
}
