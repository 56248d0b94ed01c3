//! Tiers at work: conversations that come back to a worker whose GPU memory is too small for them.
//!
//! Breaks when nothing is loaded, when numbers do not add up, or when outputs do not say the same.

use serde_json::Value;

use crate::sandbox::Sandbox;

/// A hundred blocks of GPU memory: turns find nothing of what was computed before.
const FLAGS: &str = r#"examples/conversation.jsonl --replay-concurrency 16 --extra-engine-args
    {"kv_bytes_per_token":131072,"num_gpu_blocks":600,"block_size":64}"#;
const TIERS: &str = "--tier cpu=8GiB:32GB/s --tier disk=1TiB:100us+5GB/s";

fn run(extra: &str) -> (Sandbox, Value, String) {
    let sandbox = Sandbox::with_examples();
    let run = sandbox.run(&format!("replay {FLAGS} {extra} --report-json r.json"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let report = serde_json::from_str(&sandbox.read("r.json")).expect("a report");
    (sandbox, report, run.stdout)
}

fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no whole number: {value}"))
}

/// Broken by: loads that are not told of, or prompt tokens that come from two places or none.
#[test]
fn prompt_tokens_come_from_tiers() {
    let (_, plain, _) = run("");
    let (_, report, stdout) = run(TIERS);
    let tiers = &report["tiers"];
    let tokens: u64 =
        tiers["prompt_tokens"].as_array().unwrap().iter().map(|source| whole(&source["tokens"])).sum();
    assert_eq!(tokens, whole(&report["total_input_tokens"]));
    let reused = |report: &Value| report["first_admission_prefix_cache_reused_ratio"].as_f64().unwrap();
    assert!(reused(&report) > reused(&plain) + 0.05, "{} {}", reused(&report), reused(&plain));
    for tier in tiers["tiers"].as_array().unwrap() {
        assert!(whole(&tier["loads"]) > 0 && whole(&tier["bytes_written"]) > 0, "{tier}");
        let share = tier["utilisation"].as_f64().unwrap();
        assert!(share > 0.0 && share <= 1.0, "{tier}");
        assert_eq!(whole(&tier["bytes_written"]) % (64 * 131_072), 0);
        assert!(tier["saved_prefill_ms"].as_f64().unwrap() > 0.0, "{tier}");
    }
    assert!(stdout.contains("Load wait, P95 (ms)") && stdout.contains("% in disk"), "{stdout}");
}

/// Broken by: records that say something else than the report.
#[test]
fn requests_say_what_they_loaded() {
    let (sandbox, report, _) = run(&format!("{TIERS} --per-request-jsonl requests.jsonl"));
    let requests = sandbox.read("requests.jsonl");
    let (mut loaded, mut waits) = (0, 0);
    for line in requests.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        loaded += record["tier_tokens"].as_array().into_iter().flatten().map(whole).sum::<u64>();
        waits += u64::from(record["tier_load_ms"].is_number());
    }
    let tiers = report["tiers"]["tiers"].as_array().unwrap();
    assert!(waits > 0 && loaded > 0 && loaded <= tiers.iter().map(|tier| whole(&tier["hit_tokens"])).sum());
}

/// Broken by: a load that is no span, or is outside its request.
#[test]
fn a_load_is_a_span_of_its_request() {
    let (sandbox, report, _) = run(&format!("{TIERS} --otlp-file spans.jsonl --perfetto slices.json"));
    let mut loads = 0;
    for line in sandbox.read("spans.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let spans = line["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
        let parents = |span: &&Value| span["name"] == "load" && span["parentSpanId"].is_string();
        loads += spans.iter().filter(parents).count() as u64;
    }
    assert_eq!(loads, whole(&report["tiers"]["load_wait_ms"]["count"]));
    let slices: Value = serde_json::from_str(&sandbox.read("slices.json")).unwrap();
    let drawn = |phase: &str| {
        let events = slices["traceEvents"].as_array().unwrap().iter();
        events.filter(|event| event["name"] == "load" && event["ph"] == phase).count()
    };
    assert!(drawn("b") > 0);
    assert_eq!(drawn("b"), drawn("e"));
}

/// Broken by: metrics of tiers that `compare` or a page does not know.
#[test]
fn reports_with_tiers_are_compared_and_drawn() {
    let (sandbox, _, _) = run(TIERS);
    let slow = sandbox.run(&format!(
        "replay {FLAGS} --tier cpu=8GiB:1GB/s --tier disk=1TiB:100us+5GB/s --report-json slow.json"
    ));
    assert_eq!(slow.code, Some(0), "{}", slow.stderr);
    let compared = sandbox.run("compare r.json slow.json");
    assert!(compared.stdout.contains("tiers.cpu.load_wait_ms.mean"), "{}", compared.stdout);
    let page = sandbox.run("report r.json slow.json -o page.html");
    assert_eq!(page.code, Some(0), "{}", page.stderr);
    assert!(sandbox.read("page.html").contains("Where prompt tokens came from"));
}
