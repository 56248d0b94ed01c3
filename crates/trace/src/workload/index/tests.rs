//! Acceptance cases L2 to L4 of spec/replay.md 11, and what makes a trace stream.

use std::io::Write;

use wavetank_model::{BlockKey, Nanos, Opening, SessionId};

use super::*;
use crate::Input;
use crate::requests::{ReadOptions, Source};

fn options() -> Options {
    let read = ReadOptions { tokens_per_id: Some(4), ..ReadOptions::default() };
    Options { read, keep_names: true, ..Options::of(Starts::Scheduled { speedup: 1.0 }) }
}

fn open(lines: &[&str], options: &Options) -> Result<crate::Loaded> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(lines.join("\n").as_bytes()).unwrap();
    let input = Input::File(file.path().to_path_buf());
    crate::open(&Source::with("mooncake", vec![input]).unwrap(), options)
}

fn openings(lines: &[&str], options: &Options) -> Vec<Opening> {
    let mut loaded = open(lines, options).unwrap();
    std::iter::from_fn(|| loaded.workload.open().unwrap()).collect()
}

fn message(lines: &[&str]) -> String {
    open(lines, &options()).err().expect("refused").to_string()
}

#[test]
fn l2_a_missing_input_length_is_all_that_the_ids_cover() {
    let opening = &openings(&[r#"{"timestamp":0,"output_length":1,"hash_ids":[1,2]}"#], &options())[0];
    assert_eq!(opening.request.prompt.tokens(), 8);
}

#[test]
fn l2_large_ids_keep_their_identity_in_the_index() {
    let row =
        |id: u64| format!(r#"{{"session_id":"{id}","timestamp":0,"output_length":1,"hash_ids":[{id}]}}"#);
    let (small, large) = (row(7), row((1 << 32) + 7));
    let keys: Vec<BlockKey> =
        openings(&[&small, &large, &large.replace("\"session_id\"", "\"x\"")], &options())
            .iter()
            .map(|opening| opening.request.prompt.keys_from(0, 4).next().unwrap())
            .collect();
    assert_ne!(keys[0], keys[1]);
    assert_eq!(keys[1], keys[2]);
}

#[test]
fn l3_rows_of_a_session_are_its_turns() {
    let a0 = r#"{"session_id":"a","timestamp":0,"output_length":1,"hash_ids":[1]}"#;
    let b0 = r#"{"session_id":"b","timestamp":5,"output_length":1,"hash_ids":[2]}"#;
    let a1 = r#"{"session_id":"a","delay":25,"output_length":9,"hash_ids":[1,3]}"#;
    let mut workload = open(&[a0, b0, a1], &options()).unwrap().workload;
    assert!(workload.has_follow_ups());
    let a = workload.open().unwrap().unwrap();
    let b = workload.open().unwrap().unwrap();
    assert!(workload.open().unwrap().is_none());
    assert_eq!((a.request.think, b.request.think), (Some(Nanos(25_000_000)), None));
    let next = workload.follow_up(SessionId(0), 1).unwrap();
    assert_eq!((next.turn, next.output_tokens, next.think), (1, 9, None));
    assert_eq!(next.labels.unwrap().session, "a");
}

#[test]
fn l3_a_first_turn_has_no_delay() {
    let error = message(&[r#"{"session_id":"a","timestamp":0,"delay":25,"output_length":1,"hash_ids":[1]}"#]);
    assert!(error.contains(":1: \"delay\" on the first turn"), "{error}");
    let unnamed = message(&[r#"{"timestamp":0,"delay":25,"output_length":1,"hash_ids":[1]}"#]);
    assert!(unnamed.contains(":1: \"delay\" on the first turn"), "{unnamed}");
}

#[test]
fn l4_starts_are_relative_and_sped_up() {
    let starts = Starts::Scheduled { speedup: 10.0 };
    let rows = [100, 200].map(|ms| format!(r#"{{"timestamp":{ms},"output_length":1,"hash_ids":[1]}}"#));
    let reversed = [rows[1].as_str(), rows[0].as_str()];
    for lines in [[rows[0].as_str(), rows[1].as_str()], reversed] {
        let at: Vec<_> = openings(&lines, &Options { starts, ..options() }).iter().map(|o| o.at).collect();
        assert_eq!(at, [Nanos::ZERO, Nanos(10_000_000)]);
    }
}

#[test]
fn pauses_come_from_delays_or_timestamps() {
    let row = |rest: &str| format!(r#"{{"session_id":"s","output_length":1,"hash_ids":[1],{rest}}}"#);
    let rows = [
        row(r#""timestamp":1000"#),
        row(r#""delay":7"#),
        row(r#""timestamp":4500"#),
        row(r#""timestamp":4600,"delay":1"#),
        row(r#""priority":0"#),
    ];
    let lines: Vec<&str> = rows.iter().map(String::as_str).collect();
    let mut workload = open(&lines, &options()).unwrap().workload;
    let mut thinks = vec![workload.open().unwrap().unwrap().request.think];
    for turn in 1..5 {
        thinks.push(workload.follow_up(SessionId(0), turn).unwrap().think);
    }
    let ms = |n: u64| Some(Nanos(n * 1_000_000));
    assert_eq!(thinks, [ms(7), ms(3500), ms(1), ms(0), None]);
}

#[test]
fn time_does_not_go_back_in_a_session() {
    let first = r#"{"session_id":"s","timestamp":10,"output_length":1,"hash_ids":[1]}"#;
    let second = r#"{"session_id":"s","timestamp":9,"output_length":1,"hash_ids":[1]}"#;
    assert!(message(&[first, second]).contains(":2: \"timestamp\" goes back from 10 to 9"));
    let untimed = r#"{"session_id":"t","timestamp":0,"output_length":1,"hash_ids":[1]}"#;
    assert!(open(&[untimed, first, first], &options()).is_ok());
}

#[test]
fn only_sorted_single_turns_stream() {
    let row = |ms: u32| format!(r#"{{"timestamp":{ms},"output_length":1,"hash_ids":[1]}}"#);
    let session = r#"{"session_id":"a","timestamp":9,"output_length":1,"hash_ids":[1]}"#.to_owned();
    let streams = |rows: &[String], starts| {
        let lines: Vec<&str> = rows.iter().map(String::as_str).collect();
        open(&lines, &Options { starts, ..options() }).unwrap().survey.streams
    };
    let scheduled = Starts::Scheduled { speedup: 1.0 };
    assert!(streams(&[row(1), row(1), row(2)], scheduled));
    assert!(!streams(&[row(2), row(1)], scheduled));
    assert!(streams(&[row(2), row(1)], Starts::Ignored));
    assert!(!streams(&[row(1), session], scheduled));
}

#[test]
fn impossible_rows_are_refused_with_their_line() {
    let good = r#"{"timestamp":0,"output_length":1,"hash_ids":[1]}"#;
    let cases = [
        (r#"{"timestamp":0,"input_length":9,"output_length":1,"hash_ids":[1,2]}"#, "cover only 8"),
        (r#"{"timestamp":0,"input_length":0,"output_length":1,"hash_ids":[1]}"#, "\"input_length\" is 0"),
        (r#"{"timestamp":0,"output_length":1,"hash_ids":[]}"#, "\"hash_ids\" is empty"),
        (r#"{"timestamp":-1,"output_length":1,"hash_ids":[1]}"#, "\"timestamp\" is -1"),
        (r#"{"output_length":1,"hash_ids":[1]}"#, "\"timestamp\" is missing"),
        (r#"{"timestamp":0,"output_length":2,"hash_ids":[1],"output_token_ids":[5]}"#, "has 1 items"),
    ];
    for (bad, expected) in cases {
        let error = message(&[good, bad]);
        assert!(error.contains(":2: ") && error.contains(expected), "{error}");
    }
    assert!(message(&["", "  "]).contains("no requests"));
}

#[test]
fn clamping_cuts_and_counts() {
    let row = r#"{"timestamp":0,"input_length":9,"output_length":1,"hash_ids":[1,2]}"#;
    let loaded = open(&[row, row], &Options { clamp_input: true, ..options() }).unwrap();
    assert_eq!(loaded.survey.clamped, 2);
    let opening = &openings(&[row], &Options { clamp_input: true, ..options() })[0];
    assert_eq!(opening.request.prompt.tokens(), 8);
}

/// Broken by: contents that two sessions share, or that a turn does not begin with what was said before.
#[test]
fn what_prompts_hold_is_filled_as_asked() {
    let csv = "Timestamp,Session ID,Request tokens,Response tokens\n0,a,40,8\n1,b,40,8\n2,a,100,8\n";
    let shared = |rules: &str| {
        let fill = rules.parse().unwrap();
        let source = Source::with("burstgpt", vec![Input::Bytes(csv.as_bytes().into())]).unwrap();
        let mut loaded = crate::open(&source, &Options { fill, ..options() }).unwrap();
        let a = loaded.workload.open().unwrap().unwrap().request;
        let b = loaded.workload.open().unwrap().unwrap().request;
        let later = loaded.workload.follow_up(SessionId(0), 1).unwrap();
        let same = |other: &Request| {
            let keys = a.prompt.keys_from(0, 8).zip(other.prompt.keys_from(0, 8));
            keys.take_while(|(x, y)| x == y).count()
        };
        (same(&b), same(&later), loaded.survey.notes)
    };
    let (apart, together, notes) = shared("hash=session");
    assert_eq!((apart, together), (0, 5));
    assert!(notes[0].starts_with("3 requests without block ids: a turn begins with all"), "{notes:?}");
    assert!(notes[1].starts_with("1 request follow a turn of their session"), "{notes:?}");
    for rules in ["hash=unique", "hash=none"] {
        let (apart, together, _) = shared(rules);
        assert_eq!((apart, together), (0, 0), "{rules}");
    }
}

#[test]
fn far_too_many_ids_are_noted() {
    let row = r#"{"timestamp":0,"input_length":8,"output_length":1,"hash_ids":[1,2,3,4,5]}"#;
    let notes = |tokens_per_id| {
        let read = ReadOptions { tokens_per_id: Some(tokens_per_id), ..ReadOptions::default() };
        open(&[row], &Options { read, ..options() }).unwrap().survey.notes
    };
    assert_eq!(notes(2), [""; 0]);
    assert!(notes(4)[0].starts_with("5 block ids where prompts need 2: "), "{:?}", notes(4));
}

#[test]
fn a_turn_takes_24_bytes() {
    // With its place in `at` and `order`: the 32 bytes per request that the module promises.
    assert_eq!(size_of::<Turn>(), 24);
}
