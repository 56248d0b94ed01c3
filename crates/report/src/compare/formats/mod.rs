//! What benchmarks write, under the names of our reports: one file per format, one row each.
//!
//! A metric has our name only where it means what ours means; METHODOLOGY.md has the table.

mod aiperf;
mod replay;
mod storage;
#[cfg(test)]
mod tests;
mod vllm_serve;
mod vllm_throughput;

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use wavetank_model::{Error, Result, described};

/// A JSON object.
type Object = Map<String, Value>;

/// Every format of results, alphabetical. `wavetank list` prints this table, and errors its names.
pub const ALL: &[Entry] =
    &[aiperf::ENTRY, replay::ENTRY, storage::ENTRY, vllm_serve::ENTRY, vllm_throughput::ENTRY];

/// A format of results.
#[derive(Debug)]
pub struct Entry {
    /// How tables and messages call it.
    pub name: &'static str,
    /// One line for `wavetank list`.
    pub about: &'static str,
    /// The file to take where its program leaves others of the same kind beside it.
    pub artifact: Option<&'static str>,
    /// Whether an object is of this format, by keys that no other has.
    recognises: fn(&Object) -> bool,
    /// The run that an object of this format tells of.
    read: fn(&Object) -> Result<Repeat>,
}

described!(Entry);

/// What is known of one run.
#[derive(Clone, Debug, Default)]
pub struct Repeat {
    /// Values by the name of the metric: one, or one of every seed.
    pub metrics: BTreeMap<String, Vec<f64>>,
    /// What it was asked to do, where that is told.
    pub plan: Option<Value>,
    /// What to know about its numbers.
    pub remarks: Vec<String>,
}

impl Repeat {
    fn set(&mut self, metric: &str, value: f64) {
        self.metrics.insert(metric.to_owned(), vec![value]);
    }

    fn value(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric)?.first().copied()
    }

    /// Takes over the numbers of `object` under our names.
    fn take(&mut self, object: &Object, names: &[(&str, &str)]) -> Result<()> {
        for (theirs, ours) in names {
            if let Some(value) = number(object, theirs)? {
                self.set(ours, value);
            }
        }
        Ok(())
    }
}

/// The format of `result`, and what it says.
pub fn read(result: &Value) -> Result<(&'static Entry, Repeat)> {
    let object = result.as_object();
    let found = object.and_then(|object| Some((object, ALL.iter().find(|row| (row.recognises)(object))?)));
    let (object, format) = found.ok_or_else(unknown)?;
    Ok((format, (format.read)(object)?))
}

fn unknown() -> Error {
    let known: Vec<String> = ALL.iter().map(|row| format!("{} ({})", row.name, row.about)).collect();
    Error::input("not a result of a known format").hint(format!("known: {}", known.join(", ")))
}

/// The number under `key`; none where it is missing or null.
fn number(object: &Object, key: &str) -> Result<Option<f64>> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or_else(|| wrong(key, "a number")),
    }
}

/// The number under `key`, which has to be there.
fn required(object: &Object, key: &str) -> Result<f64> {
    number(object, key)?.ok_or_else(|| wrong(key, "a number"))
}

fn wrong(key: &str, expected: &str) -> Error {
    Error::input(format!("\"{key}\" is not {expected}"))
}

/// A remark on runs of ours that were interrupted.
fn cut_short(report: &Object) -> Option<String> {
    let is_partial = report.get("partial") == Some(&Value::Bool(true));
    is_partial.then(|| "was cut short".to_owned())
}

/// A remark on requests that got no answer.
fn failures(failed: f64) -> Option<String> {
    (failed > 0.0).then(|| format!("{failed} requests failed"))
}
