//! What a page shows of reports.

use serde_json::{Value, json};

use super::super::{Cell, Run, page};
use crate::figure::{Figure, Kind};

fn report(scale: f64) -> Value {
    let column = |values: [f64; 3]| json!(values.map(|value| value * scale));
    let fleet = json!({
        "arrived_per_s": column([1.0, 2.0, 3.0]), "completed_per_s": column([0.0, 1.0, 2.0]),
        "p50_ttft_ms": [1.0, null, 3.0], "preempted_per_s": column([0.0, 0.0, 0.0]),
        "rejected_per_s": [0.0, 0.0, 0.0], "in_router": [0.5, 0.5, 0.0], "reused_share": [0.1, 0.2, 0.3],
    });
    let track = |first: u32, last: u32| {
        json!({ "first_worker": first, "last_worker": last, "waiting": [1.0, 0.0, 2.0],
            "running": [2.0, 2.0, 2.0], "cache_use": [0.5, 0.5, 1.0], "busy": [1.0, 1.0, 0.5] })
    };
    json!({
        "plan": { "simulation": {} }, "warnings": ["look out"], "mean_ttft_ms": 5.0 * scale,
        "attribution": { "ttft": { "prefill_ms": { "mean": 3.0 }, "transfer_ms": { "mean": 0.0 } } },
        "curves": { "percentiles": [0.0, 50.0, 100.0], "values": { "ttft_ms": [1.0, 2.0, 9.0] } },
        "course": {
            "step_ms": 1000.0, "end_ms": 2500.0, "fleet": fleet, "workers": [track(0, 0), track(1, 3)],
        },
    })
}

fn run(name: &str, scale: f64) -> Run {
    Run { name: name.to_owned(), report: report(scale) }
}

fn figure(runs: &[Run], id: &str) -> Figure {
    let page = page("t", runs).unwrap();
    let figures = page.sections.into_iter().flat_map(|section| section.figures);
    figures.into_iter().find(|figure| figure.id == id).unwrap_or_else(|| panic!("no {id}"))
}

#[test]
fn spans_are_drawn_at_their_middle_and_gaps_stay() {
    let ttft = figure(&[run("a", 1.0)], "ttft-over-time");
    let points = &ttft.series[0].points;
    assert_eq!((points[0], points[2], ttft.x.unit.as_str()), ((0.5, 1.0), (2.25, 3.0), "s"));
    assert!(points[1].1.is_nan());
}

/// Broken by: tracks of several workers that count as one.
#[test]
fn tracks_count_for_their_workers() {
    let system = figure(&[run("a", 1.0)], "whereabouts-over-time");
    assert_eq!(system.series[1].points[0].1, 1.0 + 3.0);
    let cache = figure(&[run("a", 1.0)], "cache-over-time");
    assert_eq!(cache.series[0].points[2].1, 100.0);
    let heat = figure(&[run("a", 1.0)], "cache-by-worker");
    assert_eq!((heat.kind, heat.series[1].name.as_str()), (Kind::Heat, "workers 1 to 3"));
}

#[test]
fn several_runs_stand_side_by_side() {
    let runs = [run("a", 1.0), run("b", 2.0)];
    let page = page("t", &runs).unwrap();
    assert_eq!(page.runs[1].warnings, ["look out"]);
    let glance = &page.sections[0].tables[0];
    assert_eq!(glance.columns, ["number", "a", "b"]);
    assert_eq!(glance.rows[0][1..], [Cell::Number(5.0), Cell::Number(10.0)]);
    let names: Vec<String> = figure(&runs, "requests-over-time").series.into_iter().map(|s| s.name).collect();
    assert_eq!(names, ["a: arrived", "a: completed", "b: arrived", "b: completed"]);
    let parts = figure(&runs, "ttft-parts");
    assert_eq!((parts.series.len(), parts.x.names.len()), (1, 2));
    let ids: Vec<&str> = page.sections.iter().flat_map(|s| &s.figures).map(|f| f.id.as_str()).collect();
    let once: std::collections::BTreeSet<&&str> = ids.iter().collect();
    assert_eq!(once.len(), ids.len(), "{ids:?}");
    assert!(!ids.contains(&"trouble-over-time"), "nothing was preempted");
}

#[test]
fn what_is_no_report_is_said() {
    let runs = [Run { name: "x.json".to_owned(), report: json!({ "a": 1 }) }];
    let message = page("t", &runs).unwrap_err().to_string();
    assert!(message.starts_with("x.json: not a report") && message.contains("replay"), "{message}");
}

fn tiered(name: &str, tiers: &[&str]) -> Run {
    let source = |name: &str| json!({ "name": name, "tokens": 25, "share": 0.25 });
    let sources: Vec<Value> = [&["gpu"][..], tiers, &["computed"]].concat().into_iter().map(source).collect();
    let tier = |name: &&str| {
        json!({ "name": name, "loads": 3, "load_wait_ms": { "mean": 1.0, "p50": 0.5, "p95": 2.0, "p99": 3.0 },
            "break_even": { "text": "loading never beats recomputing" } })
    };
    let mut run = run(name, 1.0);
    run.report["tiers"] =
        json!({ "prompt_tokens": sources, "tiers": tiers.iter().map(tier).collect::<Vec<_>>() });
    run
}

/// Broken by: a tier of one run that stands for another's, or a page of tiers where there are none.
#[test]
fn tiers_have_a_part_of_the_page() {
    let runs = [tiered("a", &["cpu", "disk"]), tiered("b", &["ram"])];
    let sources = figure(&runs, "prompt-sources");
    let names: Vec<&str> = sources.series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["GPU memory", "cpu", "disk", "ram", "computed"]);
    assert_eq!(sources.series[1].points, [(0.0, 25.0), (1.0, 0.0)]);
    let waits = figure(&runs, "load-waits");
    assert_eq!(waits.x.names, ["a: cpu", "a: disk", "b: ram"]);
    assert_eq!(waits.series[3].points[2], (2.0, 3.0));
    let page = page("t", &runs).unwrap();
    let section = page.sections.iter().find(|section| section.title == "Tiers").unwrap();
    assert_eq!(section.tables[0].columns.len(), 4);
    let plain = super::super::page("t", &[run("a", 1.0)]).unwrap();
    assert!(plain.sections.iter().all(|section| section.title != "Tiers"));
}
