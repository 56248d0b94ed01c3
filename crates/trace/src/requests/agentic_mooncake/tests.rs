//! Acceptance case L8 of spec/replay.md 11, and what a graph may not be.

use std::sync::Arc;

use wavetank_model::{Nanos, Opening, Request, SessionId, Workload};

use super::*;
use crate::requests::{ReadOptions, Source};
use crate::{Input, Loaded, Options, Starts};

const SAMPLE: &str = include_str!("../../../tests/samples/agentic_mooncake.jsonl");

fn load(text: &str, starts: Starts) -> Result<Loaded> {
    let input = Input::Bytes(Arc::from(text.as_bytes()));
    let read = ReadOptions { tokens_per_id: Some(512), ..ReadOptions::default() };
    let options = Options { read, keep_names: true, ..Options::of(starts) };
    crate::open(&Source::with("agentic_mooncake", vec![input])?, &options)
}

fn workload(text: &str) -> Box<dyn Workload> {
    load(text, Starts::Scheduled { speedup: 1.0 }).unwrap().workload
}

fn message(lines: &[&str]) -> String {
    load(&lines.join("\n"), Starts::Ignored).err().expect("refused").to_string()
}

fn name(request: &Request) -> &str {
    request.labels.as_ref().and_then(|labels| labels.request.as_deref()).expect("has a name")
}

#[test]
fn what_is_written_is_what_was_read() {
    let source = Source::with("agentic_mooncake", vec![Input::Bytes(SAMPLE.as_bytes().into())]).unwrap();
    let (mut reader, mut row, mut bytes) =
        (source.open(&ReadOptions::default()).unwrap(), Row::default(), Vec::new());
    let mut writer = begin(Output::to(&mut bytes), &WriteOptions { tokens_per_id: Some(512) }).unwrap();
    while reader.read(&mut row).unwrap() {
        writer.write(&row).unwrap();
    }
    writer.finish().unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), SAMPLE);
}

