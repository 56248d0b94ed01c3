//! Reports of `wavetank bench` and of its reference (spec/kv-bench.md 16), whose tokens are those generated.

use serde_json::Value;
use wavetank_model::Result;

use super::{Entry, Object, Repeat, cut_short, number, wrong};

pub(super) const ENTRY: Entry = Entry {
    name: "storage",
    about: "a report of wavetank bench",
    artifact: None,
    recognises: |report| {
        let summary = report.get("summary").and_then(Value::as_object);
        summary.is_some_and(|summary| RATES.iter().any(|key| summary.contains_key(*key)))
    },
    read,
};

/// Tokens per second, by its name and by the one it had before.
const RATES: [&str; 2] = ["avg_throughput_tokens_per_sec", "total_tokens_per_sec"];

const NAMES: &[(&str, &str)] = &[
    ("total_requests", "completed_requests"),
    ("total_tokens", "total_output_tokens"),
    ("requests_per_second", "request_throughput_rps"),
];

const LATENCY: &[(&str, &str)] = &[
    ("mean", "mean_e2e_latency_ms"),
    ("p50", "median_e2e_latency_ms"),
    ("p95", "p95_e2e_latency_ms"),
    ("p99", "p99_e2e_latency_ms"),
];

fn read(report: &Object) -> Result<Repeat> {
    let part = |object: &Object, key: &str| {
        object.get(key).and_then(Value::as_object).cloned().ok_or_else(|| wrong(key, "an object"))
    };
    let summary = part(report, "summary")?;
    let mut run = Repeat { plan: report.get("plan").cloned(), ..Repeat::default() };
    run.take(&summary, NAMES)?;
    for key in RATES {
        if let Some(rate) = number(&summary, key)? {
            run.set("output_throughput_tok_s", rate);
            run.set("total_tokens_per_sec", rate);
        }
    }
    if let Some(seconds) = number(&summary, "elapsed_time")? {
        run.set("duration_ms", seconds * 1e3);
    }
    if summary.contains_key("end_to_end_latency_ms") {
        run.take(&part(&summary, "end_to_end_latency_ms")?, LATENCY)?;
    }
    run.remarks.extend(cut_short(report));
    Ok(run)
}
