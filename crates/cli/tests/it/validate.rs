//! `wavetank validate`, through the binary, on a run small enough to work out by hand.
//!
//! Prompts take 20 ms and decode passes 5 ms, one request at a time. Request 0 is alone; request 2 comes
//! during the prompt of request 1, is seen 15 ms later, when that pass ends, and waits for two decode passes.

use insta::assert_snapshot;
use serde_json::json;

use crate::sandbox::Sandbox;

const RUN: &str = r#"{
 "model": "tiny", "hardware": "none", "vllm_version": "0.19.0",
 "engine": {
  "tensor_parallel_size": 1,
  "data_parallel_size": 1,
  "max_num_seqs": 1,
  "max_num_batched_tokens": 2048,
  "max_model_len": null
 },
 "kv_cache": {"num_gpu_blocks": 101, "block_size": 16},
 "trace_block_size": 16,
 "model_config": {"hidden_size": 64, "num_hidden_layers": 2},
 "timing": {"name": "fixed", "prefill_ms": 20.0, "decode_ms": 5.0}
}
"#;

const WORKLOAD: &str = r#"{"timestamp":40.0,"input_length":32,"output_length":3,"hash_ids":[1,2]}
{"timestamp":162.5,"input_length":20,"output_length":3,"hash_ids":[3,4]}
{"timestamp":167.5,"input_length":16,"output_length":1,"hash_ids":[5]}
"#;

const MEASURED: &str = "\
index,input_tokens,output_tokens,queued_s,scheduled_s,first_token_s,last_token_s
0,32,3,0.000000,0.000000,0.020000,0.030000
1,20,3,0.100000,0.100000,0.120000,0.140000
2,16,1,0.120000,0.140000,0.165000,0.165000
";

/// With the run in `d/`.
pub(crate) fn measured() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write("d/run.json", RUN);
    sandbox.write("d/workload.jsonl", WORKLOAD);
    sandbox.write("d/measured.csv", MEASURED);
    sandbox
}

/// What `validate d` says when it cannot run.
fn refused(sandbox: &Sandbox, arguments: &str) -> String {
    let before = sandbox.names_in("");
    let run = sandbox.run(&format!("validate d {arguments}"));
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments}: {}", run.stderr);
    assert_eq!(sandbox.names_in(""), before, "nothing is left behind");
    run.stderr
}

#[test]
fn the_table() {
    let sandbox = measured();
    let run = sandbox.run("validate d");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_snapshot!(sandbox.steady(&run.stdout));
    assert_eq!(sandbox.names_in(""), ["d"], "files are written when asked for");
}

#[test]
fn report_and_scatter() {
    let sandbox = measured();
    let run = sandbox.run("validate d --report-json out/r.json --scatter out/s.csv");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_snapshot!(sandbox.read("out/s.csv"));
    let report = sandbox.report("out/r.json").json();
    for metric in ["ttft_ms", "tpot_ms", "e2e_ms", "queue_ms"] {
        for statistic in ["mean", "p50", "p90", "p95", "p99"] {
            let cell = &report["metrics"][metric][statistic];
            for key in ["measured", "simulated", "error"] {
                assert!(cell[key].is_number(), "{metric} {statistic} {key}: {cell}");
            }
        }
    }
    let median = &report["metrics"]["tpot_ms"]["p50"];
    assert_eq!(median["measured"].as_f64().map(f64::round), Some(8.0), "{median}");
    assert_eq!(report["counts"]["completed"], 3);
    assert_eq!(report["counts"]["rejected"], json!({}));
    assert_eq!(report["plan"]["simulation"]["engine"]["num_gpu_blocks"], 100, "one is the null block");
    assert!(report["wall"]["wall_time_ms"].is_number());
    assert_eq!(report["worst"]["name"], "TPOT P99");
}

#[test]
fn the_same_run_gives_the_same_report_and_its_plan_can_be_replayed() {
    let sandbox = measured();
    for name in ["a", "b"] {
        let run = sandbox.run(&format!("validate d --report-json {name}.json --scatter {name}.csv"));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
    }
    assert_eq!(sandbox.report("a.json").without_wall(), sandbox.report("b.json").without_wall());
    assert_eq!(sandbox.read("a.csv"), sandbox.read("b.csv"));
    assert_eq!(sandbox.replay("--plan a.json").count("/completed_requests"), 3);
}

