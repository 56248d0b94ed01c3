//! The prompts of a trace as runs of blocks, in the order of its rows: what a cache is asked for. Nothing of
//! a row is held but, where rows tell only what a turn adds, what each session has said.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use wavetank_model::{Error, Result, mix};

use super::check::{Checked, Rows};
use super::index::FILLED_PER_ID;
use super::{Options, Survey, check_block_size, fills, no_rows};
use crate::requests::{self, Source};
use crate::{HashFill, Row};

/// A part of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptBlock {
    /// Blocks with equal ids, and equal ids before them, hold the same.
    pub id: u64,
    /// Tokens of the prompt in it; fewer in the last one of a prompt.
    pub tokens: u32,
}

/// A request.
#[derive(Debug)]
pub struct Asked<'a> {
    /// What its row says.
    pub row: &'a Row,
    /// A number of its session's name.
    pub session: Option<u64>,
    /// All tokens of its prompt, those that its row does not repeat included.
    pub input_tokens: u32,
    /// Tokens to generate, where the trace or a rule says it.
    pub output_tokens: Option<u32>,
    /// What covers the prompt, from the first to the last.
    pub blocks: &'a [PromptBlock],
    /// Whether another request may ask for the same blocks; without, they are made up.
    pub is_shareable: bool,
}

/// Reads prompts.
pub struct Prompts {
    rows: Rows,
    name: String,
    hash: HashFill,
    output: Option<u32>,
    grows: bool,
    sessions: HashMap<u64, Said>,
    blocks: Vec<PromptBlock>,
    requests: u64,
}

/// What a session has said where rows tell only what a turn adds.
struct Said {
    first: Box<[PromptBlock]>,
    first_tokens: u32,
    /// Asked and answered.
    tokens: u64,
}

impl Prompts {
    /// Begins a reading; times are not needed, nor are output lengths.
    pub fn open(source: &Source, options: &Options) -> Result<Self> {
        check_block_size(options)?;
        let (hash, output) = (options.fill.hash, options.fill.output);
        let mut options = options.clone();
        options.fill.output = Some(output.unwrap_or_default());
        let rows = Rows::open(source, &options)?;
        let grows = rows.provides.prompts == requests::Prompts::Added;
        let (name, sessions, blocks) = (source.name(), HashMap::new(), Vec::new());
        Ok(Self { rows, name, hash, output, grows, sessions, blocks, requests: 0 })
    }

    /// The next request; an error carries its place.
    pub fn advance(&mut self) -> Result<Option<Asked<'_>>> {
        let per_block = self.tokens_per_block();
        let Self { rows, blocks, .. } = self;
        let Some(Checked { row, input_tokens, output_tokens, line }) = rows.next()? else {
            return Ok(None);
        };
        self.requests += 1;
        let session = row.session.as_deref().map(number_of);
        let of_session = session.filter(|_| self.hash == HashFill::Session);
        let is_shareable = !row.ids.is_empty() || of_session.is_some() || self.grows;
        blocks.clear();
        match (row.ids.is_empty(), of_session) {
            (false, _) => blocks.extend(
                cut(input_tokens, per_block).zip(&row.ids).map(|(tokens, &id)| PromptBlock { id, tokens }),
            ),
            (true, Some(session)) => private(mix(session, SESSION), input_tokens, per_block, blocks),
            (true, None) => private(mix(self.requests, SINGLE), input_tokens, per_block, blocks),
        }
        let mut tokens = input_tokens;
        if let (true, Some(session)) = (self.grows, session) {
            let asked = Turn { session, asked: input_tokens, answered: output_tokens, per_block };
            let grown = grow(&mut self.sessions, &asked, blocks);
            tokens = grown.map_err(|error| error.at(format!("{}:{line}", self.name)))?;
        }
        let output_tokens = row.output_tokens.or(self.output);
        Ok(Some(Asked { row, session, input_tokens: tokens, output_tokens, blocks, is_shareable }))
    }

    /// Tokens of a block that is no prompt's last.
    pub fn tokens_per_block(&self) -> u32 {
        self.rows.reader().tokens_per_id().unwrap_or(FILLED_PER_ID)
    }

    /// What was met; a trace without requests is an error.
    pub fn finish(self) -> Result<Survey> {
        if self.requests == 0 {
            return Err(no_rows(&self.rows));
        }
        let mut survey = Survey::of(&self.rows, self.requests);
        if self.output.is_none() {
            survey.filled_outputs = 0;
        }
        let notes = fills(&self.rows.provides, &self.rows.options, &survey);
        survey.notes.extend(notes);
        Ok(survey)
    }
}

/// What made-up ids are made of beside their owner.
const SESSION: u64 = 1;
const SINGLE: u64 = 2;

