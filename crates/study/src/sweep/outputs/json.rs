//! The report of a sweep: one row per line, so that it can be looked at and compared.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::super::Swept;
use super::Entry;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry { extension: "json", write };

/// The version of the layout.
const SCHEMA_VERSION: u32 = 1;
/// The key whose list has a line for each item.
const ROWS: &str = "rows";

fn write(swept: &Swept, out: &mut (dyn Write + Send)) -> io::Result<()> {
    let head = &swept.head;
    let wall = json!({ "wall_time_ms": swept.wall_seconds * 1e3, "points_run": swept.ran });
    let mut report = Map::from_iter([
        ("axes".to_owned(), json!(head.axes)),
        ("inputs".to_owned(), head.inputs.clone()),
        ("kind".to_owned(), json!("sweep")),
        ("pareto".to_owned(), head.objectives.json()),
        ("partial".to_owned(), json!(swept.is_partial)),
        ("plan".to_owned(), head.plan.clone()),
        (ROWS.to_owned(), json!([])),
        ("schema_version".to_owned(), json!(SCHEMA_VERSION)),
        ("search".to_owned(), swept.search.clone().unwrap_or(Value::Null)),
        ("shard".to_owned(), head.shard.clone()),
        ("sla".to_owned(), head.sla.clone()),
        ("wall".to_owned(), wall),
        ("warnings".to_owned(), json!(swept.warnings)),
    ]);
    report.retain(|_, value| !value.is_null());
    lay_out(&report, swept.rows.iter().map(|row| row.json(&head.axes)), out)
}

/// Writes a report as it is written to `.json`.
pub fn write_report(report: &Map<String, Value>, out: &mut dyn Write) -> io::Result<()> {
    let rows = report.get(ROWS).and_then(Value::as_array).into_iter().flatten();
    lay_out(report, rows.cloned(), out)
}

/// Keys in order, `rows` under theirs.
fn lay_out(
    report: &Map<String, Value>,
    rows: impl Iterator<Item = Value>,
    out: &mut dyn Write,
) -> io::Result<()> {
    out.write_all(b"{\n")?;
    let mut rows = rows.peekable();
    for (at, (key, value)) in report.iter().enumerate() {
        write!(out, "  \"{key}\": ")?;
        if key == ROWS {
            out.write_all(b"[")?;
            while let Some(row) = rows.next() {
                out.write_all(b"\n    ")?;
                serde_json::to_writer(&mut *out, &row)?;
                out.write_all(if rows.peek().is_some() { b"," } else { b"" })?;
            }
            out.write_all(b"\n  ]")?;
        } else {
            out.write_all(indented(value)?.as_bytes())?;
        }
        out.write_all(if at + 1 < report.len() { b",\n" } else { b"\n" })?;
    }
    out.write_all(b"}\n")
}

/// On several lines, two spaces further in.
fn indented(value: &Value) -> io::Result<String> {
    Ok(serde_json::to_string_pretty(value)?.replace('\n', "\n  "))
}
