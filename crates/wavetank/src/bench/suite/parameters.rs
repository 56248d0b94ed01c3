//! What is chosen for a machine: users, memory, durations (spec/kv-bench.md 17).

use serde::{Deserialize, Serialize};

use super::args::SuiteArgs;
use super::hardware::{Gpu, Hardware};
use crate::bench::args::GpuTier;
use crate::bench::findings::Findings;
use crate::bench::submission::SUBMISSION_SEED;
use crate::bench::trials::{FEWEST, TrialCount};

/// The numbers that scenarios are made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Whether every scenario runs for a moment on next to nothing, to see that it works.
    pub quick: bool,
    /// Whose KV it is where a scenario does not say.
    pub model: String,
    /// A usual number of users.
    pub users_baseline: u32,
    /// A large one.
    pub users_high: u32,
    /// What of a GPU is used.
    pub gpu: GpuBudget,
    /// Half of main memory, in GiB.
    pub cpu_half_gb: f64,
    /// An eighth of it, in GiB.
    pub cpu_eighth_gb: f64,
    /// Storage for entries, in GiB; 0 is what there is.
    pub storage_capacity_gb: f64,
    /// How long a combination of tiers is measured, in seconds.
    pub tier_duration: f64,
    /// How long the drive is saturated, in seconds.
    pub saturation_duration: f64,
    /// How long production is measured, in seconds.
    pub realistic_duration: f64,
    /// How long users are added, in seconds.
    pub autoscale_duration: f64,
    /// Runs of a scenario.
    pub trials: TrialCount,
    /// Runs of an option of a submission.
    pub submission_trials: TrialCount,
    /// The pause between two runs, in seconds.
    pub cooldown: f64,
    /// Whether the kernel's page cache is emptied before each run.
    pub drop_page_cache: bool,
    /// What requests, names and contents follow from.
    pub seed: u64,
    /// Documents that requests retrieve from; 0 is none.
    pub rag_num_docs: u32,
}

/// What of a GPU is used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuBudget {
    /// So much of it.
    Used {
        /// Real or modelled.
        kind: GpuTier,
        /// GiB of it.
        gigabytes: f64,
    },
    /// Nothing.
    None {
        /// Why scenarios that need one are skipped.
        why: String,
    },
}

const MODEL: &str = "llama3.1-8b";
/// With --quick, whatever the scenario says.
pub(super) const QUICK_MODEL: &str = "tiny-1b";
const GIB: f64 = (1u64 << 30) as f64;
/// Main memory that is assumed where the kernel does not say.
const ASSUMED_MEMORY: u64 = 8 << 30;
/// A modelled GPU's memory, as `wavetank bench` has it.
const MODELLED_GB: f64 = 16.0;
/// No longer than a day.
const SECONDS_MAX: f64 = 86_400.0;
/// With --enable-rag, unless typed.
const DOCUMENTS: u32 = 10;
const USERS_MAX: u64 = 100_000;

/// What is said wherever numbers of --quick are.
pub(super) const QUICK_WARNING: &str =
    "quick: these numbers say that it works, and nothing about this machine";

/// What differs with --quick: large enough that every tier gets entries, small enough for seconds.
struct Scale {
    model: &'static str,
    users: [u32; 2],
    /// Tier, saturation, realistic and autoscale duration.
    seconds: [f64; 4],
    storage_gb: f64,
}

const FULL: Scale =
    Scale { model: MODEL, users: [50, 300], seconds: [120.0, 180.0, 180.0, 300.0], storage_gb: 0.0 };
const QUICK: Scale =
    Scale { model: QUICK_MODEL, users: [4, 8], seconds: [1.0, 1.0, 1.0, 2.0], storage_gb: 1.0 };
/// GiB with --quick: of a GPU, of half the memory, of an eighth, and of what a scenario says exactly.
const QUICK_GPU_GB: f64 = 0.25;
const QUICK_HALF_GB: f64 = 0.5;
const QUICK_EIGHTH_GB: f64 = 0.25;

impl Parameters {
    pub(super) fn choose(
        args: &SuiteArgs,
        hardware: &Hardware,
        findings: &mut Findings,
        warnings: &mut Vec<String>,
    ) -> Self {
        let usual = if args.quick { QUICK } else { FULL };
        let memory_gb = memory_gb(hardware, warnings);
        let mut seconds = |flag: &str, typed: Option<f64>, usual: f64| {
            findings.within(flag, typed.unwrap_or(usual), 1.0, SECONDS_MAX)
        };
        let [tier, saturation, realistic, autoscale] = usual.seconds;
        let durations = [
            seconds("--tier-duration", args.tier_duration, tier),
            seconds("--saturation-duration", args.saturation_duration, saturation),
            seconds("--realistic-duration", args.realistic_duration, realistic),
            seconds("--autoscale-duration", args.autoscale_duration, autoscale),
        ];
        let [users_baseline, users_high] = users(args, &usual, memory_gb, findings, warnings);
        let trials = args.trials.unwrap_or(TrialCount::Number(1));
        let cooldown = findings.within("--cooldown", args.cooldown.unwrap_or(0.0), 0.0, SECONDS_MAX);
        note(args, hardware, warnings);
        Self {
            quick: args.quick,
            model: args.model.clone().unwrap_or_else(|| usual.model.to_owned()),
            users_baseline,
            users_high,
            gpu: gpu(args, &hardware.gpu, findings),
            cpu_half_gb: if args.quick { QUICK_HALF_GB } else { (memory_gb / 2.0).floor().max(1.0) },
            cpu_eighth_gb: if args.quick { QUICK_EIGHTH_GB } else { (memory_gb / 8.0).floor().max(1.0) },
            storage_capacity_gb: args.storage_capacity_gb.unwrap_or(usual.storage_gb),
            tier_duration: durations[0],
            saturation_duration: durations[1],
            realistic_duration: durations[2],
            autoscale_duration: durations[3],
            trials,
            submission_trials: match trials {
                TrialCount::Number(number) => TrialCount::Number(number.max(FEWEST)),
                TrialCount::Auto => TrialCount::Auto,
            },
            cooldown,
            drop_page_cache: args.drop_page_cache,
            seed: args.seed.unwrap_or(SUBMISSION_SEED),
            rag_num_docs: documents(args, findings),
        }
    }
}

