//! Users really come and go.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{BOOKED, SMALL, Stand, list, number};

/// On a virtual clock: throughput rises with users until as many requests as possible are worked on.
/// Breaks when users are only counted, when the search does not end, or when it compares averages of all
/// time.
#[test]
fn capacity_ends_at_the_peak() {
    let stand = Stand::new();
    let line = "--enable-autoscaling --autoscaler-mode capacity --scale-interval 5 --duration 600 \
        --num-users 2 --load closed --cpu-mem-gb 0";
    let report = stand.bench(&format!("{BOOKED} {line}")).json();
    let steps = list(&report, "/autoscaling_stats");
    let users: Vec<u64> = steps.iter().map(|step| step["users"].as_u64().expect("users")).collect();
    assert!(users[0] == 4 && users.len() > 5 && users.is_sorted(), "{users:?}");
    let last = steps.last().expect("a step");
    let reason = last["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("Peak capacity found"), "{reason}");
    let best = steps.iter().map(|step| number(step, "/throughput_tokens_per_sec")).fold(0.0, f64::max);
    assert_eq!(number(last, "/peak_throughput"), best, "the peak is of one interval, not an average");
    assert_eq!(report["ended"], "peak capacity found");
    assert_eq!(last["action"], "stop");
    let summary = &report["autoscaling_summary"];
    assert_eq!((&summary["initial_users"], &summary["final_users"]), (&2.into(), &last["users"]));
    assert_eq!(summary["peak_throughput_tokens_per_sec"], last["peak_throughput"]);
    assert!(number(&report, "/summary/elapsed_time") < 600.0, "it ends when it has found it");
}

/// Who asks can be read off the log.
#[test]
fn users_who_come_ask() {
    let stand = Stand::new();
    let line = "--model tiny-1b --config scaled.yaml --gpu-mem-gb 0 --cpu-mem-gb 0 --num-users 2 \
        --duration 20 --io-trace-log log.csv";
    let asked = |flags: &str| {
        let report = stand.bench(&format!("{line} {flags}")).json();
        let text = stand.sandbox.read("log.csv");
        let keys = text.lines().filter_map(|row| row.split(',').nth(4));
        let users = keys.filter_map(|key| key.strip_prefix("conv_")?.get(..9).map(str::to_owned));
        (users.collect::<BTreeSet<String>>().len(), report)
    };
    assert_eq!(asked("").0, 2);
    let (users, report) = asked("--enable-autoscaling --scale-interval 1 --load closed");
    let most = list(&report, "/autoscaling_stats").iter().filter_map(|step| step["users"].as_u64()).max();
    assert!(users > 4 && most >= Some(users as u64), "{users} {most:?}");
}

/// What the autoscaler looks at is latency of this interval, in the unit it says.
/// Breaks when latencies are cut off, or are those of the whole run.
#[test]
fn qos_sees_latency() {
    let stand = Stand::new();
    let line = "--cpu-mem-gb 0 --num-users 8 --generation-mode none --enable-autoscaling \
        --scale-interval 0.3 --warmup 0";
    let report = stand.bench(&format!("{SMALL} {line}")).json();
    let steps = list(&report, "/autoscaling_stats");
    let reads: Vec<f64> = steps.iter().filter_map(|step| step["read_latency_p95_ms"].as_f64()).collect();
    let all = &report["summary"]["cache_stats"];
    let (p50, most) = (number(all, "/storage_read_p50_ms"), number(all, "/storage_read_p9999_ms"));
    assert!(
        !reads.is_empty() && reads.iter().all(|p95| *p95 <= most * 1.002),
        "{reads:?}, {most} ms at most"
    );
    assert!(reads.iter().any(|p95| *p95 >= p50 / 10.0), "{reads:?}, {p50} ms is the median");
    assert!(steps.iter().all(|step| step["saturation_level"].as_f64().is_some_and(|level| level <= 1.0)));
    let moved: BTreeSet<String> = steps.iter().map(|step| step["users"].to_string()).collect();
    assert!(moved.len() > 1 || steps.iter().all(|step| step["action"] == "hold"), "{steps:?}");
    assert_eq!(report["summary"]["autoscaling_stats"], Value::from(steps.clone()));
}
