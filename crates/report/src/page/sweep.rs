//! Many configurations: every point with its numbers, and those that nothing beats.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Cell, Entry, Run, Section, Table};
use crate::figure::{Axis, Figure, Kind, Role, Series};
use crate::pointers::{items, number, slug};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry { name: "sweep", is, sections };

fn is(report: &Value) -> bool {
    report.get("kind").and_then(Value::as_str) == Some("sweep")
}

fn sections(runs: &[&Run]) -> Vec<Section> {
    runs.iter().map(|run| section(runs, run)).collect()
}

fn section(runs: &[&Run], run: &Run) -> Section {
    let of_run = if runs.len() == 1 { String::new() } else { format!("-{}", slug(&run.name)) };
    let metrics = metrics(&run.report);
    let figures: Vec<Figure> =
        metrics.windows(2).map(|pair| pareto(run, [&pair[0], &pair[1]], &of_run)).collect();
    let points = points(run, &metrics, figures.first().map(|figure| figure.id.clone()));
    let tables = [Some(points), proof(run)];
    Section {
        title: format!("Points of {}", run.name),
        tables: tables.into_iter().flatten().collect(),
        figures,
    }
}

/// The metrics that points are compared by; two of every sweep where none were chosen.
fn metrics(report: &Value) -> Vec<String> {
    let chosen = ["/pareto/minimize", "/pareto/maximize"].into_iter().flat_map(|side| items(report, side));
    let searched = report.pointer("/search/metric").into_iter();
    let mut metrics: Vec<String> =
        chosen.chain(searched).filter_map(|name| name.as_str().map(str::to_owned)).collect();
    let mut seen = BTreeSet::new();
    metrics.retain(|name| seen.insert(name.clone()));
    for usual in ["p99_ttft_ms", "output_throughput_tok_s"] {
        if metrics.len() < 2 && !metrics.iter().any(|metric| metric == usual) {
            metrics.push(usual.to_owned());
        }
    }
    metrics
}

/// What was varied, in words.
fn words(row: &Value) -> String {
    let parameters = row.get("parameters").and_then(Value::as_object);
    let word = |(name, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{name} = {value}")
    };
    parameters.into_iter().flatten().map(word).collect::<Vec<_>>().join(", ")
}

fn is_in_front(row: &Value) -> bool {
    row.get("pareto").and_then(Value::as_bool) == Some(true)
}

/// Values that differ by more are told apart on a logarithmic axis only.
const WIDE: f64 = 30.0;

fn axis(name: &str, values: impl Iterator<Item = f64>) -> Axis {
    let ends = values.filter(|value| value.is_finite()).fold(None, |ends: Option<(f64, f64)>, value| {
        Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
    });
    match ends {
        Some((low, high)) if low > 0.0 && high > WIDE * low => Axis::log(name, ""),
        _ => Axis::linear(name, ""),
    }
}

/// All points in one series, in the order of the rows; the front is a line through its own.
fn pareto(run: &Run, [x, y]: [&str; 2], of_run: &str) -> Figure {
    let rows = items(&run.report, "/rows");
    let place = |row: &Value| (number(row, &format!("/metrics/{x}")), number(row, &format!("/metrics/{y}")));
    let mut all = Series::of("points", rows.iter().map(place).collect());
    all.notes = rows.iter().map(words).collect();
    let mut front: Vec<(f64, f64)> = rows.iter().filter(|row| is_in_front(row)).map(place).collect();
    front.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let front = Series { role: Role::Front, ..Series::of("Pareto front", front) };
    Figure {
        id: format!("pareto-{}-{}{of_run}", slug(x), slug(y)),
        title: format!("{y} against {x}"),
        about: format!("Every point by {x} and {y}; nothing is better than the points of the front in both."),
        kind: Kind::Points,
        x: axis(x, all.points.iter().map(|point| point.0)),
        y: axis(y, all.points.iter().map(|point| point.1)),
        series: if front.points.is_empty() { vec![all] } else { vec![all, front] },
    }
}

fn points(run: &Run, metrics: &[String], of_figure: Option<String>) -> Table {
    let axes: Vec<&str> = items(&run.report, "/axes").iter().filter_map(Value::as_str).collect();
    let row = |row: &Value| {
        let parameter = |axis: &&str| cell(row.pointer(&format!("/parameters/{}", escaped(axis))));
        let metric = |name: &String| Cell::Number(number(row, &format!("/metrics/{}", escaped(name))));
        let front = Cell::Text(if is_in_front(row) { "yes".to_owned() } else { String::new() });
        let fits = match row.get("meets_sla").and_then(Value::as_bool) {
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        };
        let number = cell(row.get("point"));
        let values = axes.iter().map(parameter).chain(metrics.iter().map(metric));
        std::iter::once(number).chain(values).chain([front, Cell::Text(fits.to_owned())]).collect()
    };
    let names = axes.iter().map(|axis| (*axis).to_owned()).chain(metrics.iter().cloned());
    let columns = std::iter::once("point".to_owned()).chain(names);
    Table {
        title: "Every point".to_owned(),
        columns: columns.chain(["in front".to_owned(), "meets the SLA".to_owned()]).collect(),
        rows: items(&run.report, "/rows").iter().map(row).collect(),
        of_figure,
    }
}

