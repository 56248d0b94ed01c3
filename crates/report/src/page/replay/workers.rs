//! Workers that came and went: how many there were in each stage, and why.

use serde_json::Value;

use super::super::{Cell, Run, Table};
use super::clock::{Clock, named, timed};
use crate::figure::{Axis, Figure, Kind, Series};
use crate::pointers::{items, number};

/// A stage of a worker: its name, and the keys of its beginning and of what may end it.
const STAGES: [(&str, &str, &[&str]); 3] = [
    ("active", "/ready_ms", &["/draining_ms", "/left_ms"]),
    ("starting", "/joined_ms", &["/ready_ms", "/left_ms"]),
    ("draining", "/draining_ms", &["/left_ms"]),
];

pub(super) fn figures(runs: &[&Run]) -> Vec<Figure> {
    let all = timed(runs);
    let scaled: Vec<&Run> = all.iter().copied().filter(|run| is_scaled(run)).collect();
    if scaled.is_empty() {
        return Vec::new();
    }
    let clock = Clock::of(&all);
    let series = scaled.iter().flat_map(|run| {
        let pools = items(&run.report, "/scaling/pools").iter();
        pools.flat_map(|pool| lines(runs, run, clock, pool["pool"].as_str().unwrap_or_default()))
    });
    vec![Figure {
        id: "workers-over-time".to_owned(),
        title: "Workers".to_owned(),
        about:
            "Workers that take requests, that start and cannot yet, and that finish what they have before \
                they leave."
                .to_owned(),
        kind: Kind::Lines,
        x: clock.axis(),
        y: Axis::linear("workers", ""),
        series: series.collect(),
    }]
}

fn is_scaled(run: &Run) -> bool {
    run.report.get("scaling").is_some()
}

/// A line for each stage that any worker of a pool was in.
fn lines(runs: &[&Run], run: &Run, clock: Clock, pool: &str) -> Vec<Series> {
    let end = number(&run.report, "/course/end_ms");
    let line = |(stage, from, to): (&str, &str, &[&str])| {
        let spans: Vec<(f64, f64)> =
            of_pool(run, pool).filter_map(|worker| span(worker, (from, to), end)).collect();
        let name = format!("{pool}: {stage}");
        (!spans.is_empty()).then(|| clock.steps(named(runs, run, &name), &counted(&spans, end)))
    };
    STAGES.into_iter().filter_map(line).collect()
}

fn of_pool<'a>(run: &'a Run, pool: &'a str) -> impl Iterator<Item = &'a Value> {
    items(&run.report, "/scaling/workers").iter().filter(move |worker| worker["pool"] == pool)
}

/// From when to when a worker was in a stage, if it was.
fn span(worker: &Value, (from, to): (&str, &[&str]), end: f64) -> Option<(f64, f64)> {
    let begun = number(worker, from);
    let ended = to.iter().map(|key| number(worker, key)).find(|at| at.is_finite()).unwrap_or(end).min(end);
    (begun.is_finite() && begun < ended).then_some((begun, ended))
}

/// How many spans there are, as corners of a line from the start to the end.
fn counted(spans: &[(f64, f64)], end: f64) -> Vec<(f64, f64)> {
    let mut changes: Vec<(f64, f64)> =
        spans.iter().flat_map(|&(from, to)| [(from, 1.0), (to, -1.0)]).collect();
    changes.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut level, mut corners) = (0.0, Vec::new());
    let begins: f64 = changes.iter().filter(|(at, _)| *at <= 0.0).map(|(_, by)| by).sum();
    level += begins;
    corners.push((0.0, level));
    for together in changes.chunk_by(|one, other| one.0 == other.0).filter(|together| together[0].0 > 0.0) {
        let at = together[0].0;
        corners.push((at, level));
        level += together.iter().map(|(_, by)| by).sum::<f64>();
        if at < end {
            corners.push((at, level));
        }
    }
    if corners.last().is_some_and(|corner| corner.0 < end) {
        corners.push((end, level));
    }
    corners
}

/// The changes of each run, and who was there for how long.
pub(super) fn tables(runs: &[&Run]) -> Vec<Table> {
    let scaled = runs.iter().copied().filter(|run| is_scaled(run));
    scaled
        .flat_map(|run| [pools(runs, run), changes(runs, run)])
        .filter(|table| !table.rows.is_empty())
        .collect()
}

