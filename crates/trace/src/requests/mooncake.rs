//! Mooncake JSON lines: one request per line, its prompt named by block ids (FAST'25 release, with the
//! session, delay and priority keys that other tools add).

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use wavetank_model::Error;

use super::{Entry, only};
use crate::workload;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "mooncake",
    about: "JSON lines: timestamp, input_length, output_length, hash_ids; session_id and delay",
    block_ids: true,
    open: |inputs, options| workload::open(only(inputs)?, options, parse),
};

/// One line. Keys that are not listed are ignored; a key together with its alias is an error.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Row<'a> {
    /// Name of the request.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Cow<'a, str>>,
    /// Name of the session; rows that share it are its turns.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    /// Milliseconds from any origin.
    #[serde(default, alias = "created_time", skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<f64>,
    /// Milliseconds between the end of the session's previous turn and this one.
    #[serde(default, alias = "delay_ms", skip_serializing_if = "Option::is_none")]
    pub delay: Option<f64>,
    /// Prompt tokens; without it, all that the ids cover.
    #[serde(default, alias = "input_tokens", skip_serializing_if = "Option::is_none")]
    pub input_length: Option<u32>,
    /// Tokens to generate.
    #[serde(alias = "output_tokens")]
    pub output_length: u32,
    /// Ids of the prompt's blocks.
    pub hash_ids: Vec<u64>,
    /// Soft priority.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i32,
    /// Strict priority tier.
    #[serde(default, skip_serializing_if = "is_default")]
    pub strict_priority: u32,
    /// Authored output tokens; only their number is used.
    #[serde(default, skip_serializing)]
    pub output_token_ids: Option<Length>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The length of a list whose items do not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length(pub usize);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Count;
        impl<'de> Visitor<'de> for Count {
            type Value = Length;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Length, A::Error> {
                let mut count = 0;
                while items.next_element::<IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(Length(count))
            }
        }
        deserializer.deserialize_seq(Count)
    }
}

/// Reads one line.
pub fn parse(line: &[u8]) -> Result<Row<'_>, Error> {
    serde_json::from_slice(line).map_err(|error| diagnose(line, error))
}

/// Writes one line.
pub fn write(row: &Row<'_>, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, row)?;
    out.write_all(b"\n")
}

/// A key, its alias, what it must hold, and whether it must be there.
const KEYS: &[(&str, &str, Holds, Presence)] = &[
    ("request_id", "", Holds::Text, Presence::Optional),
    ("session_id", "", Holds::Text, Presence::Optional),
    ("timestamp", "created_time", Holds::Number, Presence::Optional),
    ("delay", "delay_ms", Holds::Number, Presence::Optional),
    ("input_length", "input_tokens", Holds::Count(u32::MAX as u64), Presence::Optional),
    ("output_length", "output_tokens", Holds::Count(u32::MAX as u64), Presence::Required),
    ("hash_ids", "", Holds::Ids, Presence::Required),
    ("priority", "", Holds::Signed, Presence::Defaulted),
    ("strict_priority", "", Holds::Count(u32::MAX as u64), Presence::Defaulted),
    ("output_token_ids", "", Holds::List, Presence::Optional),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    /// `null` is as good as nothing.
    Optional,
    /// A default stands in for it, but not for `null`.
    Defaulted,
}

#[derive(Clone, Copy)]
enum Holds {
    Text,
    Number,
    Count(u64),
    Signed,
    Ids,
    List,
}

impl Holds {
    fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Number => value.is_number(),
            Self::Count(most) => value.as_u64().is_some_and(|n| n <= most),
            Self::Signed => value.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
            Self::Ids => value.as_array().is_some_and(|ids| ids.iter().all(Value::is_u64)),
            Self::List => value.is_array(),
        }
    }

    fn expected(self) -> String {
        match self {
            Self::Text => "a string".to_owned(),
            Self::Number => "a number".to_owned(),
            Self::Count(most) => format!("a whole number from 0 to {most}"),
            Self::Signed => "a whole number of 32 bits".to_owned(),
            Self::Ids => "a list of whole numbers from 0 to 2^64-1".to_owned(),
            Self::List => "a list".to_owned(),
        }
    }
}

