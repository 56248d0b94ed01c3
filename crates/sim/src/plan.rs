//! What a simulation is made of. The facade validates it; here it is only described.

use serde::{Deserialize, Serialize};
use wavetank_model::{Nanos, WorkerRole};

use crate::media::MediumConfig;
use crate::routers::KvConfig;
use crate::scaling::ScalingConfig;
use crate::timing::TimingConfig;

/// A simulation of workers behind a router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What each worker runs.
    pub engine: EngineConfig,
    /// How many workers.
    pub num_workers: u32,
    /// Workers that decode what the others prefill; `None` when every worker does both.
    pub decode: Option<DecodePool>,
    /// A row of [`crate::routers::ALL`].
    pub router_mode: String,
    /// The configuration of the router called `kv_router`.
    pub router_config: KvConfig,
    /// When requests are sent.
    pub load: Load,
    /// Passes that would end later are not simulated; `None` runs to the end.
    pub max_sim_time: Option<Nanos>,
    /// The seed of every random choice.
    pub seed: u64,
    /// Who changes the number of workers; `None` leaves it as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<ScalingConfig>,
}

/// One worker of the default engine, in turn, and requests when they are due.
impl Default for Plan {
    fn default() -> Self {
        Self {
            engine: EngineConfig::default(),
            num_workers: 1,
            decode: None,
            router_mode: "round_robin".to_owned(),
            router_config: KvConfig::default(),
            load: Load::Schedule,
            max_sim_time: None,
            seed: 42,
            scaling: None,
        }
    }
}

impl Plan {
    /// Every timing model in it: of the engines, and of the router.
    pub fn timings(&self) -> impl Iterator<Item = &TimingConfig> {
        let engines = std::iter::once(&self.engine).chain(self.decode.iter().map(|pool| &pool.engine));
        engines.map(|engine| &engine.timing).chain(&self.router_config.router_prefill_load_model)
    }

    /// The same, to be changed.
    pub fn timings_mut(&mut self) -> impl Iterator<Item = &mut TimingConfig> {
        let decode = self.decode.iter_mut().map(|pool| &mut pool.engine);
        let engines = std::iter::once(&mut self.engine).chain(decode);
        engines.map(|engine| &mut engine.timing).chain(&mut self.router_config.router_prefill_load_model)
    }
}

/// The decode workers of a disaggregated fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecodePool {
    /// What each worker runs.
    pub engine: EngineConfig,
    /// How many workers.
    pub num_workers: u32,
    /// What prompts come over.
    #[serde(default)]
    pub link: Link,
}

/// What KV moves over, beside the bandwidth each transfer has of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// What transfers share; `None` when they share nothing.
    pub shared: Option<SharedLink>,
    /// From the start of a transfer to its first byte.
    pub latency: Nanos,
}

/// Bandwidth that transfers share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedLink {
    /// Gigabytes (1e9) per second.
    pub gigabytes_per_second: f64,
    /// Who shares it.
    pub scope: LinkScope,
}

/// Whose transfers share a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkScope {
    /// Those that leave a prefill worker.
    PrefillWorker,
    /// Those that reach a decode worker.
    DecodeWorker,
    /// All.
    Pool,
}

/// How KV moves from prefill to decode workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Bytes of KV per token; 0 moves in no time.
    pub kv_bytes_per_token: u32,
    /// Gigabytes (1e9) per second; 0 moves in no time.
    pub kv_transfer_bandwidth: f64,
    /// What is sent.
    pub kv_transfer_timing_mode: TransferMode,
}

/// What is sent of a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferMode {
    /// All its tokens.
    #[default]
    FullPrompt,
    /// The blocks the decode worker does not have.
    DestinationMissing,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Load {
    /// At the times of the schedule.
    Schedule,
    /// As soon as fewer than `concurrency` are in flight; the schedule's session starts are ignored.
    Closed {
        /// The cap.
        concurrency: u32,
        /// What is counted.
        unit: ConcurrencyUnit,
    },
}

/// What a closed loop counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConcurrencyUnit {
    /// Requests in flight: a session that thinks holds no place.
    #[default]
    Requests,
    /// Sessions begun and not ended: a place is held through all turns and pauses.
    Sessions,
}

/// Which running request gives up its blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PreemptionMode {
    /// The one admitted last.
    #[default]
    Lifo,
    /// The one admitted first.
    Fifo,
}

