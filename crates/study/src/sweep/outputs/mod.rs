//! Rows in files: one file per format, one row each in [`ALL`]; the name's ending decides.

mod columns;
mod csv;
mod json;
mod parquet;

use std::io::{self, Write};
use std::path::Path;

use serde_json::Value;
use wavetank_model::{Error, Result};

use super::{Row, Swept, metric};

pub use columns::{Cells, Column};
pub use json::write_report;

/// A row of the table.
struct Entry {
    /// How names of such files end.
    extension: &'static str,
    write: fn(&Swept, &mut (dyn Write + Send)) -> io::Result<()>,
}

/// Every format, alphabetical.
const ALL: &[Entry] = &[csv::ENTRY, json::ENTRY, parquet::ENTRY];

fn find(path: &Path) -> Result<&'static Entry> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    ALL.iter().find(|entry| entry.extension == ending).ok_or_else(|| {
        let known: Vec<String> = ALL.iter().map(|entry| format!(".{}", entry.extension)).collect();
        Error::usage("what format is this?")
            .at(format!("--output {}", path.display()))
            .hint(format!("names of outputs end in {}", known.join(", ")))
    })
}

impl Swept {
    /// The report, as it is written to `.json`.
    pub fn report(&self) -> Value {
        let mut text = Vec::new();
        (json::ENTRY.write)(self, &mut text).expect("memory takes every byte");
        serde_json::from_slice(&text).expect("what is written is JSON")
    }
}

/// Refuses a name that says no format.
pub fn check(path: &Path) -> Result<()> {
    find(path).map(drop)
}

/// Writes `swept` in the format that `path` says.
pub fn write(swept: &Swept, path: &Path, out: &mut (dyn Write + Send)) -> io::Result<()> {
    let entry = find(path).map_err(io::Error::other)?;
    (entry.write)(swept, out)
}

/// A value of an axis as one cell: texts as they are, nothing for the base's.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A metric as one cell.
fn metric_cell(row: &Row, at: usize) -> String {
    metric::value(at, row.metrics[at]).map(|value| value.to_string()).unwrap_or_default()
}
