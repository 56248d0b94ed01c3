//! A sweep on a terminal: the front, or the first rows.

use std::fmt::Write as _;

use serde_json::Value;
use wavetank_report::render::table::{framed, precise};

use super::{Row, Swept, metric, shown_metrics};
use crate::search;

/// More rows are for a file.
const MOST_ROWS: usize = 20;

/// All that is said on standard output.
pub(super) fn of(swept: &Swept) -> String {
    let front: Vec<&Row> = swept.rows.iter().filter(|row| row.is_on_front).collect();
    let has_front = !swept.head.objectives.is_empty();
    let shown = if has_front { front } else { swept.rows.iter().collect() };
    let what = if has_front { "on the Pareto front" } else { "shown" };
    let points = if swept.rows.len() == 1 { "point" } else { "points" };
    let mut text = format!("wavetank sweep: {} {points}, {} run now", swept.rows.len(), swept.ran);
    if let Some(meet) = meeting(&swept.rows) {
        let _ = write!(text, ", {meet} meet the SLA");
    }
    let _ = writeln!(text, ", {} {what}", shown.len().min(if has_front { usize::MAX } else { MOST_ROWS }));
    let _ = writeln!(text, "{}", rows(swept, &shown[..shown.len().min(MOST_ROWS)]));
    if shown.len() > MOST_ROWS {
        let _ = writeln!(text, "and {} more", shown.len() - MOST_ROWS);
    }
    if let Some(found) = &swept.search {
        text += &search::words(found);
    }
    let _ = writeln!(text, "Wall Time (ms): {:.2}", swept.wall_seconds * 1e3);
    text
}

/// How many rows meet the bounds, where there are any.
fn meeting(rows: &[Row]) -> Option<usize> {
    let judged = rows.iter().any(|row| row.meets_sla.is_some());
    judged.then(|| rows.iter().filter(|row| row.meets_sla == Some(true)).count())
}

fn rows(swept: &Swept, rows: &[&Row]) -> String {
    let metrics = shown_metrics(swept);
    let axes = swept.head.axes.iter().map(String::as_str);
    let mut columns: Vec<&str> = std::iter::once("point").chain(axes).collect();
    columns.extend(metrics.iter().map(|metric| metric::name(*metric)));
    let judged = rows.iter().any(|row| row.meets_sla.is_some());
    columns.extend(judged.then_some("meets SLA"));
    let mut table = framed(&columns);
    for row in rows {
        let mut cells = vec![row.point.to_string()];
        cells.extend(row.values.iter().map(plain));
        cells.extend(metrics.iter().map(|&at| number(at, row.metrics[at])));
        cells.extend(judged.then(|| if row.meets_sla == Some(true) { "yes" } else { "no" }.to_owned()));
        table.add_row(cells);
    }
    table.to_string()
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn number(at: usize, value: f64) -> String {
    match (value.is_finite(), metric::all()[at].is_whole) {
        (false, _) => "N/A".to_owned(),
        (true, true) => format!("{value}"),
        (true, false) => precise(value),
    }
}
