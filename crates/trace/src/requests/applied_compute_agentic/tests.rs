//! Acceptance cases L6 and L7 of spec/replay.md 11, and who shares what.

use std::sync::Arc;

use super::*;
use crate::requests::Source;
use crate::{Row, Starts};

fn rows(text: &str, options: &ReadOptions) -> Result<Vec<Row>> {
    let input = Input::Bytes(Arc::from(text.as_bytes()));
    let mut reader = Source::with("applied_compute_agentic", vec![input])?.open(options)?;
    let (mut all, mut row) = (Vec::new(), Row::default());
    while reader.read(&mut row)? {
        all.push(row.clone());
    }
    Ok(all)
}

fn session(input: u32, answers: &str, tools: &str, latencies: &str, last: u32) -> String {
    let turns = if answers.is_empty() { 0 } else { answers.split(',').count() };
    format!(
        concat!(
            r#"{{"num_turns":{},"input_prompt_length":{},"assistant_response_length":[{}],"#,
            r#""tool_call_output_length":[{}],"tool_call_latency":[{}],"#,
            r#""final_assistant_response_length":{}}}"#,
        ),
        turns, input, answers, tools, latencies, last
    )
}

/// Broken by: a prompt that leaves out the answer or the tool's output, or a latency before its own turn.
#[test]
fn l6_prompts_grow_by_answers_and_tool_outputs() {
    let rows = rows(&session(100, "10,20", "30,40", "0.5,1.25", 50), &ReadOptions::default()).unwrap();
    let told: Vec<_> = rows.iter().map(|row| (row.input_tokens, row.output_tokens, row.pause)).collect();
    let ms = |ms: u64| Some(Nanos(ms * 1_000_000));
    let expected =
        [(Some(100), Some(10), None), (Some(140), Some(20), ms(500)), (Some(200), Some(50), ms(1250))];
    assert_eq!(told, expected);
}

#[test]
fn l7_two_sessions_are_five_requests() {
    let text = [session(64, "2,2", "2,2", "0,0", 2), session(64, "2", "2", "0", 2)].join("\n");
    let rows = rows(&text, &ReadOptions::default()).unwrap();
    let sum = |of: fn(&Row) -> Option<u32>| rows.iter().filter_map(of).sum::<u32>();
    assert_eq!((rows.len(), sum(|row| row.input_tokens), sum(|row| row.output_tokens)), (5, 336, 10));
    assert_eq!(rows.iter().filter(|row| row.session.as_deref() == Some("session_2")).count(), 2);
}

/// Broken by: sessions of two groups that share, blocks shared beyond the ratio, or ids that turns do not
/// have in common.
#[test]
fn sessions_of_a_group_begin_alike() {
    let text = vec![session(64, "8", "24", "0", 1); 4].join("\n");
    let read = |ratio, groups| {
        let shared_prefix = SharedPrefix { ratio, groups };
        rows(&text, &ReadOptions { tokens_per_id: Some(16), shared_prefix, ..ReadOptions::default() })
            .unwrap()
    };
    let alike = |one: &Row, other: &Row| one.ids.iter().zip(&other.ids).take_while(|(a, b)| a == b).count();
    let all = read(0.6, 2);
    let ids: Vec<usize> = all.iter().map(|row| row.ids.len()).collect();
    assert_eq!(ids, [4, 6, 4, 6, 4, 6, 4, 6]);
    assert_eq!(alike(&all[0], &all[1]), 4, "turns of a session");
    assert_eq!((alike(&all[1], &all[3]), alike(&all[1], &all[5]), alike(&all[3], &all[7])), (0, 2, 2));
    for (ratio, groups) in [(0.6, 0), (0.0, 2)] {
        let all = read(ratio, groups);
        assert_eq!((alike(&all[1], &all[3]), alike(&all[1], &all[5])), (0, 0), "{ratio} {groups}");
    }
}

#[test]
fn mistakes_name_the_line_and_the_key() {
    let good = session(64, "2", "2", "0", 2);
    let cases = [
        (session(0, "2", "2", "0", 2), r#":2: "input_prompt_length" is 0"#),
        (session(1, "2", "2,3", "0", 2), r#":2: "tool_call_output_length" has 2 entries"#),
        (session(1, "2", "2", "-0.5", 2), r#":2: "tool_call_latency" has -0.5"#),
        (session(1, "2", "2", "1e12", 2), r#":2: "tool_call_latency" has 1000000000000"#),
        (session(1 << 27, "2", "2", "0", 2), ":2: its last prompts are longer than 2^27 tokens"),
        (session(u32::MAX, "2", "2", "0", 2), ":2: its last prompts are longer than 2^27 tokens"),
        (session(1, "-2", "2", "0", 2), ":2: invalid value: integer `-2`"),
        (good.replace("num_turns", "turns"), ":2: missing field `num_turns`"),
        (good[..20].to_owned(), ":2: not valid JSON"),
    ];
    for (line, expected) in cases {
        let error = rows(&format!("{good}\n{line}"), &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("hint: "), "{error}");
    }
}

#[test]
fn without_times_sessions_start_when_others_end() {
    let input = Input::Bytes(Arc::from(session(64, "2", "2", "0", 2).as_bytes()));
    let source = Source::with("applied_compute_agentic", vec![input]).unwrap();
    let error = crate::open(&source, &crate::Options::of(Starts::Scheduled { speedup: 1.0 })).err().unwrap();
    assert!(error.to_string().contains("--replay-concurrency"), "{error}");
    assert_eq!(crate::open(&source, &crate::Options::of(Starts::Ignored)).unwrap().workload.requests(), 2);
}
