//! The rules about values, whoever wrote them.

use wavetank_model::{Error, Result, find};
use wavetank_sim::routers::{self, KvConfig};
use wavetank_sim::{EngineConfig, Load, engines, queues};
use wavetank_trace::requests;
use wavetank_trace::synth::Synthetic;
use wavetank_trace::synth::arrival::Process;

use super::{Plan, ReplayMode, WorkloadPlan, check_tiers};
use crate::verdict::{above_zero, fraction, from_one_to, not_negative, positive, speed_ratio};
use crate::{pools, scaling_args};

/// More than any fleet; each costs memory.
const MOST_WORKERS: u32 = 65_536;
/// Each is a thread.
const MOST_LIVE_WORKERS: u32 = 1024;
/// The simulated clock holds several.
const CENTURY_MS: f64 = 3.2e12;

impl Plan {
    /// The rules about values, whoever wrote them.
    pub fn check(&self) -> Result<()> {
        above_zero("--arrival-speedup-ratio", self.arrival_speedup_ratio)?;
        if !(1e-6..=1e6).contains(&self.arrival_speedup_ratio) {
            return Err(Error::usage("must be from 0.000001 to 1000000").at("--arrival-speedup-ratio"));
        }
        for (flag, bound) in [
            ("--sla-ttft-ms", self.sla.ttft_ms),
            ("--sla-itl-ms", self.sla.itl_ms),
            ("--sla-e2e-ms", self.sla.e2e_ms),
        ] {
            not_negative(flag, bound.unwrap_or(0.0))?;
        }
        check_simulation(&self.simulation, self.replay_mode)?;
        match &self.workload {
            WorkloadPlan::Trace { format, trace_block_size, shared_prefix, .. } => {
                positive("--trace-block-size", trace_block_size.unwrap_or(1))?;
                fraction("--trace-shared-prefix-ratio", shared_prefix.ratio)?;
                requests::find(format).map(drop).map_err(|error| error.at("--trace-format"))
            }
            WorkloadPlan::Synthetic(synthetic) => check_synthetic(synthetic, self.arrival_speedup_ratio),
        }
    }
}

/// The rules about workers and their router.
pub(crate) fn check_simulation(simulation: &wavetank_sim::Plan, mode: ReplayMode) -> Result<()> {
    from_one_to("--num-workers", simulation.num_workers, MOST_WORKERS)?;
    find("router", routers::ALL, &simulation.router_mode).map_err(|error| error.at("--router-mode"))?;
    let grows = simulation.scaling.is_some();
    let alone = simulation.num_workers == 1 && simulation.decode.is_none() && !grows;
    if simulation.router_mode == "kv_router" && alone && mode.is_offline() {
        return Err(Error::usage("kv_router needs more than one worker")
            .at("--router-mode")
            .hint("add --num-workers, or use round_robin"));
    }
    if let Load::Closed { concurrency, .. } = simulation.load {
        positive("--replay-concurrency", concurrency)?;
    }
    check_engine(&simulation.engine)?;
    if let Some(pool) = &simulation.decode {
        from_one_to("--num-decode-workers", pool.num_workers, MOST_WORKERS)?;
        check_engine(&pool.engine)?;
    }
    pools::check(simulation)?;
    scaling_args::check(simulation, MOST_WORKERS)?;
    check_tiers::check(simulation, mode)?;
    if mode == ReplayMode::Online {
        check_live(simulation)?;
    }
    check_router(&simulation.router_config)
}

/// Ranks in lockstep; no deployment has more.
const MOST_RANKS: u32 = 1024;

