//! What a run leaves behind: report, records, table, lists.
//!
//! Breaks when a file lands elsewhere, a key of the reference goes missing, two runs of one plan differ, or
//! something is said to be saved that is not.

use std::collections::BTreeMap;

use insta::assert_snapshot;
use serde_json::Value;

use crate::sandbox::{GOOD_ROW, Sandbox, examples};

/// Keys of the reference's summary that do not depend on the wall clock (spec/replay.md 8.2).
const SUMMARY: &str = "num_requests completed_requests total_input_tokens total_output_tokens duration_ms \
    request_throughput_rps input_throughput_tok_s output_throughput_tok_s total_throughput_tok_s \
    prefill_worker_seconds decode_worker_seconds prefill_gpus_per_worker decode_gpus_per_worker gpu_hours \
    processed_tokens prefix_cache_reused_ratio first_admission_prefix_cache_reused_ratio";
const WALL: [&str; 3] = ["processed_output_tokens_per_s", "processed_tokens_per_s", "wall_time_ms"];
const GOODPUT: &str =
    "goodput_completed_requests goodput_request_throughput_rps goodput_output_throughput_tok_s";
const STATISTICS: &str = "mean min max median p75 p90 p95 p99 std";
const MEASURES: &str = "ttft_ms ttst_ms tpot_ms itl_ms e2e_latency_ms output_token_throughput_per_user";
/// Keys of ours.
const OURS: &str = "schema_version plan counts warnings attribution course curves partial wall";

fn expected_keys() -> Vec<String> {
    let measures = MEASURES.split_whitespace();
    let statistics =
        measures.flat_map(|x| STATISTICS.split_whitespace().map(move |statistic| format!("{statistic}_{x}")));
    let single = SUMMARY.split_whitespace().chain(OURS.split_whitespace()).map(str::to_owned);
    let mut keys: Vec<String> = statistics.chain(single).collect();
    keys.sort();
    keys
}

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn a_report_has_the_keys_of_the_reference_and_ours() {
    let report = Sandbox::with_trace(&[GOOD_ROW]).replay("trace.jsonl").json();
    assert_eq!(keys(&report), expected_keys());
    assert_eq!(keys(&report["wall"]), WALL);
    assert_eq!(report["schema_version"], 1);
    assert_eq!(report["partial"], false);
}

/// Two spaces per level, keys in order, a newline at the end.
#[test]
fn a_report_is_written_for_people_and_diffs() {
    let report = Sandbox::with_trace(&[GOOD_ROW]).replay("trace.jsonl");
    let text = report.text();
    assert!(text.starts_with("{\n  \"") && text.ends_with("\n}\n"), "{text}");
    let mut open: Vec<Vec<&str>> = vec![];
    for line in text.lines() {
        if line.trim_start().starts_with(['}', ']']) {
            let siblings = open.pop().expect("braces match");
            assert!(siblings.is_sorted(), "{siblings:?}");
        }
        let indent = line.len() - line.trim_start().len();
        assert_eq!(indent, open.len() * 2, "{line}");
        if let (Some(siblings), Some((key, _))) = (open.last_mut(), line.split_once("\": ")) {
            siblings.push(key);
        }
        if line.ends_with(['{', '[']) {
            open.push(vec![]);
        }
    }
    assert!(open.is_empty());
}

#[test]
fn a_bound_adds_goodput() {
    let sandbox = Sandbox::with_examples();
    let all = |flags: &str| sandbox.replay(&format!("examples/single_turn.jsonl {flags}"));
    assert!(!keys(&all("").json()).iter().any(|key| key.starts_with("goodput")));
    for flag in ["--sla-ttft-ms", "--sla-itl-ms", "--sla-e2e-ms"] {
        let report = all(&format!("{flag} 100000000"));
        assert!(GOODPUT.split_whitespace().all(|key| keys(&report.json()).contains(&key)), "{flag}");
        assert_eq!(report.count("/goodput_completed_requests"), report.count("/completed_requests"));
        assert_eq!(all(&format!("{flag} 0")).count("/goodput_completed_requests"), 0, "{flag}");
    }
    let median = all("").json()["median_ttft_ms"].as_f64().unwrap();
    let good = all(&format!("--sla-ttft-ms {median}")).count("/goodput_completed_requests");
    assert!((200..300).contains(&good), "half of 500 keep the median: {good}");
}

/// The one file in `folder` that has the name of a report.
fn stamped(sandbox: &Sandbox, folder: &str) -> String {
    let names = sandbox.names_in(folder);
    let reports: Vec<&String> = names.iter().filter(|name| name.contains("report")).collect();
    let [name] = reports[..] else { panic!("one report in {names:?}") };
    let stamp = name.strip_prefix("wavetank_replay_report_").and_then(|rest| rest.strip_suffix(".json"));
    let stamp = stamp.unwrap_or_else(|| panic!("{name}"));
    let shape: String = stamp.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "00000000_000000", "{name}");
    name.clone()
}

