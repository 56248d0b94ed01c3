//! A storage benchmark from its plan to its report.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value, json};
use wavetank_bench::{Action, Ended, Feed, Harness, Observer, Outcome, ScaleStep, Time, Watch};
use wavetank_model::{Error, Result, TierRole};
use wavetank_report::render::storage as render;
use wavetank_report::storage::{AtEnd, ClassTarget, Clock, GIB, MetricName, Setting, TierUse};
use wavetank_report::{Storage, StorageSummary};

use super::dataset::{self, Dataset};
use super::iolog::IoLog;
use super::plan::BenchPlan;
use super::rank::{self, OwnFolder};
use super::share::{Share, SharedTrial, Span};
use super::stamp::Stamped;
use super::trials::Agreement;
use super::validation::Validation;
use super::warn;

/// The version of the report's layout.
pub(super) const SCHEMA_VERSION: u32 = 1;

/// What a caller may watch and influence while a benchmark runs.
pub struct BenchObserver<'a> {
    /// Shows how it goes.
    pub watch: &'a mut (dyn Watch + Send),
    /// Raised to end the run with what it has.
    pub stop: &'a AtomicBool,
    /// Told when a trial begins, from 1.
    pub trial: &'a mut dyn FnMut(u32),
}

/// A finished benchmark.
pub struct Benched {
    /// The numbers of the trial that is reported.
    pub summary: StorageSummary,
    /// The whole report.
    pub report: Value,
    /// What a reader should know before using the numbers.
    pub warnings: Vec<String>,
    /// Why it ended, where that is not as planned.
    pub failure: Option<String>,
    /// Whether someone ended it.
    pub interrupted: bool,
}

impl Benched {
    /// Whether storage is good enough.
    pub fn passed(&self) -> bool {
        self.summary.assessment().passed()
    }
}

/// One run of the plan.
struct Trial {
    summary: StorageSummary,
    outcome: Outcome,
}

impl Trial {
    /// Whether it went to its end.
    fn is_whole(&self) -> bool {
        matches!(self.outcome.ended, Ended::Duration | Ended::Drained | Ended::PeakFound)
    }
}

/// What trials came to.
struct Trials {
    /// At least one.
    all: Vec<Trial>,
    /// Why there are no more of them, if that was no decision of ours.
    error: Option<Error>,
}

impl Trials {
    /// Those that went to their end; all of them if none did.
    fn whole(&self) -> Vec<usize> {
        let whole: Vec<usize> = (0..self.all.len()).filter(|&at| self.all[at].is_whole()).collect();
        if whole.is_empty() { (0..self.all.len()).collect() } else { whole }
    }

    /// What they agree on, and the one that is reported: the median of the whole ones.
    fn agreement(&self) -> (Agreement, usize) {
        let whole = self.whole();
        let value = |&at: &usize| self.all[at].summary.primary_metric().value;
        let agreement = Agreement::of(&whole.iter().map(value).collect::<Vec<_>>());
        let chosen = whole[agreement.median_trial()];
        (agreement, chosen)
    }
}

/// Runs `plan`; every operation is written to `log`, if there is one. Nothing of ours stays in the cache
/// directory, also after an error, unless the plan says so.
pub fn bench(plan: &BenchPlan, observer: BenchObserver<'_>, log: Option<&Path>) -> Result<Benched> {
    let validation = plan.validation_trace.as_deref().map(Validation::read).transpose()?;
    let dataset = dataset::read(plan)?;
    let harness = Harness::measure(&plan.run)?;
    let folder = plan.temporary_cache.then(temporary).transpose()?;
    let mut run = plan.own_run();
    if let Some(folder) = &folder {
        let storage = run.tiers.iter_mut().find(|tier| tier.role == TierRole::Storage);
        let storage = storage.expect("a temporary directory is for the storage tier");
        storage.location = folder.path().to_string_lossy().into_owned();
    }
    let own_folder = OwnFolder::before(plan, &run);
    let trials = run_trials(plan, &run, dataset.as_ref(), observer, log);
    let cleaned = wavetank_bench::clean(&run);
    own_folder.remove();
    let trials = trials?;
    if trials.error.is_none() {
        cleaned?;
    }
    let (agreement, chosen) = trials.agreement();
    let finished = Finished { plan, dataset, harness, validation, agreement, chosen, trials };
    Ok(finished.report())
}

