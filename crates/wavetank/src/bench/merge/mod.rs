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

pub(super) use self::ranks::ENOUGH;
use self::ranks::Overlap;
use self::read::{Absent, RankReport};
use super::compared::Compared;
use super::finished::SCHEMA_VERSION;
use super::plan::BenchPlan;
use super::share::SharedTrial;
use super::suite::Hardware;
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
    /// The machines of the ranks, as far as they said.
    pub systems: Vec<Hardware>,
    /// Whether a rank is missing, did not come to its end in a trial, or ran fewer than were asked for.
    pub is_partial: bool,
    /// Whether the ranks measured at the same time in every trial, so that bandwidths can be added up.
    pub is_at_a_time: bool,
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
    let trials = merged_trials(&ranks)?;
    Ok(Whole { ranks: &ranks, absent, trials }.merged())
}

/// Every trial that all ranks ran, merged; ranks do not know of each other, so that none of them can say
/// which one to report.
fn merged_trials(ranks: &[RankReport]) -> Result<Vec<StorageSummary>> {
    let count = ranks.iter().map(|rank| rank.share.trials.len()).min().unwrap_or(0);
    (0..count).map(|number| merged_trial(ranks, number)).collect()
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
    absent: Absent,
    /// In order.
    trials: Vec<StorageSummary>,
}

