//! Many replays at once: files and words of a sweep, what is refused, and what survives Ctrl-C.
//!
//! Breaks when something runs before the spec is known to be sound, a finished point is run again or lost,
//! or shards do not make the whole.

use std::process::Stdio;
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::Value;

use crate::sandbox::{Sandbox, repository};

const SPEC: &str = r#"
[base]
trace = "examples/conversation.jsonl"
num_workers = 2
[axes]
router_mode = ["round_robin", "kv_router"]
num_workers = [2, 3, 4]
[pareto]
minimize = ["p99_ttft_ms", "gpu_hours"]
[sla]
p99_ttft_ms = 72
"#;

fn sandbox(spec: &str) -> Sandbox {
    let sandbox = Sandbox::with_examples();
    sandbox.write("s.toml", spec);
    sandbox
}

#[test]
fn a_sweep_says_which_points_are_worth_a_look() {
    let sandbox = sandbox(SPEC);
    let run = sandbox.run("sweep s.toml -o out/rows.csv -o rows.json -o rows.parquet --threads 2");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_snapshot!(sandbox.steady(&run.stdout));
    assert_eq!(run.stderr, "");
    let csv = sandbox.read("out/rows.csv");
    assert_eq!(csv.lines().count(), 7);
    assert!(csv.starts_with("point,plan_hash,router_mode,num_workers,busy_share,"), "{csv}");
    let report = sandbox.report("rows.json").json();
    assert_eq!((&report["kind"], &report["schema_version"]), (&Value::from("sweep"), &Value::from(1)));
    assert_eq!(report["rows"].as_array().unwrap().len(), 6);
    assert_eq!(report["axes"], serde_json::json!(["router_mode", "num_workers"]));
    assert!(sandbox.path("rows.parquet").exists());
    assert_eq!(sandbox.names_in("out"), ["rows.csv", "rows.points.jsonl"]);
}

#[test]
fn finished_points_are_not_run_again() {
    let sandbox = sandbox(SPEC);
    assert_eq!(sandbox.run("sweep s.toml").code, Some(0));
    assert!(sandbox.names_in("").contains(&"s.sweep.json".to_owned()));
    let rows = sandbox.report("s.sweep.json").json()["rows"].clone();
    let again = sandbox.run("sweep s.toml");
    assert_eq!(again.stderr, "6 of 6 points are kept from an earlier run\n");
    assert!(again.stdout.starts_with("wavetank sweep: 6 points, 0 run now, "), "{}", again.stdout);
    assert_eq!(sandbox.report("s.sweep.json").json()["rows"], rows);
    let fresh = sandbox.run("sweep s.toml --fresh");
    assert!(fresh.stdout.starts_with("wavetank sweep: 6 points, 6 run now, "), "{}", fresh.stdout);
}

#[test]
fn shards_make_the_whole() {
    let sandbox = sandbox(SPEC);
    for shard in 1..=3 {
        let run = sandbox.run(&format!("sweep s.toml --shard {shard}/3 -o part{shard}.json"));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
    }
    let merged = sandbox.run("sweep merge part2.json part1.json part3.json -o merged.csv -o merged.json");
    assert_eq!(merged.code, Some(0), "{}", merged.stderr);
    assert_eq!(sandbox.run("sweep s.toml -o whole.csv --threads 1").code, Some(0));
    assert_eq!(sandbox.read("merged.csv"), sandbox.read("whole.csv"));
    let missing = sandbox.run("sweep merge part2.json part1.json -o less.csv");
    assert_eq!(missing.code, Some(2));
    assert_snapshot!(missing.stderr);
    assert!(!sandbox.path("less.csv").exists());
}

/// Every refusal names its place and comes before anything is run or written.
#[test]
fn what_cannot_be_swept_is_refused() {
    let mut told = String::new();
    for (spec, flags) in [
        (SPEC.replace("num_workers = 2", "num_wrokers = 2"), ""),
        (SPEC.replace("[2, 3, 4]", "[]"), ""),
        (SPEC.replace("[2, 3, 4]", "[1, 3, 4]"), ""),
        (SPEC.replace("[2, 3, 4]", "{ from = 1, to = 600000 }"), ""),
        (SPEC.replace("conversation.jsonl", "gone.jsonl"), ""),
        (SPEC.to_owned(), "-o rows.xlsx"),
        (SPEC.to_owned(), "--shard 4/3"),
        (SPEC.to_owned(), "-o s.toml.json -o s.toml.json"),
        (format!("{SPEC}[search]\ngoal = \"smallest_fleet\"\n"), "--shard 1/2"),
    ] {
        let sandbox = sandbox(&spec);
        let run = sandbox.run(&format!("sweep s.toml {flags}"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{flags}: {}", run.stderr);
        assert_eq!(sandbox.names_in(""), ["examples", "s.toml"], "{flags}");
        told += &sandbox.steady(&run.stderr);
    }
    assert_snapshot!(told);
}

#[test]
fn a_search_shows_what_its_answer_rests_on() {
    let spec = "[base]\ninput_tokens = 2000\noutput_tokens = 60\nrequest_count = 400\nrequest_rate = 300\n\
                [axes]\nnum_workers = { from = 1, to = 24 }\n[sla]\np99_ttft_ms = 1200\n\
                [search]\ngoal = \"smallest_fleet\"\n[cost]\ngpu = \"h200\"\n";
    let searched = sandbox(spec);
    let run = searched.run("sweep s.toml");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_snapshot!(searched.steady(&run.stdout));
    let impossible = sandbox(&spec.replace("1200", "1"));
    let run = impossible.run("sweep s.toml");
    assert_eq!(run.code, Some(1), "a check failed: {}", run.stderr);
    assert!(run.stdout.contains("Search: no point meets the SLA"), "{}", run.stdout);
}

#[test]
fn an_interrupted_sweep_goes_on_where_it_was() {
    let spec = "[base]\ninput_tokens = 500\noutput_tokens = 50\nrequest_count = 4000\n[axes]\n\
                seed = { from = 1, count = 4000 }\nnum_workers = [2]\nrouter_mode = [\"kv_router\"]\n";
    let sandbox = sandbox(spec);
    let mut running = sandbox.start("sweep s.toml -o rows.json", Stdio::null());
    let store = sandbox.path("rows.points.jsonl");
    let lines = || std::fs::read_to_string(&store).map_or(0, |text| text.lines().count());
    running.wait_for("three finished points", || lines() > 3);
    running.interrupt();
    let run = running.finish(Duration::from_secs(20));
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    assert!(
        run.stderr.contains("run it again to go on: finished points are in rows.points.jsonl"),
        "{}",
        run.stderr
    );
    let report = sandbox.report("rows.json").json();
    let rows = report["rows"].as_array().unwrap().len();
    assert_eq!((report["partial"].clone(), rows), (Value::from(true), lines() - 1));
}

/// The specs shown in docs/sweep.md that are whole. Broken by: a key that is documented and not read.
#[test]
fn documented_specs_run() {
    let text = std::fs::read_to_string(repository().join("docs/sweep.md")).expect("docs/sweep.md");
    let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let whole: Vec<&str> = blocks.filter(|block| block.contains("[base]")).collect();
    assert_eq!(whole.len(), 2);
    for spec in whole {
        let sandbox = Sandbox::with_examples();
        sandbox.write("examples/s.toml", spec);
        let run = sandbox.run("sweep examples/s.toml");
        assert_eq!(run.code, Some(0), "{spec}\n{}", run.stderr);
    }
}