/// Runs trials until there are enough. An error after the first leaves those before it.
fn run_trials(
    plan: &BenchPlan,
    run: &wavetank_bench::Plan,
    dataset: Option<&Dataset>,
    observer: BenchObserver<'_>,
    log: Option<&Path>,
) -> Result<Trials> {
    let BenchObserver { watch, stop, trial } = observer;
    let mut trials = Trials { all: Vec::new(), error: None };
    loop {
        trial(trials.all.len() as u32 + 1);
        let mut sink = Stamped::new(Storage::new(&setting(plan)));
        let seen = Observer { sink: &mut sink, watch: &mut *watch, stop };
        let outcome = match run_once(run, dataset, seen, log) {
            Ok(outcome) => outcome,
            Err(error) if trials.all.is_empty() => return Err(error),
            Err(error) => return Ok(Trials { error: Some(error), ..trials }),
        };
        let tiers = outcome.usage.iter().map(|usage| TierUse { bytes: usage.bytes, entries: usage.entries });
        let summary = sink.summary(AtEnd { tiers: tiers.collect() });
        trials.all.push(Trial { summary, outcome });
        let is_last = trials.all.len() as u32 >= plan.trials || stop.load(Ordering::Relaxed);
        let went_wrong = !trials.all.last().is_some_and(Trial::is_whole);
        if is_last || went_wrong || trials.agreement().0.is_tight(plan.trials_ci) {
            return Ok(trials);
        }
    }
}

fn run_once(
    run: &wavetank_bench::Plan,
    dataset: Option<&Dataset>,
    observer: Observer<'_>,
    log: Option<&Path>,
) -> Result<Outcome> {
    let recording = dataset.map(|dataset| &dataset.recording);
    let Some(path) = log else { return wavetank_bench::run(run, recording, observer, None) };
    let mut log = IoLog::create(path)?;
    let mut write = |row: &wavetank_bench::Logged| log.write(row);
    let outcome = wavetank_bench::run(run, recording, observer, Some(&mut write))?;
    log.finish()?;
    Ok(outcome)
}

/// A directory for one benchmark, gone when it is dropped.
pub(super) fn temporary() -> Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix("wavetank_bench_").tempdir().map_err(|error| {
        Error::usage(format!("cannot make a temporary directory: {error}")).hint("give --cache-dir")
    })
}

fn setting(plan: &BenchPlan) -> Setting {
    let run = &plan.run;
    Setting {
        tiers: run.tiers.iter().map(|tier| tier.role).collect(),
        bytes_per_token: run.bytes_per_token,
        targets: run.targets.map(|target| ClassTarget {
            p95_ms: target.target_latency_p95_ms,
            p99_ms: target.target_latency_p99_ms,
            p999_ms: target.target_latency_p999_ms,
            p9999_ms: target.target_latency_p9999_ms,
        }),
        cpu_mem_bytes: (plan.cpu_mem_gb * GIB) as u64,
        generation_ns_per_token: run.pace.0.0,
        seed: plan.seed(),
        profile: plan.profile,
        criteria: plan.criteria,
        clock: match (run.time, plan.moves_bytes()) {
            (Time::Wall, _) => Clock::Wall,
            (Time::Virtual, true) => Clock::Virtual,
            (Time::Virtual, false) => Clock::VirtualLogged,
        },
        counted: run.max_requests.is_some() || matches!(run.feed, Feed::Recording { cycles: Some(_), .. }),
        scaled: run.scaling.is_some(),
    }
}

/// Everything a report is made of.
struct Finished<'a> {
    plan: &'a BenchPlan,
    dataset: Option<Dataset>,
    harness: Harness,
    validation: Option<Validation>,
    agreement: Agreement,
    /// The trial that is reported.
    chosen: usize,
    trials: Trials,
}