/// How many documents there are: with none, retrieving from them is not what was asked for.
fn documents(args: &SuiteArgs, findings: &mut Findings) -> u32 {
    if !args.enable_rag {
        return 0;
    }
    if args.rag_num_docs == Some(0) {
        findings.wrong("--rag-num-docs", "must be at least 1: without documents, leave out --enable-rag");
    }
    args.rag_num_docs.unwrap_or(DOCUMENTS)
}

fn memory_gb(hardware: &Hardware, warnings: &mut Vec<String>) -> f64 {
    if hardware.memory_bytes.is_none() {
        warnings.push("main memory is not known: 8 GiB are assumed".to_owned());
    }
    hardware.memory_bytes.unwrap_or(ASSUMED_MEMORY) as f64 / GIB
}

/// A usual and a large number of users: the large one grows with memory, because entries do.
fn users(
    args: &SuiteArgs,
    usual: &Scale,
    memory_gb: f64,
    findings: &mut Findings,
    warnings: &mut Vec<String>,
) -> [u32; 2] {
    let [baseline, most] = usual.users;
    let by_memory = (10.0 * memory_gb).clamp(FULL.users[0].into(), FULL.users[1].into()) as u32;
    let high = if args.quick { most } else { by_memory };
    let mut count = |flag: &str, typed: Option<u32>, usual: u32| {
        findings.count(flag, typed.unwrap_or(usual).into(), 1, USERS_MAX) as u32
    };
    let baseline = count("--users-baseline", args.users_baseline, baseline);
    let high = count("--users-high", args.users_high, high);
    if high < baseline {
        warnings.push(format!("--users-high {high} is below --users-baseline: {baseline} are taken"));
    }
    [baseline, high.max(baseline)]
}

/// What of a GPU holds entries.
fn gpu(args: &SuiteArgs, found: &Gpu, findings: &mut Findings) -> GpuBudget {
    let none = |why: String| GpuBudget::None { why };
    let limited = |gigabytes: f64| if args.quick { gigabytes.min(QUICK_GPU_GB) } else { gigabytes };
    match (args.gpu_tier.unwrap_or_default(), found) {
        (GpuTier::Off, _) => none("--gpu-tier is off".to_owned()),
        (GpuTier::Sim, _) => GpuBudget::Used { kind: GpuTier::Sim, gigabytes: limited(MODELLED_GB) },
        (kind, Gpu::Missing { why }) => {
            if kind == GpuTier::Cuda {
                findings.wrong("--gpu-tier", format!("{why} — hint: --gpu-tier sim models a GPU"));
            }
            none(format!("{why}; --gpu-tier sim models one"))
        }
        (_, Gpu::Found { total_bytes, free_bytes, .. }) => {
            let gigabytes = usable_gb(*total_bytes, *free_bytes);
            if gigabytes > 0.0 {
                return GpuBudget::Used { kind: GpuTier::Cuda, gigabytes: limited(gigabytes) };
            }
            let why = format!("the GPU has no memory to spare: {free_bytes} bytes are free");
            none(format!("{why}; --gpu-tier sim models one"))
        }
    }
}

/// All of a GPU: what `wavetank bench` would use of it, rounded down.
fn usable_gb(total_bytes: u64, free_bytes: u64) -> f64 {
    let (total, free) = (total_bytes as f64, free_bytes as f64);
    ((total * 0.8).min(free - total * 0.1) / GIB * 100.0).floor().max(0.0) / 100.0
}

/// Says what is not as it was asked for.
fn note(args: &SuiteArgs, hardware: &Hardware, warnings: &mut Vec<String>) {
    if args.rag_num_docs.is_some() && !args.enable_rag {
        warnings.push("--rag-num-docs has no effect: --enable-rag is not given".to_owned());
    }
    if hardware.place.is_in_memory() {
        let directory = hardware.place.directory.display();
        warnings.push(format!("{directory} is in memory: no drive is measured; name one with --cache-dir"));
    }
    if args.quick {
        warnings.push(QUICK_WARNING.to_owned());
    }
}