impl Whole<'_> {
    fn merged(mut self) -> Merged {
        let mut plan = self.ranks[0].plan.clone();
        plan.rank = None;
        plan.warnings = self.plan_warnings();
        let compared = self.compared(&plan);
        let chosen = compared.reported();
        let (validation, not_judged) = self.validation(&plan, chosen);
        let mut warnings = self.warnings(&plan, chosen);
        warnings.extend(compared.warnings());
        warnings.extend(self.unlike_trials());
        warnings.extend(not_judged);
        let mut report = self.json(&plan, &warnings, chosen);
        report.insert("trials".to_owned(), compared.json((0..).map(|number| self.row(number))));
        report.extend(validation.map(|judged| ("validation".to_owned(), judged)));
        let count = self.trials.len();
        let alone = |number: usize| {
            let mut report = self.json(&plan, &self.warnings(&plan, number), number);
            report.insert("trial".to_owned(), json!({ "number": number + 1, "of": count }));
            Value::Object(report)
        };
        let trial_reports = (0..count).map(alone).collect();
        // A rank that was ended between two trials has only whole ones, and fewer of them.
        let is_short = count < plan.trials.most as usize;
        let is_partial = is_short || (0..count).any(|number| self.is_partial(number));
        let is_at_a_time = self.trials.iter().filter_map(Overlap::of).all(|overlap| overlap.is_enough());
        let names = self.ranks.iter().map(RankReport::name).collect();
        let systems = self.ranks.iter().filter_map(|rank| rank.share.hardware.clone()).collect();
        let summary = self.trials.swap_remove(chosen);
        let report = Value::Object(report);
        Merged { plan, summary, names, systems, report, trial_reports, warnings, is_partial, is_at_a_time }
    }

    fn compared<'a>(&'a self, plan: &'a BenchPlan) -> Compared<'a> {
        let is_whole = |number: usize| self.of_all(number).all(|trial| !trial.partial);
        Compared::of(plan, self.trials.iter().enumerate().map(|(number, run)| (run, is_whole(number))))
    }

    /// What each rank did in one trial.
    fn of_all(&self, trial: usize) -> impl Iterator<Item = &SharedTrial> {
        self.ranks.iter().map(move |rank| &rank.share.trials[trial])
    }

    /// Why a trial ended: that of the first rank that did not come to its end, or of any.
    fn ended(&self, trial: usize) -> Option<&Value> {
        let ended = self.of_all(trial).find(|trial| trial.partial).or_else(|| self.of_all(trial).next());
        ended.map(|trial| &trial.ended)
    }

    /// What the row of a trial says besides its numbers.
    fn row(&self, trial: usize) -> Map<String, Value> {
        [("ended".to_owned(), json!(self.ended(trial)))].into_iter().collect()
    }

    /// Whether a rank is missing or did not come to its end.
    fn is_partial(&self, trial: usize) -> bool {
        self.absent.count > 0 || self.of_all(trial).any(|trial| trial.partial)
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

    /// What to know about one trial.
    fn warnings(&self, plan: &BenchPlan, number: usize) -> Vec<String> {
        let (summary, ranks) = (&self.trials[number], self.ranks);
        let mut warnings = plan.warnings.clone();
        warnings.extend(warn::about_numbers(plan, summary));
        if plan.run.scaling.is_some() {
            warnings.push("what each autoscaler did is in the ranks' reports".to_owned());
        }
        warnings.extend(warn::lost(self.lost(number)));
        warnings.extend(self.absent.warning());
        for (rank, trial) in ranks.iter().zip(self.of_all(number)) {
            if trial.partial {
                let ended = trial.ended.as_str().unwrap_or_default();
                warnings.push(format!("{} did not come to its end: {ended}", rank.name()));
            }
            let drift = trial.summary.drift().map(|drift| drift.sentence());
            let own = trial.warnings.iter().cloned().chain(drift);
            warnings.extend(own.map(|sentence| format!("{}: {sentence}", rank.name())));
        }
        warnings.extend(read::unlike_machines(ranks));
        warnings.extend(Overlap::of(summary).and_then(|overlap| overlap.warning()));
        warnings.extend(ranks::stragglers(ranks, summary).into_iter().map(|(_, sentence)| sentence));
        warnings
    }

    /// Events that all ranks lost.
    fn lost(&self, trial: usize) -> u64 {
        self.of_all(trial).fold(0, |sum, trial| sum.saturating_add(trial.lost_events))
    }

    fn unlike_trials(&self) -> Option<String> {
        let most = self.ranks.iter().map(|rank| rank.share.trials.len()).max().unwrap_or(0);
        let merged = self.trials.len();
        (most > merged).then(|| {
            format!("a rank ran {most} trials and another {merged}: only those that all ranks ran are merged")
        })
    }

    /// The hit rate of all ranks against the recorded one, where its file can be read here.
    fn validation(&self, plan: &BenchPlan, chosen: usize) -> (Option<Value>, Option<String>) {
        let touched = self.trials[chosen].touches.all();
        let hit_rate = (touched.lookups() > 0).then(|| touched.hit_rate());
        match plan.validation_trace.as_deref().map(Validation::read) {
            None => (None, None),
            Some(Ok(validation)) => (Some(validation.judge(hit_rate)), None),
            Some(Err(error)) => (None, Some(format!("the hit rate is not compared: {error}"))),
        }
    }

    /// The report of one trial.
    fn json(&self, plan: &BenchPlan, warnings: &[String], number: usize) -> Map<String, Value> {
        let mut report = render::json(&self.trials[number]);
        if let Some(Value::Object(keys)) = report.get_mut("accounting") {
            keys.insert("kernel".to_owned(), added(self.of_all(number).map(|trial| &trial.kernel)));
        }
        let seconds = |of: fn(&SharedTrial) -> f64| self.of_all(number).map(of).collect::<Vec<_>>();
        let ours = json!({
            "schema_version": SCHEMA_VERSION,
            "plan": plan,
            "warnings": warnings,
            "ended": self.ended(number),
            "partial": self.is_partial(number),
            "filled": added(self.ranks.iter().map(|rank| &rank.filled)),
            "lost_events": self.lost(number),
            "merged": self.merged_json(number),
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

    fn merged_json(&self, number: usize) -> Value {
        let summary = &self.trials[number];
        let rows = self.ranks.iter().zip(self.of_all(number)).map(|(rank, trial)| ranks::row(rank, trial));
        let stragglers = ranks::stragglers(self.ranks, summary);
        json!({
            "ranks": rows.collect::<Vec<_>>(),
            "of": self.ranks[0].share.rank.of,
            "missing": self.absent.first,
            "missing_count": self.absent.count,
            "overlap": Overlap::of(summary),
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
