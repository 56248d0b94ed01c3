//! The flags of `wavetank replay` that make the plan.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use wavetank::{ConcurrencyUnit, Fill, LinkScope, ReplayArgs};

/// Everything a plan is made from. Defaults are applied when the plan is made, so that a flag that was not
/// typed can be told from one that was.
#[derive(Args)]
pub(crate) struct ReplayFlags {
    /// A trace, plain or compressed (.gz, .zst); `-` is standard input. `format:path` says what it is where
    /// that cannot be seen; several files are one trace.
    #[arg(value_name = "TRACE")]
    trace_files: Vec<String>,
    /// Prompt tokens of every synthetic request.
    #[arg(long, value_name = "N")]
    input_tokens: Option<u32>,
    /// Output tokens of every synthetic request.
    #[arg(long, value_name = "N")]
    output_tokens: Option<u32>,
    /// Synthetic requests, or sessions when they have several turns.
    #[arg(long, value_name = "N")]
    request_count: Option<u32>,
    /// Time between synthetic arrivals [default: 1.0].
    #[arg(long, value_name = "MS")]
    arrival_interval_ms: Option<f64>,
    /// Synthetic arrivals per second, Poisson.
    #[arg(long, value_name = "PER_S")]
    request_rate: Option<f64>,
    /// Seed of random synthetic arrivals [default: 42].
    #[arg(long, value_name = "SEED")]
    arrival_seed: Option<u64>,
    /// Turns of a synthetic session [default: 1].
    #[arg(long, value_name = "N")]
    turns_per_session: Option<u32>,
    /// Part of a synthetic prompt that its prefix group shares [default: 0.0].
    #[arg(long, value_name = "RATIO")]
    shared_prefix_ratio: Option<f64>,
    /// Groups of synthetic sessions that share a prefix [default: 0].
    #[arg(long, value_name = "N")]
    num_prefix_groups: Option<u32>,
    /// Pause after each synthetic turn [default: 0.0].
    #[arg(long, value_name = "MS")]
    inter_turn_delay_ms: Option<f64>,
    /// Aggregated workers [default: 1].
    #[arg(long, value_name = "N")]
    num_workers: Option<u32>,
    /// Prefill workers of disaggregated replay [default: 1].
    #[arg(long, value_name = "N")]
    num_prefill_workers: Option<u32>,
    /// Decode workers of disaggregated replay [default: 1].
    #[arg(long, value_name = "N")]
    num_decode_workers: Option<u32>,
    /// Gigabytes (1e9 bytes) per second that KV transfers on one link share
    /// [default: they share nothing].
    #[arg(long, value_name = "GB_PER_S")]
    kv_link_gbps: Option<f64>,
    /// Whose transfers share a link [default: prefill-worker].
    #[arg(long, value_name = "SCOPE")]
    kv_link_scope: Option<Scope>,
    /// From the start of a KV transfer to its first byte [default: 0].
    #[arg(long, value_name = "US")]
    kv_link_latency_us: Option<f64>,
    /// Closed loop: keep N in flight and ignore start times.
    #[arg(long, value_name = "N")]
    replay_concurrency: Option<u32>,
    /// What the closed loop counts [default: requests].
    #[arg(long, value_name = "UNIT")]
    concurrency_unit: Option<Unit>,
    /// offline (simulated time) or online (live workers on the wall clock)
    /// [default: offline].
    #[arg(long, value_name = "MODE")]
    replay_mode: Option<String>,
    /// A row of `wavetank list routers` [default: round_robin].
    #[arg(long, value_name = "MODE")]
    router_mode: Option<String>,
    /// Divide the times of the schedule [default: 1.0].
    #[arg(long, value_name = "RATIO")]
    arrival_speedup_ratio: Option<f64>,
    /// A row of `wavetank list formats` [default: by how the first file begins].
    #[arg(long, value_name = "FORMAT")]
    trace_format: Option<String>,
    /// Tokens per hash id of the trace [default: the format's, 512 for mooncake].
    #[arg(long, value_name = "TOKENS")]
    trace_block_size: Option<u32>,
    /// What stands in for what the trace does not say: hash=unique, session or none for prompts without
    /// block ids, output=TOKENS for requests without an output length [default: hash=unique].
    #[arg(long, value_name = "RULES")]
    fill: Option<Fill>,
    /// Shared part of prompts, for applied_compute_agentic traces [default: 0.0].
    #[arg(long, value_name = "RATIO")]
    trace_shared_prefix_ratio: Option<f64>,
    /// Prefix groups, for applied_compute_agentic traces [default: 0].
    #[arg(long, value_name = "N")]
    trace_num_prefix_groups: Option<u32>,
    /// Cut inputs longer than their hash ids cover instead of refusing the trace.
    #[arg(long)]
    clamp_input: bool,
    /// Engine arguments, inline or @file.json.
    #[arg(long, value_name = "JSON")]
    extra_engine_args: Option<String>,
    /// Prefill engine arguments of disaggregated replay.
    #[arg(long, value_name = "JSON")]
    prefill_engine_args: Option<String>,
    /// Decode engine arguments of disaggregated replay.
    #[arg(long, value_name = "JSON")]
    decode_engine_args: Option<String>,
    /// A tier of KV behind each worker's GPU memory, the fastest first: a name, what
    /// it holds and what it is kept on, such as cpu=64GiB:32GB/s or
    /// disk=2TiB:nvme.toml,shared,write=through (a file of `wavetank profile tier`);
    /// @FILE.toml has tables (docs/tiers.md).
    #[arg(long, value_name = "NAME=SIZE:MEDIUM[,OPTION]")]
    tier: Vec<String>,
    /// How long passes take, in every pool: a row of `wavetank list timing`,
    /// with its parameters after a colon, such as grid:PROFILE, grid:FILE.csv
    /// or roofline:model=M,gpu=G,tp=2 [default: polynomial].
    #[arg(long, value_name = "NAME[:ARGUMENT]")]
    timing: Option<String>,
    /// Router configuration, inline or @file.json.
    #[arg(long, value_name = "JSON")]
    router_config: Option<String>,
    /// Who adds and removes workers during the replay: a row of
    /// `wavetank list autoscale` [default: nobody].
    #[arg(long, value_name = "NAME")]
    autoscale: Option<String>,
    /// Limits and parameters of --autoscale, inline or @file.json:
    /// `wavetank list autoscale-args -v`.
    #[arg(long, value_name = "JSON")]
    autoscale_config: Option<String>,
    /// Not supported (the reference's queue policy profiles).
    #[arg(long, value_name = "FILE")]
    router_policy_config: Option<PathBuf>,
    /// Not supported (selects a profile of the above).
    #[arg(long, value_name = "NAME")]
    model_name: Option<String>,
    /// Not supported (the reference's planner).
    #[arg(long, value_name = "JSON")]
    planner_config: Option<String>,
    /// Not supported (the reference's planner).
    #[arg(long, value_name = "N")]
    benchmark_granularity: Option<u32>,
    /// Stop at this simulated time; what has not ended is counted as such.
    #[arg(long, value_name = "S")]
    max_sim_time_seconds: Option<f64>,
    /// A request is good if its first token comes within this time.
    #[arg(long, value_name = "MS")]
    sla_ttft_ms: Option<f64>,
    /// A request is good if its mean token gap is within this time.
    #[arg(long, value_name = "MS")]
    sla_itl_ms: Option<f64>,
    /// A request is good if its last token comes within this time.
    #[arg(long, value_name = "MS")]
    sla_e2e_ms: Option<f64>,
    /// Seed of every other random choice [default: 42].
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    #[command(flatten)]
    aic: AicFlags,
}

