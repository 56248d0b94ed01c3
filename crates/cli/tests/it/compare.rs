//! `wavetank compare` and `replay --seeds`, through the binary.

use std::process::{Command, Stdio};
use std::time::Duration;

use insta::assert_snapshot;

use crate::sandbox::{Sandbox, WAVETANK, repository};

/// Round robin and the KV router on the same trace.
fn compared() -> Sandbox {
    let sandbox = Sandbox::with_examples();
    let trace = "replay examples/single_turn.jsonl --num-workers 3";
    for line in ["--report-json rr.json", "--router-mode kv_router --report-json kv.json"] {
        assert_eq!(sandbox.run(&format!("{trace} {line}")).code, Some(0));
    }
    sandbox
}

/// A result as a benchmark wrote it.
fn result(name: &str) -> String {
    let path = repository().join("crates/report/tests/samples/results").join(name);
    std::fs::read_to_string(path).expect("a sample")
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
    sandbox.write("nothing.json", "");
    let serve = result("vllm_serve.json");
    sandbox.write("cut.json", &serve[..serve.len() / 2]);
    sandbox.write("word.json", serve.replace("\"mean_ttft_ms\": ", "\"mean_ttft_ms\": \"about\", \"was\": "));
    std::fs::create_dir(sandbox.path("empty")).unwrap();
    for (other, expected) in [
        ("missing.json", "missing.json: cannot open"),
        ("examples/single_turn.jsonl", "examples/single_turn.jsonl: not a result of a known format"),
        ("list.json", "list.json: not a result of a known format"),
        ("cut.json", "cut.json: not valid JSON"),
        ("nothing.json", "nothing.json: is empty"),
        ("word.json", "word.json: \"mean_ttft_ms\" is not a number"),
        ("empty", "empty: no .json file in it"),
    ] {
        let run = sandbox.run(&format!("compare rr.json {other}"));
        assert_eq!(run.code, Some(2), "{other}");
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
}

/// A simulation of the traffic of the samples: twenty requests of 320 and 24 tokens a run.
fn beside_a_benchmark() -> Sandbox {
    let sandbox = Sandbox::empty();
    for (name, sample) in [
        ("serve.json", "vllm_serve.appended.json"),
        ("throughput.json", "vllm_throughput.json"),
        ("artifacts/profile_export_aiperf.json", "aiperf.json"),
    ] {
        sandbox.write(name, result(sample));
    }
    sandbox.write("artifacts/inputs.json", "{}");
    let load = "--input-tokens 320 --output-tokens 24 --request-count 20 --request-rate 20 --num-workers 2";
    sandbox.replay(load);
    sandbox
}

/// Broken by: a format that is not read, a metric that is not found in both, a side that is not named.
#[test]
fn a_simulation_beside_a_benchmark() {
    let sandbox = beside_a_benchmark();
    let text: Vec<String> = ["serve.json", "artifacts", "throughput.json"]
        .iter()
        .map(|measured| {
            let run = sandbox.run(&format!("compare {measured} replayed.json"));
            assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
            run.stdout
        })
        .collect();
    assert_snapshot!(text.join("\n"));
    let all = sandbox.run("compare serve.json replayed.json --all");
    let alone = "serve is vllm-serve, 3 runs; in it alone: goodput_request_throughput_rps\n";
    assert!(all.stdout.contains(alone), "{}", all.stdout);
    let markdown = sandbox.run("compare serve.json replayed.json --markdown");
    assert!(markdown.stdout.contains("\n- replayed is replay; "), "{}", markdown.stdout);
}

/// Broken by: a tolerance of one direction, a failure that does not say how far, a pass of nothing.
#[test]
fn what_is_not_within_a_tolerance_is_exit_code_1() {
    let sandbox = beside_a_benchmark();
    let judged = |tolerance: &str| {
        let run = sandbox.run(&format!("compare serve.json replayed.json --within {tolerance}"));
        (run.code, run.stdout, run.stderr)
    };
    let (code, stdout, stderr) = judged("1000%");
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.contains("Within tolerance: 9 of 9 metrics (request_throughput_rps, "), "{stdout}");
    let (code, stdout, stderr) = judged("0.001");
    assert_eq!(code, Some(1));
    assert!(stdout.contains("Within tolerance: 0 of 9 metrics"), "{stdout}");
    assert_eq!(stderr.lines().count(), 9, "{stderr}");
    assert!(stderr.starts_with("failed: request_throughput_rps is "), "{stderr}");
    assert!(stderr.lines().all(|line| line.ends_with(" and not within 0.001 %")), "{stderr}");
    assert_eq!(judged("1000 --fail-if completed_requests>=20").0, Some(1));
    let (code, _, stderr) = judged("much");
    assert!(code == Some(2) && stderr.contains("cannot read the tolerance"), "{stderr}");
    sandbox.write("bare.json", r#"{"completed_requests":1}"#);
    let nothing = sandbox.run("compare serve.json bare.json --within 5");
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(2), ""));
    assert!(nothing.stderr.contains("there is nothing to judge"), "{}", nothing.stderr);
}

/// Broken by: a report of the storage benchmark that is refused, or without its tokens per second.
#[test]
fn a_storage_report_beside_vllm() {
    let sandbox = beside_a_benchmark();
    let booked = "--model tiny-1b --gpu-mem-gb 0 --cpu-mem-gb 0.01 --backend null --backend-option moves=no";
    let few = "--generation-mode deterministic --num-users 4 --max-requests 12";
    let run = sandbox.run(&format!("bench {booked} {few} --output storage.json"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let rate = sandbox.report("storage.json").json()["summary"]["total_tokens_per_sec"].as_f64().unwrap();
    let vllm = |tokens_per_second: f64| {
        let result = result("vllm_throughput.json");
        sandbox.write("vllm.json", result.replace("1600.0", &tokens_per_second.to_string()));
        let mut command = Command::new(WAVETANK);
        command.args(["compare", "vllm.json", "storage.json", "--within", "total_tokens_per_sec 5%"]);
        sandbox.spawn(command, "", Stdio::null()).finish(Duration::from_secs(30)).code
    };
    assert_eq!([1.0, 1.04, 0.96, 1.06, 0.94].map(|factor| vllm(rate * factor)), [0, 0, 0, 1, 1].map(Some));
}

/// Broken by: memory or time that a large file has no use for; it is eight megabytes of single requests.
#[test]
fn a_large_result_is_read() {
    let sandbox = beside_a_benchmark();
    let mut large: serde_json::Value = serde_json::from_str(&result("vllm_serve.detailed.json")).unwrap();
    for key in ["ttfts", "itls", "output_lens", "input_lens", "generated_texts", "errors"] {
        let few = large[key].as_array().unwrap().clone();
        large[key] = few.iter().cycle().take(20_000).cloned().collect();
    }
    large["completed"] = 20_000.into();
    sandbox.write("large.json", large.to_string());
    let run = sandbox.run("compare large.json replayed.json --all");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("p95_ttft_ms"), "{}", run.stdout);
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
