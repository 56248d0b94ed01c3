//! The reports of all ranks of a benchmark become one: bandwidths add up, latencies are those of the union.
//!
//! `read` takes the reports and refuses what does not belong together, `ranks` compares the ranks with each
//! other, this file puts them together.

mod ranks;
mod read;

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use wavetank_model::{Error, Result};
use wavetank_report::StorageSummary;
use wavetank_report::render::storage as render;
use wavetank_report::storage::Mismatch;

use self::ranks::Overlap;
use self::read::RankReport;
use super::finished::{NUMBERS, SCHEMA_VERSION};
use super::plan::BenchPlan;
use super::share::SharedTrial;
use super::trials::Agreement;
use super::validation::Validation;
use super::warn;

/// What to do where the report of a rank is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Nothing is merged.
    Refused,
    /// The others are merged, and it is said.
    Noted,
}

/// One report of many.
pub struct Merged {
    /// What the ranks did; without a rank.
    pub plan: BenchPlan,
    /// The numbers of the trial that is reported, with those of each rank inside.
    pub summary: StorageSummary,
    /// What each part of it is called, in the same order.
    pub names: Vec<String>,
    /// The whole report.
    pub report: Value,
    /// The report of each trial alone, in order.
    pub trial_reports: Vec<Value>,
    /// What a reader should know before using the numbers.
    pub warnings: Vec<String>,
    /// Whether a rank is missing or did not come to its end.
    pub is_partial: bool,
}

impl Merged {
    /// Whether storage is good enough.
    pub fn passed(&self) -> bool {
        self.summary.assessment().passed()
    }
}

/// Merges the reports that the ranks of one benchmark wrote.
pub fn merge(files: &[PathBuf], missing: Missing) -> Result<Merged> {
    let mut ranks = files.iter().map(|path| read::report(path)).collect::<Result<Vec<_>>>()?;
    let absent = read::check(&mut ranks, missing)?;
    let trials = Trials::of(&ranks)?;
    Ok(Whole { ranks: &ranks, absent, trials }.merged())
}

/// Every trial that all ranks ran, merged.
struct Trials {
    all: Vec<StorageSummary>,
    agreement: Agreement,
    /// The one that is reported: the median of those that came to their end on every rank.
    chosen: usize,
}

impl Trials {
    /// Ranks do not know of each other, so none of them can say which trial to report: that is decided here,
    /// by what all of them did together.
    fn of(ranks: &[RankReport]) -> Result<Self> {
        let count = ranks.iter().map(|rank| rank.share.trials.len()).min().unwrap_or(0);
        let all = (0..count).map(|number| merged_trial(ranks, number)).collect::<Result<Vec<_>>>()?;
        let is_whole = |&number: &usize| ranks.iter().all(|rank| !rank.share.trials[number].partial);
        let whole: Vec<usize> = (0..count).filter(is_whole).collect();
        let whole = if whole.is_empty() { (0..count).collect() } else { whole };
        let value = |&number: &usize| all[number].primary_metric().value;
        let agreement = Agreement::of(&whole.iter().map(value).collect::<Vec<_>>());
        let chosen = whole[agreement.median_trial()];
        Ok(Self { all, agreement, chosen })
    }

    fn json(&self, asked_for: u32) -> Value {
        let row = |summary: &StorageSummary| {
            let numbers = NUMBERS.iter().map(|(key, value)| ((*key).to_owned(), json!(value(summary))));
            let mut row: Map<String, Value> = numbers.collect();
            row.insert("primary_metric".to_owned(), json!(summary.primary_metric().value));
            row.insert("requests_completed".to_owned(), json!(summary.requests.completed()));
            row
        };
        json!({
            "asked_for": asked_for,
            "run": self.all.len(),
            "reported": self.chosen + 1,
            "metric": self.all[self.chosen].primary_metric().name.key(),
            "agreement": self.agreement,
            "trials": self.all.iter().map(row).collect::<Vec<_>>(),
        })
    }
}

fn merged_trial(ranks: &[RankReport], number: usize) -> Result<StorageSummary> {
    let parts = ranks.iter().map(|rank| rank.share.trials[number].summary.clone()).collect();
    StorageSummary::merged(parts).map_err(|mismatch| {
        let Mismatch { part, .. } = mismatch;
        Error::input(format!("{mismatch}: {}", ranks[0].place()))
            .at(ranks[part].place())
            .hint("only ranks of the same benchmark can be merged")
    })
}