#[derive(Clone, Copy, ValueEnum)]
enum Unit {
    Requests,
    Sessions,
}

#[derive(Clone, Copy, ValueEnum)]
enum Scope {
    /// Those that leave one prefill worker.
    PrefillWorker,
    /// Those that reach one decode worker.
    DecodeWorker,
    /// All.
    Pool,
}

impl From<Scope> for LinkScope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::PrefillWorker => Self::PrefillWorker,
            Scope::DecodeWorker => Self::DecodeWorker,
            Scope::Pool => Self::Pool,
        }
    }
}

impl From<Unit> for ConcurrencyUnit {
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::Requests => Self::Requests,
            Unit::Sessions => Self::Sessions,
        }
    }
}

/// The router's prefill load model.
#[derive(Args)]
#[command(next_help_heading = "Prefill load model of the router")]
pub(super) struct AicFlags {
    /// Engine whose kernels were measured: vllm, sglang or trtllm.
    #[arg(long, value_name = "VALUE")]
    aic_backend: Option<String>,
    /// GPU, a row of `wavetank list gpus`.
    #[arg(long, value_name = "VALUE")]
    aic_system: Option<String>,
    /// Model, by its name on Hugging Face.
    #[arg(long, value_name = "VALUE")]
    aic_model_path: Option<String>,
    /// Version of the engine.
    #[arg(long, value_name = "VALUE")]
    aic_backend_version: Option<String>,
    /// GPUs of a worker [default: 1].
    #[arg(long, value_name = "VALUE")]
    aic_tp_size: Option<String>,
    /// GPUs that split an expert, in a grid that AISimulate exports.
    #[arg(long, value_name = "VALUE")]
    aic_moe_tp_size: Option<String>,
    /// Ranks that split experts, in a grid that AISimulate exports.
    #[arg(long, value_name = "VALUE")]
    aic_moe_ep_size: Option<String>,
    /// Ranks of attention: 1, more are not simulated.
    #[arg(long, value_name = "VALUE")]
    aic_attention_dp_size: Option<String>,
    /// Type of the weights: bf16 or fp8.
    #[arg(long, value_name = "VALUE")]
    aic_gemm_dtype: Option<String>,
    /// Type of the experts, in a grid that AISimulate exports.
    #[arg(long, value_name = "VALUE")]
    aic_moe_dtype: Option<String>,
    /// Type of attention, in a grid that AISimulate exports.
    #[arg(long, value_name = "VALUE")]
    aic_fmha_dtype: Option<String>,
    /// Type of the KV: bf16 or fp8 [default: bf16].
    #[arg(long, value_name = "VALUE")]
    aic_kv_cache_dtype: Option<String>,
    /// Type of communication, in a grid that AISimulate exports.
    #[arg(long, value_name = "VALUE")]
    aic_comm_dtype: Option<String>,
    /// Not available in this release.
    #[arg(long, value_name = "VALUE")]
    aic_nextn: Option<String>,
    /// Not available in this release.
    #[arg(long, value_name = "VALUE")]
    aic_nextn_accept_rates: Option<String>,
}

