//! What would be typed for `wavetank bench` to run one scenario.

use wavetank_bench::ScaleMode;
use wavetank_report::storage::Profile;

use super::args::SuiteArgs;
use super::hardware::Hardware;
use super::parameters::{self, GpuBudget, Parameters};
use super::plan::folder_of;
use super::scenario::{CpuShare, GpuShare, Kind, Model, Scenario, Span, Users};
use crate::bench::args::{BenchArgs, GenerationMode, GpuTier};
use crate::bench::machine::Machine;
use crate::bench::submission::SUBMISSION_SEED;
use crate::bench::trials::TrialCount;

/// What scenarios' flags are made from.
pub(super) struct Drafts<'a> {
    pub(super) machine: &'a Machine,
    pub(super) args: &'a SuiteArgs,
    pub(super) hardware: &'a Hardware,
    pub(super) parameters: &'a Parameters,
}

/// What QoS autoscaling keeps (spec/kv-bench.md 17).
const TARGET_SATURATION: f64 = 0.8;
/// With --quick: small prompts, several decisions of the autoscaler, and main memory that is soon full.
const QUICK_PERSONAS: &str = "chatbot=1";
const QUICK_SCALE_INTERVAL: f64 = 0.3;
const QUICK_GB_PER_GB: f64 = 1.0 / 32.0;
/// With --quick, users of scenarios that have a number of their own, and seconds.
const QUICK_USERS_MAX: u32 = 8;
const QUICK_SECONDS: f64 = 1.0;

impl Drafts<'_> {
    /// The flags of `scenario`.
    pub(super) fn args_of(&self, scenario: &Scenario) -> BenchArgs {
        let (gpu_tier, gpu_mem_gb) = self.gpu(scenario);
        let is_submission = scenario.kind == Kind::Submission;
        let parameters = self.parameters;
        let trials = if is_submission { parameters.submission_trials } else { parameters.trials };
        let has_rag = parameters.rag_num_docs > 0 && !is_submission;
        let args = BenchArgs {
            model: Some(self.model(scenario)),
            num_users: Some(self.users(scenario)),
            duration: Some(self.seconds(scenario)),
            seed: Some(if is_submission { SUBMISSION_SEED } else { parameters.seed }),
            trials: Some(trials),
            cooldown: (trials != TrialCount::Number(1) && parameters.cooldown > 0.0)
                .then_some(parameters.cooldown),
            drop_page_cache: parameters.drop_page_cache,
            generation_mode: Some(scenario.mode),
            gpu_tier,
            gpu_mem_gb: Some(gpu_mem_gb),
            cpu_mem_gb: Some(self.cpu_gb(scenario)),
            cache_dir: Some(folder_of(&self.hardware.place.directory, scenario.name)),
            storage_capacity_gb: Some(parameters.storage_capacity_gb),
            io_threads: self.args.io_threads,
            io_depth: self.args.io_depth,
            max_concurrent_allocs: scenario.max_concurrent_allocs,
            enable_rag: has_rag,
            rag_num_docs: has_rag.then_some(parameters.rag_num_docs),
            enable_autoscaling: scenario.scaling.is_some(),
            autoscaler_mode: scenario.scaling,
            target_saturation: (scenario.scaling == Some(ScaleMode::Qos)).then_some(TARGET_SATURATION),
            performance_profile: is_submission.then_some(Profile::Throughput),
            // A suite is of one machine, whoever started it.
            ranks: Some(1),
            ..BenchArgs::default()
        };
        if parameters.quick { quickened(args) } else { args }
    }

    fn model(&self, scenario: &Scenario) -> String {
        match scenario.model {
            Model::Typed => self.parameters.model.clone(),
            Model::Named(_) if self.parameters.quick => parameters::QUICK_MODEL.to_owned(),
            Model::Named(name) => name.to_owned(),
        }
    }

    fn users(&self, scenario: &Scenario) -> u32 {
        match scenario.users {
            Users::Baseline => self.parameters.users_baseline,
            Users::High => self.parameters.users_high,
            Users::Exactly(users) if self.parameters.quick => users.min(QUICK_USERS_MAX),
            Users::Exactly(users) => users,
        }
    }

    fn seconds(&self, scenario: &Scenario) -> f64 {
        let parameters = self.parameters;
        match scenario.span {
            Span::Tier => parameters.tier_duration,
            Span::Saturation => parameters.saturation_duration,
            Span::Realistic => parameters.realistic_duration,
            Span::Autoscale => parameters.autoscale_duration,
            Span::Exactly(_) if parameters.quick => QUICK_SECONDS,
            Span::Exactly(seconds) => seconds.into(),
        }
    }

    fn cpu_gb(&self, scenario: &Scenario) -> f64 {
        match scenario.cpu {
            CpuShare::Half => self.parameters.cpu_half_gb,
            CpuShare::Eighth => self.parameters.cpu_eighth_gb,
            CpuShare::Exactly(gigabytes) if self.parameters.quick => f64::from(gigabytes) * QUICK_GB_PER_GB,
            CpuShare::Exactly(gigabytes) => gigabytes.into(),
        }
    }

    /// A tier on a GPU: which, and GiB of it.
    fn gpu(&self, scenario: &Scenario) -> (Option<GpuTier>, f64) {
        match (scenario.gpu, &self.parameters.gpu) {
            (GpuShare::None, _) | (_, GpuBudget::None { .. }) => (None, 0.0),
            (_, GpuBudget::Used { kind, gigabytes }) => (Some(*kind), *gigabytes),
        }
    }
}

/// The same in seconds: nothing is excluded, and tokens come fast enough for some to be there in the end.
fn quickened(args: BenchArgs) -> BenchArgs {
    let mode = args.generation_mode.map(|mode| match mode {
        GenerationMode::Realistic => GenerationMode::Fast,
        other => other,
    });
    BenchArgs {
        warmup: Some(0.0),
        generation_mode: mode,
        persona_mix: Some(QUICK_PERSONAS.to_owned()),
        scale_interval: args.enable_autoscaling.then_some(QUICK_SCALE_INTERVAL),
        ..args
    }
}
