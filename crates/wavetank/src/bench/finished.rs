//! What a storage benchmark comes to: the report of its trials.

use serde_json::{Map, Value, json};
use wavetank_bench::{Action, Ended, Harness, Outcome, ScaleStep};
use wavetank_model::TierRole;
use wavetank_report::render::storage as render;
use wavetank_report::storage::{LaneSummary, MetricName, TierSummary};
use wavetank_report::{Spread, StorageSummary};

use super::dataset::Dataset;
use super::fio::{Distilled, check_fio_job};
use super::plan::BenchPlan;
use super::run::{Trial, Trials};
use super::share::Share;
use super::validation::Validation;
use super::{trials, warn};

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

/// A number of one trial: its key, and where it comes from.
pub(super) type Number = (&'static str, fn(&StorageSummary) -> f64);

/// What trials are compared by besides their primary metric.
pub(super) const NUMBERS: &[Number] = &[
    ("avg_throughput_tokens_per_sec", |run| run.metric(MetricName::WallClock).value),
    ("tier_storage_read_bandwidth_gbps", |run| run.bandwidth(TierRole::Storage).read_gbps),
    ("tier_storage_write_bandwidth_gbps", |run| run.bandwidth(TierRole::Storage).write_gbps),
    ("end_to_end_p95_ms", |run| run.requests.end_to_end.p95),
    ("end_to_end_p99_ms", |run| run.requests.end_to_end.p99),
    ("storage_read_device_p95_ms", |run| storage(run).map_or(0.0, |tier| tier.reads.device.p95)),
    ("storage_read_device_p99_ms", |run| storage(run).map_or(0.0, |tier| tier.reads.device.p99)),
    ("storage_write_device_p95_ms", |run| storage(run).map_or(0.0, |tier| tier.writes.device.p95)),
    ("storage_write_device_p99_ms", |run| storage(run).map_or(0.0, |tier| tier.writes.device.p99)),
];

fn storage(run: &StorageSummary) -> Option<&TierSummary> {
    run.tier(TierRole::Storage)
}

/// The time at the device of the storage tier.
fn lane(run: &StorageSummary, which: fn(&TierSummary) -> &LaneSummary) -> Spread {
    storage(run).map(|tier| which(tier).device.clone()).unwrap_or_default()
}

/// Everything a report is made of.
pub(super) struct Finished<'a> {
    pub(super) plan: &'a BenchPlan,
    pub(super) dataset: Option<Dataset>,
    pub(super) harness: Harness,
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
        report.insert("trials".to_owned(), self.trials_json(chosen));
        let share = self.plan.rank.map(|rank| Share::of(rank, self.plan, &self.trials));
        report.extend(share.map(|share| ("rank".to_owned(), json!(share))));
        let alone = |at: usize| {
            let mut report = self.json(at, &self.warnings(at));
            report.insert("trial".to_owned(), json!({ "number": at + 1, "of": self.trials.all.len() }));
            Value::Object(report)
        };
        let trial_reports = (0..self.trials.all.len()).map(alone).collect();
        let Trial { summary, outcome, .. } = self.trials.all.swap_remove(chosen);
        let distilled = check_fio_job(self.plan).ok().and_then(|()| Distilled::of(self.plan, &outcome));
        let fio_job = distilled.map(|distilled| distilled.job());
        let report = Value::Object(report);
        Benched { summary, report, trial_reports, warnings, failure, interrupted, fio_job }
    }

    /// What to know about one trial.
    fn warnings(&self, number: usize) -> Vec<String> {
        let trial = &self.trials.all[number];
        let mut warnings = self.plan.warnings.clone();
        warnings.extend(self.dataset.iter().flat_map(|dataset| dataset.notes.clone()));
        warnings.extend(warn::about(self.plan, &trial.summary, &trial.outcome));
        warnings.extend(trial.heating.warnings(number + 1));
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
        let metric = all[chosen].summary.primary_metric().name.title();
        warnings.extend(self.trials.primary().drift(metric));
        let few = all.len() > 1 || self.plan.trials.most > 1;
        if few && (self.trials.whole().len() as u32) < trials::FEWEST {
            warnings.extend(self.advice());
        }
        if let Some(percent) = self.plan.trials.until_ci_percent
            && !self.trials.primary().is_tight(percent)
            && all.len() as u32 == self.plan.trials.most
        {
            let most = self.plan.trials.most;
            warnings
                .push(format!("after {most} trials they do not agree within {percent} %: see --trials-max"));
        }
        warnings
    }

    fn advice(&self) -> Option<String> {
        trials::advice(self.trials.whole().len() as u32, self.plan.run.users)
    }

    fn json(&self, chosen: usize, warnings: &[String]) -> Map<String, Value> {
        let Trial { summary, outcome, traced, .. } = &self.trials.all[chosen];
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
        report
    }

    /// Latencies of all trials that are compared, as if they were one run.
    fn pooled(&self) -> Value {
        let union = |spread: fn(&StorageSummary) -> Spread| {
            let spreads: Vec<Spread> =
                self.trials.whole().iter().map(|trial| spread(&trial.summary)).collect();
            let all = Spread::merged(&spreads);
            let mut keys: Map<String, Value> =
                all.percentiles().into_iter().map(|(name, ms)| (name.to_owned(), json!(ms))).collect();
            keys.insert("mean".to_owned(), json!(all.mean));
            keys.insert("samples".to_owned(), json!(all.count()));
            keys
        };
        json!({
            "end_to_end": union(|run| run.requests.end_to_end.clone()),
            "storage_io": union(|run| run.requests.storage.clone()),
            "storage_read_device": union(|run| lane(run, |tier| &tier.reads)),
            "storage_write_device": union(|run| lane(run, |tier| &tier.writes)),
        })
    }

    fn trials_json(&self, chosen: usize) -> Value {
        let row = |trial: &Trial| {
            let mut row: Map<String, Value> = NUMBERS
                .iter()
                .map(|(key, value)| ((*key).to_owned(), json!(value(&trial.summary))))
                .collect();
            row.insert("primary_metric".to_owned(), json!(trial.summary.primary_metric().value));
            row.insert("requests_completed".to_owned(), json!(trial.summary.requests.completed()));
            row.insert("heat".to_owned(), json!(trial.heating));
            row.insert("page_cache".to_owned(), page_cache(trial.page_cache.as_ref()));
            row.insert("ended".to_owned(), ended(&trial.outcome.ended).0);
            row
        };
        let numbers = NUMBERS.iter().map(|(key, value)| (*key, self.trials.agreement(value)));
        json!({
            "asked_for": self.plan.trials.most,
            "run": self.trials.all.len(),
            "compared": self.trials.whole().len(),
            "reported": chosen + 1,
            "metric": self.trials.all[chosen].summary.primary_metric().name.key(),
            "agreement": self.trials.primary(),
            "agreement_by_number": numbers.collect::<std::collections::BTreeMap<_, _>>(),
            "pooled_latency_ms": self.pooled(),
            "advice": self.advice(),
            "trials": self.trials.all.iter().map(row).collect::<Vec<_>>(),
        })
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
