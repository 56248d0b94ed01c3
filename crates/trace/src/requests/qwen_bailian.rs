//! Qwen-Bailian usage traces, JSON lines (Alibaba, "KVCache Cache in the Wild", ATC'25): lengths, block ids
//! of 16 tokens, times in seconds, and of which request each is the continuation. Such chains are sessions.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use wavetank_model::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use super::{Blocks, Entry, Findings, JsonLine, LineReader, Provides, Rows, Writer, untold};
use crate::reading::lines::from_json;
use crate::{Moment, Output, Row};

/// Tokens per id in the public traces.
const TOKENS_PER_ID: u32 = 16;
/// The parent of a request that continues nothing.
const ROOT: i64 = -1;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "qwen_bailian",
    about: "JSON lines: chat_id, parent_chat_id, timestamp in seconds, lengths, hash_ids of 16 tokens, type",
    provides: Provides {
        starts: true,
        sessions: true,
        blocks: Blocks::Of(TOKENS_PER_ID),
        ..Provides::LENGTHS
    },
    recognises: |head| head.has(1, "chat_id") && head.has(1, "parent_chat_id"),
    read: |inputs, options| {
        let tokens_per_id = options.tokens_per_id.unwrap_or(TOKENS_PER_ID);
        Ok(Box::new(LineReader::open(inputs, Chats::default(), Some(tokens_per_id))?))
    },
    write: Some(|output, _| Ok(Box::new(Lines { output, rows: 0, tips: HashMap::new() }))),
};

const SHAPE: &str = concat!(
    r#"{"chat_id": 2, "parent_chat_id": 1, "timestamp": 61.1, "input_length": 521, "#,
    r#""output_length": 132, "type": "text", "turn": 2, "hash_ids": [1, 2]}"#,
);

/// A line.
#[derive(Deserialize, Serialize)]
#[serde(expecting = "a request, one JSON object")]
struct Chat<'a> {
    chat_id: i64,
    parent_chat_id: i64,
    timestamp: Seconds,
    input_length: u32,
    output_length: u32,
    #[serde(rename = "type", default, borrow, skip_serializing_if = "Option::is_none")]
    kind: Option<Cow<'a, str>>,
    /// Counted from 1; follows from the chain when read.
    #[serde(default, deserialize_with = "ignored")]
    turn: u32,
    hash_ids: Cow<'a, [u64]>,
}

fn ignored<'de, D: serde::Deserializer<'de>>(turn: D) -> Result<u32, D::Error> {
    serde::de::IgnoredAny::deserialize(turn).map(|_| 0)
}

/// A moment as a number of seconds, exactly.
struct Seconds(Moment);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: serde::Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let moment = Moment::from_seconds(f64::deserialize(json)?).filter(|moment| moment.nanos >= 0);
        let wrong =
            || serde::de::Error::custom("\"timestamp\" must be seconds, not negative, within 292 years");
        moment.map(Self).ok_or_else(wrong)
    }
}

impl Serialize for Seconds {
    fn serialize<S: serde::Serializer>(&self, json: S) -> Result<S::Ok, S::Error> {
        let number: serde_json::Number =
            self.0.seconds().to_string().parse().map_err(serde::ser::Error::custom)?;
        number.serialize(json)
    }
}

/// Chains while they are read: the last request of each, and the first.
#[derive(Default)]
struct Chats {
    tips: HashMap<i64, i64>,
    /// Requests whose parent is no chain's last one.
    orphans: u64,
}

impl JsonLine for Chats {
    fn parse(&mut self, line: &[u8], rows: &mut Rows) -> Result<()> {
        let chat: Chat<'_> = from_json(line, SHAPE)?;
        if chat.input_length == 0 {
            return Err(Error::input("\"input_length\" is 0").hint("a prompt has at least one token"));
        }
        let known = self.tips.remove(&chat.parent_chat_id);
        self.orphans += u64::from(known.is_none() && chat.parent_chat_id != ROOT);
        let root = known.unwrap_or(chat.chat_id);
        self.tips.insert(chat.chat_id, root);
        let row = rows.push();
        row.request = Some(chat.chat_id.to_string());
        row.session = Some(root.to_string());
        row.start = Some(chat.timestamp.0);
        (row.input_tokens, row.output_tokens) = (Some(chat.input_length), Some(chat.output_length));
        row.kind = chat.kind.map(Cow::into_owned);
        row.ids.extend_from_slice(&chat.hash_ids);
        Ok(())
    }

    fn findings(&self) -> Findings {
        let orphans = match self.orphans {
            0 => None,
            1 => Some(
                "1 request continues one that is not there, or that another one continued: it begins".into(),
            ),
            n => Some(format!(
                "{n} requests continue ones that are not there, or that others continued: each begins"
            )),
        };
        Findings { skipped: 0, notes: orphans.map(|note| format!("{note} a session")).into_iter().collect() }
    }
}

/// A trace being written.
struct Lines<'w> {
    output: Output<'w>,
    rows: i64,
    /// By session, its last request and how many it has.
    tips: HashMap<String, (i64, u32)>,
}