impl AicFlags {
    /// The flags that were typed.
    pub(super) fn typed(self) -> Vec<(&'static str, String)> {
        let all = [
            ("--aic-backend", self.aic_backend),
            ("--aic-system", self.aic_system),
            ("--aic-model-path", self.aic_model_path),
            ("--aic-backend-version", self.aic_backend_version),
            ("--aic-tp-size", self.aic_tp_size),
            ("--aic-moe-tp-size", self.aic_moe_tp_size),
            ("--aic-moe-ep-size", self.aic_moe_ep_size),
            ("--aic-attention-dp-size", self.aic_attention_dp_size),
            ("--aic-gemm-dtype", self.aic_gemm_dtype),
            ("--aic-moe-dtype", self.aic_moe_dtype),
            ("--aic-fmha-dtype", self.aic_fmha_dtype),
            ("--aic-kv-cache-dtype", self.aic_kv_cache_dtype),
            ("--aic-comm-dtype", self.aic_comm_dtype),
            ("--aic-nextn", self.aic_nextn),
            ("--aic-nextn-accept-rates", self.aic_nextn_accept_rates),
        ];
        all.into_iter().filter_map(|(flag, value)| Some((flag, value?))).collect()
    }
}

impl From<ReplayFlags> for ReplayArgs {
    fn from(flags: ReplayFlags) -> Self {
        Self {
            trace_files: flags.trace_files,
            input_tokens: flags.input_tokens,
            output_tokens: flags.output_tokens,
            request_count: flags.request_count,
            arrival_interval_ms: flags.arrival_interval_ms,
            request_rate: flags.request_rate,
            arrival_seed: flags.arrival_seed,
            turns_per_session: flags.turns_per_session,
            shared_prefix_ratio: flags.shared_prefix_ratio,
            num_prefix_groups: flags.num_prefix_groups,
            inter_turn_delay_ms: flags.inter_turn_delay_ms,
            num_workers: flags.num_workers,
            num_prefill_workers: flags.num_prefill_workers,
            num_decode_workers: flags.num_decode_workers,
            kv_link_gbps: flags.kv_link_gbps,
            kv_link_scope: flags.kv_link_scope.map(Into::into),
            kv_link_latency_us: flags.kv_link_latency_us,
            replay_concurrency: flags.replay_concurrency,
            concurrency_unit: flags.concurrency_unit.map(Into::into),
            replay_mode: flags.replay_mode,
            router_mode: flags.router_mode,
            arrival_speedup_ratio: flags.arrival_speedup_ratio,
            trace_format: flags.trace_format,
            fill: flags.fill,
            trace_block_size: flags.trace_block_size,
            trace_shared_prefix_ratio: flags.trace_shared_prefix_ratio,
            trace_num_prefix_groups: flags.trace_num_prefix_groups,
            clamp_input: flags.clamp_input,
            extra_engine_args: flags.extra_engine_args,
            prefill_engine_args: flags.prefill_engine_args,
            decode_engine_args: flags.decode_engine_args,
            router_config: flags.router_config,
            tiers: flags.tier.into_iter().map(Into::into).collect(),
            timing: flags.timing,
            router_policy_config: flags.router_policy_config,
            model_name: flags.model_name,
            autoscale: flags.autoscale,
            autoscale_config: flags.autoscale_config,
            planner_config: flags.planner_config,
            benchmark_granularity: flags.benchmark_granularity,
            max_sim_time_seconds: flags.max_sim_time_seconds,
            sla_ttft_ms: flags.sla_ttft_ms,
            sla_itl_ms: flags.sla_itl_ms,
            sla_e2e_ms: flags.sla_e2e_ms,
            seed: flags.seed,
            aic: flags.aic.typed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a new flag that files (`wavetank sweep`) cannot name, or a name that is no flag.
    #[test]
    fn every_flag_has_its_name_in_files() {
        let command = ReplayFlags::augment_args(clap::Command::new("replay"));
        let typed = command.get_arguments().filter_map(|flag| flag.get_long());
        let mut typed: Vec<String> =
            typed.map(|flag| flag.replace('-', "_")).chain(["trace".to_owned()]).collect();
        let mut named: Vec<String> = ReplayArgs::names().map(str::to_owned).collect();
        typed.sort();
        named.sort();
        assert_eq!(typed, named);
    }
}
