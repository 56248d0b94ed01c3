//! One line, straight into a row: no value is held that is not kept.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use wavetank_model::Nanos;

use super::Dialect;
use crate::row::AgentNotes;
use crate::{Moment, Row};

/// Reads `line` into `row`, which is empty.
pub(super) fn parse(line: &[u8], row: &mut Row, dialect: Dialect) -> Result<(), serde_json::Error> {
    let mut json = serde_json::Deserializer::from_slice(line);
    Line { row, dialect }.deserialize(&mut json).and_then(|()| json.end())
}

/// Keys that are used. Others are ignored; a key together with its alias is an error.
#[derive(Clone, Copy, Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
pub(super) enum Key {
    RequestId,
    SessionId,
    #[serde(alias = "created_time")]
    Timestamp,
    #[serde(alias = "delay_ms")]
    Delay,
    #[serde(alias = "input_tokens")]
    InputLength,
    #[serde(alias = "output_tokens")]
    OutputLength,
    HashIds,
    Priority,
    StrictPriority,
    PolicyClass,
    OutputTokenIds,
    WaitFor,
    // The rest is told by graphs alone.
    ToolWaitMs,
    RequestKind,
    Branches,
    PrefixReset,
    ToolEvents,
    #[serde(other)]
    Other,
}

/// As they are written, in the order above.
const NAMES: [&str; Key::Other as usize] = [
    "request_id",
    "session_id",
    "timestamp",
    "delay",
    "input_length",
    "output_length",
    "hash_ids",
    "priority",
    "strict_priority",
    "policy_class",
    "output_token_ids",
    "wait_for",
    "tool_wait_ms",
    "request_kind",
    "branches",
    "prefix_reset",
    "tool_events",
];

impl Key {
    fn known_to(self, dialect: Dialect) -> Self {
        match self {
            Self::ToolWaitMs | Self::RequestKind | Self::Branches | Self::PrefixReset | Self::ToolEvents
                if dialect == Dialect::Plain =>
            {
                Self::Other
            }
            _ => self,
        }
    }
}

struct Line<'r> {
    row: &'r mut Row,
    dialect: Dialect,
}

impl<'de> DeserializeSeed<'de> for Line<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Line<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request, one JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut keys: A) -> Result<(), A::Error> {
        let Self { row, dialect } = self;
        let (mut met, mut authored) = (0_u32, None);
        while let Some(key) = keys.next_key::<Key>()? {
            let key = key.known_to(dialect);
            let bit = 1 << key as u32;
            if met & bit != 0 && !matches!(key, Key::Other) {
                return Err(A::Error::duplicate_field(NAMES[key as usize]));
            }
            met |= bit;
            match key {
                Key::RequestId => row.request = text(&mut keys)?,
                Key::SessionId => row.session = text(&mut keys)?,
                Key::Timestamp => row.start = moment(keys.next_value()?)?,
                Key::Delay => row.pause = pause(keys.next_value()?)?,
                Key::InputLength => row.input_tokens = keys.next_value()?,
                Key::OutputLength => row.output_tokens = Some(keys.next_value()?),
                Key::HashIds => keys.next_value_seed(Ids(&mut row.ids))?,
                Key::Priority => row.priority.soft = keys.next_value()?,
                Key::StrictPriority => row.priority.strict = keys.next_value()?,
                Key::PolicyClass => row.policy_class = text(&mut keys)?,
                Key::OutputTokenIds => authored = keys.next_value::<Option<Length>>()?,
                Key::WaitFor => row.wait_for = keys.next_value::<Option<_>>()?.unwrap_or_default(),
                Key::ToolWaitMs => row.tool_wait = pause(keys.next_value()?)?,
                Key::RequestKind => row.kind = text(&mut keys)?,
                Key::Branches | Key::PrefixReset | Key::ToolEvents => {
                    note(key, row.agent.get_or_insert_default(), &mut keys)?;
                }
                Key::Other => drop(keys.next_value::<IgnoredAny>()?),
            }
        }
        let missing = |key: &Key| met & 1 << *key as u32 == 0;
        if [Key::OutputLength, Key::HashIds].iter().any(missing)
            || (dialect == Dialect::Graph && row.request.is_none())
        {
            return Err(A::Error::custom("a key is missing"));
        }
        match (authored, row.output_tokens) {
            (Some(Length(count)), Some(tokens)) if count != tokens as usize => {
                Err(A::Error::custom("authored tokens are not as many as asked for"))
            }
            _ => Ok(()),
        }
    }
}

/// Keeps what no run depends on.
fn note<'de, A: MapAccess<'de>>(key: Key, agent: &mut AgentNotes, keys: &mut A) -> Result<(), A::Error> {
    match key {
        Key::Branches => agent.branches = keys.next_value::<Option<_>>()?.unwrap_or_default(),
        Key::PrefixReset => agent.prefix_reset = keys.next_value()?,
        _ => {
            let events: Option<Vec<Value>> = keys.next_value()?;
            agent.tool_events = events.map(|events| Value::Array(events).to_string());
        }
    }
    Ok(())
}

fn text<'de, A: MapAccess<'de>>(keys: &mut A) -> Result<Option<String>, A::Error> {
    Ok(keys.next_value::<Option<Cow<'de, str>>>()?.map(Cow::into_owned))
}

/// Milliseconds, not negative, that 64 bits of nanoseconds hold.
fn moment<E: serde::de::Error>(ms: Option<f64>) -> Result<Option<Moment>, E> {
    let Some(ms) = ms else { return Ok(None) };
    let moment = Moment::from_ms(ms).filter(|moment| moment.nanos >= 0);
    moment.map(Some).ok_or_else(|| E::custom("a time that no clock has"))
}

fn pause<E: serde::de::Error>(ms: Option<f64>) -> Result<Option<Nanos>, E> {
    Ok(moment::<E>(ms)?.map(|moment| Nanos(moment.nanos.unsigned_abs())))
}

/// Ids, appended to those that are there.
struct Ids<'r>(&'r mut Vec<u64>);

impl<'de> DeserializeSeed<'de> for Ids<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Ids<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of ids")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut ids: A) -> Result<(), A::Error> {
        while let Some(id) = ids.next_element()? {
            self.0.push(id);
        }
        Ok(())
    }
}

/// The length of a list whose items do not matter.
struct Length(usize);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let items: Vec<IgnoredAny> = Vec::deserialize(json)?;
        Ok(Self(items.len()))
    }
}
