//! Reports as JSON: two spaces of indent, sorted keys, a newline at the end.

use std::io::{self, Write};

use serde_json::Value;

/// Writes a report.
pub fn write(report: &Value, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report)?;
    out.write_all(b"\n")?;
    out.flush()
}