fn pools(runs: &[&Run], run: &Run) -> Table {
    let row = |pool: &Value| {
        let numbers = ["/mean_workers", "/most_workers", "/worker_seconds", "/gpu_hours"];
        std::iter::once(text(pool, "pool"))
            .chain(numbers.map(|key| Cell::Number(number(pool, key))))
            .collect()
    };
    Table {
        title: named(runs, run, "Pools"),
        columns: ["pool", "workers, mean", "workers, most", "worker-seconds", "GPU hours"]
            .map(str::to_owned)
            .into(),
        rows: items(&run.report, "/scaling/pools").iter().map(row).collect(),
        of_figure: None,
    }
}

fn changes(runs: &[&Run], run: &Run) -> Table {
    let row = |event: &Value| {
        let seconds = Cell::Text(format!("{:.3}", number(event, "/at_ms") / 1000.0));
        let (from, to) = (Cell::Number(number(event, "/from")), Cell::Number(number(event, "/to")));
        vec![seconds, text(event, "pool"), from, to, text(event, "reason")]
    };
    Table {
        title: named(runs, run, "Changes"),
        columns: ["at (s)", "pool", "from", "to", "why"].map(str::to_owned).into(),
        rows: items(&run.report, "/scaling/events").iter().map(row).collect(),
        of_figure: None,
    }
}

fn text(row: &Value, key: &str) -> Cell {
    Cell::Text(row[key].as_str().unwrap_or_default().to_owned())
}

/// Workers that can serve, on average in each span of the course; `None` where their number did not change.
pub(super) fn present(run: &Run) -> Option<Vec<f64>> {
    run.report.get("scaling")?;
    let (step, end) = (number(&run.report, "/course/step_ms"), number(&run.report, "/course/end_ms"));
    let count = items(&run.report, "/course/fleet/in_router").len();
    let served = |worker: &Value| span(worker, ("/ready_ms", &["/left_ms"]), end);
    let served: Vec<(f64, f64)> = items(&run.report, "/scaling/workers").iter().filter_map(served).collect();
    let within = |number: usize| {
        let (from, to) = (number as f64 * step, ((number + 1) as f64 * step).min(end));
        let overlap = |&(begun, ended): &(f64, f64)| (ended.min(to) - begun.max(from)).max(0.0);
        served.iter().map(overlap).sum::<f64>() / (to - from)
    };
    Some((0..count).map(within).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run() -> Run {
        let worker = |number: u32, times: [Option<f64>; 3]| {
            let joined_ms = if number == 0 { 0.0 } else { 100.0 };
            json!({ "worker": number, "pool": "aggregated", "joined_ms": joined_ms,
                "ready_ms": times[0], "draining_ms": times[1], "left_ms": times[2] })
        };
        let report = json!({
            "course": { "step_ms": 250.0, "end_ms": 1000.0, "fleet": { "in_router": [0.0, 0.0, 0.0, 0.0] } },
            "scaling": {
                "pools": [{ "pool": "aggregated", "mean_workers": 1.5 }],
                "events": [{ "at_ms": 100.0, "pool": "aggregated", "from": 1, "to": 3, "reason": "<b>" }],
                "workers": [
                    worker(0, [Some(0.0), None, None]),
                    worker(1, [Some(300.0), Some(500.0), Some(800.0)]),
                    worker(2, [None, None, Some(200.0)]),
                ],
            },
        });
        Run { name: "a".to_owned(), report }
    }

    /// Broken by: a worker that counts in two stages at once, or in none.
    #[test]
    fn every_worker_is_in_one_stage_at_a_time() {
        let run = run();
        let figure = &figures(&[&run])[0];
        let of = |name: &str| {
            let line = figure.series.iter().find(|series| series.name == format!("aggregated: {name}"));
            line.expect(name).points.clone()
        };
        let corners = [(0.0, 1.0), (300.0, 1.0), (300.0, 2.0), (500.0, 2.0), (500.0, 1.0), (1000.0, 1.0)];
        assert_eq!(of("active"), corners);
        let starting = [(0.0, 0.0), (100.0, 0.0), (100.0, 2.0), (200.0, 2.0), (200.0, 1.0), (300.0, 1.0)];
        assert_eq!(of("starting")[..6], starting);
        assert_eq!(of("draining")[2..4], [(500.0, 1.0), (800.0, 1.0)]);
    }

    #[test]
    fn caches_are_those_of_workers_that_are_there() {
        assert_eq!(present(&run()), Some(vec![1.0, 1.8, 2.0, 1.2]));
    }

    #[test]
    fn what_did_not_change_has_no_part() {
        let plain = Run { name: "b".to_owned(), report: json!({ "course": { "end_ms": 5.0 } }) };
        assert!(figures(&[&plain]).is_empty() && tables(&[&plain]).is_empty() && present(&plain).is_none());
        assert_eq!(tables(&[&run(), &plain]).len(), 2);
    }
}
