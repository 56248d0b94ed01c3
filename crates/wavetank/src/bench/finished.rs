//! What a storage benchmark comes to: the report of its trials.

use serde_json::{Map, Value, json};
use wavetank_bench::{Action, Ended, Harness, Outcome, ScaleStep};
use wavetank_report::StorageSummary;
use wavetank_report::render::storage as render;

use super::compared::Compared;
use super::dataset::Dataset;
use super::fio::{Distilled, check_fio_job};
use super::plan::BenchPlan;
use super::run::{Trial, Trials};
use super::share::Share;
use super::tape::RecordedCalls;
use super::validation::Validation;
use super::warn;

/// The version of the report's layout.
pub(super) const SCHEMA_VERSION: u32 = 1;

/// A finished benchmark.
pub struct Benched {
    /// The numbers of the trial that is reported.
    pub summary: StorageSummary,
    /// The whole report.
    pub report: Value,
    /// The report of each trial alone, in order.
    pub trial_reports: Vec<Value>,
    /// What a reader should know before using the numbers.
    pub warnings: Vec<String>,
    /// What did not go as planned, though there are numbers.
    pub failure: Option<String>,
    /// Whether someone ended it.
    pub interrupted: bool,
    /// The calls of each trial, where they were recorded.
    pub recordings: Vec<RecordedCalls>,
    /// What went to storage, as a job for fio; absent where [`check_fio_job`](super::check_fio_job) says so,
    /// or nothing went there.
    pub fio_job: Option<String>,
}

impl Benched {
    /// Whether storage is good enough.
    pub fn passed(&self) -> bool {
        self.summary.assessment().passed()
    }
}

/// Everything a report is made of.
pub(super) struct Finished<'a> {
    pub(super) plan: &'a BenchPlan,
    pub(super) dataset: Option<Dataset>,
    /// Absent where nothing is driven.
    pub(super) harness: Option<Harness>,
    pub(super) validation: Option<Validation>,
    pub(super) trials: Trials,
}

impl Finished<'_> {
    pub(super) fn report(mut self) -> Benched {
        let chosen = self.trials.reported();
        let last = self.trials.all.last().map(|trial| trial.outcome.ended.clone());
        let interrupted = self.trials.interrupted;
        let failed = match last {
            Some(Ended::Failed(why)) => Some(why),
            _ => None,
        };
        let failures: Vec<String> = failed.into_iter().chain(self.trials.trouble.clone()).collect();
        let failure = (!failures.is_empty()).then(|| failures.join("; "));
        let mut warnings = self.warnings(chosen);
        warnings.extend(self.warnings_of_trials(chosen));
        let mut report = self.json(chosen, &warnings);
        report.insert("trials".to_owned(), self.trials_json());
        let share = self.plan.rank.map(|rank| Share::of(rank, self.plan, &self.trials));
        report.extend(share.map(|share| ("rank".to_owned(), json!(share))));
        let alone = |at: usize| {
            let mut report = self.json(at, &self.warnings(at));
            report.insert("trial".to_owned(), json!({ "number": at + 1, "of": self.trials.all.len() }));
            Value::Object(report)
        };
        let trial_reports = (0..self.trials.all.len()).map(alone).collect();
        let recordings = self.trials.all.iter().filter_map(|trial| trial.recording.clone()).collect();
        let Trial { summary, outcome, .. } = self.trials.all.swap_remove(chosen);
        let distilled = check_fio_job(self.plan).ok().and_then(|()| Distilled::of(self.plan, &outcome));
        let fio_job = distilled.map(|distilled| distilled.job());
        let report = Value::Object(report);
        Benched { summary, report, trial_reports, warnings, failure, interrupted, recordings, fio_job }
    }

    /// What to know about one trial.
    fn warnings(&self, number: usize) -> Vec<String> {
        let trial = &self.trials.all[number];
        let mut warnings = self.plan.warnings.clone();
        warnings.extend(self.dataset.iter().flat_map(|dataset| dataset.notes.clone()));
        warnings.extend(warn::about(self.plan, &trial.summary, &trial.outcome));
        warnings.extend(trial.heating.warnings(number + 1));
        warnings.extend(trial.recording.iter().flat_map(RecordedCalls::warnings));
        warnings.extend(trial.traced.iter().flat_map(|traced| traced.warnings.clone()));
        if let Some(Err(why)) = &trial.page_cache {
            warnings.push(format!("the page cache could not be emptied ({why}): it takes the superuser"));
        }
        warnings
    }

    /// What to know about all of them together.
    fn warnings_of_trials(&self, chosen: usize) -> Vec<String> {
        let all = &self.trials.all;
        let mut warnings = self.trials.trouble.clone();
        if self.trials.interrupted && all[chosen].outcome.ended != Ended::Interrupted {
            warnings.push("interrupted: the numbers are those of the trials that had ended".to_owned());
        }
        let others = all.iter().enumerate().filter(|(number, _)| *number != chosen);
        warnings.extend(others.flat_map(|(number, trial)| trial.heating.warnings(number + 1)));
        warnings.extend(self.compared().warnings());
        warnings
    }

    fn json(&self, chosen: usize, warnings: &[String]) -> Map<String, Value> {
        let Trial { summary, outcome, traced, recording, .. } = &self.trials.all[chosen];
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
            "block_layer": {
                "sent": Distilled::of(self.plan, outcome).map(|distilled| distilled.json()),
                "traced": traced.as_ref().map(|traced| &traced.json),
            },
            "wall": { "run_seconds": outcome.wall_seconds, "cpu_seconds": outcome.cpu_seconds },
        });
        if let Value::Object(ours) = ours {
            report.extend(ours);
        }
        report.extend(recording.as_ref().map(|recording| ("recording".to_owned(), json!(recording))));
        report
    }

    fn trials_json(&self) -> Value {
        let row = |trial: &Trial| {
            let row = json!({
                "heat": trial.heating,
                "page_cache": page_cache(trial.page_cache.as_ref()),
                "ended": ended(&trial.outcome.ended).0,
            });
            let Value::Object(row) = row else { unreachable!("the literal is an object") };
            row
        };
        self.compared().json(self.trials.all.iter().map(row))
    }

    fn compared(&self) -> Compared<'_> {
        let trials = self.trials.all.iter();
        Compared::of(self.plan, trials.map(|trial| (&trial.summary, !ended(&trial.outcome.ended).1)))
    }
}

fn page_cache(dropped: Option<&Result<(), String>>) -> Value {
    match dropped {
        None => Value::Null,
        Some(Ok(())) => json!("emptied"),
        Some(Err(why)) => json!(format!("not emptied: {why}")),
    }
}

pub(super) fn ended(ended: &Ended) -> (Value, bool) {
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
