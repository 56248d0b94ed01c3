//! One span, in either form: attributes as an object, or as OTLP's list of typed values.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use wavetank_model::{Error, Result};

use crate::items::Items;
use crate::{Moment, stamp};

const SHAPE: &str = concat!(
    r#"a span is {"trace_id": "t", "span_id": "a", "start_time": "2026-02-25T12:00:00.5", "end_time": "…", "#,
    r#""attributes": {"gen_ai.usage.input_tokens": 50}}, or one of OTLP's JSON"#,
);

/// Operations that ask a model for tokens.
const CALLS: [&str; 4] = ["chat", "completion", "generate_content", "text_completion"];

/// What is used of a span.
#[derive(Deserialize)]
#[serde(expecting = "a span, one JSON object")]
pub(super) struct Span {
    #[serde(default, alias = "traceId")]
    pub(super) trace_id: Option<String>,
    #[serde(default, alias = "spanId")]
    pub(super) span_id: Option<String>,
    #[serde(default, alias = "parentSpanId")]
    pub(super) parent_span_id: Option<String>,
    #[serde(default, alias = "startTimeUnixNano", alias = "start_time_unix_nano")]
    start_time: Value,
    #[serde(default, alias = "endTimeUnixNano", alias = "end_time_unix_nano")]
    end_time: Value,
    #[serde(default)]
    pub(super) attributes: Attributes,
    #[serde(default, deserialize_with = "list")]
    pub(super) links: Vec<Link>,
    #[serde(default, deserialize_with = "list")]
    events: Vec<Event>,
}

/// A span that another one names.
#[derive(Deserialize)]
pub(super) struct Link {
    #[serde(default, alias = "traceId")]
    pub(super) trace_id: String,
    #[serde(default, alias = "spanId")]
    pub(super) span_id: String,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    attributes: Attributes,
}

/// `null` is as good as an empty list.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(json: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(json)?.unwrap_or_default())
}

impl Span {
    /// Reads the span that `items` is at; what events say stands among its attributes.
    pub(super) fn parse(items: &Items) -> Result<Self> {
        let mut span: Self = serde_json::from_slice(items.current()).map_err(|error| {
            let text = error.to_string();
            let what = &text[..text.find(" at line ").unwrap_or(text.len())];
            let what = if error.is_data() { what.to_owned() } else { format!("not valid JSON: {what}") };
            Error::input(format!("span {}: {what}", items.number())).at(items.place(error.line())).hint(SHAPE)
        })?;
        for event in std::mem::take(&mut span.events) {
            for (key, value) in event.attributes.0 {
                span.attributes.0.entry(key).or_insert(value);
            }
        }
        Ok(span)
    }

    /// Whether a model was asked for tokens.
    pub(super) fn is_call(&self) -> bool {
        match self.attributes.text("gen_ai.operation.name") {
            Some(name) => CALLS.contains(&name),
            None => self.attributes.0.keys().any(|key| {
                key.starts_with("gen_ai.usage.") || key == "gen_ai.input.messages" || key == "gen_ai.prompt"
            }),
        }
    }

    pub(super) fn start(&self) -> Result<Moment> {
        moment(&self.start_time, "start_time")?
            .ok_or_else(|| Error::input("\"start_time\" is missing").hint(SHAPE))
    }

    pub(super) fn end(&self) -> Result<Option<Moment>> {
        moment(&self.end_time, "end_time")
    }
}

/// A date, or nanoseconds from 1970 as a number or its digits.
fn moment(value: &Value, key: &str) -> Result<Option<Moment>> {
    let found = match value {
        Value::Null => return Ok(None),
        Value::String(text) => stamp::moment(text.trim()).or_else(|| nanos(text.trim().parse().ok())),
        Value::Number(number) => nanos(number.as_i64()),
        _ => None,
    };
    found.map(Some).ok_or_else(|| {
        let text: String = value.to_string().chars().take(60).collect();
        Error::input(format!("\"{key}\" is {text}"))
            .hint("a time is a date as 2026-02-25T12:00:00.5, or nanoseconds from 1970")
    })
}

