//! What is typed, the machine it is typed on, and the suite that comes of it.
//!
//! Breaks when a number of spec/kv-bench.md 17 is not kept, a scenario is dropped without a reason, or only
//! the first of several errors is said.

use insta::assert_snapshot;
use tempfile::TempDir;
use wavetank_model::TierRole;

use super::*;
use crate::bench::args::GpuTier;
use crate::bench::testing::{with_gpu, without_gpu};
use crate::host::Host;

const GIB: f64 = (1u64 << 30) as f64;

/// Where a plan is made: its directory may be written to and holds a folder that is there.
struct Stand {
    folder: TempDir,
}

impl Stand {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn args(&self) -> SuiteArgs {
        SuiteArgs {
            cache_dir: Some(self.folder.path().join("cache")),
            storage_capacity_gb: Some(100.0),
            ..SuiteArgs::default()
        }
    }

    fn try_plan(&self, machine: &Machine, args: &SuiteArgs) -> Result<SuitePlan> {
        // A system without files: nothing of this one's limits is seen.
        let surroundings = Surroundings {
            host: Host::below(self.folder.path().join("nowhere")),
            temporary: self.folder.path().to_owned(),
            current: self.folder.path().to_owned(),
        };
        SuitePlan::on(machine, &surroundings, args)
    }

    fn plan(&self, machine: &Machine, args: &SuiteArgs) -> SuitePlan {
        self.try_plan(machine, args).unwrap_or_else(|error| panic!("{error}"))
    }
}

fn rows(plan: &SuitePlan) -> String {
    let row = |step: &Step| match &step.task {
        Task::Skip { reason } => format!("{}: skipped: {reason}\n", step.name),
        Task::Run(ready) => {
            let (run, plan) = (&ready.plan.run, &ready.plan);
            let tier = |role: TierRole| run.tiers.iter().find(|tier| tier.role == role);
            let gb = |role| tier(role).and_then(|tier| tier.capacity_bytes).unwrap_or(0) as f64 / GIB;
            format!(
                "{}: {} {} users gpu {:.2} cpu {:.2} {:?} {}+{} s x{} = {} s, allocs {:?}, {:?}, {:?}, \
                 {} documents, seed {}\n",
                step.name,
                plan.model.name,
                run.users,
                gb(TierRole::Gpu),
                gb(TierRole::Cpu),
                plan.generation_mode,
                run.warmup.as_seconds(),
                run.duration.as_seconds(),
                plan.trials.most,
                ready.seconds,
                run.max_concurrent_allocs,
                run.scaling.map(|scaling| (scaling.mode, scaling.target_saturation)),
                plan.profile,
                run.habits.documents.count,
                run.seed,
            )
        }
    };
    plan.steps.iter().map(row).collect()
}

fn all(stand: &Stand) -> SuiteArgs {
    SuiteArgs { workloads: Some("all".to_owned()), ..stand.args() }
}

/// Broken by: any other number than the reference's.
#[test]
fn the_numbers_are_the_reference_s() {
    let stand = Stand::new();
    let args = SuiteArgs { gpu_tier: Some(GpuTier::Sim), ..all(&stand) };
    let plan = stand.plan(&without_gpu(), &args);
    assert_snapshot!(rows(&plan));
    assert_eq!(plan.warnings, [""; 0]);
    assert!(plan.ready().all(|(_, ready)| ready.plan.warnings.is_empty()), "what is not typed is no warning");
    let total: f64 = plan.ready().map(|(_, ready)| ready.seconds).sum();
    assert_eq!(plan.seconds(), total);
}

#[test]
fn quick_takes_seconds_and_says_so() {
    let stand = Stand::new();
    let args = SuiteArgs { quick: true, gpu_tier: Some(GpuTier::Sim), ..stand.args() };
    let plan = stand.plan(&without_gpu(), &SuiteArgs { storage_capacity_gb: None, ..args });
    assert_snapshot!(rows(&plan));
    assert!(plan.parameters.quick && plan.warnings[0].starts_with("quick: "));
    assert!(plan.ready().all(|(_, ready)| ready.plan.warnings.is_empty()));
}

#[test]
fn scenarios_that_need_a_gpu_are_skipped_without_one() {
    let stand = Stand::new();
    let plan = stand.plan(&without_gpu(), &stand.args());
    let skipped: Vec<&str> = plan
        .steps
        .iter()
        .filter(|step| matches!(step.task, Task::Skip { .. }))
        .map(|step| step.name.as_str())
        .collect();
    assert_eq!((skipped, plan.steps.len()), (vec!["gpu-only", "gpu-cpu", "gpu-cpu-storage"], 10));
    let Task::Skip { reason } = &plan.steps[0].task else { panic!("it is skipped") };
    assert_eq!(reason, "cuda: no NVIDIA driver; --gpu-tier sim models one");
    let off = SuiteArgs { gpu_tier: Some(GpuTier::Off), ..stand.args() };
    let plan = stand.plan(&with_gpu(), &off);
    assert!(rows(&plan).starts_with("gpu-only: skipped: --gpu-tier is off\n"));
    let asked = SuiteArgs { gpu_tier: Some(GpuTier::Cuda), ..stand.args() };
    let refusal = stand.try_plan(&without_gpu(), &asked).unwrap_err().to_string();
    assert!(refusal.contains("--gpu-tier: cuda: no NVIDIA driver — hint: --gpu-tier sim"), "{refusal}");
}

