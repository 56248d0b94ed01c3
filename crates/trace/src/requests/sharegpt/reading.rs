//! The second half of the reader: an array of objects, streamed through visitors into lengths.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::error::Category;
use wavetank_model::{Error, Result, Workload};

use super::{SHAPE, ShareGpt, USUAL};
use crate::input::broken;
use crate::{Conversations, Exchange, Survey};

/// What is found while a file is read.
pub(super) struct Reading<'s> {
    settings: &'s ShareGpt,
    pub(super) found: Conversations,
    /// Turns of the conversation that is being read.
    exchanges: Vec<Exchange>,
    /// The number of the object that is being read, from 1, and its name where that is known.
    pub(super) object: u64,
    id: Option<String>,
    /// What was skipped: objects without a turn, pairs that are not a question and its answer, and turns
    /// without another one to pair with.
    pub(super) objects: u64,
    pairs: u64,
    unpaired: u64,
    /// Texts that were cut, and texts that the tokenizer gave up on.
    cut: u64,
    untokenized: u64,
    /// What is wrong that JSON does not know.
    fault: Option<Error>,
}

impl<'s> Reading<'s> {
    pub(super) fn of(settings: &'s ShareGpt) -> Self {
        Self {
            settings,
            found: Conversations::default(),
            exchanges: Vec::new(),
            object: 0,
            id: None,
            objects: 0,
            pairs: 0,
            unpaired: 0,
            cut: 0,
            untokenized: 0,
            fault: None,
        }
    }

    /// Whether no more conversations are wanted.
    pub(super) fn is_full(&self) -> bool {
        self.settings.max_conversations.is_some_and(|most| self.found.len() as u64 >= most)
    }

    fn count(&mut self, text: &str, most: u32) -> u32 {
        let tokens = self.settings.tokens.of(text).or_else(|| {
            self.untokenized += 1;
            USUAL.of(text)
        });
        let tokens = tokens.unwrap_or(1);
        self.cut += u64::from(tokens > most);
        tokens.min(most)
    }

    fn pair(&mut self, question: &Turn, answer: &Turn) {
        let asked = matches!(question.from.as_str(), "human" | "user");
        if !asked || !matches!(answer.from.as_str(), "gpt" | "assistant" | "chatgpt") {
            self.pairs += 1;
            return;
        }
        let asked_tokens = self.count(&question.value, self.settings.context_tokens_max);
        let answered_tokens = self.count(&answer.value, self.settings.generate_tokens_max);
        self.exchanges.push(Exchange { asked_tokens, answered_tokens });
    }

    /// The object has ended: keeps it if it is a conversation.
    fn keep(&mut self) -> Result<()> {
        if self.exchanges.is_empty() {
            self.objects += 1;
            return Ok(());
        }
        let name = self.id.take().unwrap_or_else(|| format!("conv_{}", self.object - 1));
        self.found.push(&self.exchanges, Some(name))
    }

    /// Says which conversation is wrong.
    #[cold]
    pub(super) fn diagnose(&mut self, name: &str, error: serde_json::Error) -> Error {
        let place = match error.line() {
            0 => name.to_owned(),
            line => format!("{name}:{line}"),
        };
        if let Some(fault) = self.fault.take() {
            return fault.at(place);
        }
        let text = error.to_string();
        let what = &text[..text.find(" at line ").unwrap_or(text.len())];
        let id = self.id.as_ref().map(|id| format!(" (id \"{id}\")")).unwrap_or_default();
        let which = match self.object {
            0 => String::new(),
            number => format!("conversation {number}{id}: "),
        };
        match error.classify() {
            Category::Io => broken(name, error.line() as u64, error.into()),
            Category::Data => Error::input(format!("{which}{what}")).at(place).hint(SHAPE),
            _ => Error::input(format!("{which}not valid JSON: {what} at column {}", error.column()))
                .at(place)
                .hint(if error.is_eof() {
                    "the file is truncated"
                } else {
                    "it is one JSON array of conversations"
                })
                .source(error),
        }
    }

    pub(super) fn survey(&self) -> Survey {
        let ShareGpt { tokens, context_tokens_max, generate_tokens_max, .. } = self.settings;
        let counted = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let (conversations, turns) = (self.found.len() as u64, self.found.requests());
        let mut notes = vec![format!(
            "{} with {}, tokens counted by {tokens}",
            counted(conversations, "conversation"),
            counted(turns, "turn")
        )];
        let mut note = |count: u64, what: &str, why: &str| {
            notes.extend((count > 0).then(|| format!("{} {why}", counted(count, what))));
        };
        note(self.objects, "object", "skipped: without a question and its answer");
        note(self.pairs, "pair", "of turns skipped: not human, then gpt");
        note(self.unpaired, "turn", "skipped: the last one, without an answer");
        let caps = format!("cut to {context_tokens_max} tokens asked or {generate_tokens_max} answered");
        note(self.cut, "text", &caps);
        note(self.untokenized, "text", &format!("counted by {USUAL}: the tokenizer gave up"));
        let skipped = self.objects + self.pairs + self.unpaired;
        Survey { requests: turns, skipped, notes, ..Survey::default() }
    }
}

/// The array of the file.
pub(super) struct Objects<'a, 's>(pub(super) &'a mut Reading<'s>);

impl<'de> DeserializeSeed<'de> for Objects<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Objects<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of conversations")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut objects: A) -> Result<(), A::Error> {
        loop {
            if self.0.is_full() {
                return Err(A::Error::custom("the rest is not read"));
            }
            self.0.object += 1;
            self.0.id = None;
            self.0.exchanges.clear();
            if objects.next_element_seed(Object(self.0))?.is_none() {
                self.0.object = 0;
                return Ok(());
            }
        }
    }
}

/// A conversation, or something that is none.
struct Object<'a, 's>(&'a mut Reading<'s>);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Key {
    Id,
    Conversations,
    #[serde(other)]
    Other,
}

impl<'de> DeserializeSeed<'de> for Object<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with \"conversations\"")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut keys: A) -> Result<(), A::Error> {
        let mut has_turns = false;
        while let Some(key) = keys.next_key()? {
            match key {
                Key::Id => {
                    self.0.id = match keys.next_value()? {
                        Value::String(text) => Some(text),
                        Value::Number(number) => Some(number.to_string()),
                        _ => None,
                    }
                }
                Key::Conversations if has_turns => return Err(A::Error::duplicate_field("conversations")),
                Key::Conversations => {
                    has_turns = true;
                    keys.next_value_seed(Turns(self.0))?;
                }
                Key::Other => drop(keys.next_value::<IgnoredAny>()?),
            }
        }
        self.0.keep().map_err(|fault| {
            self.0.fault = Some(fault);
            A::Error::custom("beyond the counters")
        })
    }
}

/// The turns of a conversation.
struct Turns<'a, 's>(&'a mut Reading<'s>);

/// One of them.
#[derive(Deserialize)]
#[serde(expecting = "a turn, an object with \"from\" and \"value\"")]
struct Turn {
    #[serde(default)]
    from: String,
    value: String,
}

impl<'de> DeserializeSeed<'de> for Turns<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Turns<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"conversations\" to be a list of turns")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut turns: A) -> Result<(), A::Error> {
        while let Some(question) = turns.next_element()? {
            match turns.next_element()? {
                Some(answer) => self.0.pair(&question, &answer),
                None => self.0.unpaired += 1,
            }
        }
        Ok(())
    }
}
