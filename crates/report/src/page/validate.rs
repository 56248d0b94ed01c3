//! A measured run against its simulation: each request twice, and how far the statistics are apart.

use serde_json::Value;

use super::{Cell, Entry, Run, Section, Table};
use crate::figure::{Axis, Figure, Kind, Role, Series};
use crate::pointers::{items, number, slug};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry { name: "validate", is, sections };

fn is(report: &Value) -> bool {
    report.pointer("/metrics/ttft_ms").is_some() && report.get("run").is_some()
}

fn sections(runs: &[&Run]) -> Vec<Section> {
    runs.iter().map(|run| section(runs, run)).collect()
}

/// Key and name.
const METRICS: [(&str, &str); 4] = [
    ("ttft_ms", "Time to first token"),
    ("tpot_ms", "Mean time between tokens"),
    ("e2e_ms", "End-to-end latency"),
    ("queue_ms", "Waiting for the first pass"),
];
const STATISTICS: [&str; 5] = ["mean", "p50", "p90", "p95", "p99"];

fn section(runs: &[&Run], run: &Run) -> Section {
    let of_run = if runs.len() == 1 { String::new() } else { format!("-{}", slug(&run.name)) };
    let figures = METRICS[..3].iter().filter_map(|metric| scatter(run, *metric, &of_run));
    Section {
        title: format!("Measured and simulated: {}", run.name),
        tables: vec![table(run)],
        figures: figures.collect(),
    }
}

fn table(run: &Run) -> Table {
    let rows = METRICS.iter().flat_map(|(key, name)| {
        STATISTICS.map(|statistic| {
            let side = |side: &str| number(&run.report, &format!("/metrics/{key}/{statistic}/{side}"));
            vec![
                Cell::Text(format!("{name}, {} (ms)", statistic.replacen('p', "P", 1))),
                Cell::Number(side("measured")),
                Cell::Number(side("simulated")),
                Cell::Number(side("error") * 100.0),
            ]
        })
    });
    Table {
        title: "Statistics".to_owned(),
        columns: ["number", "measured", "simulated", "error (%)"].map(str::to_owned).into(),
        rows: rows.collect(),
        of_figure: None,
    }
}

/// Requests as points; on the diagonal both are the same.
fn scatter(run: &Run, (key, name): (&str, &str), of_run: &str) -> Option<Figure> {
    let pairs = items(&run.report, &format!("/requests/{key}"));
    let points: Vec<(f64, f64)> = pairs.iter().map(|pair| (number(pair, "/0"), number(pair, "/1"))).collect();
    let values =
        || points.iter().flat_map(|(x, y)| [*x, *y]).filter(|value| value.is_finite() && *value > 0.0);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    if most == 0.0 {
        return None;
    }
    let diagonal = Series { role: Role::Guide, ..Series::of("equal", vec![(least, least), (most, most)]) };
    let mut requests = Series::of("requests", points);
    requests.notes = (0..requests.points.len()).map(|number| format!("point {number}")).collect();
    Some(Figure {
        id: format!("scatter-{}{of_run}", slug(key)),
        title: format!("{name}: measured and simulated"),
        about: format!("{name} of each request, as it was measured and as it was simulated."),
        kind: Kind::Points,
        x: Axis::log("measured", "ms"),
        y: Axis::log("simulated", "ms"),
        series: vec![requests, diagonal],
    })
}
