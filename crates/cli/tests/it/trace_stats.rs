//! `wavetank trace stats` and `wavetank trace mrc`, through the binary.

use std::path::PathBuf;

use insta::assert_snapshot;
use serde_json::Value;
use wavetank_trace::calls::lct::LctOptions;

use crate::sandbox::{GOOD_ROW, Sandbox};
use crate::trace_info::record;

fn json(sandbox: &Sandbox, line: &str) -> Value {
    let run = sandbox.run(&format!("{line} --json"));
    assert_eq!(run.code, Some(0), "{line}: {}", run.stderr);
    serde_json::from_str(&run.stdout).expect("JSON")
}

/// A file beside the checkout, where there is one.
fn shared(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces").join(name);
    path.exists().then_some(path)
}

/// Broken by: a number of an example that changes.
#[test]
fn what_the_examples_hold() {
    let sandbox = Sandbox::with_examples();
    for name in ["conversation", "single_turn"] {
        let run = sandbox.run(&format!("trace stats examples/{name}.jsonl"));
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        assert_snapshot!(format!("stats_{name}"), run.stdout);
    }
}

/// Broken by: a name of a number, a rule that is not told, or a pipe that is read otherwise than a file.
#[test]
fn a_small_trace_as_json() {
    let rows = [
        r#"{"timestamp":0,"input_length":700,"output_length":5,"hash_ids":[1,2]}"#,
        r#"{"timestamp":2500,"input_length":600,"output_length":7,"hash_ids":[1,3]}"#,
        r#"{"timestamp":2600,"input_length":40,"output_length":1,"hash_ids":[4]}"#,
    ];
    let sandbox = Sandbox::with_trace(&rows);
    let run = sandbox.run("trace stats trace.jsonl --json");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    assert_snapshot!(run.stdout.replace(&version, "\"version\": \"[VERSION]\""));
    let piped = sandbox.run_reading("trace stats - --json", "trace.jsonl");
    assert_eq!(piped.stdout.replace("<stdin>", "trace.jsonl"), run.stdout);
}

/// Broken by: a fill that is not told, or one that makes no difference.
#[test]
fn what_is_filled_is_said() {
    let sandbox = Sandbox::empty();
    let rows = "Timestamp,Session ID,Request tokens,Response tokens\n1,a,40,5\n2,a,70,5\n3,b,70,5\n";
    sandbox.write("burst.csv", rows);
    let unique = sandbox.run("trace stats burstgpt:burst.csv").stdout;
    assert!(unique.contains("sessions     2, turns 1.50 on average, 2 at most\n"), "{unique}");
    assert!(unique.contains("blocks       none that two requests may share\n"), "{unique}");
    assert!(unique.contains("(--fill hash=unique)"), "{unique}");
    let session = json(&sandbox, "trace stats burst.csv --fill hash=session");
    assert_eq!(session["blocks"]["references"], 13);
    assert_eq!(session["reuse_bound"]["prompt_token_ratio"], 32.0 / 180.0);
    let refused = sandbox.run("trace mrc burst.csv");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("hint: with --fill hash=session"), "{}", refused.stderr);
    let curves = json(&sandbox, "trace mrc burst.csv --fill hash=session");
    assert_eq!(curves["bound"]["block_hit_ratio"], 2.0 / 13.0);
}

/// Broken by: a picture that is missing, or words among data.
#[test]
fn pictures_of_both() {
    let sandbox = Sandbox::with_examples();
    let run =
        sandbox.run("trace stats examples/conversation.jsonl --plots stats --plot-format both --html s.html");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let mut expected = Vec::new();
    for name in ["answer-lengths", "arrivals", "prompt-lengths", "reuse", "tokens"] {
        expected.extend([format!("{name}.png"), format!("{name}.svg")]);
    }
    assert_eq!(sandbox.names_in("stats"), expected);
    let run = sandbox.run("trace mrc examples/conversation.jsonl --json --plots mrc --timeseries points.csv");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let report: Value = serde_json::from_str(&run.stdout).expect("only JSON");
    assert_eq!(report["kind"], "trace_mrc");
    assert!(run.stderr.contains("Saved 1 plots to: mrc\n"), "{}", run.stderr);
    assert_eq!(sandbox.names_in("mrc"), ["hit-ratio.svg"]);
    assert!(sandbox.read("points.csv").contains("endless cache"));
    sandbox.write("curves.json", run.stdout);
    let page = sandbox.run("report curves.json -o page.html");
    assert_eq!(page.code, Some(0), "{}", page.stderr);
}

/// Broken by: a curve of an example that changes, or a policy that is not in the table.
#[test]
fn curves_of_an_example() {
    let sandbox = Sandbox::with_examples();
    let run = sandbox.run("trace mrc examples/conversation.jsonl --policy all --sample 1 --csv curves.csv");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_snapshot!(run.stdout);
    let csv = sandbox.read("curves.csv");
    assert!(
        csv.starts_with("policy,capacity_blocks,capacity_tokens,hit_ratio_blocks,hit_ratio_tokens,one_in\n")
    );
    let listed = sandbox.run("list eviction").stdout;
    let policies: Vec<&str> = listed.lines().skip(1).map(str::trim).filter(|name| !name.is_empty()).collect();
    for policy in policies {
        let lines = csv.lines().filter(|line| line.starts_with(&format!("{policy},"))).count();
        assert_eq!(lines, 8, "{policy}");
    }
}

