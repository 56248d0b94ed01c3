//! A device as it was simulated and as it was: latencies of the same operations, percentile by percentile.

use serde_json::Value;

use super::{Cell, Entry, Run, Section, Table};
use crate::figure::{Axis, Figure, Kind, Series};
use crate::pointers::{number, slug};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry { name: "loop", is, sections };

fn is(report: &Value) -> bool {
    report.get("residuals").is_some() && report.get("operations").is_some()
}

fn sections(runs: &[&Run]) -> Vec<Section> {
    runs.iter().map(|run| section(runs, run)).collect()
}

/// Key and name.
const OPERATIONS: [(&str, &str); 2] = [("read", "Reads"), ("write", "Writes")];
const STATISTICS: [&str; 7] = ["mean", "p50", "p90", "p95", "p99", "p99.9", "max"];

fn section(runs: &[&Run], run: &Run) -> Section {
    let of_run = if runs.len() == 1 { String::new() } else { format!("-{}", slug(&run.name)) };
    Section {
        title: format!("Simulated and measured I/O: {}", run.name),
        tables: vec![residuals(run), moved(run)],
        figures: OPERATIONS.iter().filter_map(|operation| figure(run, *operation, &of_run)).collect(),
    }
}

fn residuals(run: &Run) -> Table {
    let rows = OPERATIONS.iter().flat_map(|(key, name)| {
        STATISTICS.map(|statistic| {
            let side = |side: &str| number(&run.report, &format!("/residuals/{key}/{statistic}/{side}"));
            vec![
                Cell::Text(format!("{name}, {} (ms)", statistic.replacen('p', "P", 1))),
                Cell::Number(side("simulated_ms")),
                Cell::Number(side("measured_ms")),
                Cell::Number(side("error") * 100.0),
            ]
        })
    });
    Table {
        title: "How far the simulation is from the device".to_owned(),
        columns: ["latency", "simulated", "measured", "error (%)"].map(str::to_owned).into(),
        rows: rows.collect(),
        of_figure: None,
    }
}

fn moved(run: &Run) -> Table {
    let row =
        |name: &str, key: &str| vec![Cell::Text(name.to_owned()), Cell::Number(number(&run.report, key))];
    Table {
        title: "What was played".to_owned(),
        columns: ["", "value"].map(str::to_owned).into(),
        rows: vec![
            row("operations", "/operations/played"),
            row("operations left out", "/operations/left_out"),
            row("bytes read", "/operations/read_bytes"),
            row("bytes written", "/operations/written_bytes"),
            row("seconds", "/operations/seconds"),
            row("reads that found nothing", "/played/counts/misses"),
            row("latest start (ms)", "/played/latest_start_ms"),
        ],
        of_figure: None,
    }
}

fn figure(run: &Run, (key, name): (&str, &str), of_run: &str) -> Option<Figure> {
    let side = |side: &str| {
        let at = |statistic| number(&run.report, &format!("/residuals/{key}/{statistic}/{side}"));
        let values = STATISTICS.iter().enumerate().map(|(place, statistic)| (place as f64, at(statistic)));
        values.collect::<Vec<_>>()
    };
    let (simulated, measured) = (side("simulated_ms"), side("measured_ms"));
    let any = simulated.iter().chain(&measured).any(|(_, ms)| *ms > 0.0);
    any.then(|| Figure {
        id: format!("residual-{key}{of_run}"),
        title: format!("{name}: simulated and measured"),
        about: format!(
            "Latency of the same {}, as simulated and as the device did them.",
            name.to_lowercase()
        ),
        kind: Kind::Bars,
        x: Axis::names("statistic", STATISTICS.map(str::to_owned).into()),
        y: Axis::log("latency", "ms"),
        series: vec![Series::of("simulated", simulated), Series::of("measured", measured)],
    })
}