#[test]
fn requests_without_a_name_get_one() {
    let mut bytes = Vec::new();
    let mut writer = begin(Output::to(&mut bytes), &WriteOptions { tokens_per_id: Some(512) }).unwrap();
    for _ in 0..2 {
        writer.write(&Row { ids: vec![1], output_tokens: Some(2), ..Row::default() }).unwrap();
    }
    writer.finish().unwrap();
    let lines = String::from_utf8(bytes).unwrap();
    assert!(
        lines.starts_with(r#"{"request_id":"request_1","#) && lines.contains(r#""request_2""#),
        "{lines}"
    );
}

/// Broken by: a pause without the tool's time, a name looked for only among the rows before, or a start of
/// one's own for what waits.
#[test]
fn l8_a_request_starts_after_its_pause_and_the_tools() {
    let mut workload = workload(SAMPLE);
    let openings: Vec<Opening> = std::iter::from_fn(|| workload.open().unwrap()).collect();
    let told: Vec<_> = openings.iter().map(|opening| (opening.at, name(&opening.request))).collect();
    assert_eq!(told, [(Nanos::ZERO, "plan"), (Nanos::ZERO, "alone")], "without a time: with the first");
    assert!(workload.has_follow_ups() && workload.requests() == 4);
    let graph = workload.dependencies().unwrap();
    assert_eq!(graph.requirements(), [0, 2, 1, 0]);
    assert_eq!(graph.pause(SessionId(1)), Nanos(12_000_000));
    assert_eq!(graph.pause(SessionId(2)), Nanos(2_500_000));
    let act = workload.follow_up(SessionId(1), 0).unwrap();
    assert_eq!((name(&act), act.turn, act.think, act.priority.soft), ("act", 0, None, 2));
    assert_eq!(act.labels.unwrap().session, "agent", "a session is a label");
}

#[test]
fn times_are_sped_up_together() {
    let loaded = load(SAMPLE, Starts::Scheduled { speedup: 10.0 }).unwrap();
    assert_eq!(loaded.workload.dependencies().unwrap().pause(SessionId(1)), Nanos(1_200_000));
}

#[test]
fn l8_what_can_never_start_is_refused_with_its_line() {
    let row = |name: &str, waits: &str| {
        format!(r#"{{"request_id":"{name}","wait_for":[{waits}],"output_length":1,"hash_ids":[1]}}"#)
    };
    let (a, good) = (row("a", r#""b""#), row("x", ""));
    let cases: [(&[&str], &str); 7] = [
        (&[&good, &a], r#":2: it waits for "b", and no request of the trace has that name"#),
        (&[&row("a", r#""a""#)], r#":1: "a" waits for itself"#),
        (
            &[&good, &a, &row("b", r#""c""#), &row("c", r#""a""#)],
            r#":2: requests wait for each other: "a" for "b" for "c" for "a""#,
        ),
        (&[&good, &a, &good], r#":3: "x" is the name of two requests"#),
        (&[r#"{"request_id":" ","output_length":1,"hash_ids":[1]}"#], r#":1: "request_id" is blank"#),
        (&[r#"{"wait_for":[],"output_length":1,"hash_ids":[1]}"#], r#":1: "request_id" is missing"#),
        (
            &[r#"{"request_id":"a","input_length":513,"output_length":1,"hash_ids":[1]}"#],
            r#":1: "input_length" is 513, but its 1 hash ids of 512 tokens cover only 512"#,
        ),
    ];
    for (lines, expected) in cases {
        assert!(message(lines).contains(expected), "{}", message(lines));
    }
}

#[test]
fn mistakes_name_the_key() {
    let cases = [
        (r#""wait_for":"a""#, r#""wait_for" must be a list of strings"#),
        (r#""branches":[1]"#, r#""branches" must be a list of strings"#),
        (r#""prefix_reset":1"#, r#""prefix_reset" must be true or false"#),
        (r#""tool_wait_ms":-1"#, r#""tool_wait_ms" must be milliseconds"#),
        (r#""tool_events":{}"#, r#""tool_events" must be a list"#),
        (r#""request_kind":1"#, r#""request_kind" must be a string"#),
    ];
    for (member, expected) in cases {
        let line = format!(r#"{{"request_id":"r","output_length":1,"hash_ids":[1],{member}}}"#);
        assert!(message(&[&line]).contains(expected), "{}", message(&[&line]));
    }
}

/// Broken by: dependencies dropped, or pauses of what waits for nothing dropped, without a word.
#[test]
fn what_has_no_effect_is_told() {
    let root = r#"{"request_id":"a","delay":5,"output_length":1,"hash_ids":[1]}"#;
    let notes = load(root, Starts::Ignored).unwrap().survey.notes;
    assert!(notes[0].starts_with("1 request with a pause or a tool's time and nothing"), "{notes:?}");
    let waits = r#"{"wait_for":["a"],"tool_wait_ms":"?","output_length":1,"hash_ids":[1]}"#;
    let source = Source::with("mooncake", vec![Input::Bytes(waits.as_bytes().into())]).unwrap();
    let notes = crate::open(&source, &Options::of(Starts::Ignored)).unwrap().survey.notes;
    assert!(notes[0].starts_with("1 request with \"wait_for\" started without waiting"), "{notes:?}");
}

#[test]
fn a_graph_is_known_by_its_keys() {
    let guessed = |text: &str| {
        let fits = |entry: &&Entry| (entry.recognises)(&crate::Head::of(text.as_bytes().to_vec()));
        super::super::ALL.iter().filter(fits).map(|entry| entry.name).collect::<Vec<_>>()
    };
    assert_eq!(guessed(SAMPLE), ["agentic_mooncake"]);
    let plain = r#"{"request_id":"a","timestamp":1,"output_length":1,"hash_ids":[1]}"#;
    assert_eq!(guessed(plain), ["mooncake"]);
}
