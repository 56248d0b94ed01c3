//! ShareGPT JSON: an array of `{id, conversations: [{from, value}, ...]}`, read as lengths of what was asked
//! and answered (spec/kv-bench.md 11). The texts of one conversation at a time are held; prompts that begin
//! with the same tokens have the same ids.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use wavetank_model::{Error, Result};

use super::{Blocks, Entry, Findings, Provides, ReadOptions, Reader, Texts};
use crate::items::Items;
use crate::reading::token_count::{TOKENS_PER_ID, USUAL, block_ids};
use crate::{Input, Row};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "sharegpt",
    about: "JSON array of conversations: from human or gpt, value; texts are counted in tokens, no times",
    provides: Provides {
        sessions: true,
        texts: true,
        blocks: Blocks::Of(TOKENS_PER_ID),
        ..Provides::LENGTHS
    },
    recognises: |head| head.is_array() && head.has(2, "conversations"),
    read: |inputs, options| Ok(Box::new(Conversations::open(inputs, options)?)),
    write: None,
};

/// In hints.
const SHAPE: &str = concat!(
    r#"a conversation is {"id": "a", "conversations": "#,
    r#"[{"from": "human", "value": "…"}, {"from": "gpt", "value": "…"}]}"#,
);
const OF: &str = "conversations";

/// A conversation as the file has it.
#[derive(Deserialize)]
#[serde(expecting = "an object with \"conversations\"")]
struct Talk<'a> {
    #[serde(default)]
    id: Value,
    #[serde(default, borrow)]
    conversations: Vec<Turn<'a>>,
}

#[derive(Deserialize)]
#[serde(expecting = "a turn, an object with \"from\" and \"value\"")]
struct Turn<'a> {
    #[serde(default, borrow)]
    from: Cow<'a, str>,
    #[serde(borrow)]
    value: Cow<'a, str>,
}

/// What a turn asks and answers, in tokens; neither is zero.
#[derive(Clone, Copy)]
struct Exchange {
    asked: u32,
    answered: u32,
}

/// The files being read.
struct Conversations {
    inputs: Vec<Input>,
    /// How many of them were opened.
    opened: usize,
    items: Items,
    texts: Texts,
    talk: Said,
    counts: Counts,
    /// How often each name was met.
    names: HashMap<String, u32>,
}

/// The conversation whose turns are handed over.
#[derive(Default)]
struct Said {
    name: String,
    exchanges: Vec<Exchange>,
    tokens: Vec<u32>,
    ids: Vec<u64>,
    /// The turn to be handed over next, and the tokens before it.
    turn: usize,
    history: u32,
}

/// What was met so far.
#[derive(Default)]
struct Counts {
    conversations: u64,
    turns: u64,
    /// Objects without a turn, pairs that are not a question and its answer, and turns without another one to
    /// pair with.
    objects: u64,
    pairs: u64,
    unpaired: u64,
    /// Texts that were cut, and texts that the tokenizer gave up on.
    cut: u64,
    untokenized: u64,
}

impl Conversations {
    fn open(inputs: &[Input], options: &ReadOptions) -> Result<Self> {
        options.texts.check()?;
        Ok(Self {
            inputs: inputs.to_vec(),
            opened: 1,
            items: Items::open(&inputs[0], OF)?,
            texts: options.texts.clone(),
            talk: Said::default(),
            counts: Counts::default(),
            names: HashMap::new(),
        })
    }

    fn is_full(&self) -> bool {
        self.texts.max_conversations.is_some_and(|most| self.counts.conversations >= most)
    }

    /// Moves to the next conversation of any file. Tells whether there is one.
    fn advance(&mut self) -> Result<bool> {
        while !self.is_full() {
            if !self.items.advance()? {
                let Some(input) = self.inputs.get(self.opened) else { return Ok(false) };
                self.opened += 1;
                self.items = Items::open(input, OF)?;
                continue;
            }
            if self.talk()? {
                return Ok(true);
            }
            self.counts.objects += 1;
        }
        Ok(false)
    }

