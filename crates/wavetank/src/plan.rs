//! From what the user typed to a plan: every rule about flags and values is here and nowhere else.

pub(crate) mod check;
mod check_tiers;
mod device;
mod trace;

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wavetank_model::{Error, Nanos, Result};
use wavetank_report::Sla;
use wavetank_sim::routers::KvConfig;
use wavetank_sim::timing::TimingConfig;
use wavetank_sim::{ConcurrencyUnit, Load};
use wavetank_trace::Fill;
use wavetank_trace::requests::SharedPrefix;
use wavetank_trace::synth::Synthetic;
use wavetank_trace::synth::arrival::Process;

use crate::aic;
use crate::args::ReplayArgs;
use crate::json_arg;
use crate::pools::{self, Pools};
use crate::router_args;
use crate::scaling_args;
use crate::verdict::not_negative;

pub use device::DevicePlan;

/// Everything a replay depends on. It is part of every report and can be run again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The version that made it.
    pub wavetank_version: String,
    /// What arrives.
    pub workload: WorkloadPlan,
    /// Divides the times of the schedule.
    pub arrival_speedup_ratio: f64,
    /// Which clock it runs by.
    #[serde(default, skip_serializing_if = "ReplayMode::is_offline")]
    pub replay_mode: ReplayMode,
    /// What serves it.
    pub simulation: wavetank_sim::Plan,
    /// What makes a request good.
    pub sla: Sla,
    /// What was typed and has no effect.
    pub warnings: Vec<String>,
}

/// Which clock a replay runs by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayMode {
    /// A simulated one, as fast as it can be computed.
    #[default]
    Offline,
    /// The wall clock, with live workers.
    Online,
}

impl ReplayMode {
    fn is_offline(&self) -> bool {
        *self == Self::Offline
    }
}

/// Where requests come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum WorkloadPlan {
    /// A recorded trace.
    Trace {
        /// Paths of its files, read one after the other; `-` is standard input.
        paths: Vec<String>,
        /// A row of the formats table.
        format: String,
        /// Tokens per block id; what the format or the file says when absent.
        trace_block_size: Option<u32>,
        /// Whether inputs longer than their ids cover are cut.
        clamp_input: bool,
        /// What stands in for what the trace does not say.
        fill: Fill,
        /// What sessions share, where the format leaves it open.
        #[serde(default, skip_serializing_if = "SharedPrefix::is_none")]
        shared_prefix: SharedPrefix,
    },
    /// A generated load.
    Synthetic(Synthetic),
}

/// The path of standard input.
const STDIN: &str = "-";
const SEED: u64 = 42;

impl WorkloadPlan {
    /// Whether it can be read once only.
    pub fn is_once(&self) -> bool {
        matches!(self, Self::Trace { paths, .. } if paths.iter().any(|path| path == STDIN))
    }
}

impl Plan {
    /// Interprets the flags.
    pub fn of(args: &ReplayArgs) -> Result<Self> {
        refuse_foreign(args)?;
        let mut warnings = Vec::new();
        let simulation = simulation(args, &mut warnings)?;
        let workload = workload(args, &mut warnings)?;
        let plan = Self {
            wavetank_version: env!("CARGO_PKG_VERSION").to_owned(),
            workload,
            arrival_speedup_ratio: args.arrival_speedup_ratio.unwrap_or(1.0),
            replay_mode: replay_mode(args)?,
            simulation,
            sla: Sla { ttft_ms: args.sla_ttft_ms, itl_ms: args.sla_itl_ms, e2e_ms: args.sla_e2e_ms },
            warnings,
        };
        plan.check()?;
        Ok(plan)
    }

