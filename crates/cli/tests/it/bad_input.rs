//! Traces that cannot be replayed: exit code 2, the place, the key, what to do, and no report.
//!
//! Breaks when a check is dropped, a message loses its line, key or hint, or a report is begun before the
//! whole trace was judged.

use std::fs::File;
use std::io::{BufWriter, Write};

use insta::assert_snapshot;

use crate::inputs::gzip;
use crate::sandbox::{GOOD_ROW, Sandbox};

/// What is said about a trace with `row` as its second line.
fn refused(row: &str) -> String {
    refused_rows(&[GOOD_ROW, row])
}

fn refused_rows(rows: &[&str]) -> String {
    let message = Sandbox::with_trace(rows).refuse("trace.jsonl");
    assert!(message.contains("\nhint: "), "no hint: {message}");
    message
}

#[test]
fn malformed_json() {
    assert_snapshot!(refused(r#"{"timestamp" 0,"output_length":2,"hash_ids":[1]}"#), @r"
    error: trace.jsonl:2: not valid JSON: expected `:` at column 14
    hint: one request is one JSON object per line
    ");
    assert_snapshot!(refused("[1,2]"), @r"
    error: trace.jsonl:2: not a JSON object
    hint: one request is one JSON object per line
    ");
}

#[test]
fn a_truncated_line() {
    assert_snapshot!(refused(&GOOD_ROW[..30]), @r"
    error: trace.jsonl:2: not valid JSON: EOF while parsing a value at column 30
    hint: one request is one JSON object per line
    ");
}

#[test]
fn a_missing_output_length() {
    assert_snapshot!(refused(r#"{"timestamp":0,"input_length":64,"hash_ids":[1]}"#), @r#"
    error: trace.jsonl:2: "output_length" is missing
    hint: every request needs "output_length" (or "output_tokens"): a whole number from 0 to 4294967295
    "#);
}

#[test]
fn missing_hash_ids() {
    assert_snapshot!(refused(r#"{"timestamp":0,"input_length":64,"output_length":2}"#), @r#"
    error: trace.jsonl:2: "hash_ids" is missing
    hint: every request needs "hash_ids": a list of whole numbers from 0 to 2^64-1
    "#);
}

#[test]
fn a_negative_input_length() {
    assert_snapshot!(refused(r#"{"timestamp":0,"input_length":-5,"output_length":2,"hash_ids":[1]}"#), @r#"
    error: trace.jsonl:2: "input_length" is -5
    hint: "input_length" must be a whole number from 0 to 4294967295
    "#);
}

#[test]
fn a_value_of_the_wrong_type() {
    assert_snapshot!(refused(r#"{"timestamp":"0","output_length":2,"hash_ids":[1]}"#), @r#"
    error: trace.jsonl:2: "timestamp" is "0"
    hint: "timestamp" must be milliseconds, not negative, within 292 years
    "#);
    assert_snapshot!(refused(r#"{"timestamp":0,"session_id":5,"output_length":2,"hash_ids":[1]}"#), @r#"
    error: trace.jsonl:2: "session_id" is 5
    hint: "session_id" must be a string
    "#);
}

#[test]
fn a_null_where_a_number_belongs() {
    let message = refused(r#"{"timestamp":0,"output_length":2,"hash_ids":[1],"priority":null}"#);
    assert!(message.starts_with("error: trace.jsonl:2: \"priority\" "), "{message}");
}

#[test]
fn a_negative_timestamp() {
    assert_snapshot!(refused(r#"{"timestamp":-1,"output_length":2,"hash_ids":[1]}"#), @r#"
    error: trace.jsonl:2: "timestamp" is -1
    hint: "timestamp" must be milliseconds, not negative, within 292 years
    "#);
}

#[test]
fn a_timestamp_that_is_not_a_number() {
    assert_snapshot!(refused(r#"{"timestamp":NaN,"output_length":2,"hash_ids":[1]}"#), @r"
    error: trace.jsonl:2: not valid JSON: expected value at column 14
    hint: JSON has no NaN and no Infinity
    ");
}

/// Milliseconds that do not fit into the simulation's clock; without a bound the run never ends.
#[test]
fn times_beyond_the_clock() {
    let message = refused(r#"{"timestamp":1e300,"output_length":2,"hash_ids":[1]}"#);
    assert!(message.starts_with("error: trace.jsonl:2: \"timestamp\""), "{message}");
    let first = r#"{"session_id":"a","timestamp":0,"output_length":2,"hash_ids":[1]}"#;
    let later = r#"{"session_id":"a","delay":1e300,"output_length":2,"hash_ids":[1]}"#;
    let message = refused_rows(&[first, later]);
    assert!(message.starts_with("error: trace.jsonl:2: \"delay\""), "{message}");
}

#[test]
fn a_key_and_its_alias() {
    let row = r#"{"timestamp":0,"input_length":64,"input_tokens":64,"output_length":2,"hash_ids":[1]}"#;
    assert_snapshot!(refused(row), @r#"
    error: trace.jsonl:2: "input_length" and its alias "input_tokens" are both given
    hint: keep one of the two
    "#);
}

#[test]
fn a_key_twice() {
    let message = refused(r#"{"timestamp":0,"timestamp":0,"output_length":2,"hash_ids":[1]}"#);
    assert!(message.starts_with("error: trace.jsonl:2: "), "{message}");
    assert!(message.contains("timestamp"), "{message}");
}

#[test]
fn time_goes_back_in_a_session() {
    let turns = [10, 30, 20]
        .map(|ms| format!(r#"{{"session_id":"a","timestamp":{ms},"output_length":2,"hash_ids":[1]}}"#));
    let rows: Vec<&str> = turns.iter().map(String::as_str).collect();
    assert_snapshot!(refused_rows(&rows), @r#"
    error: trace.jsonl:3: "timestamp" goes back from 30 to 20
    hint: the turns of a session stand in the order of their times
    "#);
}

#[test]
fn a_delay_before_the_first_turn() {
    let row = r#"{"session_id":"a","timestamp":0,"delay":5,"output_length":2,"hash_ids":[1]}"#;
    assert_snapshot!(refused(row), @r#"
    error: trace.jsonl:2: "delay" on the first turn of a session
    hint: the first turn starts at its timestamp; delays come after a turn's end
    "#);
}

#[test]
fn an_empty_file() {
    let sandbox = Sandbox::empty();
    sandbox.write("trace.jsonl", "");
    assert_snapshot!(sandbox.refuse("trace.jsonl"), @r"
    error: trace.jsonl: there are no requests in it
    hint: it is empty
    ");
}

#[test]
fn a_file_of_blank_lines() {
    assert_snapshot!(refused_rows(&["", "  ", "\t", ""]), @r"
    error: trace.jsonl: there are no requests in it
    hint: it is empty
    ");
}

#[test]
fn a_line_longer_than_64_mib() {
    let sandbox = Sandbox::empty();
    let mut file = BufWriter::new(File::create(sandbox.path("trace.jsonl")).unwrap());
    writeln!(file, "{GOOD_ROW}").unwrap();
    write!(file, r#"{{"timestamp":0,"output_length":2,"hash_ids":[1],"padding":""#).unwrap();
    let piece = [b'x'; 1 << 16];
    (0..70_000_000 / piece.len()).for_each(|_| file.write_all(&piece).unwrap());
    writeln!(file, r#""}}"#).unwrap();
    drop(file);
    assert_snapshot!(sandbox.refuse("trace.jsonl"), @r"
    error: trace.jsonl:2: line is longer than 64 MiB
    hint: one request is one line of JSON
    ");
}

#[test]
fn more_input_than_the_ids_cover() {
    let row = r#"{"timestamp":0,"input_length":1025,"output_length":2,"hash_ids":[1,2]}"#;
    assert_snapshot!(refused(row), @r#"
    error: trace.jsonl:2: "input_length" is 1025, but its 2 hash ids of 512 tokens cover only 1024
    hint: --trace-block-size says how many tokens a hash id stands for; --clamp-input cuts
    "#);
}

#[test]
fn no_input_tokens() {
    assert_snapshot!(refused(r#"{"timestamp":0,"input_length":0,"output_length":2,"hash_ids":[1]}"#), @r#"
    error: trace.jsonl:2: "input_length" is 0
    hint: a prompt has at least one token
    "#);
}

#[test]
fn empty_hash_ids() {
    assert_snapshot!(refused(r#"{"timestamp":0,"output_length":2,"hash_ids":[]}"#), @r#"
    error: trace.jsonl:2: "hash_ids" is empty
    hint: a prompt has at least one block
    "#);
}

#[test]
fn a_first_turn_without_timestamp_on_schedule() {
    let row = r#"{"input_length":64,"output_length":2,"hash_ids":[1]}"#;
    assert_snapshot!(refused(row), @r#"
    error: trace.jsonl:2: "timestamp" is missing
    hint: a session starts at its first turn's timestamp; --replay-concurrency does without
    "#);
    let report = Sandbox::with_trace(&[GOOD_ROW, row]).replay("trace.jsonl --replay-concurrency 1");
    assert_eq!(report.count("/completed_requests"), 2);
}

#[test]
fn a_directory_as_trace() {
    let sandbox = Sandbox::empty();
    std::fs::create_dir(sandbox.path("traces")).unwrap();
    assert_snapshot!(sandbox.refuse("traces"), @r"
    error: traces: is a directory
    hint: name a trace file
    ");
}

#[test]
fn a_missing_file() {
    let message = Sandbox::empty().refuse("missing.jsonl");
    assert!(message.starts_with("error: missing.jsonl: cannot open: No such file"), "{message}");
    assert!(message.contains("\nhint: "), "no hint: {message}");
}

#[test]
fn a_truncated_archive() {
    let sandbox = Sandbox::empty();
    let rows = (0..200).map(|ms| GOOD_ROW.replace(":0,", &format!(":{ms},")) + "\n");
    let whole = gzip(&rows.collect::<String>());
    sandbox.write("trace.jsonl.gz", &whole[..whole.len() / 2]);
    let message = sandbox.refuse("trace.jsonl.gz");
    let line: u32 = message
        .strip_prefix("error: trace.jsonl.gz:")
        .and_then(|rest| rest.split(':').next()?.parse().ok())
        .unwrap_or_else(|| panic!("{message}"));
    assert!((2..200).contains(&line), "{message}");
    assert!(message.ends_with("\nhint: the file is truncated or damaged\n"), "{message}");
}

#[test]
fn a_mistake_on_the_last_of_1000_lines() {
    let last = r#"{"timestamp":0,"input_length":64,"hash_ids":[1]}"#;
    let mut rows = vec![GOOD_ROW; 999];
    rows.push(last);
    assert_snapshot!(refused_rows(&rows), @r#"
    error: trace.jsonl:1000: "output_length" is missing
    hint: every request needs "output_length" (or "output_tokens"): a whole number from 0 to 4294967295
    "#);
    let sandbox = Sandbox::with_trace(&rows);
    let before = sandbox.names_in("");
    let run = sandbox.run_reading("replay - --per-request-jsonl requests.jsonl", "trace.jsonl");
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.starts_with("error: <stdin>:1000: \"output_length\" is missing"), "{}", run.stderr);
    assert_eq!(sandbox.names_in(""), before);
}

#[test]
fn zero_output_tokens_are_legal() {
    let row = r#"{"timestamp":0,"input_length":64,"output_length":0,"hash_ids":[1]}"#;
    let report = Sandbox::with_trace(&[row]).replay("trace.jsonl");
    assert_eq!((report.count("/completed_requests"), report.count("/total_output_tokens")), (1, 0));
}
