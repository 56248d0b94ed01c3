//! What a page shows of one or more runs: from reports, as they are written, to tables and figures.
//!
//! One file for each kind of report, one row each in [`ALL`].

mod device_loop;
mod replay;
mod storage;
mod suite;
mod sweep;
mod trace_mrc;
mod trace_stats;
mod validate;

use serde_json::Value;
use wavetank_model::{Error, Result};

use crate::figure::Figure;

/// A page before it is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// What is on it.
    pub title: String,
    /// The runs, in the order they were named.
    pub runs: Vec<Head>,
    /// Parts, in the order they are read.
    pub sections: Vec<Section>,
}

/// What is said of a run before its numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Head {
    /// What it is called on the page.
    pub name: String,
    /// What kind of run it was: the name of a row of [`ALL`].
    pub kind: &'static str,
    /// What it says of itself that must not be missed.
    pub warnings: Vec<String>,
    /// All it depends on.
    pub plan: Value,
}

/// A part of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// What it is about.
    pub title: String,
    /// Numbers.
    pub tables: Vec<Table>,
    /// Pictures.
    pub figures: Vec<Figure>,
}

/// Numbers in rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Names of the columns; the first names rows.
    pub columns: Vec<String>,
    /// One cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// The figure whose points are the rows, series after series: who selects there sees them here. Guides
    /// have no rows, nor have points of a front that are in another series.
    pub of_figure: Option<String>,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number; one that is not finite is nothing.
    Number(f64),
}

/// A report and what it is called.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its file's name, or what the user calls it.
    pub name: String,
    /// All of it.
    pub report: Value,
}

/// A row of the table.
pub struct Entry {
    /// What kind of run it is.
    pub name: &'static str,
    /// Whether a report is of this kind.
    pub is: fn(&Value) -> bool,
    /// What is shown of such runs, side by side.
    pub sections: fn(&[&Run]) -> Vec<Section>,
}

/// Every kind of report that has a page, in the order of their parts.
pub const ALL: &[Entry] = &[
    device_loop::ENTRY,
    replay::ENTRY,
    storage::ENTRY,
    suite::ENTRY,
    sweep::ENTRY,
    trace_mrc::ENTRY,
    trace_stats::ENTRY,
    validate::ENTRY,
];

/// The page of `runs`, which may be of several kinds.
pub fn page(title: &str, runs: &[Run]) -> Result<Page> {
    let mut page = Page { title: title.to_owned(), ..Page::default() };
    let mut kinds = Vec::new();
    for run in runs {
        let kind = ALL.iter().position(|entry| (entry.is)(&run.report)).ok_or_else(|| {
            let known: Vec<&str> = ALL.iter().map(|entry| entry.name).collect();
            Error::input("not a report that has a page")
                .at(run.name.clone())
                .hint(format!("reports of these have one: {}", known.join(", ")))
        })?;
        kinds.push(kind);
        page.runs.push(head(run, ALL[kind].name));
    }
    for (number, entry) in ALL.iter().enumerate() {
        let alike: Vec<&Run> =
            runs.iter().zip(&kinds).filter(|(_, kind)| **kind == number).map(|(run, _)| run).collect();
        if !alike.is_empty() {
            page.sections.extend((entry.sections)(&alike));
        }
    }
    Ok(page)
}

fn head(run: &Run, kind: &'static str) -> Head {
    let texts = |value: &Value| value.as_str().map(str::to_owned);
    let warnings = run.report.get("warnings").and_then(Value::as_array);
    Head {
        name: run.name.clone(),
        kind,
        warnings: warnings.into_iter().flatten().filter_map(texts).collect(),
        plan: run.report.get("plan").cloned().unwrap_or(Value::Null),
    }
}
