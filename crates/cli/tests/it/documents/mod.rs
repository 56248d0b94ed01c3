//! What README.md and the pages of docs/ say about the command, held against the command.

mod console;
#[path = "../../../../../xtask/src/fences.rs"]
mod fences;
mod files;
mod formats;
mod metrics;
mod migration;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::sandbox::repository;

/// A page of the repository.
struct Page {
    /// From the root.
    name: String,
    text: String,
}

impl Page {
    fn of(name: &str) -> Self {
        let text = fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { name: name.to_owned(), text }
    }

    /// README.md and every page of docs/.
    fn all() -> Vec<Self> {
        let entries = fs::read_dir(path("docs")).expect("docs/").map(|entry| entry.expect("an entry"));
        let names = entries.map(|entry| entry.file_name().into_string().expect("a name in UTF-8"));
        let mut names: Vec<String> =
            names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")).collect();
        names.push("README.md".to_owned());
        names.sort();
        names.iter().map(|name| Self::of(name)).collect()
    }

    /// The cells of every row of its tables, without headings and rules.
    fn rows(&self) -> Vec<Vec<&str>> {
        let lines = self.text.lines().map(str::trim).filter(|line| line.starts_with('|'));
        let rows: Vec<Vec<&str>> = lines.map(cells).collect();
        let is_rule = |row: &[&str]| row.concat().chars().all(|c| "-:".contains(c));
        let is_heading = |at: usize| rows.get(at + 1).is_some_and(|next| is_rule(next));
        let is_row = |at: &usize| !is_rule(&rows[*at]) && !is_heading(*at);
        (0..rows.len()).filter(is_row).map(|at| rows[at].clone()).collect()
    }
}

/// What is between the bars of a row; `\|` is no bar.
fn cells(line: &str) -> Vec<&str> {
    let bars: Vec<usize> = line.match_indices('|').map(|(at, _)| at).collect();
    let bars: Vec<usize> = bars.into_iter().filter(|&at| !line[..at].ends_with('\\')).collect();
    bars.windows(2).map(|pair| line[pair[0] + 1..pair[1]].trim()).collect()
}

/// Whether the pages explain a report of `wavetank loop` and what it printed: going round takes a device, so
/// that the test that does it asks.
pub(crate) fn explain_loop(report: &Value, printed: &str) {
    formats::explains(report, "loop");
    metrics::explains_loop(report, printed);
}

fn path(name: &str) -> PathBuf {
    repository().join(name)
}

/// What stands in backquotes.
fn code(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn rows_of_tables_are_told_from_headings() {
    let text = "| a | b |\n|---|:-:|\n| `c` | | d\\|e |\nx\n| f |\n|---|\n";
    let page = Page { name: String::new(), text: text.to_owned() };
    assert_eq!(page.rows(), [vec!["`c`", "", "d\\|e"]]);
    assert_eq!(code("x `a` y `b c`"), ["a", "b c"]);
}
