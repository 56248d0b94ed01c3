//! `wavetank trace convert`: one format in, another out; what is filled and lost is said, and nothing stays
//! of what failed.

use insta::assert_snapshot;

use crate::sandbox::{Run, Sandbox};

const BURSTGPT: &str = "Timestamp,Session ID,Request tokens,Response tokens\n\
                        10,a,300,20\n12.5,,700,10\n40,a,900,5\n";

const CHAT: &[&str] = &[
    concat!(
        r#"{"request_id":"r1","session_id":"s","timestamp":1000,"input_length":600,"#,
        r#""output_length":5,"hash_ids":[7,8],"priority":3}"#,
    ),
    r#"{"session_id":"s","delay":1500,"input_length":1100,"output_length":6,"hash_ids":[7,8,9]}"#,
    r#"{"timestamp":3000.25,"input_length":10,"output_length":7,"hash_ids":[1],"policy_class":"batch"}"#,
];

fn told(run: &Run) -> String {
    format!("exit {:?}\n{}{}", run.code.expect("it ended by itself"), run.stdout, run.stderr)
}

fn convert(sandbox: &Sandbox, line: &str) -> String {
    told(&sandbox.run(&format!("trace convert {line}")))
}

/// Broken by: a writer or reader that loses a key, compression that is not what the name says.
#[test]
fn a_round_trip_is_the_same_trace() {
    let sandbox = Sandbox::with_examples();
    for file in ["examples/conversation.jsonl", "examples/single_turn.jsonl"] {
        for line in [format!("{file} x.gz"), "x.gz x.zst".to_owned(), "x.zst mooncake:y".to_owned()] {
            let run = sandbox.run(&format!("trace convert {line}"));
            assert_eq!((run.code, &*run.stdout), (Some(0), ""), "{line}: {}", run.stderr);
            assert_eq!(run.stderr, "500 requests written as mooncake\n");
        }
        assert!(sandbox.read("y") == sandbox.read(file), "{file}");
        assert!(std::fs::read(sandbox.path("x.gz")).unwrap().starts_with(&[0x1f, 0x8b]));
        assert!(std::fs::read(sandbox.path("x.zst")).unwrap().starts_with(&[0x28, 0xb5]));
        let piped = sandbox.run_reading("trace convert - -", file);
        assert_eq!(piped.code, Some(0), "{}", piped.stderr);
        assert!(piped.stdout == sandbox.read(file), "{file} through pipes");
    }
}

#[test]
fn what_is_missing_is_filled_and_said() {
    let sandbox = Sandbox::empty();
    sandbox.write("burst.csv", BURSTGPT);
    assert_snapshot!("filled_unique", convert(&sandbox, "burst.csv - --to mooncake"));
    assert_snapshot!("filled_session", convert(&sandbox, "burst.csv mooncake:- --fill hash=session"));
    assert_snapshot!("filled_none", convert(&sandbox, "burst.csv o.mooncake.jsonl --fill hash=none"));
    assert_eq!(sandbox.names_in(""), ["burst.csv"], "nothing is left of what failed");
}

#[test]
fn what_is_lost_is_said() {
    let sandbox = Sandbox::with_trace(CHAT);
    assert_snapshot!("lost", convert(&sandbox, "trace.jsonl - --to burstgpt"));
    assert_snapshot!("block_size", convert(&sandbox, "trace.jsonl - --trace-block-size 2048"));
}

/// Broken by: half a file under the name of a whole one, an input that is overwritten.
#[test]
fn a_failure_leaves_what_was_there() {
    let sandbox = Sandbox::with_trace(&[CHAT[0], "{\"broken\":"]);
    sandbox.write("o.jsonl", "before\n");
    assert_snapshot!("broken", convert(&sandbox, "trace.jsonl o.jsonl"));
    assert_eq!(sandbox.read("o.jsonl"), "before\n");
    assert_eq!(sandbox.names_in(""), ["o.jsonl", "trace.jsonl"]);
    for line in [
        "trace.jsonl trace.jsonl",
        "trace.jsonl ./trace.jsonl",
        "trace.jsonl x --to sharegpt",
        "trace.jsonl mooncake:x --to burstgpt",
        "trace.jsonl x --to nothing",
        "trace.jsonl no/such/folder/x",
        "missing.jsonl x",
        "trace.jsonl",
    ] {
        let said = convert(&sandbox, line);
        assert!(said.starts_with("exit 2\nerror: "), "{line}: {said}");
    }
    assert_eq!(sandbox.names_in(""), ["o.jsonl", "trace.jsonl"]);
}

#[test]
fn several_files_are_one_trace() {
    let sandbox = Sandbox::with_trace(&CHAT[..2]);
    sandbox.write("more.jsonl", format!("{}\n", CHAT[2]));
    let said = convert(&sandbox, "trace.jsonl more.jsonl -");
    assert_eq!(said.lines().filter(|line| line.starts_with('{')).count(), 3, "{said}");
}