fn nanos(number: Option<i64>) -> Option<Moment> {
    number.filter(|nanos| *nanos >= 0).map(|nanos| Moment { nanos })
}

/// Attributes by name, as plain JSON.
#[derive(Debug, Default)]
pub(super) struct Attributes(BTreeMap<String, Value>);

impl Attributes {
    /// The text of an attribute.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
    }

    /// An attribute, its JSON where it is told as a text.
    pub(super) fn value(&self, key: &str) -> Option<Cow<'_, Value>> {
        let value = self.0.get(key).filter(|value| !value.is_null())?;
        let spelled = value.as_str().filter(|text| text.trim_start().starts_with(['[', '{']));
        let parsed = spelled.and_then(|text| serde_json::from_str(text).ok());
        Some(parsed.map_or(Cow::Borrowed(value), Cow::Owned))
    }

    /// The first of `keys` that is a number of tokens.
    pub(super) fn count(&self, keys: &[&str]) -> Result<Option<u32>> {
        let Some((key, value)) = keys.iter().find_map(|key| Some((*key, self.0.get(*key)?))) else {
            return Ok(None);
        };
        let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
        let number = number.and_then(|number| u32::try_from(number).ok());
        number.map(Some).ok_or_else(|| {
            let text: String = value.to_string().chars().take(60).collect();
            Error::input(format!("\"{key}\" is {text}")).hint("it is a whole number from 0 to 4294967295")
        })
    }

    /// The conversation or session that a span says it is of.
    pub(super) fn session(&self) -> Option<String> {
        let known = ["gen_ai.conversation.id", "session.id"].into_iter();
        let others = self.0.keys().map(String::as_str).filter(|key| key.ends_with(".session.id"));
        known.chain(others).find_map(|key| self.text(key)).map(str::to_owned)
    }

    /// `prefix.0.suffix`, `prefix.1.suffix` and so on, as older instrumentation writes lists.
    pub(super) fn numbered(&self, prefix: &str) -> Vec<(Option<&str>, &Value)> {
        let find = |number: usize| {
            let content = self.0.get(&format!("{prefix}.{number}.content"))?;
            Some((self.text(&format!("{prefix}.{number}.role")), content))
        };
        (0..).map_while(find).collect()
    }
}

impl<'de> Deserialize<'de> for Attributes {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let pairs = match Value::deserialize(json)? {
            Value::Object(map) => map.into_iter().collect(),
            Value::Array(list) => list.into_iter().filter_map(pair).collect(),
            _ => BTreeMap::new(),
        };
        Ok(Self(pairs))
    }
}

/// OTLP's `{"key": …, "value": …}`.
fn pair(value: Value) -> Option<(String, Value)> {
    let Value::Object(mut pair) = value else { return None };
    let (Some(Value::String(key)), Some(value)) = (pair.remove("key"), pair.remove("value")) else {
        return None;
    };
    Some((key, plain(value)))
}

/// OTLP's typed value as plain JSON; 64-bit numbers are told as texts there.
fn plain(value: Value) -> Value {
    let Value::Object(map) = value else { return value };
    let Some((kind, value)) = map.into_iter().next() else { return Value::Null };
    match (kind.as_str(), value) {
        ("intValue", Value::String(text)) => {
            text.parse::<i64>().map_or(Value::String(text), |number| Value::Number(number.into()))
        }
        ("arrayValue", Value::Object(mut array)) => match array.remove("values") {
            Some(Value::Array(list)) => Value::Array(list.into_iter().map(plain).collect()),
            _ => Value::Array(Vec::new()),
        },
        ("kvlistValue", Value::Object(mut list)) => match list.remove("values") {
            Some(Value::Array(list)) => {
                Value::Object(list.into_iter().filter_map(pair).collect::<Map<_, _>>())
            }
            _ => Value::Object(Map::new()),
        },
        (_, value) => value,
    }
}
