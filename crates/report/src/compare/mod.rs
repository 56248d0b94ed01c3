//! Results side by side: what changed, by how much, and whether it is more than the spread of repeats.
//!
//! `formats` turns what benchmarks write into our metrics, `side` reads files of them; `limits` judge, by
//! `condition` and `tolerance`.

mod condition;
pub mod formats;
mod limits;
mod side;
#[cfg(test)]
mod tests;
mod tolerance;

use serde_json::{Value, json};
use wavetank_model::{Error, Result};

pub use limits::{Judged, Limits};
pub use side::{Side, Trials};
pub use tolerance::{Failure, Verdict, WATCHED};

/// One metric of both sides.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its key in the report.
    pub metric: String,
    /// The first side.
    pub before: Trials,
    /// The second side.
    pub after: Trials,
}

impl Row {
    /// How much the mean changed.
    pub fn change(&self) -> f64 {
        self.after.mean() - self.before.mean()
    }

    /// The change relative to the first side; without a base there is none.
    pub fn relative(&self) -> Option<f64> {
        let before = self.before.mean();
        if before == 0.0 { None } else { Some(self.change() / before) }
    }

    /// Whether the change is no larger than the spread of repeats. Single runs have no spread to judge by.
    pub(crate) fn is_noise(&self) -> bool {
        let repeated = self.before.count() > 1 || self.after.count() > 1;
        repeated
            && self.change() != 0.0
            && self.change().abs() <= self.before.spread().max(self.after.spread())
    }

    fn json(&self) -> Value {
        json!({
            "metric": self.metric,
            "before": self.before.mean(),
            "after": self.after.mean(),
            "change": self.change(),
            "relative": self.relative(),
            "is_noise": self.is_noise(),
        })
    }
}

/// What a side is.
#[derive(Clone, Debug)]
pub struct Label {
    /// Where it came from.
    pub name: String,
    /// A row of [`formats::ALL`].
    pub format: &'static str,
    /// How many runs it is made of.
    pub runs: usize,
    /// What to know about its numbers.
    pub remarks: Vec<String>,
    /// Metrics that the other side lacks.
    pub alone: Vec<String>,
}

impl Label {
    fn of(side: &Side, other: &Side) -> Self {
        let alone = side.metrics().difference(&other.metrics()).map(|metric| (*metric).to_owned()).collect();
        Self {
            name: side.name.clone(),
            format: side.format(),
            runs: side.runs(),
            remarks: side.remarks().into_iter().collect(),
            alone,
        }
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "format": self.format,
            "runs": self.runs,
            "remarks": self.remarks,
            "alone": self.alone,
        })
    }
}

/// Two sides.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What was compared.
    pub sides: [Label; 2],
    /// Metrics both sides have, by name.
    pub rows: Vec<Row>,
    /// What differs in the plans: the path, before and after.
    pub plan: Vec<(String, String, String)>,
}

impl Comparison {
    /// Compares two sides, which must have something in common.
    pub fn of(before: &Side, after: &Side) -> Result<Self> {
        let row = |metric: &str| {
            let (before, after) = (before.trials(metric)?, after.trials(metric)?);
            Some(Row { metric: metric.to_owned(), before, after })
        };
        let rows: Vec<Row> = before.metrics().into_iter().filter_map(row).collect();
        if rows.is_empty() {
            let sides =
                format!("{} ({}) and {} ({})", before.name, before.format(), after.name, after.format());
            return Err(Error::input(format!("{sides} have no metric in common")));
        }
        let sides = [Label::of(before, after), Label::of(after, before)];
        Ok(Self { sides, rows, plan: plan_differences(before, after) })
    }

    /// The row of `metric`, which `flag` asks for.
    pub fn row(&self, metric: &str, flag: &str) -> Result<&Row> {
        self.rows.iter().find(|row| row.metric == metric).ok_or_else(|| {
            Error::usage(format!("no metric \"{metric}\" in both results"))
                .at(flag)
                .hint("metrics are the numeric keys of a report, for example p99_ttft_ms; --all shows them")
        })
    }

    /// All of it, for programs.
    pub fn json(&self) -> Value {
        let plan = self
            .plan
            .iter()
            .map(|(path, before, after)| json!({ "path": path, "before": before, "after": after }));
        json!({
            "sides": self.sides.each_ref().map(Label::json),
            "rows": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
            "plan": plan.collect::<Vec<_>>(),
        })
    }
}

/// What differs in what two sides were asked for; nothing where their programs are asked in different words.
fn plan_differences(before: &Side, after: &Side) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    if let (Some(a), Some(b), true) = (before.plan(), after.plan(), before.format() == after.format()) {
        differences("", a, b, &mut found);
    }
    found
}

/// Leaves of two JSON values that differ, with their paths.
fn differences(path: &str, before: &Value, after: &Value, into: &mut Vec<(String, String, String)>) {
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let deeper = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let null = &Value::Null;
                differences(&deeper, a.get(key).unwrap_or(null), b.get(key).unwrap_or(null), into);
            }
        }
        _ if before != after => into.push((path.to_owned(), before.to_string(), after.to_string())),
        _ => {}
    }
}
