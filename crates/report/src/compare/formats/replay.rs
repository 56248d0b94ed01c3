//! Reports of `wavetank replay`, and of its reference, whose newer ones keep the numbers under "summary".

use serde_json::Value;
use wavetank_model::Result;

use super::{Entry, Object, Repeat, cut_short, required};
use crate::tiers;

pub(super) const ENTRY: Entry = Entry {
    name: "replay",
    about: "a report of wavetank replay",
    artifact: None,
    recognises: |report| numbers(report).contains_key("completed_requests"),
    read,
};

fn numbers(report: &Object) -> &Object {
    report.get("summary").and_then(Value::as_object).unwrap_or(report)
}

fn read(report: &Object) -> Result<Repeat> {
    let numbers = numbers(report);
    required(numbers, "completed_requests")?;
    let mut run = Repeat { plan: numbers.get("plan").cloned(), ..Repeat::default() };
    for (metric, value) in numbers.iter().filter(|(key, _)| *key != "schema_version") {
        if let Some(value) = value.as_f64() {
            let values = of_seeds(numbers, metric).unwrap_or_else(|| vec![value]);
            run.metrics.insert(metric.clone(), values);
        }
    }
    for (metric, value) in numbers.get("tiers").map(tiers::metrics).unwrap_or_default() {
        run.set(&metric, value.as_f64().unwrap_or(f64::NAN));
    }
    run.remarks.extend(cut_short(numbers));
    Ok(run)
}

/// The values of `metric` over seeds, where there are several.
fn of_seeds(report: &Object, metric: &str) -> Option<Vec<f64>> {
    let values = report.get("seeds")?.get("metrics")?.get(metric)?.get("values")?.as_array()?;
    let values: Vec<f64> = values.iter().filter_map(Value::as_f64).collect();
    (!values.is_empty()).then_some(values)
}