/// Everything the report is made of.
struct Whole<'a> {
    ranks: &'a [RankReport],
    /// Ranks whose reports are missing.
    absent: Vec<u32>,
    trials: Trials,
}

impl Whole<'_> {
    fn merged(self) -> Merged {
        let mut plan = self.ranks[0].plan.clone();
        plan.rank = None;
        plan.warnings = self.plan_warnings();
        let (validation, not_judged) = self.validation(&plan);
        let mut warnings = self.warnings(&plan);
        warnings.extend(not_judged);
        let mut report = self.json(&plan, &warnings);
        report.extend(validation.map(|judged| ("validation".to_owned(), judged)));
        let is_partial = self.is_partial(self.trials.chosen);
        let alone = |number: usize| {
            let mut report = self.trial_json(&plan, &warnings, number);
            report.insert("trial".to_owned(), json!({ "number": number + 1, "of": self.trials.all.len() }));
            Value::Object(report)
        };
        let trial_reports = (0..self.trials.all.len()).map(alone).collect();
        let names = self.ranks.iter().map(RankReport::name).collect();
        let Trials { mut all, chosen, .. } = self.trials;
        let summary = all.swap_remove(chosen);
        let report = Value::Object(report);
        Merged { plan, summary, names, report, trial_reports, warnings, is_partial }
    }

    fn summary(&self) -> &StorageSummary {
        &self.trials.all[self.trials.chosen]
    }

    /// What each rank did in the trial that is reported.
    fn chosen(&self) -> impl Iterator<Item = &SharedTrial> {
        self.of_all(self.trials.chosen)
    }

    /// What each rank did in one trial.
    fn of_all(&self, trial: usize) -> impl Iterator<Item = &SharedTrial> {
        self.ranks.iter().map(move |rank| &rank.share.trials[trial])
    }

    /// Whether a rank is missing or did not come to its end.
    fn is_partial(&self, trial: usize) -> bool {
        !self.absent.is_empty() || self.of_all(trial).any(|trial| trial.partial)
    }

    /// What was said of the plan by any rank, once.
    fn plan_warnings(&self) -> Vec<String> {
        let mut said: Vec<String> = Vec::new();
        for warning in self.ranks.iter().flat_map(|rank| &rank.plan.warnings) {
            if !said.contains(warning) {
                said.push(warning.clone());
            }
        }
        said
    }

    fn warnings(&self, plan: &BenchPlan) -> Vec<String> {
        let (summary, ranks) = (self.summary(), self.ranks);
        let mut warnings = plan.warnings.clone();
        warnings.extend(warn::about_numbers(plan, summary));
        if plan.run.scaling.is_some() {
            warnings.push("what each autoscaler did is in the ranks' reports".to_owned());
        }
        let lost: u64 = self.chosen().map(|trial| trial.lost_events).sum();
        if lost > 0 {
            warnings.push(format!("{lost} events of the store were lost: its numbers are too small"));
        }
        warnings.extend(
            self.absent
                .iter()
                .map(|number| format!("rank {number} is missing: what it moved is not in these numbers")),
        );
        for (rank, trial) in ranks.iter().zip(self.chosen()) {
            if trial.partial {
                let ended = trial.ended.as_str().unwrap_or_default();
                warnings.push(format!("{} did not come to its end: {ended}", rank.name()));
            }
            let drift = trial.summary.drift().map(|drift| drift.sentence());
            warnings.extend(drift.map(|sentence| format!("{}: {sentence}", rank.name())));
        }
        warnings.extend(read::unlike_machines(ranks));
        warnings.extend(self.unlike_trials());
        warnings.extend(Overlap::of(summary).and_then(|overlap| overlap.warning()));
        warnings.extend(ranks::stragglers(ranks, summary).into_iter().map(|(_, sentence)| sentence));
        warnings
    }

    fn unlike_trials(&self) -> Option<String> {
        let most = self.ranks.iter().map(|rank| rank.share.trials.len()).max().unwrap_or(0);
        let merged = self.trials.all.len();
        (most > merged).then(|| {
            format!("a rank ran {most} trials and another {merged}: only those that all ranks ran are merged")
        })
    }

    /// The hit rate of all ranks against the recorded one, where its file can be read here.
    fn validation(&self, plan: &BenchPlan) -> (Option<Value>, Option<String>) {
        let touched = self.summary().touches.all();
        let hit_rate = (touched.lookups() > 0).then(|| touched.hit_rate());
        match plan.validation_trace.as_deref().map(Validation::read) {
            None => (None, None),
            Some(Ok(validation)) => (Some(validation.judge(hit_rate)), None),
            Some(Err(error)) => (None, Some(format!("the hit rate is not compared: {error}"))),
        }
    }

    /// The report of all trials: that of the median one, and what they agree on.
    fn json(&self, plan: &BenchPlan, warnings: &[String]) -> Map<String, Value> {
        let mut report = self.trial_json(plan, warnings, self.trials.chosen);
        report.insert("trials".to_owned(), self.trials.json(plan.trials.most));
        report.insert("merged".to_owned(), self.merged_json());
        report
    }

    fn trial_json(&self, plan: &BenchPlan, warnings: &[String], number: usize) -> Map<String, Value> {
        let mut report = render::json(&self.trials.all[number]);
        if let Some(Value::Object(keys)) = report.get_mut("accounting") {
            keys.insert("kernel".to_owned(), added(self.of_all(number).map(|trial| &trial.kernel)));
        }
        let seconds = |of: fn(&SharedTrial) -> f64| self.of_all(number).map(of).collect::<Vec<_>>();
        let ended = self.of_all(number).find(|trial| trial.partial).or_else(|| self.of_all(number).next());
        let ours = json!({
            "schema_version": SCHEMA_VERSION,
            "plan": plan,
            "warnings": warnings,
            "ended": ended.map(|trial| &trial.ended),
            "partial": self.is_partial(number),
            "filled": added(self.ranks.iter().map(|rank| &rank.filled)),
            "lost_events": self.of_all(number).map(|trial| trial.lost_events).sum::<u64>(),
            "wall": {
                "run_seconds": seconds(|trial| trial.run_seconds).into_iter().fold(0.0, f64::max),
                "cpu_seconds": seconds(|trial| trial.cpu_seconds).iter().sum::<f64>(),
            },
        });
        if let Value::Object(ours) = ours {
            report.extend(ours);
        }
        report
    }

    fn merged_json(&self) -> Value {
        let rows = self.ranks.iter().zip(self.chosen()).map(|(rank, trial)| ranks::row(rank, trial));
        let stragglers = ranks::stragglers(self.ranks, self.summary());
        json!({
            "ranks": rows.collect::<Vec<_>>(),
            "of": self.ranks[0].share.rank.of,
            "missing": self.absent,
            "overlap": Overlap::of(self.summary()),
            "stragglers": stragglers.into_iter().map(|(number, _)| number).collect::<Vec<_>>(),
        })
    }
}

