//! Who waits where, and how full caches are: of the fleet, and of each worker.

use serde_json::Value;

use super::super::Run;
use super::clock::{Clock, named, timed};
use super::workers::present;
use crate::figure::{Axis, Figure, Kind, Series};
use crate::pointers::{items, number, numbers, slug};

/// Column, id, title, sentence, unit of what is shown worker by worker.
const BY_WORKER: [(&str, &str, &str, &str, &str); 3] = [
    (
        "cache_use",
        "cache-by-worker",
        "Cache use by worker",
        "The share of its blocks that requests use.",
        "%",
    ),
    ("waiting", "queue-by-worker", "Queue by worker", "Requests that wait for their turn.", "requests"),
    ("busy", "busy-by-worker", "Busy time by worker", "The share of the time it is in passes.", "%"),
];

pub(super) fn figures(runs: &[&Run]) -> Vec<Figure> {
    let runs = timed(runs);
    if runs.is_empty() {
        return Vec::new();
    }
    let clock = Clock::of(&runs);
    let mut figures = vec![whereabouts(&runs, clock), cache(&runs, clock), reuse(&runs, clock)];
    for run in runs.iter().filter(|run| items(&run.report, "/course/workers").len() > 1) {
        figures.extend(BY_WORKER.iter().map(|column| by_worker(&runs, run, clock, *column)));
    }
    figures
}

/// The sum of a column over all workers, each track times its workers.
fn summed(run: &Run, column: &str) -> Vec<f64> {
    let mut sum: Vec<f64> = Vec::new();
    for track in items(&run.report, "/course/workers") {
        let count = workers_of(track);
        let values = numbers(track, &format!("/{column}"));
        sum.resize(values.len().max(sum.len()), 0.0);
        sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value * count);
    }
    sum
}

fn workers_of(track: &Value) -> f64 {
    number(track, "/last_worker") - number(track, "/first_worker") + 1.0
}

fn whereabouts(runs: &[&Run], clock: Clock) -> Figure {
    let lines = |run: &&Run| {
        [
            clock.fleet(run, named(runs, run, "at the router"), "in_router"),
            clock.series(run, named(runs, run, "in a worker's queue"), &summed(run, "waiting")),
            clock.series(run, named(runs, run, "in a batch"), &summed(run, "running")),
        ]
    };
    Figure {
        id: "whereabouts-over-time".to_owned(),
        title: "Requests in the system".to_owned(),
        about: "Requests that wait at the router, wait at a worker, or are being served; on average over \
                each span."
            .to_owned(),
        kind: Kind::Lines,
        x: clock.axis(),
        y: Axis::linear("requests", ""),
        series: runs.iter().flat_map(lines).collect(),
    }
}

fn cache(runs: &[&Run], clock: Clock) -> Figure {
    let line = |run: &&Run| {
        let all: f64 = items(&run.report, "/course/workers").iter().map(workers_of).sum();
        let used = summed(run, "cache_use");
        let workers = present(run).unwrap_or_else(|| vec![all; used.len()]);
        let shares: Vec<f64> =
            used.into_iter().zip(workers).map(|(share, workers)| share * 100.0 / workers).collect();
        clock.series(run, named(runs, run, if runs.len() == 1 { "all workers" } else { "" }), &shares)
    };
    Figure {
        id: "cache-over-time".to_owned(),
        title: "Cache use".to_owned(),
        about: "The share of cache blocks that requests use, on average over the workers.".to_owned(),
        kind: Kind::Lines,
        x: clock.axis(),
        y: Axis::linear("blocks in use", "%"),
        series: runs.iter().map(line).collect(),
    }
}

fn reuse(runs: &[&Run], clock: Clock) -> Figure {
    let line = |run: &&Run| {
        let shares = numbers(&run.report, "/course/fleet/reused_share");
        let shares: Vec<f64> = shares.into_iter().map(|share| share * 100.0).collect();
        clock.series(run, named(runs, run, if runs.len() == 1 { "all workers" } else { "" }), &shares)
    };
    Figure {
        id: "reuse-over-time".to_owned(),
        title: "Prompt tokens found in a cache".to_owned(),
        about: "Of the prompts admitted in each span, the share that a worker had in its cache.".to_owned(),
        kind: Kind::Lines,
        x: clock.axis(),
        y: Axis::linear("reused", "%"),
        series: runs.iter().map(line).collect(),
    }
}

fn by_worker(
    runs: &[&Run],
    run: &Run,
    clock: Clock,
    (column, id, title, about, unit): (&str, &str, &str, &str, &str),
) -> Figure {
    let factor = if unit == "%" { 100.0 } else { 1.0 };
    let row = |track: &Value| {
        let values: Vec<f64> =
            numbers(track, &format!("/{column}")).into_iter().map(|value| value * factor).collect();
        clock.series(run, worker_name(track), &values)
    };
    let of_run = if runs.len() == 1 { String::new() } else { format!("-{}", slug(&run.name)) };
    let series: Vec<Series> = items(&run.report, "/course/workers").iter().map(row).collect();
    Figure {
        id: format!("{id}{of_run}"),
        title: named(runs, run, title),
        about: format!("{about} A row for each worker."),
        kind: Kind::Heat,
        x: clock.axis(),
        y: Axis::linear(title, unit),
        series,
    }
}

fn worker_name(track: &Value) -> String {
    // A damaged report may lack either.
    let told = |pointer| Some(number(track, pointer)).filter(|number| number.is_finite());
    match (told("/first_worker"), told("/last_worker")) {
        (Some(first), Some(last)) if first != last => format!("workers {first} to {last}"),
        (Some(worker), _) | (None, Some(worker)) => format!("worker {worker}"),
        (None, None) => "a worker".to_owned(),
    }
}