#[test]
fn a_tolerance_decides_the_exit_code() {
    let sandbox = measured();
    let loose = sandbox.run("validate d --tolerance 60");
    assert_eq!((loose.code, loose.stderr.as_str()), (Some(0), ""));
    let tight = sandbox.run("validate d --tolerance 1");
    assert_eq!(tight.code, Some(1));
    assert!(
        tight.stderr.starts_with("failed: TPOT P99 -") && tight.stderr.contains(" is beyond 1 %"),
        "{}",
        tight.stderr
    );
    for nonsense in ["-1", "NaN", "inf"] {
        assert!(refused(&sandbox, &format!("--tolerance {nonsense}")).contains("--tolerance: must be"));
    }
}

#[test]
fn what_is_not_served_fails_a_tolerance() {
    let sandbox = measured();
    sandbox.write("d/run.json", RUN.replace("\"num_gpu_blocks\": 101", "\"num_gpu_blocks\": 2"));
    let run = sandbox.run("validate d --tolerance 1000");
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("failed: 2 requests were not served"), "{}", run.stderr);
}

#[test]
fn without_measurements_it_only_simulates() {
    let sandbox = measured();
    std::fs::remove_file(sandbox.path("d/measured.csv")).unwrap();
    let run = sandbox.run("validate d --report-json r.json --scatter s.csv");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("no measured.csv: the numbers are simulated only"), "{}", run.stderr);
    let cell = sandbox.report("r.json").json()["metrics"]["ttft_ms"]["mean"].clone();
    assert!(cell["measured"].is_null() && cell["error"].is_null() && cell["simulated"].is_number(), "{cell}");
    assert!(refused(&sandbox, "--tolerance 5").contains("--tolerance: there is no measured.csv"));
}

#[test]
fn a_broken_run_is_named_with_its_line() {
    let cases = [
        ("\"max_num_seqs\": 1", "\"max_num_seqs\": 0", "d/run.json:6: invalid value: integer `0`"),
        ("\"max_num_seqs\": 1", "\"max_num_seqs\": -1", "d/run.json:6: invalid value: integer `-1`"),
        ("  \"max_num_seqs\": 1,\n", "", "d/run.json:8: missing field `max_num_seqs`"),
        ("\"max_num_seqs\": 1,", "\"max_num_seqs\": 1", "d/run.json:7: expected"),
        ("\"num_gpu_blocks\": 101", "\"num_gpu_blocks\": 1", "d/run.json:10: 1 where 2 or more"),
        ("\"block_size\": 16}", "\"block_size\": null}", "d/run.json:10: invalid type: null"),
        ("101", "4294967295", "must be from 1 to 2^32 - 1 tokens"),
        ("\"fixed\"", "\"guess\"", "d/run.json: unknown timing model \"guess\""),
        (RUN, "[]", "d/run.json:1: "),
        (RUN, "", "d/run.json:1: EOF"),
    ];
    for (from, to, expected) in cases {
        let sandbox = measured();
        assert!(RUN.contains(from), "{from}");
        sandbox.write("d/run.json", RUN.replace(from, to));
        let said = refused(&sandbox, "");
        assert!(said.contains(expected), "{to}: {said}");
    }
}

