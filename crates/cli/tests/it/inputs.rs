//! One trace in every way it can come: the result does not depend on the way.
//!
//! Breaks when a decompressor loses or repeats rows, standard input is loaded differently from a file, the
//! index orders rows differently from the stream, or cut inputs are not counted.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::report::Report;
use crate::sandbox::{GOOD_ROW, Sandbox, examples};

pub(crate) fn gzip(text: &str) -> Vec<u8> {
    let mut archive = GzEncoder::new(Vec::new(), Compression::default());
    archive.write_all(text.as_bytes()).expect("memory takes it");
    archive.finish().expect("memory takes it")
}

fn replay_stdin(sandbox: &Sandbox, file: &str, flags: &str) -> Report {
    let run = sandbox.run_reading(&format!("replay - {flags} --report-json stdin.json"), file);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    sandbox.report("stdin.json")
}

#[test]
fn plain_compressed_and_piped_traces_give_the_same_report() {
    let sandbox = Sandbox::with_examples();
    for example in examples() {
        let text = sandbox.read(&example);
        sandbox.write("trace.jsonl.gz", gzip(&text));
        sandbox.write("trace.jsonl.zst", zstd::encode_all(text.as_bytes(), 1).unwrap());
        let (first, second) = text.split_at(text.len() / 2);
        sandbox.write("two-members.gz", [gzip(first), gzip(second)].concat());
        for flags in ["--num-workers 2", "--replay-concurrency 3"] {
            let plain = sandbox.replay(&format!("{example} {flags}")).without_wall_and_path();
            for other in ["trace.jsonl.gz", "trace.jsonl.zst", "two-members.gz"] {
                let report = sandbox.replay(&format!("{other} {flags}"));
                assert_eq!(plain, report.without_wall_and_path(), "{example} as {other} {flags}");
            }
            for piped in [example.as_str(), "trace.jsonl.gz", "trace.jsonl.zst"] {
                let report = replay_stdin(&sandbox, piped, flags);
                assert_eq!(plain, report.without_wall_and_path(), "{example}: {piped} piped {flags}");
            }
        }
    }
}

#[test]
fn the_order_of_single_turns_in_the_file_does_not_matter() {
    let sandbox = Sandbox::with_examples();
    let text = sandbox.read("examples/single_turn.jsonl");
    let start = |row: &&str| serde_json::from_str::<Value>(row).unwrap()["timestamp"].as_f64().unwrap();
    let mut rows: Vec<&str> = text.lines().collect();
    // Stable, so that rows of the same time keep their order.
    rows.sort_by(|a, b| start(b).total_cmp(&start(a)));
    assert_ne!(rows.first(), text.lines().next().as_ref());
    sandbox.write("latest-first.jsonl", rows.join("\n"));
    let sorted = sandbox.replay("examples/single_turn.jsonl --num-workers 3");
    let unsorted = sandbox.replay("latest-first.jsonl --num-workers 3");
    assert_eq!(sorted.without_wall_and_path(), unsorted.without_wall_and_path());
}

#[test]
fn cut_inputs_are_counted_and_warned_about() {
    let long = r#"{"timestamp":0,"input_length":1025,"output_length":2,"hash_ids":[1,2]}"#;
    let sandbox = Sandbox::with_trace(&[GOOD_ROW, long, long]);
    let run = sandbox.run("replay trace.jsonl --clamp-input --report-json r.json");
    assert_eq!(run.code, Some(0));
    assert_eq!(run.stderr, "warning: 2 requests cut to what the hash ids cover\n");
    let report = sandbox.report("r.json");
    assert_eq!(report.count("/counts/clamped_inputs"), 2);
    assert_eq!(report.count("/total_input_tokens"), 64 + 2 * 1024);
    assert_eq!(report.json()["warnings"].as_array().unwrap().len(), 1);
}