/// Of 24 GiB, 20 of them free: 20 less the tenth that stays free.
#[test]
fn all_of_a_gpu_is_what_may_be_used() {
    let stand = Stand::new();
    let plan =
        stand.plan(&with_gpu(), &SuiteArgs { workloads: Some("gpu,production".into()), ..stand.args() });
    let text = rows(&plan);
    assert!(text.contains("gpu-only: llama3.1-8b 50 users gpu 17.60 cpu 4.00"), "{text}");
    assert!(text.contains("production: llama3.1-8b 50 users gpu 17.60 "), "{text}");
    assert!(plan.ready().all(|(_, ready)| ready.plan.warnings.is_empty()), "it fits");
}

#[test]
fn everything_is_said_at_once_and_once() {
    let stand = Stand::new();
    let args = SuiteArgs {
        model: Some("llama9-1t".into()),
        tier_duration: Some(0.0),
        saturation_duration: Some(f64::NAN),
        users_baseline: Some(0),
        workloads: Some("all,tape".into()),
        trials: Some(TrialCount::Number(0)),
        io_depth: Some(0),
        storage_capacity_gb: Some(-1.0),
        ..stand.args()
    };
    assert_snapshot!(stand.try_plan(&without_gpu(), &args).unwrap_err().to_string());
    let system = SuiteArgs { cache_dir: Some("/etc/kv".into()), ..stand.args() };
    let refusal = stand.try_plan(&without_gpu(), &system).unwrap_err().to_string();
    assert!(refusal.contains("--cache-dir: /etc/kv belongs to the system"), "{refusal}");
}

#[test]
fn a_submission_keeps_its_rules() {
    let stand = Stand::new();
    let args = SuiteArgs {
        workloads: Some("mlperf,cpu".into()),
        seed: Some(7),
        trials: Some(TrialCount::Number(2)),
        enable_rag: true,
        rag_num_docs: Some(5),
        ..stand.args()
    };
    let plan = stand.plan(&without_gpu(), &args);
    assert_eq!(plan.warnings.len(), 3, "{:?}", plan.warnings);
    for (step, ready) in plan.ready() {
        let (trials, documents, seed) =
            (ready.plan.trials.most, ready.plan.run.habits.documents.count, ready.plan.run.seed);
        let expected = if step.is_submission() { (3, 0, 42) } else { (2, 5, 7) };
        assert_eq!((trials, documents, seed), expected, "{}", step.name);
    }
    let more = stand.plan(&without_gpu(), &SuiteArgs { trials: Some(TrialCount::Number(5)), ..args });
    assert!(more.ready().all(|(_, ready)| ready.plan.trials.most == 5));
}

#[test]
fn users_by_memory_and_as_typed() {
    let stand = Stand::new();
    let users = |machine: &Machine, args: &SuiteArgs| {
        let plan = stand.plan(machine, args);
        ((plan.parameters.users_baseline, plan.parameters.users_high), plan.warnings.len())
    };
    let small = Machine { memory_bytes: Some(2 << 30), ..without_gpu() };
    let middle = Machine { memory_bytes: Some(16 << 30), ..without_gpu() };
    assert_eq!(users(&small, &stand.args()), ((50, 50), 0));
    assert_eq!(users(&middle, &stand.args()), ((50, 160), 0));
    assert_eq!(users(&without_gpu(), &stand.args()), ((50, 300), 0));
    let typed = SuiteArgs { users_baseline: Some(200), users_high: Some(100), ..stand.args() };
    assert_eq!(users(&without_gpu(), &typed), ((200, 200), 1));
    let tiny = stand.plan(&small, &stand.args()).parameters;
    assert_eq!((tiny.cpu_half_gb, tiny.cpu_eighth_gb), (1.0, 1.0));
}

#[test]
fn a_plan_is_read_as_it_was_written() {
    let stand = Stand::new();
    let plan = stand.plan(&without_gpu(), &all(&stand));
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<SuitePlan>(&text).unwrap(), plan);
}

/// Broken by: a time that leaves out the pauses between trials, or those between scenarios.
#[test]
fn pauses_take_time() {
    let stand = Stand::new();
    let of = |cooldown: f64| {
        let args = SuiteArgs {
            workloads: Some("cpu,storage,mlperf-stress-8b".into()),
            cooldown: Some(cooldown),
            ..stand.args()
        };
        stand.plan(&without_gpu(), &args)
    };
    // Two between the three trials of the submission, two between the scenarios.
    assert_eq!(of(10.0).seconds() - of(0.0).seconds(), 40.0);
    let folder = stand.folder.path().join("out");
    let suite = crate::bench::suite::Suite::begin(of(10.0), &folder).unwrap();
    assert_eq!(suite.to_run(), (3, of(10.0).seconds()), "the plan and the run say the same");
}

/// Broken by: a suite without documents for someone who asked for them.
#[test]
fn documents_are_at_least_one() {
    let stand = Stand::new();
    let none = SuiteArgs { enable_rag: true, rag_num_docs: Some(0), ..stand.args() };
    let refusal = stand.try_plan(&without_gpu(), &none).unwrap_err().to_string();
    assert!(refusal.contains("--rag-num-docs: must be at least 1: "), "{refusal}");
}