/// The bound of the curves is that of the statistics, and a cache with room for all reaches it.
///
/// Broken by: blocks that one of them chains otherwise, or leaves out.
#[test]
fn curves_end_at_the_bound_of_the_statistics() {
    let sandbox = Sandbox::with_examples();
    let stats = json(&sandbox, "trace stats examples/conversation.jsonl");
    let unique = stats["blocks"]["unique"].as_u64().expect("a number");
    let line =
        format!("trace mrc examples/conversation.jsonl --sample 1 --policy fifo --capacity 1,{unique}");
    let curves = json(&sandbox, &line);
    assert_eq!(curves["totals"]["distinct_blocks"], unique);
    assert_eq!(curves["totals"]["blocks"], stats["blocks"]["references"]);
    let close = |one: &Value, other: &Value| {
        (one.as_f64().expect("a number") - other.as_f64().expect("a number")).abs() < 1e-9
    };
    assert!(close(&curves["bound"]["block_hit_ratio"], &stats["reuse_bound"]["block_hit_ratio"]));
    assert!(close(&curves["bound"]["weight_hit_ratio"], &stats["reuse_bound"]["prompt_token_ratio"]));
    for curve in [0, 1] {
        let full = &curves["curves"][curve]["rows"][1]["block_hit_ratio"];
        assert!(close(full, &curves["bound"]["block_hit_ratio"]), "{full}");
    }
}

/// Broken by: objects of storage calls that are counted in blocks, an eviction that is taken for a question,
/// or a call that is left out without a word.
#[test]
fn storage_calls_have_curves_too() {
    let sandbox = Sandbox::empty();
    record(&sandbox, "ours.lct", LctOptions::default());
    let recording = sandbox.run("trace mrc ours.lct");
    assert_eq!((recording.code, recording.stderr.as_str()), (Some(0), ""));
    assert_snapshot!("mrc_of_a_recording", recording.stdout);
    let rows = "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\n\
                100.5,Write,4096,Tier-0,a,Prefill\n\
                100.75,Write,8192,Tier-1,b,Prefill\n\
                100.8,Write,8192,Tier-1,a,Evict\n\
                101,Read,8192,Tier-1,b,Decode\n\
                102,Read,4096,Tier-0,a,Decode\n\
                102.5,Delete,8192,Tier-1,b,Evict\n";
    sandbox.write("log.csv", rows);
    let log = sandbox.run("trace mrc log.csv --capacity 8192,12288 --policy fifo");
    assert_eq!((log.code, log.stderr.as_str()), (Some(0), ""));
    assert_snapshot!("mrc_of_a_log", log.stdout);
    let named = sandbox.run_reading("trace mrc mlperf-csv:- --capacity 8192,12288 --policy fifo", "log.csv");
    assert_eq!(named.stdout.replace("<stdin>", "log.csv"), log.stdout);
}

/// Broken by: a mistake that is passed over, or said without what to do.
#[test]
fn what_cannot_be_done_is_said() {
    let sandbox = Sandbox::with_trace(&[GOOD_ROW]);
    sandbox.write("bad.jsonl", format!("{GOOD_ROW}\n{{\"timestamp\":1}}\n"));
    sandbox.write("empty.jsonl", "\n");
    sandbox.write("log.csv", "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\n");
    let mut said = String::new();
    for line in [
        "stats",
        "stats missing.jsonl",
        "stats bad.jsonl",
        "stats empty.jsonl",
        "stats log.csv",
        "stats trace.jsonl --fill hash=x",
        "stats trace.jsonl --trace-block-size 0",
        "stats trace.jsonl --trace-block-size 16",
        "stats trace.jsonl --html trace.jsonl",
        "stats mooncake:trace.jsonl --html trace.jsonl",
        "mrc trace.jsonl --policy lfru",
        "mrc trace.jsonl --capacity 0",
        "mrc trace.jsonl --sample 1/3",
        "mrc trace.jsonl --points 0",
        "mrc trace.jsonl --points 3 --capacity 5",
        "mrc trace.jsonl --csv trace.jsonl",
        "mrc trace.jsonl log.csv",
        "mrc log.csv",
    ] {
        let run = sandbox.run(&format!("trace {line}"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{line}");
        said += &format!("$ {line}\n{}\n", run.stderr);
    }
    let piped = sandbox.run_reading("trace mrc - --policy fifo", "trace.jsonl");
    assert_eq!(piped.code, Some(2));
    said += &format!("$ mrc - --policy fifo\n{}", piped.stderr);
    assert_snapshot!(said);
}

/// Broken by: totals of the real traces that are off, or formats that cannot be counted.
#[test]
fn real_traces_have_their_known_totals() {
    let sandbox = Sandbox::empty();
    let known = [
        ("mooncake_conversation.jsonl.gz", 12_031, 144_793_823),
        ("mooncake_synthetic.jsonl.gz", 3_993, 61_194_628),
        ("AzureLLMInferenceTrace_code.csv.gz", 8_819, 18_059_974),
        ("AzureLLMInferenceTrace_conv.csv.gz", 19_366, 22_361_870),
    ];
    for (name, requests, tokens) in known {
        let Some(path) = shared(name) else { return };
        let stats = json(&sandbox, &format!("trace stats {}", path.display()));
        assert_eq!(stats["requests"], requests, "{name}");
        assert_eq!(stats["input_tokens"]["sum"], tokens, "{name}");
    }
}