    /// Reads a plan, or the plan inside a report.
    pub fn read(path: &Path) -> Result<Self> {
        let place = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::io(path, error).hint("--plan takes a report or a plan"))?;
        let invalid = |error: serde_json::Error| {
            Error::input(format!("not a plan: {error}"))
                .at(place.clone())
                .hint("name a report written by this version, or the value of its \"plan\" key")
        };
        let mut json: Value = serde_json::from_str(&text).map_err(invalid)?;
        let plan = json.get_mut("plan").map(Value::take).unwrap_or(json);
        let plan: Self = serde_json::from_value(plan).map_err(invalid)?;
        plan.check().map_err(|error| Error::input(error.to_string()).at(place.clone()))?;
        Ok(plan)
    }

    /// Whether another seed could give another result.
    pub fn has_chance(&self) -> bool {
        let routed = !matches!(
            self.simulation.router_mode.as_str(),
            "round_robin" | "least_loaded" | "session_sticky"
        );
        let tiers = &self.simulation.engine.tiers;
        let drawn = tiers.iter().any(|tier| tier.medium.is_random());
        let generated = match &self.workload {
            WorkloadPlan::Synthetic(load) => {
                load.num_prefix_groups > 1 || !matches!(load.arrivals, Process::Constant { .. })
            }
            WorkloadPlan::Trace { .. } => false,
        };
        routed || generated || drawn
    }

    /// The same with another seed; random arrivals of a synthetic load change by as much.
    #[must_use]
    pub fn with_seed(&self, seed: u64) -> Self {
        let mut plan = self.clone();
        let offset = seed.wrapping_sub(self.simulation.seed);
        plan.simulation.seed = seed;
        if let WorkloadPlan::Synthetic(load) = &mut plan.workload {
            load.arrival_seed = load.arrival_seed.wrapping_add(offset);
        }
        plan
    }

    /// The files of the trace, where there are any.
    pub fn trace_files(&self) -> impl Iterator<Item = &Path> {
        let paths = match &self.workload {
            WorkloadPlan::Trace { paths, .. } => &paths[..],
            WorkloadPlan::Synthetic(_) => &[],
        };
        paths.iter().filter(|path| *path != STDIN).map(Path::new)
    }

    /// Every file and folder it reads: the trace's, and the tables of its timing models.
    pub fn inputs(&self) -> impl Iterator<Item = &Path> {
        self.trace_files().chain(self.simulation.timings().filter_map(TimingConfig::file).map(Path::new))
    }

    /// The same, as it names them, to be put elsewhere.
    pub fn inputs_mut(&mut self) -> Vec<&mut String> {
        let paths = match &mut self.workload {
            WorkloadPlan::Trace { paths, .. } => &mut paths[..],
            WorkloadPlan::Synthetic(_) => &mut [],
        };
        let tables = self.simulation.timings_mut().filter_map(TimingConfig::file_mut);
        paths.iter_mut().filter(|path| *path != STDIN).chain(tables).collect()
    }
}

/// The workers, their router and the load that it carries, as the flags say.
pub(crate) fn simulation(args: &ReplayArgs, warnings: &mut Vec<String>) -> Result<wavetank_sim::Plan> {
    let pools = pools::of(args, warnings)?;
    let scaling = scaling_args::of(args, &pools)?;
    let router_mode = args.router_mode.clone().unwrap_or_else(|| "round_robin".to_owned());
    let router_config = router_config(args, &router_mode, &pools, warnings)?;
    let load = load(args, warnings)?;
    let seconds = args.max_sim_time_seconds.map(|s| not_negative("--max-sim-time-seconds", s)).transpose()?;
    Ok(wavetank_sim::Plan {
        engine: pools.engine,
        num_workers: pools.num_workers,
        decode: pools.decode,
        router_mode,
        router_config,
        load,
        max_sim_time: seconds.map(Nanos::from_seconds),
        seed: args.seed.unwrap_or(SEED),
        scaling,
    })
}

/// Flags of the reference that wavetank does not take.
fn refuse_foreign(args: &ReplayArgs) -> Result<()> {
    let refuse = |flag: &str, why: &str| Err(Error::unsupported(format!("is not supported: {why}")).at(flag));
    if args.router_policy_config.is_some() {
        return refuse("--router-policy-config", "queue policies are keys of --router-config");
    }
    if args.model_name.is_some() {
        return refuse("--model-name", "it selects a profile of --router-policy-config");
    }
    let planner = [
        ("--planner-config", args.planner_config.is_some()),
        ("--benchmark-granularity", args.benchmark_granularity.is_some()),
    ];
    match planner.iter().find(|(_, typed)| *typed) {
        Some((flag, _)) => refuse(flag, "the reference's planner is a separate product").map_err(|error| {
            error.hint("--autoscale load, sla or schedule changes the number of workers during a replay")
        }),
        None => Ok(()),
    }
}