/// The sums of the numbers in nested objects of one shape; nothing where one has none.
fn added<'a>(values: impl IntoIterator<Item = &'a Value>) -> Value {
    let plus = |sum: Value, value: &Value| match (sum, value) {
        (Value::Object(sum), Value::Object(more)) => {
            let key = |(key, value): (String, Value)| {
                let both = added([&value, more.get(&key).unwrap_or(&Value::Null)]);
                (key, both)
            };
            Value::Object(sum.into_iter().map(key).collect())
        }
        (Value::Number(sum), Value::Number(more)) => match (sum.as_u64(), more.as_u64()) {
            (Some(sum), Some(more)) => json!(sum.saturating_add(more)),
            _ => json!(sum.as_f64().unwrap_or(0.0) + more.as_f64().unwrap_or(0.0)),
        },
        _ => Value::Null,
    };
    let mut values = values.into_iter();
    let first = values.next().cloned().unwrap_or(Value::Null);
    values.fold(first, plus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_one_shape_add_up() {
        let parts = [json!({ "a": { "b": 1, "c": 0.5 } }), json!({ "a": { "b": 2, "c": 1.0 } })];
        assert_eq!(added(&parts), json!({ "a": { "b": 3, "c": 1.5 } }));
        assert_eq!(added([&json!({ "a": 1 }), &Value::Null]), Value::Null);
        assert_eq!(added([]), Value::Null);
    }
}
