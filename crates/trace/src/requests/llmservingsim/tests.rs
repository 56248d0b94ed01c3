//! Lines in, rows and messages out.

use super::*;
use crate::requests::{ReadOptions, Source, WriteOptions};
use crate::{Input, Options, Output, Starts};

const SAMPLE: &str = include_str!("../../../tests/samples/llmservingsim.jsonl");

fn source(text: &str) -> Source {
    Source::with("llmservingsim", vec![Input::Bytes(text.as_bytes().into())]).unwrap()
}

fn rows(text: &str) -> Result<Vec<Row>> {
    let (mut reader, mut row) = (source(text).open(&ReadOptions::default())?, Row::default());
    let mut all = Vec::new();
    while reader.read(&mut row)? {
        all.push(row.clone());
    }
    Ok(all)
}

/// Broken by: a tool's time before its own request, or ids that depend on anything but the tokens.
#[test]
fn requests_and_sessions_are_read() {
    let rows = rows(SAMPLE).unwrap();
    let told = |row: &Row| (row.session.clone(), row.start.map(|start| start.nanos), row.pause.map(|p| p.0));
    let name = |text: &str| Some(text.to_owned());
    assert_eq!(
        rows.iter().map(told).collect::<Vec<_>>(),
        [
            (None, Some(46_926_808), None),
            (None, Some(50_000_000), None),
            (name("swe-1"), Some(60_000_000), None),
            (name("swe-1"), None, Some(1_500_000_000)),
            (name("7"), Some(70_000_000), None),
            (name("7"), None, Some(5)),
        ]
    );
    assert_eq!(rows[0].ids[0], rows[1].ids[0], "the same 16 tokens");
    assert_ne!(rows[0].ids[1], rows[1].ids[1]);
    assert_eq!(rows[2].ids, [0; 0], "no tokens, no ids");
    assert_eq!((rows[3].input_tokens, rows[3].output_tokens), (Some(140), Some(20)));
}

#[test]
fn what_is_written_has_the_lengths_and_times() {
    let before = rows(SAMPLE).unwrap();
    let mut bytes = Vec::new();
    let mut writer =
        writer::begin(Output::to(&mut bytes), &WriteOptions { tokens_per_id: Some(16) }).unwrap();
    before.iter().for_each(|row| writer.write(row).unwrap());
    writer.finish().unwrap();
    let without_ids = |row: Row| Row { ids: Vec::new(), ..row };
    let after = rows(std::str::from_utf8(&bytes).unwrap()).unwrap();
    assert_eq!(after, before.into_iter().map(without_ids).collect::<Vec<_>>());
}

/// Broken by: turns of sessions whose rows stand among others' written as those of one another.
#[test]
fn sessions_are_gathered_and_gaps_become_pauses() {
    let row = |session: &str, ms: f64| Row {
        session: Some(session.to_owned()),
        start: Moment::from_ms(ms),
        input_tokens: Some(5),
        output_tokens: Some(1),
        ..Row::default()
    };
    let mut bytes = Vec::new();
    let mut writer = writer::begin(Output::to(&mut bytes), &WriteOptions { tokens_per_id: None }).unwrap();
    for row in [row("a", 1.0), row("b", 2.0), row("a", 4.0)] {
        writer.write(&row).unwrap();
    }
    writer.finish().unwrap();
    let lines = String::from_utf8(bytes).unwrap();
    let a = r#"{"session_id":"a","arrival_time_ns":1000000,"sub_requests":[{"input_toks":5,"#;
    assert!(lines.starts_with(a) && lines.lines().count() == 2, "{lines}");
    assert!(lines.lines().next().unwrap().contains(r#""tool_duration_ns":3000000},{"#), "{lines}");
}

#[test]
fn a_line_is_a_session_whatever_its_name() {
    let line = r#"{"session_id":"a","sub_requests":[{"input_toks":1,"output_toks":1}]}"#;
    let names: Vec<_> = rows(&[line; 2].join("\n")).unwrap().into_iter().map(|row| row.session).collect();
    assert_eq!(names, [Some("a".to_owned()), Some("a~2".to_owned())]);
}

#[test]
fn it_replays() {
    let loaded = crate::open(&source(SAMPLE), &Options::of(Starts::Scheduled { speedup: 1.0 })).unwrap();
    assert_eq!(loaded.workload.requests(), 6);
    assert!(loaded.survey.notes[0].starts_with("2 requests without block ids"), "{:?}", loaded.survey.notes);
}

#[test]
fn mistakes_name_the_line_and_the_key() {
    let good = r#"{"input_toks":2,"output_toks":1,"arrival_time_ns":0}"#;
    let cases = [
        (r#"{"output_toks":1}"#, r#":2: "input_toks" is missing"#),
        (r#"{"input_toks":1}"#, r#":2: "output_toks" is missing"#),
        (r#"{"input_toks":1,"output_toks":1,"input_tok_ids":[1,2]}"#, r#":2: "input_tok_ids" has 2 tokens"#),
        (r#"{"sub_requests":[{"input_toks":1,"output_toks":1}]}"#, r#":2: "session_id" is missing"#),
        (r#"{"session_id":"a","sub_requests":[]}"#, r#":2: "sub_requests" is empty"#),
        (r#"{"session_id":"a","sub_requests":[{"output_toks":1}]}"#, ":2: missing field `input_toks`"),
        (r#"{"input_toks":-1,"output_toks":1}"#, ":2: invalid value: integer `-1`"),
        (r#"{"input_toks":1,"#, ":2: not valid JSON"),
    ];
    for (line, expected) in cases {
        let error = rows(&format!("{good}\n{line}")).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("hint: "), "{error}");
    }
}
