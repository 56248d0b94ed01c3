//! What a call was asked and answered: messages as texts, tokens and block ids.

use serde_json::Value;
use wavetank_model::{Error, Result};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::TokenCount;
use super::span::{Attributes, Span};
use crate::Row;
use crate::reading::token_count::{TOKENS_PER_ID, USUAL, block_ids};

/// Recorded usage beyond it is taken for a mistake: it would be filled up block by block.
const LONGEST: u32 = 1 << 24;
const INPUT: [&str; 2] = ["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"];
const OUTPUT: [&str; 2] = ["gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"];

/// Makes prompts, and counts how.
#[derive(Debug)]
pub(super) struct Prompts {
    pub(super) count: TokenCount,
    calls: u64,
    /// Prompts longer or shorter than their texts, without recorded usage, and without texts.
    pub(super) padded: u64,
    pub(super) cut: u64,
    pub(super) counted: u64,
    pub(super) bare: u64,
    /// Texts that the tokenizer gave up on.
    pub(super) untokenized: u64,
}

/// What calls are compared by.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Of the messages up to each one.
    pub(super) prefixes: Vec<u64>,
    /// Of each message's text alone, and of the answer's.
    pub(super) texts: Vec<u64>,
    pub(super) answer: Option<u64>,
}

/// One message.
struct Message {
    role: String,
    text: String,
}

impl Prompts {
    pub(super) fn by(count: TokenCount) -> Self {
        Self { count, calls: 0, padded: 0, cut: 0, counted: 0, bare: 0, untokenized: 0 }
    }

    /// Fills lengths and ids of a call; nothing where neither texts nor usage tell them.
    pub(super) fn fill(&mut self, span: &Span, row: &mut Row) -> Result<Option<Said>> {
        let messages = asked(&span.attributes);
        let usage = span.attributes.count(&INPUT)?.filter(|tokens| *tokens > 0);
        if messages.is_empty() && usage.is_none() {
            return Ok(None);
        }
        if usage.is_some_and(|tokens| tokens > LONGEST) {
            return Err(
                Error::input(format!("\"{}\" is more than {LONGEST}", INPUT[0])).hint("no prompt is so long")
            );
        }
        self.calls += 1;
        let answer = answered(&span.attributes);
        row.output_tokens = match span.attributes.count(&OUTPUT)? {
            Some(tokens) => Some(tokens),
            None => answer.as_deref().map(|text| self.tokens(text).len() as u32),
        };
        self.prompt(&messages, usage, row);
        Ok(Some(Said::of(&messages, answer.as_deref())))
    }

    /// Texts as blocks, cut or filled up to what was recorded.
    fn prompt(&mut self, messages: &[Message], usage: Option<u32>, row: &mut Row) {
        let mut tokens = Vec::new();
        for message in messages {
            tokens.extend(self.tokens(&format!("{}\n{}\n", message.role, message.text)));
            tokens.truncate(LONGEST as usize);
        }
        let said = tokens.len() as u32;
        let length = usage.unwrap_or(said);
        row.input_tokens = Some(length);
        if messages.is_empty() {
            self.bare += 1;
            return;
        }
        self.counted += u64::from(usage.is_none());
        self.cut += u64::from(length < said);
        self.padded += u64::from(length > said);
        tokens.truncate(length as usize);
        if length > said {
            // A block that is filled up is like no other, as all behind it are.
            tokens.truncate((said - said % TOKENS_PER_ID) as usize);
        }
        block_ids(&tokens, &mut row.ids);
        for block in row.ids.len() as u64..u64::from(length.div_ceil(TOKENS_PER_ID)) {
            row.ids.push(xxh3_64_with_seed(&self.calls.to_le_bytes(), !block));
        }
    }

    fn tokens(&mut self, text: &str) -> Vec<u32> {
        self.count.of(text).unwrap_or_else(|| {
            self.untokenized += 1;
            USUAL.of(text).unwrap_or_default()
        })
    }
}

impl Said {
    fn of(messages: &[Message], answer: Option<&str>) -> Self {
        let mut prefix = 0;
        let mut said = Self { answer: answer.map(|text| xxh3_64(text.as_bytes())), ..Self::default() };
        for Message { role, text } in messages {
            prefix = xxh3_64_with_seed(role.as_bytes(), xxh3_64_with_seed(text.as_bytes(), prefix));
            said.prefixes.push(prefix);
            said.texts.push(xxh3_64(text.as_bytes()));
        }
        said
    }
}

/// What the model was given, in its order: tools, instructions, messages.
fn asked(attributes: &Attributes) -> Vec<Message> {
    let mut all = Vec::new();
    for (key, role) in [("gen_ai.tool.definitions", "tools"), ("gen_ai.system_instructions", "system")] {
        if let Some(value) = attributes.value(key) {
            all.push(Message { role: role.to_owned(), text: text_of(&value) });
        }
    }
    let given = ["gen_ai.input.messages", "gen_ai.prompt", "gen_ai.input.text"];
    match given.into_iter().find_map(|key| attributes.value(key)).as_deref() {
        Some(Value::Array(messages)) => all.extend(messages.iter().map(message)),
        Some(value) => all.push(message(value)),
        None => {
            let numbered = attributes.numbered("gen_ai.prompt").into_iter();
            all.extend(numbered.map(|(role, content)| Message {
                role: role.unwrap_or("user").to_owned(),
                text: text_of(content),
            }));
        }
    }
    all
}

fn message(value: &Value) -> Message {
    let role = value.get("role").and_then(Value::as_str).unwrap_or("user").to_owned();
    Message { role, text: text_of(value) }
}

/// What the model said.
fn answered(attributes: &Attributes) -> Option<String> {
    let given = ["gen_ai.output.messages", "gen_ai.output.text", "gen_ai.completion"];
    if let Some(value) = given.into_iter().find_map(|key| attributes.value(key)) {
        return Some(text_of(&value));
    }
    let numbered = attributes.numbered("gen_ai.completion");
    (!numbered.is_empty()).then(|| {
        let texts: Vec<_> = numbered.into_iter().map(|(_, content)| text_of(content)).collect();
        texts.join("\n")
    })
}

/// Members that say what a part is, not what it holds.
const LABELS: [&str; 5] = ["finish_reason", "id", "role", "tool_call_id", "type"];

/// The texts in a value, one after the other.
fn text_of(value: &Value) -> String {
    let mut parts = Vec::new();
    collect(value, &mut parts);
    parts.join("\n")
}

fn collect(value: &Value, parts: &mut Vec<String>) {
    match value {
        Value::String(text) => parts.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|value| collect(value, parts)),
        Value::Object(map) => {
            let held = map.iter().filter(|(key, _)| !LABELS.contains(&key.as_str()));
            held.for_each(|(_, value)| collect(value, parts));
        }
        Value::Number(number) => parts.push(number.to_string()),
        Value::Bool(flag) => parts.push(flag.to_string()),
        Value::Null => {}
    }
}