/// Says which key is wrong. Only lines that did not parse come here.
#[cold]
fn diagnose(line: &[u8], error: serde_json::Error) -> Error {
    let row = match serde_json::from_slice::<Value>(line) {
        Ok(Value::Object(row)) => row,
        Ok(_) => return Error::input("not a JSON object").hint("one request is one JSON object per line"),
        Err(syntax) => {
            let not_finite =
                ["NaN", "Infinity"].iter().any(|word| line.windows(word.len()).any(|w| w == word.as_bytes()));
            let hint = match not_finite {
                true => "JSON has no NaN and no Infinity",
                false => "one request is one JSON object per line",
            };
            return Error::input(format!("not valid JSON: {}", without_line(&syntax)))
                .hint(hint)
                .source(syntax);
        }
    };
    for &(key, alias, holds, presence) in KEYS {
        let (by_key, by_alias) = (row.get(key), row.get(alias));
        if by_key.is_some() && by_alias.is_some() {
            return Error::input(format!("\"{key}\" and its alias \"{alias}\" are both given"))
                .hint("keep one of the two");
        }
        let (name, value) = if by_alias.is_some() { (alias, by_alias) } else { (key, by_key) };
        match value.filter(|value| !value.is_null() || presence == Presence::Defaulted) {
            None if presence == Presence::Required => {
                let also = if alias.is_empty() { String::new() } else { format!(" (or \"{alias}\")") };
                return Error::input(format!("\"{name}\" is missing"))
                    .hint(format!("every request needs \"{key}\"{also}: {}", holds.expected()));
            }
            Some(value) if !holds.accepts(value) => {
                return Error::input(format!("\"{name}\" is {}", brief(value)))
                    .hint(format!("\"{name}\" must be {}", holds.expected()));
            }
            _ => {}
        }
    }
    Error::input(without_line(&error)).hint("every key is given at most once").source(error)
}

/// The reader works on one line, so the line number in a JSON error is always 1: keep the column.
fn without_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.find(" at line ").unwrap_or(text.len());
    match error.column() {
        0 => text[..end].to_owned(),
        column => format!("{} at column {column}", &text[..end]),
    }
}

fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(line: &str) -> String {
        parse(line.as_bytes()).expect_err(line).to_string()
    }

    #[test]
    fn aliases_mean_the_same() {
        let plain = parse(br#"{"timestamp":5,"input_length":3,"output_length":2,"hash_ids":[1],"delay":1}"#);
        let alias =
            br#"{"created_time":5,"input_tokens":3,"output_tokens":2,"hash_ids":[1],"delay_ms":1,"x":0}"#;
        assert_eq!(plain.unwrap(), parse(alias).unwrap());
    }

    #[test]
    fn what_is_written_reads_back() {
        let row = Row {
            session_id: Some("a \"quoted\" name".into()),
            timestamp: Some(0.1),
            input_length: Some(7),
            output_length: 0,
            hash_ids: vec![u64::MAX, 0],
            priority: -3,
            ..Row::default()
        };
        let mut line = Vec::new();
        write(&row, &mut line).unwrap();
        assert_eq!(parse(line.trim_ascii()).unwrap(), row);
    }

    #[test]
    fn mistakes_name_the_key() {
        let cases = [
            (r#"{"hash_ids":[1]}"#, r#""output_length" is missing"#),
            (r#"{"output_length":1}"#, r#""hash_ids" is missing"#),
            (r#"{"output_length":-1,"hash_ids":[1]}"#, r#""output_length" is -1"#),
            (r#"{"output_tokens":1.5,"hash_ids":[1]}"#, r#""output_tokens" is 1.5"#),
            (r#"{"output_length":1,"hash_ids":[-1]}"#, r#""hash_ids" is [-1]"#),
            (r#"{"output_length":1,"hash_ids":[1],"timestamp":"x"}"#, r#""timestamp" is "x""#),
            (
                r#"{"output_length":1,"output_tokens":1,"hash_ids":[1]}"#,
                r#""output_length" and its alias "output_tokens" are both given"#,
            ),
            (r#"{"output_length":1,"output_length":1,"hash_ids":[1]}"#, "duplicate field `output_length`"),
            (r#"{"output_length":1,"hash_ids":[1],"timestamp":NaN}"#, "not valid JSON"),
            (r#"{"output_length":1,"#, "not valid JSON: EOF"),
            ("[1]", "not a JSON object"),
        ];
        for (line, expected) in cases {
            assert!(message(line).contains(expected), "{line}: {}", message(line));
        }
    }
}
