//! What more of each thing would be worth, and less of it would cost: replays of plans that differ in one
//! thing, held against the one that was asked for.

mod effect;
mod json;
mod resources;
mod row;
mod spread;
mod table;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use wavetank::{Keep, Observer, Plan, ReplayMode, Replayed, Unwatched, in_parallel};
use wavetank_model::{Error, Result};

use crate::sweep::cost::CostSpec;
use crate::sweep::point::Part;
use crate::sweep::{Local, Onlooker};
use effect::{Goal, Measured};
use resources::{Perturbation, perturbations};
use row::Row;
use spread::Spread;

/// The metric that advice goes by where none is named.
pub const USUAL_GOAL: &str = "p99_ttft_ms";

/// What advice is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The metric it goes by.
    pub goal: String,
    /// Prices, as [`Advisor::of`] reads them; none where money is no matter.
    pub price: Option<String>,
}

/// How advice is found; nothing of it changes what is found.
pub struct Setting<'a> {
    /// On how many threads.
    pub threads: usize,
    /// Raised to end it with what it has.
    pub stop: &'a AtomicBool,
    /// Watches it.
    pub onlooker: &'a dyn Onlooker,
}

/// Knows what to try with a plan.
pub struct Advisor {
    plan: Plan,
    goal: &'static Goal,
    asked: Asked,
    cost: Option<CostSpec>,
    tried: Vec<Perturbation>,
    untried: Vec<Untried>,
    local: Local,
}

/// A change that makes no plan, or none that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Untried {
    what: String,
    why: String,
}

/// What replays are run for.
enum Job<'a> {
    /// The plan itself under another seed.
    Seed(u64),
    Change(&'a Perturbation),
}

impl Advisor {
    /// Refuses what cannot be replayed again, goals that are none, and prices as `--price` has them
    /// (`gpu_hour=2.5,ram_gib_hour=0.004`: the keys of a sweep's `[cost]`) that are wrong or missing.
    pub fn of(plan: &Plan, asked: Asked) -> Result<Self> {
        let refuse = |message: &str, hint: &str| Err(Error::usage(message).at("--advise").hint(hint));
        if plan.replay_mode == ReplayMode::Online {
            return refuse(
                "cannot be combined with --replay-mode online",
                "advice takes many replays, in simulated time",
            );
        }
        if plan.workload.is_once() {
            return refuse("standard input can be replayed once only", "name a trace file");
        }
        let goal = Goal::find(&asked.goal, plan)?;
        let cost = asked.price.as_deref().map(|text| CostSpec::of_flag(text, PRICE)).transpose()?;
        if let Some(cost) = &cost
            && cost.fleet(plan).map_err(|error| error.at(PRICE))?.is_none()
        {
            return Err(Error::usage("no GPU has a price").at(PRICE).hint("add gpu_hour=2.5, or gpu=h200"));
        }
        let (mut tried, mut untried) = (Vec::new(), Vec::new());
        for perturbation in perturbations(plan) {
            match perturbation.plan.check() {
                Ok(()) => tried.push(perturbation),
                Err(error) => untried.push(Untried::of(&perturbation, &error)),
            }
        }
        Ok(Self { plan: plan.clone(), goal, asked, cost, tried, untried, local: Local::default() })
    }

    /// Replays the plan as it is. Who asks here reads the trace once for this and all that is tried; requests
    /// have no names then.
    pub fn replay(&self, observer: Observer<'_>) -> Result<Replayed> {
        self.local.replay(&self.plan, Part::Whole, observer)
    }

    /// The files it reads besides those of the plan.
    pub fn inputs(&self) -> impl Iterator<Item = &Path> {
        self.cost.as_ref().and_then(CostSpec::file).into_iter()
    }

    /// How many replays advice takes.
    pub fn replays(&self) -> usize {
        self.jobs().len()
    }

