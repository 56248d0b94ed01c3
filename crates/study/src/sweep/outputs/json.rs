//! The report of a sweep: one row per line, so that it can be looked at and compared.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::super::Swept;
use super::Entry;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry { extension: "json", write };

/// The version of the layout.
const SCHEMA_VERSION: u32 = 1;

fn write(swept: &Swept, out: &mut (dyn Write + Send)) -> io::Result<()> {
    let head = &swept.head;
    let before = [
        ("axes", json!(head.axes)),
        ("inputs", head.inputs.clone()),
        ("kind", json!("sweep")),
        ("pareto", head.objectives.json()),
        ("partial", json!(swept.is_partial)),
        ("plan", head.plan.clone()),
    ];
    out.write_all(b"{\n")?;
    for (key, value) in &before {
        writeln!(out, "  \"{key}\": {},", indented(value)?)?;
    }
    out.write_all(b"  \"rows\": [")?;
    for (at, row) in swept.rows.iter().enumerate() {
        out.write_all(if at == 0 { b"\n    " } else { b",\n    " })?;
        serde_json::to_writer(&mut *out, &row.json(&head.axes))?;
    }
    out.write_all(b"\n  ],\n")?;
    let wall = json!({ "wall_time_ms": swept.wall_seconds * 1e3, "points_run": swept.ran });
    let after = [
        ("schema_version", json!(SCHEMA_VERSION)),
        ("search", swept.search.clone().unwrap_or(Value::Null)),
        ("shard", head.shard.clone()),
        ("sla", head.sla.clone()),
        ("wall", wall),
        ("warnings", json!(swept.warnings)),
    ];
    let after: Vec<_> = after.iter().filter(|(_, value)| !value.is_null()).collect();
    for (at, (key, value)) in after.iter().enumerate() {
        let comma = if at + 1 < after.len() { "," } else { "" };
        writeln!(out, "  \"{key}\": {}{comma}", indented(value)?)?;
    }
    out.write_all(b"}\n")
}

/// On several lines, two spaces further in.
fn indented(value: &Value) -> io::Result<String> {
    Ok(serde_json::to_string_pretty(value)?.replace('\n', "\n  "))
}
