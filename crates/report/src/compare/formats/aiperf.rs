//! AIPerf's `profile_export_aiperf.json`: an object of statistics and a unit per metric.
//!
//! Its inter_token_latency is one mean per request, our TPOT; its inter_chunk_latency is every gap, our ITL.
//! Its output_token_throughput_per_user is the inverse of that mean, ours of every gap: they have no name in
//! common.

use serde_json::Value;
use wavetank_model::{Error, Result};

use super::{Entry, Object, Repeat, failures, number, wrong};

pub(super) const ENTRY: Entry = Entry {
    name: "aiperf",
    about: "AIPerf's profile_export_aiperf.json",
    artifact: Some("profile_export_aiperf.json"),
    recognises: |export| {
        let has_unit = |metric: &Value| metric.get("unit").is_some_and(Value::is_string);
        export.get("request_latency").is_some_and(has_unit)
    },
    read,
};

/// What is one number: its name, ours, and the units it may have with what one of them is in ours.
const TOTALS: &[(&str, &str, Units)] = &[
    ("request_count", "completed_requests", REQUESTS),
    ("completed_request_count", "num_requests", REQUESTS),
    ("total_isl", "total_input_tokens", TOKENS),
    ("total_osl", "total_output_tokens", TOKENS),
    ("benchmark_duration", "duration_ms", MILLISECONDS),
    ("request_throughput", "request_throughput_rps", REQUEST_RATE),
    ("input_token_throughput", "input_throughput_tok_s", TOKEN_RATE),
    ("output_token_throughput", "output_throughput_tok_s", TOKEN_RATE),
    ("total_token_throughput", "total_throughput_tok_s", TOKEN_RATE),
    ("good_request_count", "goodput_completed_requests", REQUESTS),
    ("goodput", "goodput_request_throughput_rps", REQUEST_RATE),
    ("overall_usage_prompt_cache_read_pct", "prefix_cache_reused_ratio", &[("%", 0.01)]),
];

/// What is a distribution of times.
const TIMES: &[(&str, &str)] = &[
    ("time_to_first_token", "ttft_ms"),
    ("time_to_second_token", "ttst_ms"),
    ("inter_token_latency", "tpot_ms"),
    ("inter_chunk_latency", "itl_ms"),
    ("request_latency", "e2e_latency_ms"),
];

const STATISTICS: &[(&str, &str)] = &[
    ("avg", "mean"),
    ("min", "min"),
    ("max", "max"),
    ("p50", "median"),
    ("p75", "p75"),
    ("p90", "p90"),
    ("p95", "p95"),
    ("p99", "p99"),
    ("std", "std"),
];

/// Units by name, each with what one of it is in ours.
type Units = &'static [(&'static str, f64)];

const REQUESTS: Units = &[("requests", 1.0)];
const TOKENS: Units = &[("tokens", 1.0)];
const REQUEST_RATE: Units = &[("requests/sec", 1.0)];
const TOKEN_RATE: Units = &[("tokens/sec", 1.0)];
const MILLISECONDS: Units = &[("ns", 1e-6), ("us", 1e-3), ("ms", 1.0), ("sec", 1e3)];

fn read(export: &Object) -> Result<Repeat> {
    let mut run = Repeat::default();
    for (theirs, ours, units) in TOTALS {
        if let Some(total) = statistic(export, theirs, "avg", units)? {
            run.set(ours, total);
        }
    }
    for (theirs, ours) in TIMES {
        for (key, name) in STATISTICS {
            if let Some(value) = statistic(export, theirs, key, MILLISECONDS)? {
                run.set(&format!("{name}_{ours}"), value);
            }
        }
    }
    if export.get("was_cancelled") == Some(&Value::Bool(true)) {
        run.remarks.push("was cancelled".to_owned());
    }
    let failed = statistic(export, "error_request_count", "avg", REQUESTS)?;
    run.remarks.extend(failed.and_then(failures));
    Ok(run)
}

/// One statistic of a metric in our unit; none where either is missing.
fn statistic(export: &Object, metric: &str, key: &str, units: Units) -> Result<Option<f64>> {
    let statistics = match export.get(metric) {
        None | Some(Value::Null) => return Ok(None),
        Some(found) => found.as_object().ok_or_else(|| wrong(metric, "an object"))?,
    };
    let unit = statistics.get("unit").and_then(Value::as_str).unwrap_or_default();
    let (_, factor) = units.iter().find(|(name, _)| *name == unit).ok_or_else(|| {
        let known: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
        Error::input(format!("\"{metric}\" is in the unit \"{unit}\""))
            .hint(format!("known: {}", known.join(", ")))
    })?;
    let value = number(statistics, key).map_err(|_| wrong(&format!("{metric}.{key}"), "a number"))?;
    Ok(value.map(|value| value * factor))
}
