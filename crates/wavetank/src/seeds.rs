//! One plan under several seeds, in parallel: how much of a result is luck.

use std::sync::atomic::AtomicBool;

use serde_json::{Map, Value, json};
use wavetank_model::{Error, Result};

use crate::parallel::{in_parallel, processors};
use crate::replay::{Keep, Observer, Replayed, Unwatched, replay};
use crate::{Plan, ReplayMode};

/// Runs `plan` with `count` consecutive seeds, beginning with its own. The result is that of the first seed,
/// its report extended by `seeds`: every numeric metric of every seed, with mean, extremes and deviation.
pub fn replay_seeds(plan: &Plan, count: u32, stop: &AtomicBool) -> Result<Replayed> {
    if plan.workload.is_once() {
        return Err(Error::usage("standard input can be replayed once only").at("--seeds"));
    }
    if plan.replay_mode == ReplayMode::Online {
        return Err(Error::usage("cannot be combined with --replay-mode online")
            .at("--seeds")
            .hint("live runs side by side would disturb each other; run them one after the other"));
    }
    let first = plan.simulation.seed;
    let seeds: Vec<u64> = (0..u64::from(count)).map(|offset| first.wrapping_add(offset)).collect();
    let mut runs = run_all(plan, &seeds, stop)?;
    let reports: Vec<&Map<String, Value>> = runs.iter().filter_map(|run| run.report.as_object()).collect();
    let spread = json!({ "values": seeds, "metrics": metrics(&reports) });
    let mut replayed = runs.swap_remove(0);
    replayed.report["seeds"] = spread;
    if !plan.has_chance() {
        replayed.warnings.push("--seeds has no effect: nothing in this plan is left to chance".to_owned());
        replayed.report["warnings"] = json!(replayed.warnings);
    }
    Ok(replayed)
}

/// Every seed's run, in order of the seeds, on as many threads as there are processors.
fn run_all(plan: &Plan, seeds: &[u64], stop: &AtomicBool) -> Result<Vec<Replayed>> {
    let run_one = |position: usize| {
        let observer = Observer { watch: &mut Unwatched, stop, keep: Keep::default() };
        replay(&plan.with_seed(seeds[position]), observer)
    };
    let mut results: Vec<Option<Result<Replayed>>> = seeds.iter().map(|_| None).collect();
    // A run that is stopped ends with what it has, and so do those after it: all of them are begun.
    let never = AtomicBool::new(false);
    in_parallel(seeds.len(), processors(), &never, run_one, |position, result| {
        results[position] = Some(result);
    });
    results.into_iter().map(|result| result.expect("every position was run")).collect()
}

/// The numeric keys of the reports, each with its values in order of the seeds.
fn metrics(reports: &[&Map<String, Value>]) -> Map<String, Value> {
    let Some(first) = reports.first() else { return Map::new() };
    let numeric = first.iter().filter(|(name, value)| value.is_number() && *name != "schema_version");
    numeric
        .map(|(name, _)| {
            let values: Vec<f64> = reports.iter().filter_map(|report| report.get(name)?.as_f64()).collect();
            (name.clone(), spread(&values))
        })
        .collect()
}

fn spread(values: &[f64]) -> Value {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    let (min, max) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| (low.min(value), high.max(value)));
    json!({ "mean": mean, "min": min, "max": max, "std": variance.sqrt(), "values": values })
}