impl Writer for Lines<'_> {
    fn write(&mut self, row: &Row) -> io::Result<()> {
        let chat_id = row.request.as_deref().map_or(self.rows, number);
        self.rows += 1;
        let (parent_chat_id, turn) = match &row.session {
            Some(session) => {
                let tip = self.tips.entry(session.clone()).or_insert((ROOT, 0));
                let parent = std::mem::replace(&mut tip.0, chat_id);
                tip.1 += 1;
                (parent, tip.1)
            }
            None => (ROOT, 1),
        };
        let chat = Chat {
            chat_id,
            parent_chat_id,
            timestamp: Seconds(row.start.ok_or_else(|| untold("when a request came"))?),
            input_length: row.input_tokens.ok_or_else(|| untold("the length of a prompt"))?,
            output_length: row.output_tokens.ok_or_else(|| untold("how many tokens were generated"))?,
            kind: row.kind.as_deref().map(Cow::Borrowed),
            turn,
            hash_ids: Cow::Borrowed(&row.ids),
        };
        serde_json::to_writer(&mut self.output, &chat)?;
        self.output.write_all(b"\n")
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.output.finish()
    }
}

/// The number that a name is, or one that stands for it.
fn number(name: &str) -> i64 {
    name.parse().ok().filter(|number| *number >= 0).unwrap_or((xxh3_64(name.as_bytes()) >> 1) as i64)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Input;
    use crate::requests::{ReadOptions, WriteOptions};

    fn rows(text: &[u8]) -> Result<(Vec<Row>, Findings)> {
        let mut reader = (ENTRY.read)(&[Input::Bytes(Arc::from(text))], &ReadOptions::default())?;
        let (mut rows, mut row) = (Vec::new(), Row::default());
        while reader.read(&mut row)? {
            rows.push(row.clone());
        }
        Ok((rows, reader.findings()))
    }

    fn line(chat: i64, parent: i64) -> String {
        format!(
            "{{\"chat_id\":{chat},\"parent_chat_id\":{parent},\"timestamp\":{chat}.25,\"input_length\":20,\
             \"output_length\":3,\"type\":\"text\",\"turn\":9,\"hash_ids\":[{chat},18446744073709551615]}}\n"
        )
    }

    /// Broken by: a chain that loses its root after the first continuation; two continuations of one request
    /// in the same session.
    #[test]
    fn chains_are_sessions() {
        let chats = [(1, -1), (2, -1), (3, 1), (4, 3), (5, 2), (6, 1), (7, 99), (8, 7)];
        let text: String = chats.iter().map(|(chat, parent)| line(*chat, *parent)).collect();
        let (rows, findings) = rows(text.as_bytes()).unwrap();
        let sessions: Vec<_> = rows.iter().map(|row| row.session.as_deref().unwrap()).collect();
        assert_eq!(sessions, ["1", "2", "1", "1", "2", "6", "7", "7"]);
        assert_eq!(rows[1].start.unwrap().nanos, 2_250_000_000);
        assert_eq!(
            findings.notes,
            ["2 requests continue ones that are not there, or that others continued: each begins a session"]
        );
    }

    #[test]
    fn names_that_are_no_numbers_are_numbered() {
        let row = |request: Option<&str>, session: &str| Row {
            request: request.map(str::to_owned),
            session: Some(session.to_owned()),
            start: Some(Moment { nanos: 1_500_000_000 }),
            input_tokens: Some(5),
            output_tokens: Some(1),
            ..Row::default()
        };
        let mut bytes = Vec::new();
        let options = WriteOptions { tokens_per_id: None };
        let mut writer = (ENTRY.write.unwrap())(Output::to(&mut bytes), &options).unwrap();
        for row in [row(Some("a"), "s"), row(None, "t"), row(Some("b"), "s"), row(Some("-1"), "t")] {
            writer.write(&row).unwrap();
        }
        writer.finish().unwrap();
        let (rows, findings) = rows(&bytes).unwrap();
        assert_eq!(rows[0].session, rows[2].session);
        assert_eq!(rows[1].session, rows[3].session);
        assert_ne!(rows[0].session, rows[1].session);
        assert!(findings.notes.is_empty());
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("\"timestamp\":1.5,") && text.contains("\"turn\":2"), "{text}");
    }

    #[test]
    fn mistakes_are_told() {
        for (old, new, expected) in [
            ("\"chat_id\":1,", "", "<memory>:1: missing field `chat_id`"),
            ("1.25", "-1", "<memory>:1: \"timestamp\" must be seconds"),
            ("\"input_length\":20", "\"input_length\":0", "<memory>:1: \"input_length\" is 0"),
            ("[1,", "[-1,", "<memory>:1: invalid value: integer `-1`"),
            ("\"text\"", "\"te", "<memory>:1: not valid JSON"),
        ] {
            let error = rows(line(1, -1).replacen(old, new, 1).as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(expected) && error.contains("\nhint: "), "{error}");
        }
    }
}