fn number_of(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

/// How many tokens of a prompt each of its blocks has.
fn cut(tokens: u32, per_block: u32) -> impl Iterator<Item = u32> {
    (0..tokens.div_ceil(per_block)).map(move |block| (tokens - block * per_block).min(per_block))
}

/// Blocks that only `owner` has. One that is not full differs from itself with more in it.
fn private(owner: u64, tokens: u32, per_block: u32, blocks: &mut Vec<PromptBlock>) {
    for (number, tokens) in (0..).zip(cut(tokens, per_block)) {
        blocks.push(PromptBlock { id: mix(mix(owner, number), tokens.into()), tokens });
    }
}

struct Turn {
    session: u64,
    asked: u32,
    answered: u32,
    per_block: u32,
}

/// Makes the blocks of what a turn adds those of its whole prompt; tells the tokens of it.
fn grow(sessions: &mut HashMap<u64, Said>, turn: &Turn, blocks: &mut Vec<PromptBlock>) -> Result<u32> {
    let Some(said) = sessions.get_mut(&turn.session) else {
        let tokens = u64::from(turn.asked) + u64::from(turn.answered);
        let said = Said { first: blocks.as_slice().into(), first_tokens: turn.asked, tokens };
        sessions.insert(turn.session, said);
        return Ok(turn.asked);
    };
    let prompt = u32::try_from(said.tokens + u64::from(turn.asked)).map_err(|_| {
        Error::input("what was said in its session is more than 2^32 tokens")
            .hint("each row of this format adds to all rows of its session before it")
    })?;
    said.tokens = u64::from(prompt) + u64::from(turn.answered);
    blocks.clear();
    blocks.extend_from_slice(&said.first);
    private(mix(turn.session, SESSION), prompt - said.first_tokens, turn.per_block, blocks);
    Ok(prompt)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Fill, Input, Starts};

    fn prompts(format: &str, text: &str, fill: &str) -> Prompts {
        let source = Source::with(format, vec![Input::Bytes(Arc::from(text.as_bytes()))]).unwrap();
        let fill: Fill = fill.parse().unwrap();
        Prompts::open(&source, &Options { fill, ..Options::of(Starts::Ignored) }).unwrap()
    }

    fn all(mut prompts: Prompts) -> Vec<(u32, Vec<PromptBlock>)> {
        let mut found = Vec::new();
        while let Some(asked) = prompts.advance().unwrap() {
            let sum: u32 = asked.blocks.iter().map(|block| block.tokens).sum();
            assert_eq!(sum, asked.input_tokens, "blocks cover the prompt");
            found.push((asked.input_tokens, asked.blocks.to_vec()));
        }
        found
    }

    /// Broken by: ids beyond the prompt that are counted, or a last block taken for a full one.
    #[test]
    fn ids_cover_the_prompt_and_no_more() {
        let text = r#"{"timestamp":0,"input_length":700,"output_length":2,"hash_ids":[7,8,9]}"#;
        let blocks = [PromptBlock { id: 7, tokens: 512 }, PromptBlock { id: 8, tokens: 188 }];
        assert_eq!(all(prompts("mooncake", text, "hash=unique")), [(700, blocks.to_vec())]);
    }

    /// Broken by: a turn that holds less than was said, one that finds what was not asked before in it, or a
    /// session that finds another one's.
    #[test]
    fn prompts_grow_by_what_turns_add() {
        let first = |session: &str| {
            let rest = r#""timestamp":0,"input_length":500,"output_length":12,"hash_ids":[1]"#;
            format!(r#"{{"session_id":"{session}",{rest}}}"#)
        };
        let later = |session: &str| {
            let rest = r#""delay":1,"input_length":600,"output_length":12,"hash_ids":[1,2]"#;
            format!(r#"{{"session_id":"{session}",{rest}}}"#)
        };
        let text = [first("a"), first("b"), later("a"), later("a"), later("b")].join("\n");
        let found = all(prompts("mooncake_delta", &text, "hash=unique"));
        let tokens: Vec<u32> = found.iter().map(|(tokens, _)| *tokens).collect();
        assert_eq!(tokens, [500, 500, 1112, 1724, 1112]);
        let common = |one: usize, other: usize| {
            found[one].1.iter().zip(&found[other].1).take_while(|(left, right)| left == right).count()
        };
        assert_eq!((common(0, 1), common(0, 2), common(2, 3), common(2, 4)), (1, 1, 2, 1));
    }

    /// Broken by: a filled session whose turns find nothing, or one of whose turns finds more than was there.
    #[test]
    fn filled_sessions_find_their_whole_blocks() {
        let text = "Timestamp,Session ID,Request tokens,Response tokens\n1,a,40,5\n2,a,70,5\n3,b,70,5\n";
        let common = |fill: &str| {
            let found = all(prompts("burstgpt", text, fill));
            let same = |other: usize| {
                found[1].1.iter().zip(&found[other].1).take_while(|(left, right)| left == right).count()
            };
            (same(0), same(2))
        };
        assert_eq!(common("hash=session"), (2, 0));
        assert_eq!(common("hash=unique"), (0, 0));
    }
}
