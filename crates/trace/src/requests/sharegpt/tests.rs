//! Tiny files in, lengths and messages out.

use std::sync::Arc;

use super::*;
use crate::requests::{Source, TokenCount};
use crate::{Options, Starts};

fn bytes(text: &str) -> Input {
    Input::Bytes(Arc::from(text.as_bytes()))
}

fn rows(inputs: &[Input], texts: &Texts) -> Result<(Vec<Row>, Findings)> {
    let options = ReadOptions { texts: texts.clone(), ..ReadOptions::default() };
    let mut reader = Conversations::open(inputs, &options)?;
    let (mut rows, mut row) = (Vec::new(), Row::default());
    while reader.read(&mut row)? {
        rows.push(row.clone());
    }
    Ok((rows, reader.findings()))
}

/// What each turn asks and answers.
type Turns = Vec<(u32, u32)>;

/// By conversation, with the names of these.
fn lengths(text: &str, texts: &Texts) -> Result<(Vec<Turns>, Vec<String>, Findings)> {
    let (rows, findings) = rows(&[bytes(text)], texts)?;
    let (mut all, mut names) = (Vec::new(), Vec::new());
    for turns in rows.chunk_by(|a, b| a.session == b.session) {
        let mut history = 0;
        all.push(Vec::new());
        names.extend(turns[0].session.clone());
        for turn in turns {
            let (input, output) = (turn.input_tokens.unwrap(), turn.output_tokens.unwrap());
            all.last_mut().unwrap().push((input - history, output));
            history = input + output;
        }
    }
    Ok((all, names, findings))
}

fn by_characters() -> Texts {
    Texts { tokens: TokenCount::Characters(4.0), ..Texts::default() }
}

#[test]
fn a_text_that_the_tokenizer_cannot_take_is_counted_by_characters() {
    let spaces = " ".repeat(1_500_000);
    let text = format!(
        r#"[{{"conversations":[{{"from":"human","value":"{spaces}x"}},{{"from":"gpt","value":"a"}}]}}]"#
    );
    let settings = Texts { context_tokens_max: u32::MAX, ..Texts::default() };
    let (lengths, _, findings) = lengths(&text, &settings).unwrap();
    assert_eq!(lengths, [[(375_000, 1)]]);
    assert_eq!(findings.notes[1], "1 text counted by characters / 4: the tokenizer gave up");
}

