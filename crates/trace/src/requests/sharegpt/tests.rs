//! Tiny files in, lengths and messages out.

use std::sync::Arc;

use super::*;
use crate::requests;

fn bytes(text: &str) -> Input {
    Input::Bytes(Arc::from(text.as_bytes()))
}

/// What each turn asks and answers.
type Turns = Vec<(u32, u32)>;

fn lengths(text: &str, settings: &ShareGpt) -> Result<(Vec<Turns>, Survey)> {
    let (found, survey) = super::read(&[bytes(text)], settings)?;
    let pairs = |turns: &[crate::Exchange]| {
        turns.iter().map(|turn| (turn.asked_tokens, turn.answered_tokens)).collect()
    };
    Ok((found.iter().map(pairs).collect(), survey))
}

fn by_characters() -> ShareGpt {
    ShareGpt { tokens: TokenCount::Characters(4.0), ..ShareGpt::default() }
}

#[test]
fn tokens_are_those_of_cl100k() {
    assert_eq!(TokenCount::Tokenizer.of("tiktoken is great!"), Some(6));
    assert_eq!(TokenCount::Tokenizer.of("<|endoftext|>"), Some(7), "special tokens are text");
    assert_eq!(TokenCount::Tokenizer.of(""), Some(1));
    for (text, tokens) in [("", 1), ("abc", 1), ("abcdefg", 1), ("äöüßäöüß", 2)] {
        assert_eq!(TokenCount::Characters(4.0).of(text), Some(tokens), "{text}");
    }
}

#[test]
fn a_text_that_the_tokenizer_cannot_take_is_counted_by_characters() {
    let spaces = " ".repeat(1_500_000);
    let text = format!(
        r#"[{{"conversations":[{{"from":"human","value":"{spaces}x"}},{{"from":"gpt","value":"a"}}]}}]"#
    );
    let settings = ShareGpt { context_tokens_max: u32::MAX, ..ShareGpt::default() };
    let (lengths, survey) = lengths(&text, &settings).unwrap();
    assert_eq!(lengths, [[(375_000, 1)]]);
    assert_eq!(survey.notes[1], "1 text counted by characters / 4: the tokenizer gave up");
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
    let (lengths, survey) = lengths(MIXED, &by_characters()).unwrap();
    assert_eq!(lengths, [vec![(2, 1), (1, 4)], vec![(1, 1)], vec![(1, 1)]]);
    assert_eq!((survey.requests, survey.skipped), (4, 5));
    assert_eq!(
        survey.notes,
        [
            "3 conversations with 4 turns, tokens counted by characters / 4",
            "2 objects skipped: without a question and its answer",
            "2 pairs of turns skipped: not human, then gpt",
            "1 turn skipped: the last one, without an answer",
        ]
    );
    let (found, _) = read(&[bytes(MIXED)], &by_characters()).unwrap();
    let names: Vec<_> = (0..3).map(|number| found.name(number).unwrap()).collect();
    assert_eq!(names, ["a", "7", "conv_4"]);
}

#[test]
fn caps_cut_and_are_counted() {
    let settings = ShareGpt { context_tokens_max: 1, generate_tokens_max: 3, ..by_characters() };
    let (lengths, survey) = lengths(MIXED, &settings).unwrap();
    assert_eq!(lengths[0], [(1, 1), (1, 3)]);
    assert_eq!(survey.notes.last().unwrap(), "2 texts cut to 1 tokens asked or 3 answered");
}

#[test]
fn what_comes_after_enough_conversations_is_not_read() {
    let settings = ShareGpt { max_conversations: Some(2), ..by_characters() };
    let cut = &MIXED[..MIXED.find("\"id\": null").unwrap()];
    assert_eq!(lengths(cut, &settings).unwrap().0.len(), 2);
    assert!(lengths(cut, &by_characters()).is_err());
    let two = read(&[bytes(cut), bytes("not JSON")], &settings).unwrap().0;
    assert_eq!(two.len(), 2);
    let settings = ShareGpt { max_conversations: Some(4), ..by_characters() };
    let names = read(&[bytes(MIXED), bytes(MIXED)], &settings).unwrap().0;
    assert_eq!((names.len(), names.name(3)), (4, Some("a")), "the next file goes on");
}

#[test]
fn mistakes_name_the_conversation() {
    let good = r#"{"conversations":[{"from":"human","value":"x"},{"from":"gpt","value":"y"}]}"#;
    for (text, expected) in [
        ("", "<memory>:1: not valid JSON: EOF"),
        ("{}", "<memory>:1: invalid type: map, expected an array of conversations"),
        ("nonsense", "<memory>:1: not valid JSON: expected ident"),
        ("[]", "<memory>: there are no conversations in it (0 objects"),
        ("[{}]", "<memory>: there are no conversations in it (1 objects"),
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
        (&format!("[{good},"), "<memory>:1: conversation 2: not valid JSON: EOF"),
    ] {
        let error = lengths(text, &by_characters()).unwrap_err().to_string();
        assert!(error.starts_with(expected) && error.contains("\nhint: "), "{text}: {error}");
        assert_eq!(error.contains("truncated"), expected.contains("EOF"), "{error}");
    }
}

#[test]
fn settings_are_checked_and_can_be_written() {
    let text = serde_json::to_string(&by_characters()).unwrap();
    assert!(text.starts_with(r#"{"tokens":{"characters":4.0},"max_conversations":null,"#), "{text}");
    assert_eq!(serde_json::from_str::<ShareGpt>(&text).unwrap(), by_characters());
    assert_eq!(serde_json::from_str::<ShareGpt>("{}").unwrap(), ShareGpt::default());
    assert!(serde_json::from_str::<ShareGpt>(r#"{"token":"tokenizer"}"#).is_err());
    for wrong in [
        ShareGpt { tokens: TokenCount::Characters(0.0), ..ShareGpt::default() },
        ShareGpt { tokens: TokenCount::Characters(f64::NAN), ..ShareGpt::default() },
        ShareGpt { max_conversations: Some(0), ..ShareGpt::default() },
        ShareGpt { context_tokens_max: 0, ..ShareGpt::default() },
        ShareGpt { generate_tokens_max: 0, ..ShareGpt::default() },
    ] {
        assert!(lengths(MIXED, &wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn a_schedule_needs_times() {
    let starts = Starts::Scheduled { speedup: 1.0 };
    let sharegpt = by_characters();
    let options = Options { tokens_per_id: 512, clamp_input: false, starts, keep_names: true, sharegpt };
    let error = requests::open("sharegpt", &bytes(MIXED), &options).err().unwrap().to_string();
    assert!(error.starts_with("<memory>: there are no times"), "{error}");
    assert!(error.contains("--replay-concurrency"), "{error}");
    for keep_names in [false, true] {
        let options = Options { starts: Starts::Ignored, keep_names, ..options.clone() };
        let mut loaded = requests::open("sharegpt", &bytes(MIXED), &options).unwrap();
        let request = loaded.workload.open().unwrap().unwrap().request;
        assert_eq!(request.labels.map(|labels| labels.session), keep_names.then(|| "a".to_owned()));
    }
}