fn replay_mode(args: &ReplayArgs) -> Result<ReplayMode> {
    match args.replay_mode.as_deref().unwrap_or("offline") {
        "offline" => Ok(ReplayMode::Offline),
        "online" => Ok(ReplayMode::Online),
        other => Err(Error::usage(format!("unknown mode \"{other}\""))
            .at("--replay-mode")
            .hint("known: offline, online")),
    }
}

/// The configuration of `kv_router`; the engine's queue policy, where given, overrides the router's.
fn router_config(
    args: &ReplayArgs,
    router_mode: &str,
    pools: &Pools,
    warnings: &mut Vec<String>,
) -> Result<KvConfig> {
    let typed = json_arg::read("--router-config", args.router_config.as_deref())?;
    let mut notes = Vec::new();
    let silicon = aic::router_model(args, router_mode, &typed, &mut notes)?;
    let mut config = router_args::config(&typed, &mut notes)?;
    config.router_prefill_load_model = silicon.or(config.router_prefill_load_model);
    for key in router_args::TIERS.iter().filter(|key| typed.object.contains_key(**key)) {
        if pools.engine.tiers.is_empty() {
            notes.push(format!("{}: \"{key}\" has no effect: workers have no tiers", typed.place));
        }
    }
    let policy = pools.queue_policy.as_deref();
    if router_mode != "kv_router" {
        if args.router_config.is_some() {
            warnings.push(format!("{} has no effect: {router_mode} has nothing to configure", typed.place));
        }
        if policy.is_some() {
            warnings.push(format!("\"router_queue_policy\" has no effect: {router_mode} has no queue"));
        }
        return Ok(KvConfig::default());
    }
    warnings.append(&mut notes);
    if let Some(policy) = policy {
        config.router_queue_policy = policy.to_owned();
    }
    Ok(config)
}

fn load(args: &ReplayArgs, warnings: &mut Vec<String>) -> Result<Load> {
    let Some(concurrency) = args.replay_concurrency else {
        return match args.concurrency_unit {
            None => Ok(Load::Schedule),
            Some(_) => Err(Error::usage("needs --replay-concurrency").at("--concurrency-unit")),
        };
    };
    if args.arrival_speedup_ratio.is_some_and(|ratio| ratio != 1.0) {
        warnings.push(
            "--arrival-speedup-ratio has no effect: --replay-concurrency ignores start times, keeps pauses"
                .to_owned(),
        );
    }
    Ok(Load::Closed { concurrency, unit: args.concurrency_unit.unwrap_or(ConcurrencyUnit::Requests) })
}

fn workload(args: &ReplayArgs, warnings: &mut Vec<String>) -> Result<WorkloadPlan> {
    let synthetic = synthetic_flags(args);
    match (&args.trace_files[..], synthetic.first()) {
        ([], None) => Err(Error::usage("nothing to replay")
            .hint("name a trace file, or give --input-tokens, --output-tokens and --request-count")),
        ([], Some(_)) => synthetic_load(args, warnings).map(WorkloadPlan::Synthetic),
        (_, Some(flag)) => {
            Err(Error::usage("belongs to synthetic load and cannot go with a trace").at(*flag))
        }
        (_, None) => trace::workload(args, warnings),
    }
}

/// The flags that describe synthetic load and were typed.
fn synthetic_flags(args: &ReplayArgs) -> Vec<&'static str> {
    let flags = [
        ("--input-tokens", args.input_tokens.is_some()),
        ("--output-tokens", args.output_tokens.is_some()),
        ("--request-count", args.request_count.is_some()),
        ("--turns-per-session", args.turns_per_session.is_some()),
        ("--shared-prefix-ratio", args.shared_prefix_ratio.is_some()),
        ("--num-prefix-groups", args.num_prefix_groups.is_some()),
        ("--inter-turn-delay-ms", args.inter_turn_delay_ms.is_some()),
        ("--arrival-interval-ms", args.arrival_interval_ms.is_some()),
        ("--request-rate", args.request_rate.is_some()),
        ("--arrival-seed", args.arrival_seed.is_some()),
    ];
    flags.into_iter().filter(|(_, typed)| *typed).map(|(flag, _)| flag).collect()
}