/// What a search stands on.
fn proof(run: &Run) -> Option<Table> {
    let points = items(&run.report, "/search/proof");
    // The numbers that decided, which are not those of the picture.
    let metrics: BTreeSet<&String> = points
        .iter()
        .filter_map(|point| point.get("metrics")?.as_object())
        .flat_map(|metrics| metrics.keys())
        .collect();
    let row = |point: &Value| {
        let verdict = point.get("verdict").and_then(Value::as_str).unwrap_or_default().to_owned();
        let metric = |name: &&String| Cell::Number(number(point, &format!("/metrics/{}", escaped(name))));
        std::iter::once(Cell::Text(words(point)))
            .chain(metrics.iter().map(metric))
            .chain([Cell::Text(verdict)])
            .collect()
    };
    (!points.is_empty()).then(|| Table {
        title: "What the answer stands on".to_owned(),
        columns: std::iter::once("point".to_owned())
            .chain(metrics.iter().copied().cloned())
            .chain(["verdict".to_owned()])
            .collect(),
        rows: points.iter().map(row).collect(),
        of_figure: None,
    })
}

fn cell(value: Option<&Value>) -> Cell {
    match value {
        Some(Value::Number(number)) => Cell::Number(number.as_f64().unwrap_or(f64::NAN)),
        Some(Value::String(text)) => Cell::Text(text.clone()),
        Some(other) => Cell::Text(other.to_string()),
        None => Cell::Text(String::new()),
    }
}

/// A name as a part of a pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::page;
    use super::*;
    use crate::figure::Scale;

    fn run() -> Run {
        let row = |point: u32, workers: u32, ttft: f64, rate: f64, front: bool| {
            json!({ "point": point, "parameters": { "num_workers": workers }, "pareto": front,
                "metrics": { "p99_ttft_ms": ttft, "output_throughput_tok_s": rate }, "meets_sla": front })
        };
        let report = json!({
            "kind": "sweep", "axes": ["num_workers"],
            "pareto": { "minimize": ["p99_ttft_ms"], "maximize": ["output_throughput_tok_s"] },
            "rows": [row(0, 8, 10.0, 7.0, true), row(1, 1, 50.0, 6.0, false), row(2, 2, 5.0, 3.0, true)],
            "search": { "metric": "p99_ttft_ms", "proof": [{
                "parameters": { "num_workers": 2 }, "metrics": { "gpus": 2 }, "verdict": "meets the SLA",
            }] },
        });
        Run { name: "s".to_owned(), report }
    }

    /// Broken by: points in another order than the rows of their table.
    #[test]
    fn points_are_the_rows_of_their_table() {
        let page = page("t", &[run()]).unwrap();
        let section = &page.sections[0];
        let (figure, table) = (&section.figures[0], &section.tables[0]);
        assert_eq!(table.of_figure.as_ref(), Some(&figure.id));
        assert_eq!(figure.series[0].points, [(10.0, 7.0), (50.0, 6.0), (5.0, 3.0)]);
        assert_eq!(figure.series[0].notes[1], "num_workers = 1");
        assert_eq!(figure.series[1].points, [(5.0, 3.0), (10.0, 7.0)], "the front is a line");
        assert_eq!(table.rows[1][..2], [Cell::Number(1.0), Cell::Number(1.0)]);
        let proof = &section.tables[1];
        assert_eq!(proof.rows[0][..2], [Cell::Text("num_workers = 2".to_owned()), Cell::Number(2.0)]);
        assert_eq!(proof.columns, ["point", "gpus", "verdict"]);
        assert_eq!(table.columns[2..4], ["p99_ttft_ms", "output_throughput_tok_s"], "each once");
    }

    /// Broken by: an axis on which one point far off hides how the others differ, or a logarithm of 0.
    #[test]
    fn points_far_apart_are_on_a_logarithmic_axis() {
        let scale = |values: &[f64]| axis("x", values.iter().copied()).scale;
        assert_eq!(scale(&[70.0, 90.0, 31_000.0]), Scale::Log);
        assert_eq!(scale(&[70.0, 90.0, f64::NAN]), Scale::Linear);
        assert_eq!((scale(&[0.0, 31_000.0]), scale(&[])), (Scale::Linear, Scale::Linear));
    }
}
