//! Many reports side by side: what is read off them, what they say together, and how it is shown.

use calamine::{Data, Reader, Xlsx};
use insta::assert_snapshot;
use serde_json::{Value, json};
use wavetank_report::render::suite::{SuiteSheet, json as suite_json, table, xlsx};
use wavetank_report::suite::{Figures, Row, Status, SuiteSummary};

/// A tier before the drive.
fn memory(role: &str, gib: u64) -> Value {
    let backend = if role == "gpu" { "gpu_sim" } else { "memory" };
    json!({ "role": role, "backend": backend, "capacity_bytes": gib << 30 })
}

/// With so much main memory for entries.
fn with_memory(mut report: Value, gib: u64) -> Value {
    report["plan"]["run"]["tiers"][0] = memory("cpu", gib);
    report
}

/// A report with the keys that are read; latencies are `p95_s` seconds or a part of it.
fn report(users: u64, tokens_per_second: f64, p95_s: f64) -> Value {
    let ms = p95_s * 1000.0;
    let drive = json!({ "role": "storage", "backend": "direct", "capacity_bytes": 100u64 << 30 });
    let run = json!({ "users": users, "tiers": [memory("cpu", 4), drive] });
    json!({
        "plan": { "model": { "name": "llama3.1-8b" }, "run": run },
        "warnings": ["one", "two"],
        "trials": {
            "run": 1,
            "metric": "wall_clock",
            "agreement": { "median": tokens_per_second, "cv": null, "verdict": "too few trials to tell" },
        },
        "autoscaling_summary": null,
        "summary": {
            "total_requests": 1200,
            "elapsed_time": 120.0,
            "avg_throughput_tokens_per_sec": tokens_per_second,
            "requests_per_second": 10.0,
            "end_to_end_latency_ms": { "p50": ms / 2.0, "p95": ms, "p99": ms * 1.5 },
            "queue_wait_ms": { "mean": ms / 10.0, "p95": ms / 4.0 },
            "cache_stats": {
                "tier_storage_read_bandwidth_gbps": p95_s,
                "tier_storage_write_bandwidth_gbps": p95_s / 2.0,
                "storage_read_device_p95_ms": 12.5,
                "cache_lookups": 100,
                "cache_hit_rate": 0.93,
                "storage_health": {
                    "overall_status": "PASS",
                    "criteria": [
                        { "tier": "storage", "passed": null },
                        { "tier": "storage", "passed": true },
                        { "tier": null, "passed": true },
                    ],
                },
            },
            "tiers": [
                { "role": "cpu", "entries": 30, "bytes": 300, "reads": { "bytes": 1000 } },
                { "role": "storage", "entries": 10, "bytes": 700, "reads": { "bytes": 3000 } },
            ],
            "bottleneck": {
                "part": "storage_read",
                "share": 0.71,
                "sentence": "storage reads: 71 % of end-to-end latency",
            },
            "qos_metrics": {},
        },
    })
}

fn done(name: &str, report: &Value) -> Row {
    let figures = Figures::of(report).unwrap_or_else(|error| panic!("{error}"));
    Row { name: name.to_owned(), title: name.to_owned(), status: Status::Done(Box::new(figures)) }
}

fn other(name: &str, status: Status) -> Row {
    Row { name: name.to_owned(), title: name.to_owned(), status }
}

fn scaled(users: u64, summary: Value) -> Value {
    let mut report = report(users, 900.0, 2.0);
    report["autoscaling_summary"] = summary;
    report
}

fn suite() -> SuiteSummary {
    let qos = json!({
        "final_users": 44, "most_users_within_target": 36, "peak_user_count": null,
        "peak_throughput_tokens_per_sec": null, "reason": "above the target twice: fewer users",
    });
    let capacity = json!({
        "final_users": 80, "most_users_within_target": null, "peak_user_count": 60,
        "peak_throughput_tokens_per_sec": 1234.5, "reason": "Peak capacity found",
    });
    let mut tried = report(100, 700.0, 9.0);
    tried["trials"] = json!({
        "run": 3, "metric": "storage_io", "agreement": { "median": 700.0, "cv": 0.042, "verdict": "steady" },
    });
    let mut modelled = report(50, 900.0, 1.1);
    modelled["plan"]["run"]["tiers"] = json!([memory("gpu", 16), memory("cpu", 16)]);
    let mut cached = report(300, 700.0, 31.0);
    cached["summary"]["tiers"][0]["reads"]["bytes"] = (90u64 << 30).into();
    cached["summary"]["tiers"][1]["reads"]["bytes"] = (1u64 << 30).into();
    let rows = vec![
        done("gpu-cpu", &modelled),
        other("gpu-only", Status::Skipped { why: "no driver; --gpu-tier sim models one".to_owned() }),
        done("cpu-only", &with_memory(report(50, 812.0, 1.2), 16)),
        done("storage-only", &report(50, 640.0, 4.8)),
        done("cpu-storage", &cached),
        done("storage-saturation", &report(299, 512.0, 100.0)),
        other("production", Status::Failed { why: "the drive is full: /mnt/nvme".to_owned() }),
        done("autoscale", &scaled(20, qos)),
        done("capacity-autoscale", &scaled(10, capacity)),
        done("mlperf-throughput-8b", &tried),
        other("mlperf-stress-8b", Status::Interrupted),
        other("mlperf-stress-70b", Status::NotRun),
    ];
    SuiteSummary { quick: false, rows }
}

