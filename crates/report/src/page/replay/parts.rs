//! Where the time to the first token went.

use serde_json::Value;

use super::super::{Cell, Run, Table};
use crate::figure::{Axis, Figure, Kind, Series};
use crate::pointers::number;

/// Key and name, in the order a request meets them.
const PARTS: [(&str, &str); 9] = [
    ("router_queue_ms", "waiting at the router"),
    ("engine_queue_ms", "waiting at the worker"),
    ("tier_load_ms", "loading from tiers"),
    ("prefill_ms", "computing the prompt"),
    ("decode_room_ms", "waiting for room to decode"),
    ("transfer_ms", "on the way to the decode worker"),
    ("decode_wait_ms", "waiting for the first decode pass"),
    ("decode_step_ms", "in the first decode pass"),
    ("first_token_wait_ms", "starved or preempted"),
];

fn mean(run: &Run, key: &str) -> f64 {
    number(&run.report, &format!("/attribution/ttft/{key}/mean"))
}

pub(super) fn figures(runs: &[&Run]) -> Vec<Figure> {
    let part = |(key, name): &(&str, &str)| {
        let points = runs.iter().enumerate().map(|(at, run)| (at as f64, mean(run, key)));
        Series::of(*name, points.collect())
    };
    let matters = |series: &Series| series.points.iter().any(|(_, ms)| *ms > 0.0);
    let series: Vec<Series> = PARTS.iter().map(part).filter(matters).collect();
    if series.is_empty() {
        return Vec::new();
    }
    let names = runs.iter().map(|run| run.name.clone()).collect();
    vec![Figure {
        id: "ttft-parts".to_owned(),
        title: "Where the time to first token went".to_owned(),
        about: "The mean time to first token, in the parts a request goes through one after the other."
            .to_owned(),
        kind: Kind::Stacked,
        x: Axis::names("run", names),
        y: Axis::linear("mean time to first token", "ms"),
        series,
    }]
}

/// Percentiles of the parts; they do not add up, means do.
pub(super) fn table(runs: &[&Run]) -> Table {
    let statistics = [("mean", "mean"), ("median", "median"), ("p90", "P90"), ("p99", "P99")];
    let several = runs.len() > 1;
    let row = |run: &Run, (key, name): &(&str, &str)| {
        let part = run.report.pointer(&format!("/attribution/ttft/{key}")).unwrap_or(&Value::Null);
        let name = if several { format!("{}: {name}", run.name) } else { (*name).to_owned() };
        let numbers = statistics.iter().map(|(key, _)| Cell::Number(number(part, &format!("/{key}"))));
        std::iter::once(Cell::Text(name)).chain(numbers).collect()
    };
    let rows = runs.iter().flat_map(|run| {
        let matter = PARTS.iter().filter(|(key, _)| mean(run, key) > 0.0);
        matter.map(|part| row(run, part)).collect::<Vec<_>>()
    });
    let heads = statistics.iter().map(|(_, name)| format!("{name} (ms)"));
    Table {
        title: "Parts of the time to first token".to_owned(),
        columns: std::iter::once("part".to_owned()).chain(heads).collect(),
        rows: rows.collect(),
        of_figure: None,
    }
}
