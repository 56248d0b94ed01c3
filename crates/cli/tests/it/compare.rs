//! `wavetank compare` and `replay --seeds`, through the binary.

use insta::assert_snapshot;

use crate::sandbox::Sandbox;

/// Round robin and the KV router on the same trace.
fn compared() -> Sandbox {
    let sandbox = Sandbox::with_examples();
    let trace = "replay examples/single_turn.jsonl --num-workers 3";
    for line in ["--report-json rr.json", "--router-mode kv_router --report-json kv.json"] {
        assert_eq!(sandbox.run(&format!("{trace} {line}")).code, Some(0));
    }
    sandbox
}

#[test]
fn two_reports_side_by_side() {
    let sandbox = compared();
    let table = sandbox.run("compare rr.json kv.json");
    assert_eq!((table.code, table.stderr.as_str()), (Some(0), ""));
    assert_snapshot!(table.stdout);
    let markdown = sandbox.run("compare rr.json kv.json --markdown --all");
    assert!(markdown.stdout.starts_with("| metric | rr | kv | change |"), "{}", markdown.stdout);
    assert!(markdown.stdout.contains("| p95_tpot_ms |"), "{}", markdown.stdout);
}

#[test]
fn a_condition_that_holds_is_exit_code_1() {
    let sandbox = compared();
    let code = |condition: &str| {
        let run = sandbox.run(&format!("compare rr.json kv.json --fail-if {condition}"));
        assert_eq!(run.stderr.contains("failed: "), run.code == Some(1), "{}", run.stderr);
        run.code
    };
    assert_eq!(code("mean_ttft_ms>+50%"), Some(0));
    assert_eq!(code("mean_ttft_ms<+50%"), Some(1));
    assert_eq!(code("completed_requests<500"), Some(0));
    assert_eq!(code("completed_requests>=500"), Some(1));
    assert_eq!(code("no_such_metric>1"), Some(2));
    assert_eq!(code("mean_ttft_ms=bad"), Some(2));
}

#[test]
fn what_is_no_report_is_named() {
    let sandbox = compared();
    sandbox.write("list.json", "[]");
    std::fs::create_dir(sandbox.path("empty")).unwrap();
    for (other, expected) in [
        ("missing.json", "missing.json: cannot open"),
        ("examples/single_turn.jsonl", "examples/single_turn.jsonl: not valid JSON"),
        ("list.json", "list.json: not a replay report"),
        ("empty", "empty: no .json file in it"),
    ] {
        let run = sandbox.run(&format!("compare rr.json {other}"));
        assert_eq!(run.code, Some(2), "{other}");
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
}

#[test]
fn seeds_give_a_spread() {
    let sandbox = Sandbox::with_examples();
    let line = "replay examples/single_turn.jsonl --num-workers 3 --router-mode kv_router";
    let seeded = sandbox.run(&format!("{line} --seeds 4 --report-json seeds.json"));
    assert_eq!(seeded.code, Some(0), "{}", seeded.stderr);
    assert!(seeded.stdout.contains("4 seeds; the table above is the first"), "{}", seeded.stdout);
    let report = sandbox.report("seeds.json").json();
    let values = report["seeds"]["metrics"]["mean_ttft_ms"]["values"].as_array().unwrap();
    assert_eq!(values.len(), 4);
    assert_eq!(report["seeds"]["values"], serde_json::json!([42, 43, 44, 45]));
    assert!(values.iter().any(|value| value != &values[0]), "seeds differ: {values:?}");
    for (seed, expected) in (42..).zip(values) {
        let single = sandbox.run(&format!("{line} --seed {seed} --report-json one.json"));
        assert_eq!(single.code, Some(0));
        assert_eq!(&sandbox.report("one.json").json()["mean_ttft_ms"], expected, "seed {seed}");
    }
    let compared = sandbox.run("compare one.json seeds.json");
    assert!(!compared.stdout.contains("N/A"), "four repeats have a spread: {}", compared.stdout);
    for refused in ["--seeds 0", "--seeds 2 --per-request-jsonl q.jsonl"] {
        assert_eq!(sandbox.run(&format!("{line} {refused}")).code, Some(2), "{refused}");
    }
}

#[test]
fn seeds_reach_random_arrivals_and_say_when_they_reach_nothing() {
    let sandbox = Sandbox::with_examples();
    let line =
        "replay --input-tokens 100 --output-tokens 10 --request-count 50 --seeds 3 --report-json s.json";
    let spread = |arrivals: &str| {
        let run = sandbox.run(&format!("{line} {arrivals}"));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let metric = sandbox.report("s.json").json()["seeds"]["metrics"]["mean_ttft_ms"].clone();
        (metric["max"] != metric["min"], run.stderr.contains("--seeds has no effect"))
    };
    assert_eq!(spread("--request-rate 20"), (true, false));
    assert_eq!(spread("--arrival-interval-ms 5"), (false, true));
}