impl Finished<'_> {
    fn report(mut self) -> Benched {
        let Trial { summary, outcome } = &self.trials.all[self.chosen];
        let mut warnings = self.plan.warnings.clone();
        warnings.extend(self.dataset.iter().flat_map(|dataset| dataset.notes.clone()));
        warnings.extend(warn::about(self.plan, summary, outcome));
        let last = self.trials.all.last().map(|trial| trial.outcome.ended.clone());
        let interrupted = last == Some(Ended::Interrupted);
        if interrupted && outcome.ended != Ended::Interrupted {
            warnings.push("interrupted: the numbers are those of the trials that had ended".to_owned());
        }
        let failure = match (&self.trials.error, last) {
            (Some(error), _) => Some(error.to_string()),
            (None, Some(Ended::Failed(why))) => Some(why),
            _ => None,
        };
        let report = Value::Object(self.json(self.chosen, &warnings));
        let Trial { summary, .. } = self.trials.all.swap_remove(self.chosen);
        Benched { summary, report, warnings, failure, interrupted }
    }

    fn json(&self, chosen: usize, warnings: &[String]) -> Map<String, Value> {
        let Trial { summary, outcome } = &self.trials.all[chosen];
        let mut report = render::json(summary);
        let scaling = scaling(self.plan, outcome);
        if let Some(Value::Object(keys)) = report.get_mut("summary") {
            keys.extend(scaling.clone());
        }
        if let Some(Value::Object(keys)) = report.get_mut("accounting") {
            keys.insert("kernel".to_owned(), warn::kernel(self.plan, summary, outcome));
        }
        report.extend(scaling);
        let touched = summary.touches.all();
        let hit_rate = (touched.lookups() > 0).then(|| touched.hit_rate());
        if let Some(validation) = &self.validation {
            report.insert("validation".to_owned(), validation.judge(hit_rate));
        }
        let (ended, partial) = ended(&outcome.ended);
        let ours = json!({
            "schema_version": SCHEMA_VERSION,
            "plan": self.plan,
            "warnings": warnings,
            "ended": ended,
            "partial": partial,
            "filled": outcome.filled,
            "harness": self.harness,
            "notes": outcome.notes,
            "lost_events": outcome.lost_events,
            "trials": self.trials_json(chosen),
            "wall": { "run_seconds": outcome.wall_seconds, "cpu_seconds": outcome.cpu_seconds },
        });
        if let Value::Object(ours) = ours {
            report.extend(ours);
        }
        report.extend(self.share(chosen).map(|share| ("rank".to_owned(), json!(share))));
        report
    }

    /// What is merged with the reports of the other ranks, if there are any.
    fn share(&self, chosen: usize) -> Option<Share> {
        let trial = |trial: &Trial| SharedTrial {
            ended: ended(&trial.outcome.ended).0,
            partial: ended(&trial.outcome.ended).1,
            kernel: warn::kernel(self.plan, &trial.summary, &trial.outcome),
            lost_events: trial.outcome.lost_events,
            run_seconds: trial.outcome.wall_seconds,
            cpu_seconds: trial.outcome.cpu_seconds,
            summary: trial.summary.clone(),
        };
        Some(Share {
            rank: self.plan.rank?,
            host: rank::host(),
            seed: self.plan.seed(),
            window: Span::of(&self.trials.all[chosen].summary),
            trials: self.trials.all.iter().map(trial).collect(),
        })
    }

    fn trials_json(&self, chosen: usize) -> Value {
        let row = |(number, trial): (usize, &Trial)| {
            let summary = &trial.summary;
            let storage = summary.bandwidth(TierRole::Storage);
            json!({
                "primary_metric": summary.primary_metric().value,
                "requests_completed": summary.requests.completed(),
                "avg_throughput_tokens_per_sec": summary.metric(MetricName::WallClock).value,
                "tier_storage_read_bandwidth_gbps": storage.read_gbps,
                "tier_storage_write_bandwidth_gbps": storage.write_gbps,
                "end_to_end_p95_ms": summary.requests.end_to_end.p95,
                "files": if number == 0 { "new" } else { "used again" },
                "ended": ended(&trial.outcome.ended).0,
            })
        };
        json!({
            "asked_for": self.plan.trials,
            "run": self.trials.all.len(),
            "reported": chosen + 1,
            "metric": self.trials.all[chosen].summary.primary_metric().name.key(),
            "agreement": self.agreement,
            "trials": self.trials.all.iter().enumerate().map(row).collect::<Vec<_>>(),
        })
    }
}

fn ended(ended: &Ended) -> (Value, bool) {
    match ended {
        Ended::Duration => (json!("duration"), false),
        Ended::Drained => (json!("drained"), false),
        Ended::PeakFound => (json!("peak capacity found"), false),
        Ended::Interrupted => (json!("interrupted"), true),
        Ended::Failed(why) => (json!(format!("failed: {why}")), true),
    }
}

/// The reference's keys about the autoscaler.
fn scaling(plan: &BenchPlan, outcome: &Outcome) -> Map<String, Value> {
    let steps = &outcome.steps;
    let summary = steps.last().map(|last| {
        let changed = steps.windows(2).filter(|pair| pair[0].users != pair[1].users).count();
        let first = usize::from(steps[0].users != plan.run.users);
        let within = |step: &&ScaleStep| {
            let level = step.saturation_level.zip(plan.run.scaling);
            level.is_some_and(|(level, scaling)| scaling.is_within(level))
        };
        json!({
            // The most users that were measured and kept within the target; the last step's were not yet.
            "most_users_within_target": steps.iter().filter(within).map(|step| step.measured_users).max(),
            "settled": steps.iter().rev().take(3).all(|step| step.action == Action::Hold),
            "initial_users": plan.run.users,
            "final_users": last.users,
            "total_scale_events": changed + first,
            "peak_user_count": last.peak_users,
            "peak_throughput_tokens_per_sec": last.peak_throughput,
            "reason": last.reason,
        })
    });
    [("autoscaling_stats".to_owned(), json!(steps)), ("autoscaling_summary".to_owned(), json!(summary))]
        .into_iter()
        .collect()
}
