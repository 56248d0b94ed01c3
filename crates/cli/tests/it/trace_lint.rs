//! `wavetank trace lint`: every problem with its line; 0 clean, 1 problems, 2 unreadable.

use insta::assert_snapshot;

use crate::sandbox::{GOOD_ROW, Sandbox};

const ROWS: &[&str] = &[
    GOOD_ROW,
    r#"{"timestamp":0,"input_length":900,"output_length":1,"hash_ids":[1]}"#,
    r#"{"timestamp":0,"input_length":700,"output_length":1,"hash_ids":[1]}"#,
    r#"{"timestamp":0,"#,
    r#"{"session_id":"a","timestamp":10,"output_length":1,"hash_ids":[1]}"#,
    r#"{"session_id":"a","timestamp":5,"output_length":1,"hash_ids":[1]}"#,
    r#"{"session_id":"b","delay":5,"output_length":1,"hash_ids":[1]}"#,
];

fn lint(sandbox: &Sandbox, line: &str) -> String {
    let run = sandbox.run(&format!("trace lint {line}"));
    format!("exit {:?}\n{}{}", run.code.expect("it ended by itself"), run.stdout, run.stderr)
}

/// Broken by: a check that ends at the first problem, or an exit code that hides one.
#[test]
fn problems_are_listed_and_counted() {
    let sandbox = Sandbox::with_trace(ROWS);
    assert_snapshot!("problems", lint(&sandbox, "trace.jsonl"));
    assert_snapshot!("problems_max", lint(&sandbox, "trace.jsonl --max 1"));
    assert_snapshot!("problems_json", lint(&sandbox, "trace.jsonl --max 2 --json"));
}

#[test]
fn a_clean_trace_is_said_to_be() {
    let sandbox = Sandbox::with_examples();
    assert_eq!(lint(&sandbox, "examples/conversation.jsonl"), "exit 0\n500 requests right, 0 problems\n");
    sandbox.write("b.csv", "Timestamp,Request tokens,Response tokens\n1,2,3\n1,2,0\n");
    let said = lint(&sandbox, "b.csv");
    assert_eq!(
        said,
        "exit 0\nnote: 1 row skipped: no response tokens, a failed request\n1 request right, 0 problems\n"
    );
}

#[test]
fn what_cannot_be_read_is_no_trace() {
    let sandbox = Sandbox::empty();
    sandbox.write("x", "plain words\n");
    for line in ["missing.jsonl", "x", "x --trace-format nothing", ". --trace-format mooncake"] {
        let said = lint(&sandbox, line);
        assert!(said.starts_with("exit 2\nerror: "), "{line}: {said}");
    }
}

/// A replay refuses what lint finds, in the same words.
#[test]
fn a_replay_says_the_same() {
    for row in &ROWS[1..] {
        let rows = [ROWS[4], row];
        let sandbox = Sandbox::with_trace(&rows);
        let linted = sandbox.run("trace lint trace.jsonl");
        if linted.code == Some(0) {
            continue;
        }
        let replayed = sandbox.refuse("trace.jsonl");
        let first = linted.stdout.lines().next().unwrap();
        assert!(replayed.starts_with(&format!("error: {first}\n")), "{replayed}{first}");
    }
}
