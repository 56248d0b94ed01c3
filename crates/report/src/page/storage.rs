//! Benchmarks of storage tiers: what users got of them, how much was moved, and how fast.

mod latency;
mod moved;

use serde_json::Value;

use super::{Cell, Entry, Run, Section, Table};
use crate::pointers::number;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry { name: "bench", is, sections };

fn is(report: &Value) -> bool {
    report.get("throughput_timeline").is_some() && report.get("accounting").is_some()
}

fn sections(runs: &[&Run]) -> Vec<Section> {
    let section = |title: &str, figures| Section { title: title.to_owned(), tables: Vec::new(), figures };
    let mut sections = vec![
        Section { tables: vec![glance(runs)], ..section("The benchmark at a glance", Vec::new()) },
        section("Tiers and bandwidth", moved::figures(runs)),
        section("Latency of tiers and requests", latency::figures(runs)),
    ];
    sections.retain(|section| !section.figures.is_empty() || !section.tables.is_empty());
    sections
}

/// Pointer and name.
const ROWS: [(&str, &str); 10] = [
    ("/requests_completed", "requests completed"),
    ("/summary/avg_throughput_tokens_per_sec", "tokens per second"),
    ("/summary/requests_per_second", "requests per second"),
    ("/summary/cache_stats/cache_hit_rate", "lookups that hit (share)"),
    ("/summary/cache_stats/tier_storage_read_bandwidth_gbps", "storage read (GiB/s)"),
    ("/summary/cache_stats/tier_storage_write_bandwidth_gbps", "storage write (GiB/s)"),
    ("/summary/cache_stats/storage_read_device_p95_ms", "storage device read, P95 (ms)"),
    ("/summary/cache_stats/storage_write_device_p95_ms", "storage device write, P95 (ms)"),
    ("/summary/end_to_end_latency_ms/p95", "end to end, P95 (ms)"),
    ("/summary/queue_wait_ms/p95", "waiting for a worker, P95 (ms)"),
];

/// A number that has samples: the reference's keys are 0 where there are none.
fn sampled(report: &Value, pointer: &str) -> f64 {
    let value = number(report, pointer);
    let is_nothing = match pointer {
        device if device.ends_with("_device_p95_ms") => value == 0.0,
        request if request.ends_with("_ms/p95") => number(report, "/requests_completed") == 0.0,
        _ => false,
    };
    if is_nothing { f64::NAN } else { value }
}

/// A row for each number that any run has, and what took the most time in words.
fn glance(runs: &[&Run]) -> Table {
    let has = |pointer: &str| runs.iter().any(|run| sampled(&run.report, pointer).is_finite());
    let row = |(pointer, name): &(&str, &str)| {
        let numbers = runs.iter().map(|run| Cell::Number(sampled(&run.report, pointer)));
        std::iter::once(Cell::Text((*name).to_owned())).chain(numbers).collect()
    };
    let text = |run: &&Run, pointer: &str| {
        let words = run.report.pointer(pointer).and_then(Value::as_str);
        Cell::Text(words.unwrap_or_default().to_owned())
    };
    let said = [
        ("/summary/bottleneck/sentence", "what took the most time"),
        ("/summary/cache_stats/storage_health/overall_status", "storage assessment"),
    ];
    let said = said.map(|(pointer, name)| {
        std::iter::once(Cell::Text(name.to_owned()))
            .chain(runs.iter().map(|run| text(run, pointer)))
            .collect()
    });
    Table {
        title: "Numbers of each benchmark".to_owned(),
        columns: std::iter::once("number".to_owned())
            .chain(runs.iter().map(|run| run.name.clone()))
            .collect(),
        rows: ROWS.iter().filter(|(pointer, _)| has(pointer)).map(row).chain(said).collect(),
        of_figure: None,
    }
}

/// What is named after its run where there are several.
fn named(runs: &[&Run], run: &Run, name: &str) -> String {
    if runs.len() == 1 { name.to_owned() } else { format!("{}: {name}", run.name) }
}

#[cfg(test)]
mod tests;