    /// Takes the turns of the object; tells whether there are any.
    fn talk(&mut self) -> Result<bool> {
        let parsed = serde_json::from_slice::<Talk<'_>>(self.items.current());
        let talk = parsed.map_err(|error| diagnose(&self.items, &error))?;
        let id = match talk.id {
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            _ => format!("conv_{}", self.items.number() - 1),
        };
        self.talk = Said::default();
        let mut pairs = talk.conversations.chunks_exact(2);
        for pair in &mut pairs {
            let is_asked = matches!(&*pair[0].from, "human" | "user");
            if !is_asked || !matches!(&*pair[1].from, "gpt" | "assistant" | "chatgpt") {
                self.counts.pairs += 1;
                continue;
            }
            let most = (self.texts.context_tokens_max, self.texts.generate_tokens_max);
            let asked = self.talk.say(&pair[0].value, &self.texts, most.0, &mut self.counts);
            let answered = self.talk.say(&pair[1].value, &self.texts, most.1, &mut self.counts);
            self.talk.exchanges.push(Exchange { asked, answered });
        }
        self.counts.unpaired += pairs.remainder().len() as u64;
        if self.talk.exchanges.is_empty() {
            return Ok(false);
        }
        if u32::try_from(self.talk.tokens.len()).is_err() {
            return Err(Error::input("more than 2^32 tokens in a conversation")
                .at(self.items.place(1))
                .hint("cut its texts"));
        }
        block_ids(&self.talk.tokens, &mut self.talk.ids);
        let met = self.names.entry(id.clone()).or_default();
        *met += 1;
        self.talk.name = if *met == 1 { id } else { format!("{id}~{met}") };
        self.counts.conversations += 1;
        self.counts.turns += self.talk.exchanges.len() as u64;
        Ok(true)
    }
}

impl Said {
    /// Adds a text; tells how many tokens of it are kept.
    fn say(&mut self, text: &str, texts: &Texts, most: u32, counts: &mut Counts) -> u32 {
        let tokens = texts.tokens.of(text).unwrap_or_else(|| {
            counts.untokenized += 1;
            USUAL.of(text).unwrap_or_default()
        });
        let kept = tokens.len().min(most as usize);
        counts.cut += u64::from(kept < tokens.len());
        self.tokens.extend_from_slice(&tokens[..kept]);
        kept as u32
    }

    /// Hands the next turn over.
    fn take(&mut self, row: &mut Row) -> bool {
        let Some(&Exchange { asked, answered }) = self.exchanges.get(self.turn) else { return false };
        let tokens = self.history + asked;
        row.clear();
        row.session = Some(self.name.clone());
        (row.input_tokens, row.output_tokens) = (Some(tokens), Some(answered));
        row.ids.extend_from_slice(&self.ids[..tokens.div_ceil(TOKENS_PER_ID) as usize]);
        self.turn += 1;
        self.history = tokens + answered;
        true
    }
}

impl Reader for Conversations {
    fn read(&mut self, row: &mut Row) -> Result<bool> {
        while !self.talk.take(row) {
            if !self.advance()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn place(&self) -> String {
        self.items.place(1)
    }

    fn line(&self) -> u64 {
        self.items.line()
    }

    fn tokens_per_id(&self) -> Option<u32> {
        Some(TOKENS_PER_ID)
    }

    fn findings(&self) -> Findings {
        let Texts { tokens, context_tokens_max, generate_tokens_max, .. } = &self.texts;
        let Counts { conversations, turns, objects, pairs, unpaired, cut, untokenized } = self.counts;
        let counted = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let said = format!("{} with {}", counted(conversations, "conversation"), counted(turns, "turn"));
        let mut notes = vec![format!("{said}, tokens counted by {tokens}")];
        let mut note = |count: u64, what: &str, why: &str| {
            notes.extend((count > 0).then(|| format!("{} {why}", counted(count, what))));
        };
        note(objects, "object", "skipped: without a question and its answer");
        note(pairs, "pair", "of turns skipped: not human, then gpt");
        note(unpaired, "turn", "skipped: the last one, without an answer");
        let caps = format!("cut to {context_tokens_max} tokens asked or {generate_tokens_max} answered");
        note(cut, "text", &caps);
        note(untokenized, "text", &format!("counted by {USUAL}: the tokenizer gave up"));
        Findings { skipped: objects + pairs + unpaired, notes }
    }
}

/// Says which conversation is wrong.
#[cold]
fn diagnose(items: &Items, error: &serde_json::Error) -> Error {
    let named: Option<Value> = serde_json::from_slice(items.current()).ok();
    let id = named.as_ref().and_then(|value| value.get("id")?.as_str());
    let id = id.map(|id| format!(" (id \"{id}\")")).unwrap_or_default();
    let text = error.to_string();
    let what = &text[..text.find(" at line ").unwrap_or(text.len())];
    let which = format!("conversation {}{id}: ", items.number());
    let place = items.place(error.line());
    match named {
        Some(_) => Error::input(format!("{which}{what}")).at(place).hint(SHAPE),
        None => Error::input(format!("{which}not valid JSON: {what} at column {}", error.column()))
            .at(place)
            .hint("it is one JSON array of conversations"),
    }
}

#[cfg(test)]
mod tests;
