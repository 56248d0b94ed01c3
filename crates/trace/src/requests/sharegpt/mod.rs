//! ShareGPT JSON: an array of `{id, conversations: [{from, value}, ...]}`, read as lengths of what was asked
//! and answered (spec/kv-bench.md 11). The texts of one pair at a time are held.

mod reading;

use std::collections::HashSet;
use std::fmt;

use serde::de::DeserializeSeed;
use serde::{Deserialize, Serialize};
use wavetank_model::{Error, Result};

use super::Entry;
use crate::{Conversations, Input, Loaded, Options, Starts, Survey};
use reading::{Objects, Reading};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "sharegpt",
    about: "JSON array of conversations: from human or gpt, value; texts are counted in tokens, no times",
    block_ids: false,
    open,
};

/// How texts become lengths, and how many are taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShareGpt {
    /// How tokens are counted.
    pub tokens: TokenCount,
    /// The first so many usable conversations; all when not given.
    pub max_conversations: Option<u64>,
    /// The most tokens of what a turn asks; more are cut.
    pub context_tokens_max: u32,
    /// The most tokens of what a turn answers; more are cut.
    pub generate_tokens_max: u32,
}

impl Default for ShareGpt {
    fn default() -> Self {
        let (context_tokens_max, generate_tokens_max) = (16_384, 2_048);
        Self {
            tokens: TokenCount::Tokenizer,
            max_conversations: None,
            context_tokens_max,
            generate_tokens_max,
        }
    }
}

/// How tokens are counted; a text has at least one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenCount {
    /// By OpenAI's cl100k_base.
    Tokenizer,
    /// So many characters are a token; 4 is usual.
    Characters(f64),
}

impl fmt::Display for TokenCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tokenizer => f.write_str("tiktoken cl100k_base"),
            Self::Characters(per_token) => write!(f, "characters / {per_token}"),
        }
    }
}

impl TokenCount {
    /// The tokens of `text`; `None` when the tokenizer gives up on it.
    fn of(self, text: &str) -> Option<u32> {
        let tokens = match self {
            Self::Tokenizer => tiktoken_rs::cl100k_base_singleton().count(text, &HashSet::new()).ok()? as u64,
            Self::Characters(per_token) => (text.chars().count() as f64 / per_token) as u64,
        };
        Some(u32::try_from(tokens).unwrap_or(u32::MAX).max(1))
    }
}

/// Stands in for a tokenizer that gives up: its pattern cannot go back over a million spaces.
const USUAL: TokenCount = TokenCount::Characters(4.0);

impl ShareGpt {
    fn check(&self) -> Result<()> {
        let wrong = |key: &str, hint: &str| Err(Error::usage(format!("\"{key}\" is wrong")).hint(hint));
        if matches!(self.tokens, TokenCount::Characters(n) if !n.is_finite() || n <= 0.0) {
            return wrong("tokens", "characters per token must be above 0");
        }
        if self.max_conversations == Some(0) {
            return wrong("max_conversations", "must be 1 or more");
        }
        if self.context_tokens_max == 0 || self.generate_tokens_max == 0 {
            return wrong("context_tokens_max or generate_tokens_max", "both must be 1 or more");
        }
        Ok(())
    }
}

fn open(inputs: &[Input], options: &Options) -> Result<Loaded> {
    if matches!(options.starts, Starts::Scheduled { .. }) {
        return Err(Error::input("there are no times in this format")
            .at(inputs[0].name())
            .hint("--replay-concurrency starts a conversation when another one ends"));
    }
    let (conversations, survey) = read(inputs, &options.sharegpt)?;
    let workload = Box::new(if options.keep_names { conversations } else { conversations.without_names() });
    Ok(Loaded { workload, survey })
}

/// The lengths of all conversations of `inputs`, with their names.
pub fn read(inputs: &[Input], settings: &ShareGpt) -> Result<(Conversations, Survey)> {
    settings.check()?;
    let mut reading = Reading::of(settings);
    for input in inputs {
        let text = input.text()?;
        reading.object = 0;
        let mut json = serde_json::Deserializer::from_reader(text);
        let read = Objects(&mut reading).deserialize(&mut json).and_then(|()| json.end());
        match read {
            Err(_) if reading.is_full() => break,
            read => read.map_err(|error| reading.diagnose(&input.name(), error))?,
        }
    }
    if reading.found.is_empty() {
        let message =
            format!("there are no conversations in it ({} objects without a turn)", reading.objects);
        return Err(Error::input(message)
            .at(inputs.first().map(Input::name).unwrap_or_default())
            .hint(SHAPE));
    }
    let survey = reading.survey();
    Ok((reading.found, survey))
}

/// In hints.
const SHAPE: &str = concat!(
    r#"a conversation is {"id": "a", "conversations": "#,
    r#"[{"from": "human", "value": "…"}, {"from": "gpt", "value": "…"}]}"#,
);
#[cfg(test)]
mod tests;
