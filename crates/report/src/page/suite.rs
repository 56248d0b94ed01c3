//! Many benchmarks on one machine: a row and a bar for each scenario.

use serde_json::Value;

use super::{Cell, Entry, Run, Section, Table};
use crate::figure::{Axis, Figure, Kind, Series};
use crate::pointers::{items, number, slug};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry { name: "suite", is, sections };

fn is(report: &Value) -> bool {
    report.get("scenarios").is_some_and(Value::is_array) && report.get("findings").is_some()
}

fn sections(runs: &[&Run]) -> Vec<Section> {
    runs.iter().map(|run| section(runs, run)).collect()
}

/// Pointer and name of what every scenario is asked for.
const COLUMNS: [(&str, &str); 8] = [
    ("/users", "users"),
    ("/tokens_per_second", "tokens/s"),
    ("/storage_read_gbps", "read (GiB/s)"),
    ("/storage_write_gbps", "written (GiB/s)"),
    ("/device_read_p95_ms", "device read P95 (ms)"),
    ("/device_write_p95_ms", "device write P95 (ms)"),
    ("/end_to_end_ms/p95", "end to end P95 (ms)"),
    ("/hit_rate", "hits (share)"),
];

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn section(runs: &[&Run], run: &Run) -> Section {
    let scenarios = items(&run.report, "/scenarios");
    let of_run = if runs.len() == 1 { String::new() } else { format!("-{}", slug(&run.name)) };
    let done: Vec<&Value> = scenarios.iter().filter(|row| text(row, "/status") == "done").collect();
    let bars = |id: &str, title: &str, unit: &str, columns: &[(&str, &str)]| {
        let bar = |(pointer, name): &(&str, &str)| {
            let points = done.iter().enumerate().map(|(at, row)| (at as f64, number(row, pointer)));
            Series::of(*name, points.collect())
        };
        Figure {
            id: format!("{id}{of_run}"),
            title: title.to_owned(),
            about: format!("{title}, scenario by scenario."),
            kind: Kind::Bars,
            x: Axis::names("scenario", done.iter().map(|row| text(row, "/title")).collect()),
            y: Axis::linear(title, unit),
            series: columns.iter().map(bar).collect(),
        }
    };
    let mut figures = vec![
        bars(
            "suite-bandwidth",
            "Storage bandwidth",
            "GiB/s",
            &[("/storage_read_gbps", "read"), ("/storage_write_gbps", "written")],
        ),
        bars(
            "suite-device-latency",
            "Storage device latency, P95",
            "ms",
            &[("/device_read_p95_ms", "read"), ("/device_write_p95_ms", "write")],
        ),
        bars("suite-tokens", "Tokens per second", "tokens/s", &[("/tokens_per_second", "tokens")]),
    ];
    figures.retain(|figure| !figure.x.names.is_empty());
    let title = if runs.len() == 1 { "Scenarios".to_owned() } else { format!("Scenarios of {}", run.name) };
    Section { title, tables: vec![rows(scenarios), findings(run)], figures }
}

fn rows(scenarios: &[Value]) -> Table {
    let row = |scenario: &Value| {
        let words = [text(scenario, "/title"), text(scenario, "/status")].map(Cell::Text);
        let numbers = COLUMNS.iter().map(|(pointer, _)| Cell::Number(number(scenario, pointer)));
        let said = [text(scenario, "/why"), text(scenario, "/bottleneck/sentence")].concat();
        words.into_iter().chain(numbers).chain([Cell::Text(said)]).collect()
    };
    let names = COLUMNS.iter().map(|(_, name)| *name);
    let columns = ["scenario", "status"].into_iter().chain(names).chain(["in words"]);
    Table {
        title: "Every scenario".to_owned(),
        columns: columns.map(str::to_owned).collect(),
        rows: scenarios.iter().map(row).collect(),
        of_figure: None,
    }
}

/// What the suite says about the machine.
fn findings(run: &Run) -> Table {
    let said = |finding: &Value| {
        let words = finding.as_str().map_or_else(|| finding.to_string(), str::to_owned);
        vec![Cell::Text(words)]
    };
    Table {
        title: "Findings".to_owned(),
        columns: vec!["finding".to_owned()],
        rows: items(&run.report, "/findings").iter().map(said).collect(),
        of_figure: None,
    }
}
