//! From what was typed to everything a suite does: each scenario is a benchmark's plan, or a reason to skip
//! it. Everything that is wrong is said at once, before anything runs.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wavetank_model::{Error, Result};

use super::args::SuiteArgs;
use super::hardware::{Hardware, Surroundings};
use super::parameters::{GpuBudget, Parameters};
use super::scenario::{self, GpuShare, Kind, Scenario};
use super::{command, draft};
use crate::bench::check;
use crate::bench::findings::Findings;
use crate::bench::machine::Machine;
use crate::bench::plan::BenchPlan;
use crate::bench::submission::SUBMISSION_SEED;
use crate::bench::trials::{FEWEST, TrialCount};

/// Everything a suite depends on. It is kept beside the results, and the suite goes on from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuitePlan {
    /// The version that made it.
    pub wavetank_version: String,
    /// The machine it was made for.
    pub hardware: Hardware,
    /// What was chosen for that machine.
    pub parameters: Parameters,
    /// What is done, in this order.
    pub steps: Vec<Step>,
    /// What is not as it was asked for.
    pub warnings: Vec<String>,
}

/// One scenario of a suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// What it is called in a table.
    pub title: String,
    /// What is done.
    pub task: Task,
}

/// What is done for a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// A benchmark.
    Run(Box<Ready>),
    /// Nothing.
    Skip {
        /// Why.
        reason: String,
    },
}

/// A benchmark of a suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// What is run.
    pub plan: BenchPlan,
    /// How long that takes at most, about.
    pub seconds: f64,
    /// The same as typed for `wavetank bench`.
    pub command: String,
}

/// What precedes everything that is wrong.
const HEADING: &str = "the suite cannot be run as asked";

impl SuitePlan {
    /// Interprets the flags on this machine. The error has everything that is wrong with them, a line each.
    pub fn of(args: &SuiteArgs) -> Result<Self> {
        Self::on(&Machine::here(), &Surroundings::here(), args)
    }

    /// The same on any machine.
    pub(super) fn on(machine: &Machine, surroundings: &Surroundings, args: &SuiteArgs) -> Result<Self> {
        let mut findings = Findings::default();
        let hardware = findings.take(Hardware::detect(machine, surroundings, args.cache_dir.as_deref()));
        let usual = if args.quick { "all" } else { "comparison" };
        let (numbers, unknown) = scenario::select(args.workloads.as_deref().unwrap_or(usual));
        unknown.into_iter().for_each(|error| findings.note(&error.at("--workloads")));
        let Some(hardware) = hardware else {
            findings.into_result(HEADING)?;
            unreachable!("hardware that is not found is a finding");
        };
        let mut warnings = Vec::new();
        if numbers.iter().any(|at| scenario::ALL[*at].kind == Kind::Submission) {
            warnings.extend(submission_notes(args));
        }
        let parameters = Parameters::choose(args, &hardware, &mut findings, &mut warnings);
        let mut drafts = draft::Drafts { machine, args, hardware: &hardware, parameters: &parameters };
        let steps: Vec<Option<Step>> =
            numbers.into_iter().map(|at| step(&mut drafts, &scenario::ALL[at], &mut findings)).collect();
        findings.into_result(HEADING)?;
        let steps = steps.into_iter().flatten().collect();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Self { wavetank_version: version, hardware, parameters, steps, warnings })
    }

    /// How long all of it takes at most, about.
    pub fn seconds(&self) -> f64 {
        self.lasting(self.ready().map(|(_, ready)| ready)).1
    }

    /// How many scenarios these are, and how long they take at most, about, one after the other.
    pub(super) fn lasting<'a>(&self, scenarios: impl Iterator<Item = &'a Ready>) -> (usize, f64) {
        let (count, seconds) =
            scenarios.fold((0, 0.0), |(count, seconds), ready| (count + 1, seconds + ready.seconds));
        (count, seconds + count.saturating_sub(1) as f64 * self.parameters.cooldown)
    }

    /// The scenarios that are run.
    pub fn ready(&self) -> impl Iterator<Item = (&Step, &Ready)> {
        self.steps.iter().filter_map(|step| match &step.task {
            Task::Run(ready) => Some((step, ready.as_ref())),
            Task::Skip { .. } => None,
        })
    }

    /// Refuses a plan that was read if it cannot be gone on with here.
    pub(super) fn check_here(&self) -> Result<()> {
        let mut findings = Findings::default();
        self.ready().for_each(|(_, ready)| check::plan(&ready.plan, &mut findings));
        findings.into_result("the suite's plan cannot be run")?;
        let place = &self.hardware.place;
        let was_there = place.made.last().map_or(Some(place.directory.as_path()), |made| made.parent());
        if let Some(gone) = was_there.filter(|folder| !folder.is_dir()) {
            let what = format!("the cache directory is gone: {}", gone.display());
            return Err(Error::usage(what).hint("mount it again, or start a suite of its own"));
        }
        let now = Hardware::here(Some(&place.directory))?;
        let differences = self.hardware.differences(&now);
        let refused = Error::of_all(
            wavetank_model::ErrorKind::Usage,
            "this is not the machine the suite was begun on",
            &differences,
        );
        refused.map_or(Ok(()), |error| Err(error.hint("start a suite of its own: results would not compare")))
    }
}