#[test]
fn a_report_without_a_path_lands_here_with_a_timestamp() {
    let sandbox = Sandbox::with_trace(&[GOOD_ROW]);
    let run = sandbox.run("replay trace.jsonl");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let name = stamped(&sandbox, "");
    assert!(run.stdout.ends_with(&format!("\nSaved full report to: {name}\n")), "{}", run.stdout);
    assert_eq!(sandbox.report(&name).count("/completed_requests"), 1);
}

#[test]
fn a_report_into_a_directory_gets_a_timestamp() {
    let sandbox = Sandbox::with_trace(&[GOOD_ROW]);
    sandbox.write("reports/other.txt", "");
    let run = sandbox.run("replay trace.jsonl --report-json reports");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let name = stamped(&sandbox, "reports");
    assert!(run.stdout.ends_with(&format!("\nSaved full report to: reports/{name}\n")), "{}", run.stdout);
    assert_eq!(sandbox.names_in(""), ["reports", "trace.jsonl"]);
}

#[test]
fn missing_directories_are_made() {
    let sandbox = Sandbox::with_trace(&[GOOD_ROW]);
    let run = sandbox.run("replay trace.jsonl --report-json a/b/r.json --per-request-jsonl c/d/q.jsonl");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(sandbox.report("a/b/r.json").count("/completed_requests"), 1);
    assert_eq!(sandbox.read("c/d/q.jsonl").lines().count(), 1);
    assert_eq!(sandbox.names_in(""), ["a", "c", "trace.jsonl"]);
}

#[test]
fn a_path_that_cannot_be_written_is_named() {
    let sandbox = Sandbox::with_trace(&[GOOD_ROW]);
    for flag in ["--report-json", "--per-request-jsonl"] {
        let run = sandbox.run(&format!("replay trace.jsonl {flag} trace.jsonl/r.json"));
        assert_eq!(run.code, Some(2), "{flag}");
        assert!(run.stderr.starts_with("error: trace.jsonl/r.json: cannot write: "), "{}", run.stderr);
    }
}

#[test]
fn nothing_is_said_to_be_saved_that_is_not() {
    let sandbox = Sandbox::with_trace(&[GOOD_ROW]);
    let run = sandbox.run("replay trace.jsonl --report-json trace.jsonl/r.json");
    assert!(!run.stdout.contains("Saved"), "{}", run.stdout);
}

