//! What caches serve of a trace: hit ratio against capacity, policy by policy.

use serde_json::Value;

use super::{Cell, Entry, Run, Section, Table};
use crate::figure::{Axis, Figure, Kind, Role, Series};
use crate::pointers::{items, number, slug};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry { name: "trace_mrc", is, sections };

fn is(report: &Value) -> bool {
    report.get("kind").and_then(Value::as_str) == Some("trace_mrc")
}

fn sections(runs: &[&Run]) -> Vec<Section> {
    let section = |run: &&Run| {
        let of_run = if runs.len() == 1 { String::new() } else { format!("-{}", slug(&run.name)) };
        Section {
            title: format!("What caches serve of {}", run.name),
            tables: vec![table(&run.report)],
            figures: vec![figure(run, &of_run)],
        }
    };
    runs.iter().map(section).collect()
}

/// What capacities count.
fn unit(report: &Value) -> &'static str {
    if report.pointer("/unit/blocks").is_some() { "blocks" } else { "bytes" }
}

fn policy(curve: &Value) -> String {
    curve["policy"].as_str().unwrap_or_default().to_owned()
}

fn points(curve: &Value) -> Vec<(f64, f64)> {
    let point = |row: &Value| (number(row, "/capacity"), number(row, "/block_hit_ratio"));
    items(curve, "/rows").iter().map(point).collect()
}

fn table(report: &Value) -> Table {
    let curves = items(report, "/curves");
    let capacities: Vec<f64> =
        curves.first().map(points).unwrap_or_default().iter().map(|row| row.0).collect();
    let row = |(place, capacity): (usize, &f64)| {
        let ratios = curves.iter().map(|curve| number(curve, &format!("/rows/{place}/block_hit_ratio")));
        std::iter::once(Cell::Number(*capacity)).chain(ratios.map(Cell::Number)).collect()
    };
    Table {
        title: "Share served".to_owned(),
        columns: std::iter::once(format!("capacity ({})", unit(report)))
            .chain(curves.iter().map(policy))
            .collect(),
        rows: capacities.iter().enumerate().map(row).collect(),
        of_figure: None,
    }
}

fn figure(run: &Run, of_run: &str) -> Figure {
    let report = &run.report;
    let line: Vec<(f64, f64)> =
        items(report, "/lru_line").iter().map(|point| (number(point, "/0"), number(point, "/1"))).collect();
    let bound = number(report, "/bound/block_hit_ratio");
    let ends = line.first().into_iter().chain(line.last()).map(|(capacity, _)| (*capacity, bound)).collect();
    let mut series: Vec<Series> =
        items(report, "/curves").iter().map(|curve| Series::of(policy(curve), points(curve))).collect();
    if let Some(lru) = series.first_mut() {
        // The first is known everywhere, not only where the others were simulated.
        lru.points.extend(line.iter().copied());
        lru.points.sort_by(|one, other| one.0.total_cmp(&other.0));
        lru.points.dedup();
    }
    series.push(Series { role: Role::Guide, ..Series::of("endless cache", ends) });
    Figure {
        id: format!("hit-ratio{of_run}"),
        title: format!("Hit ratio against capacity: {}", run.name),
        about: "The share of what a trace asks for that a cache of each capacity serves.".to_owned(),
        kind: Kind::Lines,
        x: Axis::log("capacity", unit(report)),
        y: Axis::linear("hit ratio", ""),
        series,
    }
}