fn check_engine(engine: &EngineConfig) -> Result<()> {
    let flag = "--extra-engine-args";
    let row = engines::entry(&engine.engine_type).map_err(|error| error.at(flag))?;
    let tokens = u64::from(engine.num_gpu_blocks) * u64::from(engine.block_size);
    let settings = &engine.sglang;
    for limit in [settings.max_prefill_tokens, settings.chunked_prefill_size, settings.clip_max_new_tokens] {
        positive(flag, limit)?;
    }
    fraction(flag, settings.schedule_conservativeness)?;
    if let Some(flaw) = (row.flaw)(engine) {
        return Err(Error::usage(flaw).at(flag));
    }
    if engine.block_size == 0 || engine.num_gpu_blocks == 0 || tokens > u64::from(u32::MAX) {
        return Err(Error::usage(
            "\"block_size\" times \"num_gpu_blocks\" must be from 1 to 2^32 - 1 tokens",
        )
        .at(flag));
    }
    for limit in [engine.max_num_seqs, engine.max_num_batched_tokens, engine.max_model_len] {
        positive(flag, limit.unwrap_or(1))?;
    }
    if engine.data_parallel_ranks > MOST_RANKS {
        return Err(Error::usage(format!("at most {MOST_RANKS} data-parallel ranks")).at(flag));
    }
    speed_ratio(flag, engine.speedup_ratio)?;
    speed_ratio(flag, engine.decode_speedup_ratio)?;
    engine.timing.build().map(drop)
}

/// What live workers cannot do.
fn check_live(simulation: &wavetank_sim::Plan) -> Result<()> {
    from_one_to("--num-workers", simulation.num_workers, MOST_LIVE_WORKERS)
        .map_err(|error| error.hint("every live worker is a thread"))?;
    let refused = if simulation.decode.is_some() {
        "runs aggregated workers only: prefill and decode workers are simulated offline"
    } else if simulation.scaling.is_some() {
        "runs the workers it begins with: --autoscale changes simulated fleets"
    } else if simulation.max_sim_time.is_some() {
        "runs on the wall clock: --max-sim-time-seconds ends simulated time"
    } else {
        return Ok(());
    };
    Err(Error::usage(format!("online {refused}")).at("--replay-mode"))
}

fn check_router(config: &KvConfig) -> Result<()> {
    let flag = "--router-config";
    for weight in [
        config.overlap_score_credit,
        config.overlap_score_credit_decay,
        config.prefill_load_scale,
        config.decode_active_request_weight,
        config.router_temperature,
        config.router_queue_threshold.unwrap_or(0.0),
    ] {
        not_negative(flag, weight)?;
    }
    for weight in [config.host_cache_hit_weight, config.disk_cache_hit_weight] {
        fraction(flag, weight)?;
    }
    queues::policy(&config.router_queue_policy).map_err(|error| error.at(flag))?;
    config.router_prefill_load_model.as_ref().map_or(Ok(()), |model| model.build().map(drop))
}

fn check_synthetic(load: &Synthetic, speedup: f64) -> Result<()> {
    positive("--input-tokens", load.input_tokens)?;
    positive("--output-tokens", load.output_tokens)?;
    positive("--request-count", load.request_count)?;
    positive("--turns-per-session", load.turns_per_session)?;
    fraction("--shared-prefix-ratio", load.shared_prefix_ratio)?;
    not_negative("--inter-turn-delay-ms", load.inter_turn_delay_ms)?;
    match load.arrivals {
        Process::Constant { interval_ms } => not_negative("--arrival-interval-ms", interval_ms).map(drop),
        Process::Poisson { per_second } => above_zero("--request-rate", per_second).map(drop),
        Process::Gamma { per_second, smoothness } => {
            above_zero("per_second", per_second)?;
            above_zero("smoothness", smoothness).map(drop)
        }
    }?;
    if u64::from(load.request_count) * u64::from(load.turns_per_session) > u64::from(u32::MAX) {
        return Err(Error::usage("more than 2^32 requests in all").at("--request-count"));
    }
    let gap_ms = match load.arrivals {
        Process::Constant { interval_ms } => interval_ms,
        Process::Poisson { per_second } | Process::Gamma { per_second, .. } => 1000.0 / per_second,
    };
    let span_ms =
        f64::from(load.request_count) * gap_ms + f64::from(load.turns_per_session) * load.inter_turn_delay_ms;
    if span_ms / speedup > CENTURY_MS {
        return Err(Error::usage("arrivals and pauses span more than a century").at("--arrival-interval-ms"));
    }
    Ok(())
}
