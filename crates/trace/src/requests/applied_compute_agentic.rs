//! Applied Compute's agent workloads (github.com/Applied-Compute/trie; spec/replay.md 2.3).
//! A line is a session, given by the lengths of what it asks, answers and gets from tools. Prompts grow by
//! the answer and the tool's output; there are no times.

use serde::Deserialize;
use wavetank_model::{Error, Nanos, Result};

use super::{Blocks, Entry, JsonLine, LineReader, Provides, ReadOptions, Rows, SharedPrefix};
use crate::Input;
use crate::reading::lines::from_json;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "applied_compute_agentic",
    about: "JSON lines: num_turns, input_prompt_length, lengths of answers and tool outputs; no times",
    provides: Provides {
        sessions: true,
        pauses: true,
        chosen_prefixes: true,
        blocks: Blocks::Of(TOKENS_PER_ID),
        ..Provides::LENGTHS
    },
    recognises: |head| head.has(1, "input_prompt_length") && head.has(1, "assistant_response_length"),
    read: |inputs, options| Ok(Box::new(open(inputs, options)?)),
    write: None,
};

const TOKENS_PER_ID: u32 = 512;

/// In hints.
const SHAPE: &str = concat!(
    r#"{"num_turns": 1, "input_prompt_length": 64, "assistant_response_length": [2], "#,
    r#""tool_call_output_length": [2], "tool_call_latency": [0.5], "final_assistant_response_length": 2}"#,
);

/// A session as the file has it.
#[derive(Deserialize)]
struct Line {
    num_turns: u32,
    input_prompt_length: u32,
    assistant_response_length: Vec<u32>,
    tool_call_output_length: Vec<u32>,
    /// Seconds.
    tool_call_latency: Vec<f64>,
    final_assistant_response_length: u32,
}

fn open(inputs: &[Input], options: &ReadOptions) -> Result<LineReader<Sessions>> {
    let tokens_per_id = options.tokens_per_id.unwrap_or(TOKENS_PER_ID);
    let sessions = Sessions { tokens_per_id, shared: options.shared_prefix, read: 0, next_id: 1 };
    LineReader::open(inputs, sessions, Some(tokens_per_id))
}

struct Sessions {
    tokens_per_id: u32,
    shared: SharedPrefix,
    /// Sessions so far.
    read: u64,
    /// The first id that nobody has.
    next_id: u64,
}

impl JsonLine for Sessions {
    fn parse(&mut self, line: &[u8], rows: &mut Rows) -> Result<()> {
        let session: Line = from_json(line, SHAPE)?;
        let turns = session.turns()?;
        let name = format!("session_{}", self.read + 1);
        let longest = turns.last().map_or(0, |turn| turn.input_tokens);
        let ids = self.ids(session.input_prompt_length, longest);
        for turn in turns {
            let row = rows.push();
            row.session = Some(name.clone());
            (row.input_tokens, row.output_tokens) = (Some(turn.input_tokens), Some(turn.output_tokens));
            row.pause = turn.pause;
            row.ids.extend_from_slice(&ids[..turn.input_tokens.div_ceil(self.tokens_per_id) as usize]);
        }
        self.read += 1;
        Ok(())
    }
}

impl Sessions {
    /// The blocks of a session's longest prompt, of which the first prompt may begin as others do.
    fn ids(&mut self, first_tokens: u32, longest: u32) -> Vec<u64> {
        let SharedPrefix { ratio, groups } = self.shared;
        let group = self.read.checked_rem(groups.into());
        let first_blocks = first_tokens.div_ceil(self.tokens_per_id);
        let shared = group.map_or(0, |_| (f64::from(first_blocks) * ratio).round() as u32);
        let blocks = longest.div_ceil(self.tokens_per_id);
        let own = self.next_id..;
        self.next_id += u64::from(blocks - shared);
        let beginning = (0..u64::from(shared)).map(|block| GROUPS | group.unwrap_or(0) << 32 | block);
        beginning.chain(own).take(blocks as usize).collect()
    }
}

/// Ids from here on are shared ones.
const GROUPS: u64 = 1 << 63;

struct Turn {
    input_tokens: u32,
    output_tokens: u32,
    pause: Option<Nanos>,
}

impl Line {
    /// One turn per tool call, and the last answer.
    fn turns(&self) -> Result<Vec<Turn>> {
        if self.input_prompt_length == 0 {
            return Err(Error::input("\"input_prompt_length\" is 0").hint("a prompt has at least one token"));
        }
        for (key, entries) in [
            ("assistant_response_length", self.assistant_response_length.len()),
            ("tool_call_output_length", self.tool_call_output_length.len()),
            ("tool_call_latency", self.tool_call_latency.len()),
        ] {
            if entries != self.num_turns as usize {
                return Err(Error::input(format!("\"{key}\" has {entries} entries"))
                    .hint(format!("\"num_turns\" is {}, and every turn has one", self.num_turns)));
            }
        }
        let (mut tokens, mut pause) = (u64::from(self.input_prompt_length), None);
        let mut turns = Vec::with_capacity(self.num_turns as usize + 1);
        let answers = self.assistant_response_length.iter().zip(&self.tool_call_output_length);
        for ((&answer, &tool), &latency) in answers.zip(&self.tool_call_latency) {
            turns.push(Turn { input_tokens: counted(tokens)?, output_tokens: answer, pause });
            tokens += u64::from(answer) + u64::from(tool);
            pause = Some(span(latency)?);
        }
        let output_tokens = self.final_assistant_response_length;
        turns.push(Turn { input_tokens: counted(tokens)?, output_tokens, pause });
        Ok(turns)
    }
}

/// No model takes more, and a line of a few bytes must not ask for memory without end.
const MOST_TOKENS: u64 = 1 << 27;

fn counted(tokens: u64) -> Result<u32> {
    let counted = u32::try_from(tokens).ok().filter(|_| tokens <= MOST_TOKENS);
    counted.ok_or_else(|| {
        Error::input("its last prompts are longer than 2^27 tokens")
            .hint("a prompt holds all that came before")
    })
}

/// A century of waiting is no latency.
const MOST_SECONDS: f64 = 3.2e9;

fn span(seconds: f64) -> Result<Nanos> {
    if !(0.0..MOST_SECONDS).contains(&seconds) {
        return Err(Error::input(format!("\"tool_call_latency\" has {seconds}"))
            .hint("latencies are seconds, not negative, less than a century"));
    }
    Ok(Nanos::from_seconds(seconds))
}

#[cfg(test)]
mod tests;
