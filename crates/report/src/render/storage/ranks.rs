//! Runs that were put together, beside each other.

use super::table::shown;
use crate::render::table::{framed, number};
use crate::storage::{Bandwidth, MetricName, StorageSummary};
use wavetank_model::TierRole;

/// A line for each part of `run`, called as `names` say, and one for all of them.
pub fn ranks(names: &[String], run: &StorageSummary) -> String {
    let mut table = framed(&[
        "Rank",
        "window s",
        "requests",
        "read GiB/s",
        "write GiB/s",
        "tokens/s",
        "P50 ms",
        "P95 ms",
        "P99 ms",
    ]);
    for (name, part) in names.iter().zip(&run.parts) {
        table.add_row(cells(name, part));
    }
    table.add_row(cells("all", run));
    format!("{table}\n")
}

fn cells(name: &str, run: &StorageSummary) -> Vec<String> {
    let Bandwidth { read_gbps, write_gbps } = run.bandwidth(TierRole::Storage);
    let latency = &run.requests.end_to_end;
    vec![
        name.to_owned(),
        number(run.window.elapsed.as_seconds()),
        run.requests.completed().to_string(),
        number(read_gbps),
        number(write_gbps),
        number(run.metric(MetricName::WallClock).value),
        shown(latency, latency.p50),
        shown(latency, latency.p95),
        shown(latency, latency.p99),
    ]
}