/// What a submission does not take from the flags.
fn submission_notes(args: &SuiteArgs) -> Vec<String> {
    let least = FEWEST;
    let seed = args.seed.filter(|seed| *seed != SUBMISSION_SEED);
    let trials = args.trials.filter(|trials| matches!(trials, TrialCount::Number(few) if *few < least));
    let notes = [
        seed.map(|seed| format!("--seed {seed} is not for a submission: its seed is {}", SUBMISSION_SEED)),
        trials.map(|trials| format!("--trials {trials} is not for a submission: it has {least}")),
        args.enable_rag.then(|| "--enable-rag is not for a submission: it has no documents".to_owned()),
    ];
    notes.into_iter().flatten().collect()
}

/// A scenario's step, unless something is wrong with it.
fn step(drafts: &mut draft::Drafts<'_>, scenario: &Scenario, findings: &mut Findings) -> Option<Step> {
    let task = match (scenario.gpu, &drafts.parameters.gpu) {
        (GpuShare::Needed, GpuBudget::None { why }) => Task::Skip { reason: why.clone() },
        _ => {
            let args = drafts.args_of(scenario);
            let (plan, found) = BenchPlan::try_on(drafts.machine, &args);
            findings.absorb(found);
            let plan = plan?;
            let seconds = seconds(&plan);
            Task::Run(Box::new(Ready { plan, seconds, command: command::of(&args) }))
        }
    };
    Some(Step { name: scenario.name.to_owned(), title: scenario.title.to_owned(), task })
}

/// How long a benchmark takes at most, about: what is written before it is not known.
fn seconds(plan: &BenchPlan) -> f64 {
    let (trials, run) = (&plan.trials, &plan.run);
    let pauses = f64::from(trials.most - 1) * trials.cooldown.as_seconds();
    f64::from(trials.most) * (run.warmup.as_seconds() + run.duration.as_seconds()) + pauses
}

impl Step {
    /// Its row in the table of scenarios; none for a name of another version.
    pub fn scenario(&self) -> Option<&'static Scenario> {
        scenario::ALL.iter().find(|row| row.name == self.name)
    }

    /// Whether it is an option of a submission.
    pub(crate) fn is_submission(&self) -> bool {
        self.scenario().is_some_and(|row| row.kind == Kind::Submission)
    }
}

/// The directory of one scenario's entries.
pub(super) fn folder_of(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("wavetank_suite_{name}"))
}

#[cfg(test)]
mod tests;