#[test]
fn broken_measurements_are_named_with_their_line() {
    let second = "1,20,3,0.100000,0.100000,0.120000,0.140000\n";
    let cases = [
        (second, "", "d/measured.csv: 2 requests, but the workload has 3: 1 is missing"),
        (second, "1,20,3,0.1\n", "d/measured.csv:3: \"scheduled_s\" is missing"),
        (second, "1,20,3,x,0.1,0.1,0.2\n", "d/measured.csv:3: \"queued_s\" is \"x\""),
        (second, "1,20,3,NaN,0.1,0.1,0.2\n", "d/measured.csv:3: \"queued_s\" is \"NaN\""),
        (second, "1,20,3,1e300,1e301,1e302,1e303\n", "d/measured.csv:3: \"queued_s\" is \"1e300\""),
        (second, "1,20,3,0.2,0.1,0.3,0.4\n", "d/measured.csv:3: the times of request 1 are not in order"),
        (second, "1,21,3,0.1,0.1,0.1,0.2\n", "d/measured.csv:3: \"input_tokens\" of request 1 is 21, not 20"),
        (second, "1,20,4,0.1,0.1,0.1,0.2\n", "d/measured.csv:3: \"output_tokens\" of request 1 is 4, not 3"),
        (second, "-1,20,3,0.1,0.1,0.1,0.2\n", "d/measured.csv:3: \"index\" is \"-1\""),
        (second, "0,32,3,0.1,0.1,0.1,0.2\n", "d/measured.csv:3: request 0 is there a second time"),
        (second, "3,20,3,0.1,0.1,0.1,0.2\n", "d/measured.csv:3: \"index\" is 3, but the workload has 3"),
        ("queued_s", "queued", "d/measured.csv:1: there is no column \"queued_s\""),
        (MEASURED, "\n\n", "d/measured.csv: there is nothing in it"),
    ];
    for (from, to, expected) in cases {
        let sandbox = measured();
        assert!(MEASURED.contains(from), "{from}");
        sandbox.write("d/measured.csv", MEASURED.replace(from, to));
        let said = refused(&sandbox, "");
        assert!(said.contains(expected), "{to}: {said}");
    }
    let sandbox = measured();
    sandbox.write("d/measured.csv", b"index\xff\n");
    assert!(refused(&sandbox, "").contains("d/measured.csv:1: not text in UTF-8"));
}

#[test]
fn a_broken_workload_and_missing_files_are_named() {
    let sandbox = measured();
    sandbox.write("d/workload.jsonl", WORKLOAD.replace("\"output_length\":1,", ""));
    assert!(refused(&sandbox, "").contains("d/workload.jsonl:3: \"output_length\" is missing"));
    let turns = WORKLOAD.replace("{\"timestamp\"", "{\"session_id\":\"a\",\"delay\":1,\"timestamp\"");
    sandbox.write("d/workload.jsonl", turns.replacen("\"delay\":1,", "", 1));
    assert!(refused(&sandbox, "").contains("requests wait for the end of others"));
    std::fs::remove_file(sandbox.path("d/workload.jsonl")).unwrap();
    assert!(refused(&sandbox, "").contains("d: there is no workload.jsonl"));
    std::fs::remove_file(sandbox.path("d/run.json")).unwrap();
    let said = refused(&sandbox, "");
    assert!(said.contains("d/run.json: cannot open") && said.contains("hint: a measured run is"), "{said}");
}

#[test]
fn nothing_is_written_over_the_run() {
    let sandbox = measured();
    for flag in ["--scatter d/measured.csv", "--report-json d/run.json", "--scatter x --report-json x"] {
        assert!(refused(&sandbox, flag).contains("is the same file as"), "{flag}");
    }
    assert_eq!(sandbox.read("d/measured.csv"), MEASURED);
}

#[test]
fn open_runs_of_vllm_are_met_within_three_percent() {
    let runs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/vllm-runs");
    for name in ["rtxpro6000-llama-3.1-8b", "rtxpro6000-qwen3-32b-tp2"] {
        let dir = runs.join(name);
        if dir.exists() {
            let sandbox = Sandbox::empty();
            let run = sandbox.run(&format!("validate {} --tolerance 3", dir.display()));
            assert_eq!(run.code, Some(0), "{name}: {}{}", run.stdout, run.stderr);
        }
    }
    for name in ["rtx4090-llama-3.1-8b", "rtxpro6000-qwen3-30b-a3b-dp2-ep2"] {
        let dir = runs.join(name);
        if dir.exists() {
            let sandbox = Sandbox::empty();
            let run = sandbox.run(&format!("validate {} --report-json r.json", dir.display()));
            assert_eq!(run.code, Some(0), "{name}: {}", run.stderr);
            assert_eq!(sandbox.report("r.json").count("/counts/completed"), 300, "{name}");
        }
    }
}
