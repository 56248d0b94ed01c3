//! Flags that do not exist, do not go together or ask for what there is not: exit code 2 and the flag's name.
//!
//! Breaks when a rule of the plan is dropped or not reached from the command line, or a flag disappears.

use insta::assert_snapshot;

use crate::sandbox::{GOOD_ROW, Sandbox};

const SYNTHETIC: &str = "--input-tokens 64 --output-tokens 2 --request-count 3";

/// A trace, a right and a wrong file of engine arguments, and a file that is no plan.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_trace(&[GOOD_ROW]);
    sandbox.write("engine.json", r#"{"block_size": 16}"#);
    sandbox.write("wrong.json", r#"{"blok_size": 16}"#);
    sandbox.write("broken.json", "{");
    sandbox
}

/// Each command must be refused by the name given with it; all that is said goes into one snapshot.
fn transcript(rows: &[(&str, &str)]) -> String {
    let sandbox = sandbox();
    let mut text = String::new();
    for (name, arguments) in rows {
        let arguments = arguments.replace("SYNTHETIC", SYNTHETIC);
        let message = sandbox.refuse(&arguments);
        assert!(message.starts_with(&format!("error: {name}: ")), "{arguments}: {message}");
        text += &format!("$ wavetank replay {arguments}\n{message}\n");
    }
    text
}

#[test]
fn an_unknown_flag() {
    assert_snapshot!(sandbox().refuse("trace.jsonl --frobnicate"), @r"
    error: unexpected argument '--frobnicate' found

      tip: to pass '--frobnicate' as a value, use '-- --frobnicate'

    Usage: wavetank replay <TRACE>...

    For more information, try '--help'.
    ");
}

#[test]
fn a_mistyped_flag_is_suggested() {
    assert_snapshot!(sandbox().refuse("trace.jsonl --num-wokers 4"), @r"
    error: unexpected argument '--num-wokers' found

      tip: a similar argument exists: '--num-workers'

    Usage: wavetank replay --num-workers <N> <TRACE>...

    For more information, try '--help'.
    ");
}

#[test]
fn nothing_to_replay() {
    assert_snapshot!(sandbox().refuse(""), @r"
    error: nothing to replay
    hint: name a trace file, or give --input-tokens, --output-tokens and --request-count
    ");
}

#[test]
fn what_does_not_go_together() {
    let rows = [
        ("--input-tokens", "trace.jsonl SYNTHETIC"),
        ("--request-rate", "trace.jsonl --request-rate 2"),
        ("--arrival-interval-ms", "trace.jsonl --arrival-interval-ms 2"),
        ("--arrival-seed", "trace.jsonl --arrival-seed 1"),
        ("--turns-per-session", "trace.jsonl --turns-per-session 2"),
        ("--shared-prefix-ratio", "trace.jsonl --shared-prefix-ratio 0.5"),
        ("--num-prefix-groups", "trace.jsonl --num-prefix-groups 2"),
        ("--inter-turn-delay-ms", "trace.jsonl --inter-turn-delay-ms 5"),
        ("--output-tokens", "--input-tokens 64"),
        ("--request-count", "--input-tokens 64 --output-tokens 2"),
        ("--request-rate", "SYNTHETIC --request-rate 2 --arrival-interval-ms 1"),
        ("--request-rate", "SYNTHETIC --request-rate 2 --replay-concurrency 1"),
        ("--concurrency-unit", "trace.jsonl --concurrency-unit sessions"),
        ("--router-mode", "trace.jsonl --router-mode kv_router"),
        ("--aic-backend", "trace.jsonl --aic-backend vllm"),
        ("--aic-nextn-accept-rates", "trace.jsonl --aic-nextn-accept-rates 0.5"),
        ("--prefill-engine-args", "trace.jsonl --prefill-engine-args {}"),
        ("--decode-engine-args", "trace.jsonl --decode-engine-args {}"),
        ("--decode-engine-args", "trace.jsonl --decode-engine-args {} --extra-engine-args {}"),
        ("--num-prefill-workers", "trace.jsonl --num-prefill-workers 2"),
        ("--num-decode-workers", "trace.jsonl --num-decode-workers 2"),
        ("--trace-shared-prefix-ratio", "trace.jsonl --trace-shared-prefix-ratio 0.5"),
        ("--trace-num-prefix-groups", "trace.jsonl --trace-num-prefix-groups 2"),
    ];
    assert_snapshot!(transcript(&rows));
}

#[test]
fn what_this_release_does_not_have() {
    let rows = [
        ("--replay-mode", "trace.jsonl --replay-mode online --max-sim-time-seconds 1"),
        ("--live", "trace.jsonl --live"),
        ("--replay-mode", "trace.jsonl --replay-mode online --autoscale load"),
        ("--prefill-engine-args", "trace.jsonl --prefill-engine-args {} --decode-engine-args {}"),
        ("--planner-config", "trace.jsonl --planner-config planner.json"),
        ("--router-policy-config", "trace.jsonl --router-policy-config policy.yaml"),
        ("--model-name", "trace.jsonl --model-name llama"),
    ];
    assert_snapshot!(transcript(&rows));
}

#[test]
fn scaling_that_cannot_be_meant() {
    let rows = [
        ("--autoscale", "trace.jsonl --autoscale guess"),
        ("--autoscale-config", "trace.jsonl --autoscale-config {}"),
        ("--autoscale-config", "trace.jsonl --autoscale load --autoscale-config []"),
        ("--autoscale-config", r#"trace.jsonl --autoscale load --autoscale-config {"queue":1}"#),
        ("--autoscale-config", r#"trace.jsonl --autoscale load --autoscale-config {"queue_up":0.1}"#),
        ("--autoscale-config", r#"trace.jsonl --autoscale load --autoscale-config {"min":2}"#),
        ("--autoscale-config", r#"trace.jsonl --autoscale load --autoscale-config {"min":3,"max":2}"#),
        ("--autoscale-config", r#"trace.jsonl --autoscale load --autoscale-config {"max":{"decode":2}}"#),
        (
            "--autoscale-config",
            r#"trace.jsonl --autoscale load --num-workers 4 --autoscale-config {"max_gpus":3}"#,
        ),
        ("--autoscale-config", r#"trace.jsonl --autoscale load --autoscale-config {"interval_seconds":0}"#),
        ("--autoscale-config", "trace.jsonl --autoscale sla"),
        ("--extra-engine-args", r#"trace.jsonl --autoscale load --extra-engine-args {"startup_time":-1}"#),
    ];
    assert_snapshot!(transcript(&rows));
}

/// It is the flag that was typed, not the one it belongs to.
#[test]
fn the_planner_is_refused_by_the_flag_that_was_typed() {
    let message = sandbox().refuse("trace.jsonl --benchmark-granularity 8");
    assert!(message.starts_with("error: --benchmark-granularity: "), "{message}");
}

#[test]
fn values_out_of_range() {
    let rows = [
        ("--num-workers", "trace.jsonl --num-workers 0"),
        ("--replay-concurrency", "trace.jsonl --replay-concurrency 0"),
        ("--replay-mode", "trace.jsonl --replay-mode offlin"),
        ("--router-mode", "trace.jsonl --router-mode sticky"),
        ("--trace-format", "trace.jsonl --trace-format csv"),
        ("--trace-block-size", "trace.jsonl --trace-block-size 0"),
        ("--arrival-speedup-ratio", "trace.jsonl --arrival-speedup-ratio 0"),
        ("--arrival-speedup-ratio", "trace.jsonl --arrival-speedup-ratio inf"),
        ("--max-sim-time-seconds", "trace.jsonl --max-sim-time-seconds -1"),
        ("--sla-ttft-ms", "trace.jsonl --sla-ttft-ms -1"),
        ("--sla-itl-ms", "trace.jsonl --sla-itl-ms NaN"),
        ("--sla-e2e-ms", "trace.jsonl --sla-e2e-ms inf"),
        ("--input-tokens", "--input-tokens 0 --output-tokens 2 --request-count 3"),
        ("--output-tokens", "--input-tokens 64 --output-tokens 0 --request-count 3"),
        ("--request-count", "--input-tokens 64 --output-tokens 2 --request-count 0"),
        ("--turns-per-session", "SYNTHETIC --turns-per-session 0"),
        ("--shared-prefix-ratio", "SYNTHETIC --shared-prefix-ratio 1.5"),
        ("--inter-turn-delay-ms", "SYNTHETIC --inter-turn-delay-ms -1"),
        ("--arrival-interval-ms", "SYNTHETIC --arrival-interval-ms -1"),
        ("--request-rate", "SYNTHETIC --request-rate 0"),
        (
            "--request-count",
            "--input-tokens 1 --output-tokens 1 --request-count 4000000000 --turns-per-session 2",
        ),
    ];
    assert_snapshot!(transcript(&rows));
}

#[test]
fn json_of_flags() {
    let rows = [
        ("--extra-engine-args", "trace.jsonl --extra-engine-args {"),
        ("--extra-engine-args", "trace.jsonl --extra-engine-args [1]"),
        ("--extra-engine-args broken.json", "trace.jsonl --extra-engine-args @broken.json"),
        ("missing.json", "trace.jsonl --extra-engine-args @missing.json"),
        ("--router-config", "trace.jsonl --router-config {"),
        ("--extra-engine-args", r#"trace.jsonl --extra-engine-args {"engine_type":"trtllm"}"#),
        ("--extra-engine-args", r#"trace.jsonl --extra-engine-args {"dp_size":2}"#),
        ("--extra-engine-args", r#"trace.jsonl --extra-engine-args {"timing":{"name":"fixed"}}"#),
        (
            "--extra-engine-args",
            r#"trace.jsonl --extra-engine-args {"block_size":65536,"num_gpu_blocks":65537}"#,
        ),
    ];
    assert_snapshot!(transcript(&rows));
}

#[test]
fn all_wrong_engine_arguments_are_listed_together() {
    let json = r#"{"blok_size":64,"max_num_seqs":0,"speedup_ratio":"fast","num_gpu_blocks":100}"#;
    assert_snapshot!(sandbox().refuse(&format!("trace.jsonl --extra-engine-args {json}")), @r#"
    error: --extra-engine-args: wrong keys or values:
      - unknown key "blok_size"
      - "max_num_seqs": must be at least 1, not 0
      - "speedup_ratio": must be a number, 0 or more, not "fast"
    hint: `wavetank list engine-args -v` shows every key
    "#);
}

#[test]
fn wrong_engine_arguments_of_a_file_name_the_file() {
    let message = sandbox().refuse("trace.jsonl --extra-engine-args @wrong.json");
    assert!(message.contains("unknown key \"blok_size\""), "{message}");
    assert!(message.contains("wrong.json"), "{message}");
}

#[test]
fn engine_arguments_come_from_a_file() {
    let sandbox = sandbox();
    let typed = sandbox.replay(r#"trace.jsonl --extra-engine-args {"block_size":16}"#);
    let filed = sandbox.replay("trace.jsonl --extra-engine-args @engine.json");
    assert_eq!(filed.count("/plan/simulation/engine/block_size"), 16);
    assert_eq!(typed.without_wall(), filed.without_wall());
}

#[test]
fn a_plan_allows_no_other_plan_flag() {
    let sandbox = sandbox();
    sandbox.replay("trace.jsonl");
    for more in ["trace.jsonl", "--num-workers 2", "--seed 1", "--clamp-input", "--aic-system h100"] {
        let message = sandbox.refuse(&format!("--plan replayed.json {more}"));
        assert!(message.contains("--plan"), "{more}: {message}");
    }
}

#[test]
fn what_is_no_plan() {
    let rows = [("missing.json", "--plan missing.json"), ("engine.json", "--plan engine.json")];
    assert_snapshot!(transcript(&rows));
}

/// A plan written by hand is held to the same rules as flags.
#[test]
fn a_plan_with_impossible_values_is_refused() {
    let sandbox = sandbox();
    let text = sandbox.replay("trace.jsonl").text().to_owned();
    for (right, wrong, named) in [
        ("\"num_workers\": 1", "\"num_workers\": 0", "--num-workers: must be at least 1"),
        ("\"block_size\": 64", "\"block_size\": 1", "\"block_size\""),
        ("\"round_robin\"", "\"sticky\"", "unknown router \"sticky\""),
        ("\"mooncake\"", "\"csv\"", "unknown trace format \"csv\""),
        ("\"polynomial\"", "\"guess\"", "\"guess\""),
        ("\"seed\": 42", "\"sede\": 42", "sede"),
    ] {
        assert!(text.contains(right), "{right}");
        sandbox.write("plan.json", text.replace(right, wrong));
        let message = sandbox.refuse("--plan plan.json");
        assert!(message.starts_with("error: plan.json: ") && message.contains(named), "{wrong}: {message}");
    }
}

#[test]
fn flags_without_effect_are_warned_about_and_kept_in_the_report() {
    let sandbox = sandbox();
    let line = "replay SYNTHETIC --shared-prefix-ratio 0.5 --clamp-input --report-json r.json";
    let run = sandbox.run(&line.replace("SYNTHETIC", SYNTHETIC));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_snapshot!(run.stderr, @r"
    warning: --clamp-input has no effect: there is no trace
    warning: --shared-prefix-ratio has no effect: nothing is shared without --num-prefix-groups
    ");
    let said: Vec<&str> = run.stderr.lines().map(|line| line.trim_start_matches("warning: ")).collect();
    assert_eq!(sandbox.report("r.json").json()["warnings"], serde_json::json!(said));
}

/// The flags of the reference (spec/replay.md 1.1).
const REFERENCE: &str = "input-tokens output-tokens request-count arrival-interval-ms request-rate \
    arrival-seed turns-per-session shared-prefix-ratio num-prefix-groups inter-turn-delay-ms num-workers \
    num-prefill-workers num-decode-workers replay-concurrency replay-mode router-mode \
    arrival-speedup-ratio trace-format trace-block-size trace-shared-prefix-ratio \
    trace-num-prefix-groups extra-engine-args prefill-engine-args decode-engine-args router-config \
    router-policy-config model-name aic-backend aic-system aic-model-path aic-backend-version \
    aic-tp-size aic-moe-tp-size aic-moe-ep-size aic-attention-dp-size aic-gemm-dtype aic-moe-dtype \
    aic-fmha-dtype aic-kv-cache-dtype aic-comm-dtype aic-nextn aic-nextn-accept-rates planner-config \
    benchmark-granularity report-json per-request-jsonl max-sim-time-seconds sla-ttft-ms sla-itl-ms \
    sla-e2e-ms";

#[test]
fn help_names_every_flag_of_the_reference() {
    let run = sandbox().run("replay --help");
    assert_eq!(run.code, Some(0));
    let words: Vec<&str> = run.stdout.split_whitespace().collect();
    let missing: Vec<&str> =
        REFERENCE.split_whitespace().filter(|flag| !words.contains(&format!("--{flag}").as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(words.contains(&"[TRACE]..."));
}

#[test]
fn a_key_given_twice_is_refused() {
    let message = sandbox().refuse(r#"trace.jsonl --extra-engine-args {"block_size":64,"block_size":16}"#);
    assert!(message.contains("\"block_size\" is given twice"), "{message}");
}

/// Each of these once made a run without end.
#[test]
fn ratios_no_machine_has_are_refused() {
    for flags in [
        "trace.jsonl --arrival-speedup-ratio 1e-300",
        r#"trace.jsonl --extra-engine-args {"speedup_ratio":1e-300}"#,
        r#"trace.jsonl --extra-engine-args {"timing":{"name":"fixed","prefill_ms":1e300,"decode_ms":1}}"#,
        "--input-tokens 64 --output-tokens 2 --request-count 3 --arrival-interval-ms 1e300",
        "--input-tokens 64 --output-tokens 2 --request-count 3 --request-rate 1e-300",
        "trace.jsonl --num-workers 100000",
    ] {
        sandbox().refuse(flags);
    }
}
