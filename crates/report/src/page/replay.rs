//! Simulated serving runs: what users would have seen, and why.

use serde_json::Value;

use super::{Cell, Entry, Run, Section, Table};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry { name: "replay", is, sections };

fn is(report: &Value) -> bool {
    report.get("attribution").is_some()
        && report.get("plan").is_some_and(|plan| plan.get("simulation").is_some())
}

fn sections(runs: &[&Run]) -> Vec<Section> {
    vec![Section { title: "At a glance".to_owned(), tables: vec![glance(runs)], figures: Vec::new() }]
}

/// What is said first: key and name.
const GLANCE: [(&str, &str); 10] = [
    ("completed_requests", "requests completed"),
    ("request_throughput_rps", "requests per second"),
    ("output_throughput_tok_s", "output tokens per second"),
    ("mean_ttft_ms", "time to first token, mean (ms)"),
    ("p99_ttft_ms", "time to first token, P99 (ms)"),
    ("mean_itl_ms", "between tokens, mean (ms)"),
    ("p99_itl_ms", "between tokens, P99 (ms)"),
    ("p99_e2e_latency_ms", "end to end, P99 (ms)"),
    ("prefix_cache_reused_ratio", "prompt tokens found in the cache (share)"),
    ("gpu_hours", "GPU hours"),
];

/// A row for each number, a column for each run.
fn glance(runs: &[&Run]) -> Table {
    let number = |run: &&Run, key: &str| run.report.get(key).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let row = |(key, name): &(&str, &str)| {
        let numbers = runs.iter().map(|run| Cell::Number(number(run, key)));
        std::iter::once(Cell::Text((*name).to_owned())).chain(numbers).collect()
    };
    Table {
        title: "At a glance".to_owned(),
        columns: std::iter::once(String::new()).chain(runs.iter().map(|run| run.name.clone())).collect(),
        rows: GLANCE.iter().map(row).collect(),
        of_figure: None,
    }
}