/// One worker's engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineConfig {
    /// A row of [`crate::engines::ALL`].
    pub engine_type: String,
    /// KV blocks.
    pub num_gpu_blocks: u32,
    /// Tokens per KV block.
    pub block_size: u32,
    /// Most requests in the running batch; `None` is unlimited.
    pub max_num_seqs: Option<u32>,
    /// Most tokens computed in one pass; `None` is unlimited.
    pub max_num_batched_tokens: Option<u32>,
    /// Longest prompt plus output; `None` is unlimited.
    pub max_model_len: Option<u32>,
    /// Whether content is reused between requests.
    pub enable_prefix_caching: bool,
    /// Whether a prompt may be computed over several passes.
    pub enable_chunked_prefill: bool,
    /// Divides prefill and decode time; 0 leaves them unscaled.
    pub speedup_ratio: f64,
    /// Divides decode time further; 0 leaves decode unscaled.
    pub decode_speedup_ratio: f64,
    /// Who is preempted.
    pub preemption_mode: PreemptionMode,
    /// Whether a pass is scheduled while the one before it runs (vLLM only).
    #[serde(default)]
    pub async_scheduling: bool,
    /// Schedulers that share a worker and wait for each other at every pass (vLLM only); 0 and 1 are one.
    #[serde(default)]
    pub data_parallel_ranks: u32,
    /// How long a pass takes.
    pub timing: TimingConfig,
    /// What the worker does of a request.
    pub worker_type: WorkerRole,
    /// How its KV moves to a decode worker.
    pub transfer: Transfer,
    /// What only SGLang has.
    pub sglang: SglangConfig,
    /// Where KV goes behind the GPU's memory, from the fastest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<TierConfig>,
    /// From being asked for to being there, for a worker that joins a run.
    #[serde(default, skip_serializing_if = "Nanos::is_zero")]
    pub startup_time: Nanos,
}

/// A tier of KV behind a worker's GPU memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierConfig {
    /// What users call it; no two are called the same.
    pub name: String,
    /// How much it holds, for each worker unless it is shared.
    pub capacity_bytes: u64,
    /// How long it takes.
    pub medium: MediumConfig,
    /// Whose it is.
    pub scope: TierScope,
    /// What is written to it.
    pub write: TierWrite,
    /// What a load holds up.
    pub load: TierLoad,
    /// What moves at once.
    pub unit: TierUnit,
}

/// Whose a tier is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TierScope {
    /// Each worker has its own.
    #[default]
    Worker,
    /// All workers of the pool have one, with its capacity and its bandwidth.
    Shared,
}

/// What is written to a tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TierWrite {
    /// Every full block, as soon as it is computed.
    #[default]
    Through,
    /// What the tier above gives up, or the GPU's memory.
    Evict,
}

/// What a load holds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TierLoad {
    /// The request: it is admitted when all of it is there, and others run meanwhile.
    #[default]
    Delay,
    /// The pass: it computes meanwhile, and ends no earlier.
    Overlap,
}

/// What moves at once between a worker and a tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TierUnit {
    /// All that a request loads, or that a pass completed, as one transfer.
    #[default]
    Batch,
    /// Each group of up to eight neighbouring blocks, as an object of its own.
    Object,
}

/// SGLang's own settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SglangConfig {
    /// Who is looked at first.
    pub schedule_policy: SchedulePolicy,
    /// Most prompt tokens of a prefill pass.
    pub max_prefill_tokens: u32,
    /// Longest part of prompts computed in one pass.
    pub chunked_prefill_size: u32,
    /// Most output tokens for which room is reserved.
    pub clip_max_new_tokens: u32,
    /// How much of the output reserve is kept at first.
    pub schedule_conservativeness: f64,
}

/// In which order SGLang looks at waiting requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchedulePolicy {
    /// First come, first served.
    Fcfs,
    /// Longest cached prefix first.
    Lpm,
}

impl Default for SglangConfig {
    fn default() -> Self {
        Self {
            schedule_policy: SchedulePolicy::Fcfs,
            max_prefill_tokens: 16_384,
            chunked_prefill_size: 8192,
            clip_max_new_tokens: 4096,
            schedule_conservativeness: 1.0,
        }
    }
}

impl Default for EngineConfig {
    /// The defaults of the reference's vLLM engine (spec/engine.md 2).
    fn default() -> Self {
        Self {
            engine_type: "vllm".to_owned(),
            num_gpu_blocks: 16_384,
            block_size: 64,
            max_num_seqs: Some(256),
            max_num_batched_tokens: Some(8192),
            max_model_len: None,
            enable_prefix_caching: true,
            enable_chunked_prefill: true,
            speedup_ratio: 1.0,
            decode_speedup_ratio: 1.0,
            preemption_mode: PreemptionMode::Lifo,
            async_scheduling: false,
            data_parallel_ranks: 1,
            timing: TimingConfig::default(),
            worker_type: WorkerRole::Aggregated,
            transfer: Transfer::default(),
            sglang: SglangConfig::default(),
            tiers: Vec::new(),
            startup_time: Nanos::ZERO,
        }
    }
}