/// Broken by: ids that depend on the conversation and not on what is said, or a turn that does not begin
/// with what was said before.
#[test]
fn equal_beginnings_share_ids() {
    let said = "the same words at the start of both, long enough to fill some blocks of tokens. ".repeat(3);
    let talk = |last: &str| {
        let turn = |from: &str, value: &str| format!(r#"{{"from":"{from}","value":"{value}"}}"#);
        let turns = [turn("human", &said), turn("gpt", "yes"), turn("human", last), turn("gpt", "no")];
        format!(r#"{{"conversations":[{}]}}"#, turns.join(","))
    };
    let text = format!("[{},{}]", talk("this"), talk("that is another question"));
    let (rows, _) = rows(&[bytes(&text)], &Texts::default()).unwrap();
    let tokens = rows[0].input_tokens.unwrap() as usize;
    let whole = tokens / TOKENS_PER_ID as usize;
    assert!(whole >= 2 && !tokens.is_multiple_of(TOKENS_PER_ID as usize), "{tokens}");
    assert_eq!(rows[0].ids[..whole], rows[2].ids[..whole]);
    assert_eq!(rows[0].ids[..], rows[1].ids[..whole + 1], "a prompt holds the beginning of a block");
    assert_ne!(rows[1].ids.last(), rows[3].ids.last());
}

const MIXED: &str = r#"[
  {"id": "a", "conversations": [
    {"from": "human", "value": "eight ch"}, {"from": "gpt", "value": "4444"},
    {"from": "system", "value": "x"}, {"value": "no one says this", "markdown": null},
    {"value": "four", "from": "user"}, {"from": "assistant", "value": "sixteen letters."},
    {"from": "human", "value": "left alone"}]},
  {"id": "none", "text": ["no", {"turns": 1}]},
  {"id": "answers first", "conversations": [{"from": "gpt", "value": "x"}, {"from": "human", "value": "y"}]},
  {"conversations": [{"from": "human", "value": "x"}, {"from": "chatgpt", "value": "y"}], "id": 7},
  {"conversations": [{"from": "human", "value": "x"}, {"from": "gpt", "value": "y"}], "id": null}
]"#;

#[test]
fn pairs_of_human_and_gpt_are_turns() {
    let (lengths, names, findings) = lengths(MIXED, &by_characters()).unwrap();
    assert_eq!(lengths, [vec![(2, 1), (1, 4)], vec![(1, 1)], vec![(1, 1)]]);
    assert_eq!(findings.skipped, 5);
    assert_eq!(
        findings.notes,
        [
            "3 conversations with 4 turns, tokens counted by characters / 4",
            "2 objects skipped: without a question and its answer",
            "2 pairs of turns skipped: not human, then gpt",
            "1 turn skipped: the last one, without an answer",
        ]
    );
    assert_eq!(names, ["a", "7", "conv_4"]);
}

#[test]
fn caps_cut_and_are_counted() {
    let settings = Texts { context_tokens_max: 1, generate_tokens_max: 3, ..by_characters() };
    let (lengths, _, findings) = lengths(MIXED, &settings).unwrap();
    assert_eq!(lengths[0], [(1, 1), (1, 3)]);
    assert_eq!(findings.notes.last().unwrap(), "2 texts cut to 1 tokens asked or 3 answered");
}

#[test]
fn what_comes_after_enough_conversations_is_not_read() {
    let settings = Texts { max_conversations: Some(2), ..by_characters() };
    let cut = &MIXED[..MIXED.find("\"id\": null").unwrap()];
    assert_eq!(lengths(cut, &settings).unwrap().0.len(), 2);
    assert!(lengths(cut, &by_characters()).is_err());
    let two = rows(&[bytes(cut), bytes("not JSON")], &settings).unwrap().0;
    assert_eq!(two.len(), 3, "of two conversations");
    let settings = Texts { max_conversations: Some(4), ..by_characters() };
    let four = rows(&[bytes(MIXED), bytes(MIXED)], &settings).unwrap().0;
    assert_eq!(four.last().unwrap().session.as_deref(), Some("a~2"), "the next file goes on");
}

#[test]
fn mistakes_name_the_conversation() {
    let good = r#"{"conversations":[{"from":"human","value":"x"},{"from":"gpt","value":"y"}]}"#;
    for (text, expected) in [
        ("", "<memory>:1: not valid JSON: it ends"),
        ("{}", "<memory>:1: not an array of conversations"),
        ("nonsense", "<memory>:1: not an array of conversations"),
        ("[5]", "<memory>:1: conversation 1: invalid type: integer `5`, expected an object with"),
        (
            &format!("[{good},\n{{\"id\":\"b\",\"conversations\":\"x\"}}]"),
            "<memory>:2: conversation 2 (id \"b\"): invalid type: string \"x\"",
        ),
        (
            r#"[{"conversations":[{"from":"human","value":null}]}]"#,
            "<memory>:1: conversation 1: invalid type: null, expected a string",
        ),
        (r#"[{"conversations":[{"from":"human"}]}]"#, "<memory>:1: conversation 1: missing field `value`"),
        (
            r#"[{"conversations":[4]}]"#,
            "<memory>:1: conversation 1: invalid type: integer `4`, expected a turn",
        ),
        (r#"[{"conversations":[],"conversations":[]}]"#, "<memory>:1: conversation 1: duplicate field"),
        (&format!("[{good}]]"), "<memory>:1: not valid JSON: trailing characters"),
        (&format!("[{good},"), "<memory>:1: not valid JSON: it ends"),
    ] {
        let error = lengths(text, &by_characters()).unwrap_err().to_string();
        assert!(error.starts_with(expected) && error.contains("\nhint: "), "{text}: {error}");
        assert_eq!(error.contains("truncated"), expected.contains("it ends"), "{error}");
    }
}

#[test]
fn settings_are_checked_and_can_be_written() {
    let text = serde_json::to_string(&by_characters()).unwrap();
    assert!(text.starts_with(r#"{"tokens":{"characters":4.0},"max_conversations":null,"#), "{text}");
    assert_eq!(serde_json::from_str::<Texts>(&text).unwrap(), by_characters());
    assert_eq!(serde_json::from_str::<Texts>("{}").unwrap(), Texts::default());
    assert!(serde_json::from_str::<Texts>(r#"{"token":"tokenizer"}"#).is_err());
    for wrong in [
        Texts { tokens: TokenCount::Characters(0.0), ..Texts::default() },
        Texts { tokens: TokenCount::Characters(f64::NAN), ..Texts::default() },
        Texts { max_conversations: Some(0), ..Texts::default() },
        Texts { context_tokens_max: 0, ..Texts::default() },
        Texts { generate_tokens_max: 0, ..Texts::default() },
    ] {
        assert!(lengths(MIXED, &wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn a_schedule_needs_times() {
    let source = Source::with("sharegpt", vec![bytes(MIXED)]).unwrap();
    let scheduled = Options::of(Starts::Scheduled { speedup: 1.0 });
    let error = crate::open(&source, &scheduled).err().unwrap().to_string();
    assert!(error.starts_with("<memory>: there are no times"), "{error}");
    assert!(error.contains("--replay-concurrency"), "{error}");
    for keep_names in [false, true] {
        let options = Options { keep_names, ..Options::of(Starts::Ignored) };
        let mut loaded = crate::open(&source, &options).unwrap();
        let request = loaded.workload.open().unwrap().unwrap().request;
        assert_eq!(request.labels.map(|labels| labels.session), keep_names.then(|| "a".to_owned()));
    }
    let empty = Source::with("sharegpt", vec![bytes("[{}]")]).unwrap();
    let error = crate::open(&empty, &Options::of(Starts::Ignored)).err().unwrap().to_string();
    assert!(error.starts_with("<memory>: there are no requests in it"), "{error}");
}
