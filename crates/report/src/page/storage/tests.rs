//! What a page shows of benchmarks.

use serde_json::json;

use super::super::{Cell, Run, page};
use crate::figure::Figure;

fn run(name: &str) -> Run {
    let report = json!({
        "accounting": { "cpu": { "reads": 0, "writes": 0 }, "storage": { "reads": 3, "writes": 1 } },
        "throughput_timeline": [{ "timestamp": 1.0, "storage_read_gbps": 2.0, "storage_write_gbps": 0.5 }],
        "histograms": { "storage_read_device": { "buckets": [[1_000_000, 3], [5_000_000, 1]] } },
        "summary": {
            "bottleneck": { "sentence": "reading took 80 %", "shares": { "storage_read": 0.8 } },
            "cache_stats": { "tier_storage_read_bandwidth_gbps": 2.0, "storage_health": {} },
        },
    });
    Run { name: name.to_owned(), report }
}

fn figure(runs: &[Run], id: &str) -> Figure {
    let sections = page("t", runs).unwrap().sections;
    let found = sections.into_iter().flat_map(|section| section.figures).find(|figure| figure.id == id);
    found.unwrap_or_else(|| panic!("no {id}"))
}

#[test]
fn histograms_become_curves() {
    let device = figure(&[run("a")], "device-latency");
    assert_eq!(device.series[0].points, [(1.0, 75.0), (5.0, 100.0)]);
    assert_eq!(device.series.len(), 1, "nothing was written");
}

#[test]
fn tiers_that_nobody_used_are_left_out() {
    let hits = figure(&[run("a"), run("b")], "tier-hits");
    assert_eq!(hits.x.names, ["storage"]);
    assert_eq!((hits.series.len(), hits.series[0].points[0]), (4, (0.0, 3.0)));
    assert_eq!(figure(&[run("a")], "bench-parts").series[0].points, [(0.0, 80.0)]);
}

#[test]
fn the_bottleneck_is_said_in_words() {
    let page = page("t", &[run("a")]).unwrap();
    let rows = &page.sections[0].tables[0].rows;
    assert!(rows.iter().any(|row| row[1] == Cell::Text("reading took 80 %".to_owned())), "{rows:?}");
}

/// Broken by: a latency of 0 ms of requests that never ended, or none of those that did not wait.
#[test]
fn what_has_no_samples_has_no_latency() {
    let of = |completed: u64| {
        let mut run = run("a");
        run.report["requests_completed"] = json!(completed);
        run.report["summary"]["queue_wait_ms"] = json!({ "p95": 0.0 });
        run.report["summary"]["cache_stats"]["storage_write_device_p95_ms"] = json!(0.0);
        let page = page("t", &[run]).unwrap();
        let names: Vec<Cell> = page.sections[0].tables[0].rows.iter().map(|row| row[0].clone()).collect();
        ["waiting for a worker, P95 (ms)", "storage device write, P95 (ms)"]
            .map(|name| names.contains(&Cell::Text(name.to_owned())))
    };
    assert_eq!((of(0), of(7)), ([false, false], [true, false]));
}