fn synthetic_load(args: &ReplayArgs, warnings: &mut Vec<String>) -> Result<Synthetic> {
    let needed = |flag: &str, value: Option<u32>| {
        value.ok_or_else(|| {
            Error::usage("is missing")
                .at(flag)
                .hint("synthetic load needs --input-tokens, --output-tokens and --request-count")
        })
    };
    let load = Synthetic {
        input_tokens: needed("--input-tokens", args.input_tokens)?,
        output_tokens: needed("--output-tokens", args.output_tokens)?,
        request_count: needed("--request-count", args.request_count)?,
        turns_per_session: args.turns_per_session.unwrap_or(1),
        shared_prefix_ratio: args.shared_prefix_ratio.unwrap_or(0.0),
        num_prefix_groups: args.num_prefix_groups.unwrap_or(0),
        inter_turn_delay_ms: args.inter_turn_delay_ms.unwrap_or(0.0),
        arrivals: arrivals(args, warnings)?,
        arrival_seed: args.arrival_seed.unwrap_or(SEED),
    };
    note_idle_synthetic_flags(args, &load, warnings);
    Ok(load)
}

fn arrivals(args: &ReplayArgs, warnings: &mut Vec<String>) -> Result<Process> {
    match (args.request_rate, args.arrival_interval_ms) {
        (Some(_), Some(_)) => {
            Err(Error::usage("cannot be combined with --arrival-interval-ms").at("--request-rate"))
        }
        (Some(_), None) if args.replay_concurrency.is_some() => {
            Err(Error::usage("cannot be combined with --replay-concurrency").at("--request-rate"))
        }
        (Some(per_second), None) => Ok(Process::Poisson { per_second }),
        (None, interval) => {
            if interval.is_some() && args.replay_concurrency.is_some() {
                warnings.push(
                    "--arrival-interval-ms has no effect: --replay-concurrency decides when requests start"
                        .to_owned(),
                );
            }
            Ok(Process::Constant { interval_ms: interval.unwrap_or(1.0) })
        }
    }
}

fn note_idle_synthetic_flags(args: &ReplayArgs, load: &Synthetic, warnings: &mut Vec<String>) {
    let shares = load.shared_prefix_ratio > 0.0 && load.num_prefix_groups > 0;
    let poisson = matches!(load.arrivals, Process::Poisson { .. });
    let idle = [
        (args.trace_block_size.is_some(), "--trace-block-size has no effect: there is no trace"),
        (args.trace_format.is_some(), "--trace-format has no effect: there is no trace"),
        (
            args.trace_shared_prefix_ratio.is_some(),
            "--trace-shared-prefix-ratio has no effect: there is no trace",
        ),
        (
            args.trace_num_prefix_groups.is_some(),
            "--trace-num-prefix-groups has no effect: there is no trace",
        ),
        (args.clamp_input, "--clamp-input has no effect: there is no trace"),
        (
            load.shared_prefix_ratio > 0.0 && !shares,
            "--shared-prefix-ratio has no effect: nothing is shared without --num-prefix-groups",
        ),
        (
            load.num_prefix_groups > 0 && !shares,
            "--num-prefix-groups has no effect: nothing is shared without --shared-prefix-ratio",
        ),
        (
            load.inter_turn_delay_ms > 0.0 && load.turns_per_session == 1,
            "--inter-turn-delay-ms has no effect: sessions have one turn",
        ),
        (args.arrival_seed.is_some() && !poisson, "--arrival-seed has no effect: arrivals are not random"),
    ];
    warnings.extend(idle.into_iter().filter(|(idle, _)| *idle).map(|(_, note)| note.to_owned()));
}

#[cfg(test)]
mod tests;
