//! What is known of a point once it has run: the numbers of its report, by name.

use std::sync::OnceLock;

use serde_json::Value;
use wavetank::Replayed;
use wavetank_model::{Error, Nanos, Result, WorkerRole, nearest};
use wavetank_report::{Pool, Serving, Sla};

/// A number that every row has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// As in a report; `counts.` stands before what became of requests.
    pub name: String,
    /// Whether it counts something.
    pub is_whole: bool,
}

/// What one GPU costs and draws gives these; the rest comes from a run.
pub(crate) const DERIVED: [&str; 3] =
    ["cost_usd_per_million_output_tokens", "cost_usd_per_million_tokens", "energy_wh_per_million_tokens"];
/// Counts that a report has beyond those of a summary.
const FURTHER_COUNTS: [&str; 3] = ["clamped_inputs", "computed_prompt_tokens", "never_arrived"];
/// What follows from a plan and how busy its workers were.
const OURS: [(&str, bool); 4] =
    [("busy_share", false), ("decode_busy_seconds", false), ("gpus", true), ("prefill_busy_seconds", false)];

/// Every metric: those of a run, then the derived ones.
pub fn all() -> &'static [Metric] {
    static ALL: OnceLock<Vec<Metric>> = OnceLock::new();
    ALL.get_or_init(|| {
        let bounds = Sla { ttft_ms: Some(0.0), itl_ms: Some(0.0), e2e_ms: Some(0.0) };
        let (nothing, pool) = (Serving::judging(bounds).summary(), Pool { workers: 1, gpus: 1 });
        let mut all: Vec<Metric> = nothing
            .keys(pool, pool)
            .into_iter()
            .map(|(name, value)| Metric { name, is_whole: value.is_u64() })
            .collect();
        let counts = nothing.counts_json();
        let counts = counts.keys().map(String::as_str).chain(FURTHER_COUNTS);
        all.extend(counts.map(|name| Metric { name: format!("counts.{name}"), is_whole: true }));
        all.extend(OURS.map(|(name, is_whole)| Metric { name: name.to_owned(), is_whole }));
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all.extend(DERIVED.map(|name| Metric { name: name.to_owned(), is_whole: false }));
        all
    })
}

/// How many of them come from a run.
pub(crate) fn measured() -> usize {
    all().len() - DERIVED.len()
}

/// The name of a metric.
pub(crate) fn name(metric: usize) -> &'static str {
    &all()[metric].name
}

/// Each of them once, in the order they first come.
pub(crate) fn distinct(metrics: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut once = Vec::new();
    for metric in metrics {
        if !once.contains(&metric) {
            once.push(metric);
        }
    }
    once
}

/// The number of a metric that is there.
pub(crate) fn number(name: &str) -> usize {
    all().iter().position(|metric| metric.name == name).expect("a metric of the table")
}

/// The number of the metric called `name`.
pub(crate) fn find(name: &str) -> Result<usize> {
    all().iter().position(|metric| metric.name == name).ok_or_else(|| {
        let error = Error::input(format!("unknown metric \"{name}\""));
        match nearest(name, all().iter().map(|metric| metric.name.as_str())) {
            Some(meant) => error.hint(format!("did you mean {meant}?")),
            None => error.hint("metrics are the numbers of a report, such as p99_ttft_ms or counts.rejected"),
        }
    })
}

/// A metric as it is written: counts as whole numbers, nothing where there is none.
pub(crate) fn value(metric: usize, value: f64) -> Option<Value> {
    match value.is_finite() {
        false => None,
        true if all()[metric].is_whole => Some(Value::from(value as u64)),
        true => Some(Value::from(value)),
    }
}

/// What a run measured, in the order of [`all`]; the derived ones are not there yet.
pub(crate) fn of_run(run: &Replayed) -> Vec<f64> {
    let ours = ours(run);
    let read = |metric: &Metric| match metric.name.strip_prefix("counts.") {
        Some(count) => total(run.report.get("counts").and_then(|counts| counts.get(count))),
        None => {
            let own = OURS.iter().position(|(name, _)| *name == metric.name).map(|at| ours[at]);
            own.unwrap_or_else(|| total(run.report.get(&metric.name)))
        }
    };
    all().iter().map(read).collect()
}

/// A number, or the sum of an object's numbers.
fn total(value: Option<&Value>) -> f64 {
    match value {
        Some(Value::Object(parts)) => parts.values().filter_map(Value::as_f64).sum(),
        value => value.and_then(Value::as_f64).unwrap_or(f64::NAN),
    }
}

/// The sides of a fleet; workers that do all of a request are counted as decode workers.
const PREFILL: &[WorkerRole] = &[WorkerRole::Prefill];
const DECODE: &[WorkerRole] = &[WorkerRole::Aggregated, WorkerRole::Decode];

/// In the order of [`OURS`].
fn ours(run: &Replayed) -> [f64; 4] {
    let (attribution, roles) = (&run.summary.attribution, &run.outcome.roles);
    let side = |pools: &'static [WorkerRole]| {
        let workers = attribution.workers.iter().zip(roles);
        workers.filter(|(_, role)| pools.contains(role)).map(|(share, _)| share)
    };
    let busy = |pools| side(pools).map(|one| one.busy.as_seconds()).sum::<f64>();
    let (prefill_busy, decode_busy) = (busy(PREFILL), busy(DECODE));
    // The most at a time, where the number changes.
    let most = |pools: &'static [WorkerRole]| match &run.summary.scaling {
        None => side(pools).count() as f64,
        Some(scaling) => pools.iter().map(|&pool| f64::from(scaling.most(pool))).sum(),
    };
    let span = match &run.summary.scaling {
        None => attribution.span.as_seconds() * attribution.workers.len() as f64,
        Some(_) => attribution.workers.iter().filter_map(|one| one.present).map(Nanos::as_seconds).sum(),
    };
    let gpus = |key: &str| total(run.report.get(key));
    let number =
        most(PREFILL) * gpus("prefill_gpus_per_worker") + most(DECODE) * gpus("decode_gpus_per_worker");
    [(prefill_busy + decode_busy) / span.max(1e-9), decode_busy, number, prefill_busy]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_of_a_kind_and_no_flags() {
        let names: Vec<&str> = all().iter().map(|metric| metric.name.as_str()).collect();
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{name}");
            assert!(
                !wavetank::ReplayArgs::names().any(|flag| flag == *name),
                "a column has one meaning: {name}"
            );
        }
        assert!(all()[number("counts.rejected")].is_whole && !all()[number("p99_ttft_ms")].is_whole);
        assert!(find("p99_tfft_ms").unwrap_err().to_string().ends_with("did you mean p99_ttft_ms?"));
    }
}