/// Broken by: comparing scenarios with different users, leaving out what has no numbers.
#[test]
fn the_table_and_what_it_says() {
    let text = table(&suite());
    assert!(text.lines().all(|line| line.starts_with("  ") || line.chars().count() <= 120), "{text}");
    assert_snapshot!(text);
}

/// Broken by: calling a scenario the one with more memory when it is not, or hiding how much both had.
#[test]
fn pairs_differ_in_memory_and_say_so() {
    let found = |gib: u64| {
        let mut slower = report(300, 512.0, 100.0);
        slower["summary"]["elapsed_time"] = 180.into();
        let rows = vec![
            done("cpu-storage", &with_memory(report(300, 700.0, 31.0), gib)),
            done("storage-saturation", &slower),
        ];
        SuiteSummary { quick: false, rows }.findings()
    };
    assert_eq!(
        found(16)[0],
        "cpu-storage (16.0 GiB of memory) against storage-saturation (4.00 GiB), 300 users, measured for 120 \
         and 180 s: end-to-end P95 31.0 against 100 s, 700 against 512 tok/s"
    );
    for gib in [1, 4] {
        assert!(!found(gib).iter().any(|line| line.contains("against")), "{:?}", found(gib));
    }
}

/// Broken by: a drive that is said to be good enough because of the hit rate of memory.
#[test]
fn a_drive_that_was_not_used_is_not_judged() {
    let mut report = report(4, 1.0, 1.0);
    assert_eq!(Figures::of(&report).unwrap().assessment, "PASS");
    report["summary"]["cache_stats"]["storage_health"]["criteria"][1]["passed"] = Value::Null;
    assert_eq!(Figures::of(&report).unwrap().assessment, "N/A");
}

#[test]
fn nothing_is_said_of_what_is_missing() {
    let rows = vec![done("cpu-only", &report(50, 812.0, 1.2)), other("storage-only", Status::NotRun)];
    let suite = SuiteSummary { quick: true, rows };
    assert_eq!(suite.findings().len(), 1, "only what storage moved");
    assert!(!suite.is_complete());
    assert!(table(&suite).starts_with("Speed (quick, not that of the machine); "));
    let json = suite_json(&suite);
    assert_eq!((&json["quick"], &json["complete"]), (&true.into(), &false.into()));
    assert_eq!(
        json["scenarios"][1],
        json!({ "name": "storage-only", "title": "storage-only", "status": "not_run" })
    );
    assert_eq!(json["scenarios"][0]["end_to_end_ms"]["p95"], 1200.0);
}

/// Nobody was served: there is no latency, and it is not zero.
#[test]
fn what_was_not_measured_is_not_zero() {
    let mut report = report(4, 0.0, 0.0);
    report["summary"]["total_requests"] = 0.into();
    report["summary"]["cache_stats"]["cache_lookups"] = 0.into();
    let figures = Figures::of(&report).unwrap();
    assert_eq!((figures.end_to_end_ms, figures.queue_wait_ms, figures.hit_rate), (None, None, None));
    assert_eq!((figures.device_read_p95_ms, figures.device_write_p95_ms), (Some(12.5), None));
    assert_eq!(figures.trials.cv, None, "one trial has no spread");
}

#[test]
fn a_broken_report_is_named_by_its_key() {
    let mut report = report(4, 1.0, 1.0);
    report["summary"]["tiers"][1]["entries"] = json!(-1);
    let error = Figures::of(&report).unwrap_err().to_string();
    assert!(error.starts_with("\"entries\" is not a whole number\nhint: "), "{error}");
    report["summary"]["bottleneck"] = Value::Null;
    report["summary"]["tiers"] = json!([]);
    let error = Figures::of(&report).unwrap_err().to_string();
    assert!(error.starts_with("\"summary.bottleneck.part\" is not a text"), "{error}");
}

#[test]
fn a_workbook_has_a_sheet_for_each() {
    let suite = suite();
    let sheet = SuiteSheet {
        name: "cpu-only".to_owned(),
        report: report(50, 812.0, 1.2),
        parameters: vec![("Model".to_owned(), json!("llama3.1-8b"))],
    };
    let machine = vec![("Processor".to_owned(), json!("Wave 9000"))];
    let mut bytes = Vec::new();
    xlsx(&suite, machine, &[sheet], &mut bytes).unwrap();
    let mut book = Xlsx::new(std::io::Cursor::new(bytes)).unwrap();
    let names: Vec<String> = suite.rows.iter().map(|row| row.name.clone()).collect();
    assert_eq!(book.sheet_names()[..2], ["Summary", "Machine"]);
    assert_eq!(book.sheet_names()[2..], names);
    let summary = book.worksheet_range("Summary").unwrap();
    let rows: Vec<&[Data]> = summary.rows().collect();
    assert_eq!(rows.len(), 1 + suite.rows.len());
    let column = |name: &str| rows[0].iter().position(|cell| *cell == *name).expect("a column");
    assert_eq!(rows[2][column("Reason")].to_string(), "no driver; --gpu-tier sim models one");
    assert_eq!(rows[3][column("E2E Latency P95 (ms)")], Data::Float(1200.0));
    assert_eq!(rows[10][column("CV of Trials")], Data::Float(0.042));
    let alone = book.worksheet_range("cpu-only").unwrap();
    let cells: Vec<String> = alone.rows().map(|row| row[0].to_string()).collect();
    assert!(cells.contains(&"Model".to_owned()) && cells.contains(&"Total Requests".to_owned()), "{cells:?}");
    let skipped = book.worksheet_range("gpu-only").unwrap();
    assert_eq!(skipped.rows().nth(1).unwrap()[1].to_string(), "skipped");
}
