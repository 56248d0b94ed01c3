//! What more or less of each thing would do.

use serde_json::Value;

use super::super::{Cell, Run, Section, Table};
use crate::figure::{Axis, Figure, Kind, Series};
use crate::pointers::{items, number, slug};

/// Key and name of what every row has; those that none has are left out.
const METRICS: [(&str, &str); 5] = [
    ("p99_ttft_ms", "time to first token, P99 (%)"),
    ("mean_ttft_ms", "time to first token, mean (%)"),
    ("p99_itl_ms", "between tokens, P99 (%)"),
    ("output_throughput_tok_s", "output tokens per second (%)"),
    ("goodput_request_throughput_rps", "requests per second within the bounds (%)"),
];

/// Pointer and name of what rows have where prices are known.
const MONEY: [(&str, &str); 3] = [
    ("/money/usd_per_hour/change", "USD an hour, more or less"),
    ("/money/cost_usd_per_million_output_tokens/value", "USD per million output tokens"),
    ("/money/usd_per_hour_per_point", "USD an hour for a percent"),
];

/// A section for each run that has advice.
pub(super) fn sections(runs: &[&Run]) -> Vec<Section> {
    let advised = |run: &&&Run| run.report.get("advice").is_some();
    runs.iter().filter(advised).map(|run| section(runs, run)).collect()
}

fn section(runs: &[&Run], run: &Run) -> Section {
    let (of_run, title) = match runs.len() {
        1 => (String::new(), "Advice".to_owned()),
        _ => (format!("-{}", slug(&run.name)), format!("Advice on {}", run.name)),
    };
    let figures =
        if items(&run.report, "/advice/rows").is_empty() { Vec::new() } else { vec![bars(run, &of_run)] };
    Section { title, tables: vec![table(run)], figures }
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The change of a metric in percent.
fn percent(row: &Value, key: &str) -> f64 {
    number(row, &format!("/metrics/{key}/relative")) * 100.0
}

fn bars(run: &Run, of_run: &str) -> Figure {
    let rows = items(&run.report, "/advice/rows");
    let gains = rows.iter().enumerate().map(|(at, row)| (at as f64, number(row, "/gain_percent")));
    let goal = run.report.pointer("/advice/goal").and_then(Value::as_str).unwrap_or_default().to_owned();
    Figure {
        id: format!("advice{of_run}"),
        title: "What more or less of each thing would do".to_owned(),
        about: format!(
            "By how many percent {goal} gets better where there is more or less of one thing and all else \
             is as it is; below zero it gets worse."
        ),
        kind: Kind::Bars,
        x: Axis::names("change", rows.iter().map(|row| text(row, "what")).collect()),
        y: Axis::linear(&format!("{goal} gets better by"), "%"),
        series: vec![Series::of(goal, gains.collect())],
    }
}

fn table(run: &Run) -> Table {
    let rows = items(&run.report, "/advice/rows");
    let has = |key: &str| rows.iter().any(|row| percent(row, key).is_finite());
    let metrics: Vec<&(&str, &str)> = METRICS.iter().filter(|(key, _)| has(key)).collect();
    let has_money = rows.iter().any(|row| row.get("money").is_some());
    let money: &[(&str, &str)] = if has_money { &MONEY } else { &[] };
    let row = |row: &Value| {
        let numbers = metrics.iter().map(|(key, _)| percent(row, key));
        let dollars = money.iter().map(|(pointer, _)| number(row, pointer));
        let words = [text(row, "verdict").replace('_', " "), text(row, "why")].map(Cell::Text);
        let first = std::iter::once(Cell::Text(text(row, "what")));
        first.chain(numbers.chain(dollars).map(Cell::Number)).chain(words).collect()
    };
    let names = metrics.iter().map(|(_, name)| *name).chain(money.iter().map(|(_, name)| *name));
    let columns = std::iter::once("change").chain(names).chain(["verdict", "in words"]);
    Table {
        title: "What was tried".to_owned(),
        columns: columns.map(str::to_owned).collect(),
        rows: rows.iter().map(row).collect(),
        of_figure: None,
    }
}
