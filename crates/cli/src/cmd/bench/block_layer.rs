//! What bpftrace saw, as lines of the printed summary.

use std::fmt::Write as _;

use serde_json::Value;

/// Names of histograms in the report, what they are, and their unit.
const ROWS: &[(&str, &str, &str)] = &[
    ("q2d_us", "queued to dispatched", "us"),
    ("d2c_us", "dispatched to completed", "us"),
    ("vfs_us", "call or ring", "us"),
    ("fsync_us", "fsync", "us"),
    ("block_bytes", "request", "bytes"),
    ("queue_depth", "under way", ""),
];

/// A table of `traced`, a report's `/block_layer/traced`; nothing where nobody looked.
pub(super) fn table(traced: &Value) -> String {
    let rows = ROWS.iter().flat_map(|row| lines(traced, row));
    let rows: String = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("Block layer (bpftrace; powers of two, at least):\n{rows}")
}

fn lines(traced: &Value, (name, about, unit): &(&str, &str, &str)) -> Vec<String> {
    let found = &traced[*name];
    let ways = match found.get("count") {
        Some(_) => vec![("", found)],
        None => found.as_object().into_iter().flatten().map(|(way, value)| (way.as_str(), value)).collect(),
    };
    ways.into_iter().map(|(way, histogram)| line(&format!("{about} {way}"), unit, histogram)).collect()
}

fn line(what: &str, unit: &str, histogram: &Value) -> String {
    let mut text = format!("  {:<32}", what.trim_end());
    for percentile in ["p50", "p95", "p99"] {
        let value = histogram[percentile].as_i64().unwrap_or(0);
        let _ = write!(text, "{} {value:>9}  ", percentile.to_uppercase());
    }
    let count = histogram["count"].as_u64().unwrap_or(0);
    format!("{text}{unit:<6}{count:>9} samples\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_seen_is_shown_by_way() {
        let histogram = |count: u64| json!({ "count": count, "p50": 8, "p95": 64, "p99": 1024 });
        let traced = json!({
            "d2c_us": { "read": histogram(12), "write": histogram(3) },
            "queue_depth": histogram(15),
        });
        insta::assert_snapshot!(table(&traced));
        assert_eq!(table(&Value::Null), "");
        assert_eq!(table(&json!({ "disks": ["254:0"], "failed": "it did not begin" })), "");
    }
}
