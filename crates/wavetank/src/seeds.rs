//! One plan under several seeds, in parallel: how much of a result is luck.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Map, Value, json};
use wavetank_model::{Error, Result};

use crate::replay::{Keep, Observer, Replayed, Unwatched, replay};
use crate::{Plan, WorkloadPlan};

/// Runs `plan` with `count` consecutive seeds, beginning with its own. The result is that of the first seed,
/// its report extended by `seeds`: every numeric metric of every seed, with mean, extremes and deviation.
pub fn replay_seeds(plan: &Plan, count: u32, stop: &AtomicBool) -> Result<Replayed> {
    if matches!(&plan.workload, WorkloadPlan::Trace { path, .. } if path == "-") {
        return Err(Error::usage("standard input can be replayed once only").at("--seeds"));
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
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<Replayed>>>> = seeds.iter().map(|_| Mutex::new(None)).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(seeds.len());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(position) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&p| p < seeds.len())
                {
                    let result = run_one(plan, seeds[position], stop);
                    *results[position].lock().expect("no run panics while it holds the lock") = Some(result);
                }
            });
        }
    });
    let taken = results.into_iter().map(|result| result.into_inner().expect("no run panicked"));
    taken.map(|result| result.expect("every position was run")).collect()
}

fn run_one(plan: &Plan, seed: u64, stop: &AtomicBool) -> Result<Replayed> {
    let mut plan = plan.clone();
    let offset = seed.wrapping_sub(plan.simulation.seed);
    plan.simulation.seed = seed;
    if let WorkloadPlan::Synthetic(load) = &mut plan.workload {
        load.arrival_seed = load.arrival_seed.wrapping_add(offset);
    }
    replay(&plan, Observer { watch: &mut Unwatched, stop, keep: Keep::default() })
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