    fn jobs(&self) -> Vec<Job<'_>> {
        let seeds = spread::further_seeds(&self.plan).into_iter().map(Job::Seed);
        seeds.chain(self.tried.iter().map(Job::Change)).collect()
    }

    /// Tries everything, and holds it against `base`, the replay of the plan. One that was interrupted is
    /// nothing to hold anything against: there is no advice then.
    pub fn advise(&self, base: &Replayed, setting: &Setting<'_>) -> Result<Option<Advice>> {
        if base.outcome.interrupted {
            return Ok(None);
        }
        let base = self.measured(&self.plan, base)?;
        let jobs = self.jobs();
        setting.onlooker.expect(jobs.len(), 0);
        let mut results: Vec<Option<Result<Measured>>> = jobs.iter().map(|_| None).collect();
        let work = |number: usize| self.run(&jobs[number], setting.stop);
        in_parallel(jobs.len(), setting.threads, setting.stop, work, |number, result| {
            setting.onlooker.done();
            results[number] = result;
        });
        let is_partial = setting.stop.load(Ordering::Relaxed);
        let done = results.iter().flatten().count();
        let mut advice = Advice {
            goal: self.goal,
            goals: Goal::of(&self.plan).collect(),
            asked: self.asked.clone(),
            spread: None,
            rows: Vec::new(),
            untried: self.untried.clone(),
            notes: resources::caveats(&self.plan),
            warnings: self.caveats(&self.plan)?,
            is_partial,
            base,
        };
        if is_partial {
            advice.warnings.push(format!("advice: interrupted: {done} of {} replays are done", jobs.len()));
        }
        advice.fill(&self.plan, jobs.iter().zip(results));
        Ok(Some(advice))
    }

    /// Runs one; nothing where it was stopped.
    fn run(&self, job: &Job<'_>, stop: &AtomicBool) -> Option<Result<Measured>> {
        let plan = match job {
            Job::Seed(seed) => &self.plan.with_seed(*seed),
            Job::Change(perturbation) => &perturbation.plan,
        };
        let observer = Observer { watch: &mut Unwatched, stop, keep: Keep::default() };
        match self.local.replay(plan, Part::Whole, observer) {
            Ok(replayed) if replayed.outcome.interrupted => None,
            replayed => Some(replayed.and_then(|replayed| self.measured(plan, &replayed))),
        }
    }

    fn measured(&self, plan: &Plan, run: &Replayed) -> Result<Measured> {
        let fleet = self.cost.as_ref().map_or(Ok(None), |cost| cost.fleet(plan))?;
        Ok(Measured::of_run(run, fleet.as_ref()))
    }

    /// What must be known of the prices.
    fn caveats(&self, plan: &Plan) -> Result<Vec<String>> {
        let Some(cost) = &self.cost else { return Ok(Vec::new()) };
        let gpus = cost.fleet(plan)?.iter().flat_map(crate::sweep::cost::Fleet::gpus).collect();
        Ok(cost.caveats(&gpus).into_iter().chain(cost.gaps(plan)).collect())
    }
}

const PRICE: &str = "--price";

impl Untried {
    fn of(perturbation: &Perturbation, error: &Error) -> Self {
        let why = error.to_string();
        let first = why.lines().next().unwrap_or_default().to_owned();
        Self { what: perturbation.what.clone(), why: first }
    }
}

/// What was tried, and what came of it.
pub struct Advice {
    goal: &'static Goal,
    goals: Vec<&'static Goal>,
    asked: Asked,
    base: Measured,
    /// How far seeds are apart, where there is chance.
    spread: Option<Spread>,
    /// The most valuable first: what there could be more of, then what could be saved.
    rows: Vec<Row>,
    untried: Vec<Untried>,
    /// What its numbers do not mean.
    notes: Vec<String>,
    /// What a reader must know.
    pub warnings: Vec<String>,
    /// Whether it was ended early.
    pub is_partial: bool,
}

impl Advice {
    fn fill<'a>(
        &mut self,
        plan: &Plan,
        results: impl Iterator<Item = (&'a Job<'a>, Option<Result<Measured>>)>,
    ) {
        let (mut seeds, mut tried) = (Vec::new(), Vec::new());
        for (job, result) in results {
            match (job, result) {
                (_, None) => {}
                (Job::Seed(seed), Some(Ok(run))) => seeds.push((*seed, run)),
                (Job::Seed(seed), Some(Err(error))) => {
                    self.warnings.push(format!("advice: seed {seed}: {error}"));
                }
                (Job::Change(perturbation), Some(Ok(run))) => tried.push((*perturbation, run)),
                (Job::Change(perturbation), Some(Err(error))) => {
                    self.untried.push(Untried::of(perturbation, &error));
                }
            }
        }
        self.spread = Spread::of(plan.simulation.seed, &self.base, &seeds);
        let spread = self.spread.as_ref().map_or(0.0, |spread| spread.of_metric(self.goal.name));
        let row = |(perturbation, run)| Row::of(plan, perturbation, (&self.base, run), (self.goal, spread));
        self.rows = tried.into_iter().map(row).collect();
        row::rank(&mut self.rows);
    }

    /// Enters it into the replay's report and warnings.
    pub fn enter(&self, replayed: &mut Replayed) {
        replayed.report["advice"] = self.json();
        replayed.warnings.extend(self.warnings.iter().cloned());
        replayed.report["warnings"] = json!(replayed.warnings);
    }
}
