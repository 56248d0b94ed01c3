//! The forms in which results are written.

use std::collections::BTreeMap;

use crate::given::*;

#[test]
fn histograms_of_another_precision_are_refused() {
    let mut report = finished(&setting(), &rich());
    report["histograms"]["significant_digits"] = json!(2);
    let refused = read_histograms(&report).expect_err("they do not add up").to_string();
    assert!(refused.contains("`significant_digits` is not 3"), "{refused}");
    assert!(read_histograms(&json!({})).is_err());
}

/// Keys of the reference's summaries that ours must have too; those that the caller adds are left out.
fn missing(path: &str, reference: &Map<String, Value>, ours: &Value) -> Vec<String> {
    let wanted = reference.iter().filter(|(key, _)| !key.starts_with("autoscaling") && *key != "no_data");
    let missing = wanted.flat_map(|(key, value)| match (value, ours.get(key)) {
        (_, None) => vec![format!("{path}/{key}")],
        (Value::Object(keys), Some(ours)) => missing(&format!("{path}/{key}"), keys, ours),
        _ => Vec::new(),
    });
    missing.collect()
}

/// Broken by: any key of the reference that is renamed or moved.
#[test]
fn every_key_of_the_reference_is_there() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/kv-bench/reference_runs.json");
    let Ok(text) = std::fs::read_to_string(path) else { return };
    let runs: BTreeMap<String, Value> = serde_json::from_str(&text).expect("JSON");
    let ours = finished(&setting(), &rich());
    for (name, run) in runs {
        let top = run["top_level_keys"].as_array().expect("a list");
        for key in top.iter().filter_map(Value::as_str) {
            assert!(key == "fio_workload" || ours.get(key).is_some(), "{name}: {key}");
        }
        if let Some(summary) = run["summary"].as_object() {
            assert_eq!(missing(&name, summary, &ours["summary"]), Vec::<String>::new());
        }
    }
}

#[test]
fn the_text_fits_on_a_screen() {
    let run = collect(&setting(), window(10, &rich()));
    let text = table("wavetank bench: tiny-1b, 8 users", &run, &run.warnings());
    assert!(text.lines().count() <= 45, "{}", text.lines().count());
    insta::assert_snapshot!(text);
}

fn parameters() -> Vec<(String, Value)> {
    let named = [
        ("Model", json!("tiny, \"1b\"")),
        ("Num Users", json!(8)),
        ("Duration (s)", json!(10)),
        ("GPU Mem (GB)", json!(0)),
        ("CPU Mem (GB)", json!(4.5)),
    ];
    named.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// Broken by: a column that is written from anything else than the report.
#[test]
fn the_workbook_says_what_the_report_says() {
    use calamine::{Data, Reader, Xlsx};
    let report = finished(&setting(), &rich());
    let mut bytes = Vec::new();
    xlsx(&report, &parameters(), &mut bytes).expect("a vector takes everything");
    let mut book: Xlsx<_> = Xlsx::new(std::io::Cursor::new(bytes)).expect("a workbook");
    assert_eq!(book.sheet_names(), ["Summary", "Run Parameters", "Performance Metrics", "QoS Metrics"]);
    let rows: Vec<Vec<Data>> =
        book.worksheet_range("Summary").expect("a sheet").rows().map(<[Data]>::to_vec).collect();
    let cell = |name: &str| {
        let column = rows[0].iter().position(|cell| *cell == *name).expect(name);
        rows[1][column].to_string()
    };
    let summary = &report["summary"];
    let expected = [
        ("Model", &json!("tiny, \"1b\"")),
        ("CPU Mem (GB)", &json!(4.5)),
        ("Total Requests", &summary["total_requests"]),
        ("Storage IO P95 (ms)", &summary["storage_io_latency_ms"]["p95"]),
        ("cache_stats.storage_read_device_p99_ms", &summary["cache_stats"]["storage_read_device_p99_ms"]),
        ("qos_metrics.batch.latency_ms.mean", &summary["qos_metrics"]["batch"]["latency_ms"]["mean"]),
    ];
    for (name, value) in expected {
        let value = value.as_f64().map_or_else(|| value.as_str().unwrap_or("").to_owned(), |v| v.to_string());
        assert_eq!(cell(name), value, "{name}");
    }
    let qos = book.worksheet_range("QoS Metrics").expect("a sheet");
    let classes: Vec<String> = qos.rows().map(|row| row[0].to_string()).collect();
    assert_eq!(classes, ["Class", "batch", "interactive", "responsive"]);
}

#[test]
fn the_csv_is_the_summary_row() {
    let report = finished(&setting(), &rich());
    let mut bytes = Vec::new();
    csv(&report, &parameters(), &mut bytes).expect("a vector takes everything");
    let text = String::from_utf8(bytes).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with(
        "Model,Num Users,Duration (s),GPU Mem (GB),CPU Mem (GB),Total Requests,Total Tokens,\
         Avg Throughput (tok/s),Storage Throughput (tok/s),Cache Hit Rate,\
         E2E Latency P95 (ms),Storage IO P95 (ms),"
    ));
    assert!(lines[1].starts_with("\"tiny, \"\"1b\"\"\",8,10,0,4.5,40,4000,400.0,"), "{}", lines[1]);
}
