//! What is wrong with a line that did not parse: which key, and what it must hold.

use serde_json::Value;
use wavetank_model::Error;

use super::Dialect;
use crate::Moment;
use crate::reading::lines::{not_json, without_line};

/// A key, its alias, what it must hold, and whether it must be there.
const KEYS: &[Rule] = &[
    ("request_id", "", Holds::Text, Presence::Optional),
    ("session_id", "", Holds::Text, Presence::Optional),
    ("timestamp", "created_time", Holds::Time, Presence::Optional),
    ("delay", "delay_ms", Holds::Time, Presence::Optional),
    ("input_length", "input_tokens", Holds::Count(u32::MAX as u64), Presence::Optional),
    ("output_length", "output_tokens", Holds::Count(u32::MAX as u64), Presence::Required),
    ("hash_ids", "", Holds::Ids, Presence::Required),
    ("priority", "", Holds::Signed, Presence::Defaulted),
    ("strict_priority", "", Holds::Count(u32::MAX as u64), Presence::Defaulted),
    ("policy_class", "", Holds::Text, Presence::Optional),
    ("output_token_ids", "", Holds::List, Presence::Optional),
    ("wait_for", "", Holds::Texts, Presence::Optional),
];

/// The same for what graphs tell besides.
const OF_GRAPHS: &[Rule] = &[
    ("request_id", "", Holds::Text, Presence::Required),
    ("tool_wait_ms", "", Holds::Time, Presence::Optional),
    ("request_kind", "", Holds::Text, Presence::Optional),
    ("branches", "", Holds::Texts, Presence::Optional),
    ("prefix_reset", "", Holds::Truth, Presence::Optional),
    ("tool_events", "", Holds::List, Presence::Optional),
];

type Rule = (&'static str, &'static str, Holds, Presence);

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
    /// Milliseconds that a clock can hold.
    Time,
    Count(u64),
    Signed,
    Ids,
    List,
    Texts,
    Truth,
}

impl Holds {
    fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Time => value.as_f64().and_then(Moment::from_ms).is_some_and(|moment| moment.nanos >= 0),
            Self::Count(most) => value.as_u64().is_some_and(|n| n <= most),
            Self::Signed => value.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
            Self::Ids => value.as_array().is_some_and(|ids| ids.iter().all(Value::is_u64)),
            Self::List => value.is_array(),
            Self::Texts => value.as_array().is_some_and(|texts| texts.iter().all(Value::is_string)),
            Self::Truth => value.is_boolean(),
        }
    }

    fn expected(self) -> String {
        match self {
            Self::Text => "a string".to_owned(),
            Self::Time => "milliseconds, not negative, within 292 years".to_owned(),
            Self::Count(most) => format!("a whole number from 0 to {most}"),
            Self::Signed => "a whole number of 32 bits".to_owned(),
            Self::Ids => "a list of whole numbers from 0 to 2^64-1".to_owned(),
            Self::List => "a list".to_owned(),
            Self::Texts => "a list of strings".to_owned(),
            Self::Truth => "true or false".to_owned(),
        }
    }
}

/// Says which key is wrong. Only lines that did not parse come here.
#[cold]
pub(super) fn diagnose(line: &[u8], dialect: Dialect, error: serde_json::Error) -> Error {
    let row = match serde_json::from_slice::<Value>(line) {
        Ok(Value::Object(row)) => row,
        Ok(_) => return Error::input("not a JSON object").hint("one request is one JSON object per line"),
        Err(syntax) => return not_json(line, syntax),
    };
    let of_graphs = if dialect == Dialect::Graph { OF_GRAPHS } else { &[] };
    for &(key, alias, holds, presence) in of_graphs.iter().chain(KEYS) {
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
    let (written, asked) =
        (row.get("output_token_ids"), row.get("output_length").or(row.get("output_tokens")));
    if let (Some(ids), Some(tokens)) = (written.and_then(Value::as_array), asked.and_then(Value::as_u64))
        && ids.len() as u64 != tokens
    {
        return Error::input(format!("\"output_token_ids\" has {} items", ids.len()))
            .hint(format!("\"output_length\" says {tokens}"));
    }
    Error::input(without_line(&error)).hint("every key is given at most once").source(error)
}

fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}