#[test]
fn records_are_the_ended_requests_by_arrival() {
    let sandbox = Sandbox::with_examples();
    let report = sandbox.replay("examples/conversation.jsonl --num-workers 4 --per-request-jsonl q.jsonl");
    let text = sandbox.read("q.jsonl");
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len() as u64, report.count("/completed_requests"));
    let arrivals: Vec<f64> =
        records.iter().map(|record| record["arrival_time_ms"].as_f64().unwrap()).collect();
    assert!(arrivals.is_sorted());
    let mut turns: BTreeMap<&str, u64> = BTreeMap::new();
    for record in &records {
        let turn = turns.entry(record["session_id"].as_str().unwrap()).or_default();
        assert_eq!(record["turn_index"], *turn, "{record}");
        *turn += 1;
    }
    let trace = sandbox.read("examples/conversation.jsonl");
    let mut expected: BTreeMap<&str, u64> = BTreeMap::new();
    for row in trace.lines() {
        let name = row.split('"').nth(3).unwrap();
        assert!(row.starts_with(&format!(r#"{{"session_id":"{name}""#)), "{row}");
        *expected.entry(name).or_default() += 1;
    }
    assert_eq!(turns, expected);
}

#[test]
fn requests_that_did_not_end_have_no_record() {
    let sandbox = Sandbox::with_examples();
    let line = "examples/single_turn.jsonl --max-sim-time-seconds 20 --per-request-jsonl q.jsonl";
    let report = sandbox.replay(line);
    let (arrived, completed) = (report.count("/counts/arrived"), report.count("/counts/completed"));
    assert!(arrived > completed && completed > 0, "{arrived} {completed}");
    assert_eq!(report.count("/counts/in_flight"), arrived - completed);
    assert_eq!(sandbox.read("q.jsonl").lines().count() as u64, completed);
    assert_eq!(report.count("/counts/never_arrived"), 500 - arrived, "nothing is lost");
    assert_eq!(report.json()["warnings"].as_array().unwrap().len(), 2);
}

#[test]
fn one_plan_gives_one_report() {
    let sandbox = Sandbox::with_examples();
    for example in examples() {
        for flags in [
            "--num-workers 4",
            "--replay-concurrency 8",
            "--num-workers 2 --seed 7 --sla-ttft-ms 50",
            "--num-workers 4 --router-mode kv_router",
            "--num-workers 3 --router-mode power_of_two --replay-concurrency 6",
            r#"--num-workers 2 --extra-engine-args {"engine_type":"sglang","block_size":64}"#,
            r#"--router-mode kv_router --num-decode-workers 2 --prefill-engine-args {"worker_type":"prefill"}
                --decode-engine-args {"worker_type":"decode"}"#,
            r#"--router-mode kv_router --num-decode-workers 2 --kv-link-gbps 20 --kv-link-scope pool
                --prefill-engine-args {"engine_type":"sglang","worker_type":"prefill","model":"Qwen3-8B"}
                --decode-engine-args {"engine_type":"sglang","worker_type":"decode"}"#,
        ] {
            let first = sandbox.replay(&format!("{example} {flags}")).without_wall();
            sandbox.write("first.json", sandbox.read("replayed.json"));
            let second = sandbox.replay(&format!("{example} {flags}")).without_wall();
            assert_eq!(first, second, "{example} {flags}");
            let planned = sandbox.replay("--plan first.json").without_wall();
            assert_eq!(first, planned, "{example} {flags} by its plan");
        }
    }
}

#[test]
fn a_synthetic_plan_runs_again_with_its_warnings() {
    let sandbox = Sandbox::empty();
    let line = "--input-tokens 200 --output-tokens 5 --request-count 40 --turns-per-session 2 \
                --shared-prefix-ratio 0.5 --request-rate 100";
    let first = sandbox.replay(line).without_wall();
    assert!(first.contains("--shared-prefix-ratio has no effect"), "{first}");
    sandbox.write("first.json", sandbox.read("replayed.json"));
    assert_eq!(first, sandbox.replay("--plan first.json").without_wall());
    for flag in ["--report-json", "--per-request-jsonl"] {
        let run = sandbox.run(&format!("replay --plan first.json {flag} first.json"));
        assert_eq!(run.code, Some(2), "a plan is read and stays as it is: {}", run.stderr);
    }
}

#[test]
fn the_table() {
    let sandbox = Sandbox::with_examples();
    let run = sandbox.run("replay examples/single_turn.jsonl --num-workers 2");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_snapshot!(sandbox.steady(&run.stdout));
}

#[test]
fn verbose_tells_how_passes_were_simulated() {
    let sandbox = Sandbox::with_examples();
    let run = sandbox.run("replay examples/single_turn.jsonl -v --report-json r.json");
    let report = sandbox.report("r.json");
    let (stepped, advanced) =
        (report.count("/counts/passes/stepped"), report.count("/counts/passes/advanced"));
    assert!(stepped > 0 && advanced > 0);
    let percent = advanced as f64 * 100.0 / (stepped + advanced) as f64;
    let expected =
        format!("passes: {stepped} simulated one by one, {advanced} advanced in runs ({percent:.1} %)\n");
    assert_eq!(run.stderr, expected);
}

#[test]
fn lists() {
    let sandbox = Sandbox::empty();
    let all = sandbox.run("list");
    assert_eq!((all.code, all.stderr.as_str()), (Some(0), ""));
    assert_snapshot!(all.stdout);
    assert_snapshot!(sandbox.run("list timing -v").stdout, @r"
    timing (--timing, and timing in the engine arguments)
      fixed       every pass with prompt work adds prefill_ms, every pass with decode work decode_ms
      grid        measured step times, of a built-in profile (`wavetank list profiles`) or a file
      kernels     measured kernels, of a built-in profile (`wavetank list profiles`) or a folder
      npz         the reference's profiler results, arrays in an .npz file (path)
      polynomial  the reference's default formulas: prefill by new tokens, decode by cache utilisation
      roofline    from a model's shape (model or config) and a GPU's rates; gpu, tp, weight_dtype, kv_dtype
    ");
    let unknown = sandbox.run("list timings");
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(2), ""));
    assert!(
        unknown.stderr.starts_with(
            "error: unknown kind \"timings\"\nhint: known: autoscale, autoscale-args, backends, "
        )
    );
    assert!(unknown.stderr.ends_with(", timing, wrappers\n"), "{}", unknown.stderr);
    assert_eq!(sandbox.names_in(""), [""; 0]);
}

/// The product text's table of memory per user, and `--context` where it means nothing.
#[test]
fn memory_of_a_context() {
    let sandbox = Sandbox::empty();
    let table = sandbox.run("list models --context 8192");
    assert_eq!((table.code, table.stderr.as_str()), (Some(0), ""));
    assert_snapshot!(table.stdout);
    for line in ["list --context 8192", "list gpus --context 8192"] {
        let refused = sandbox.run(line);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{line}");
        assert!(refused.stderr.starts_with("error: --context: goes with models only"), "{}", refused.stderr);
    }
}

#[test]
fn output_never_overwrites_the_trace_or_other_output() {
    let sandbox = Sandbox::with_trace(&[GOOD_ROW]);
    let before = sandbox.read("trace.jsonl");
    for line in ["trace.jsonl --report-json trace.jsonl", "trace.jsonl --report-json x --per-request-jsonl x"]
    {
        let run = sandbox.run(&format!("replay {line}"));
        assert_eq!(run.code, Some(2), "{line}");
        assert!(run.stderr.contains("is the same file as"), "{}", run.stderr);
    }
    assert_eq!(sandbox.read("trace.jsonl"), before);
}
