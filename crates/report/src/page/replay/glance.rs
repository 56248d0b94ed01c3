//! What is said first.

use super::super::{Cell, Run, Table};
use crate::pointers::number;

/// Key and name.
const ROWS: [(&str, &str); 14] = [
    ("completed_requests", "requests completed"),
    ("request_throughput_rps", "requests per second"),
    ("output_throughput_tok_s", "output tokens per second"),
    ("mean_ttft_ms", "time to first token, mean (ms)"),
    ("median_ttft_ms", "time to first token, median (ms)"),
    ("p99_ttft_ms", "time to first token, P99 (ms)"),
    ("mean_itl_ms", "between tokens, mean (ms)"),
    ("p99_itl_ms", "between tokens, P99 (ms)"),
    ("mean_e2e_latency_ms", "end to end, mean (ms)"),
    ("p99_e2e_latency_ms", "end to end, P99 (ms)"),
    ("prefix_cache_reused_ratio", "prompt tokens found in a cache (share)"),
    ("goodput_request_throughput_rps", "requests per second within the bounds"),
    ("duration_ms", "simulated time (ms)"),
    ("gpu_hours", "GPU hours"),
];

/// A row for each number that any run has, a column for each run.
pub(super) fn table(runs: &[&Run]) -> Table {
    let value = |run: &Run, key: &str| number(&run.report, &format!("/{key}"));
    let has = |key: &str| runs.iter().any(|run| value(run, key).is_finite());
    let row = |(key, name): &(&str, &str)| {
        let numbers = runs.iter().map(|run| Cell::Number(value(run, key)));
        std::iter::once(Cell::Text((*name).to_owned())).chain(numbers).collect()
    };
    Table {
        title: "Numbers of each run".to_owned(),
        columns: std::iter::once("number".to_owned())
            .chain(runs.iter().map(|run| run.name.clone()))
            .collect(),
        rows: ROWS.iter().filter(|(key, _)| has(key)).map(row).collect(),
        of_figure: None,
    }
}
