//! LLMServingSim's JSON lines (github.com/casys-kaist/LLMServingSim): single requests, or sessions whose
//! requests follow each other with the work of tools between them. Where tokens are given, prompts that begin
//! with the same ones have the same ids, 16 tokens each.

mod writer;

use std::collections::HashMap;

use serde::Deserialize;
use wavetank_model::{Error, Nanos, Result};

use super::{Blocks, Entry, JsonLine, LineReader, Provides, Rows};
use crate::reading::lines::from_json;
use crate::reading::token_count::{TOKENS_PER_ID, block_ids};
use crate::{Moment, Row};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "llmservingsim",
    about: "JSON lines: input_toks, output_toks, arrival_time_ns, token ids; or sessions of sub_requests",
    provides: Provides {
        starts: true,
        sessions: true,
        pauses: true,
        blocks: Blocks::Of(TOKENS_PER_ID),
        ..Provides::LENGTHS
    },
    recognises: |head| head.has(1, "input_toks") || head.has(1, "sub_requests"),
    read: |inputs, _| Ok(Box::new(LineReader::open(inputs, Requests::default(), Some(TOKENS_PER_ID))?)),
    write: Some(writer::begin),
};

/// In hints.
const SHAPE: &str = concat!(
    r#"{"input_toks": 10, "output_toks": 2, "arrival_time_ns": 0}, a session "#,
    r#"{"session_id": "a", "arrival_time_ns": 0, "sub_requests": [{"input_toks": 10, "output_toks": 2}]}"#,
);

/// A request or a session, as the file has it.
#[derive(Deserialize)]
struct Line {
    session_id: Option<Name>,
    arrival_time_ns: Option<i64>,
    sub_requests: Option<Vec<Part>>,
    input_toks: Option<u32>,
    output_toks: Option<u32>,
    input_tok_ids: Option<Vec<u32>>,
}

/// A request of a session.
#[derive(Deserialize)]
struct Part {
    input_toks: u32,
    output_toks: u32,
    input_tok_ids: Option<Vec<u32>>,
    /// Between its end and the next one.
    #[serde(default)]
    tool_duration_ns: u64,
}

/// Names are texts or numbers.
#[derive(Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Number(u64),
}

#[derive(Default)]
struct Requests {
    /// How often each name of a session was met.
    names: HashMap<String, u32>,
}

impl Requests {
    /// Sessions of one name are still two.
    fn unlike_others(&mut self, name: String) -> String {
        let met = self.names.entry(name.clone()).or_default();
        *met += 1;
        if *met == 1 { name } else { format!("{name}~{met}") }
    }
}

impl JsonLine for Requests {
    fn parse(&mut self, line: &[u8], rows: &mut Rows) -> Result<()> {
        let Line { session_id, arrival_time_ns, sub_requests, input_toks, output_toks, input_tok_ids } =
            from_json(line, SHAPE)?;
        let session = session_id.map(|name| match name {
            Name::Text(text) => text,
            Name::Number(number) => number.to_string(),
        });
        let start = arrival_time_ns.map(|nanos| Moment { nanos });
        if let Some(parts) = sub_requests {
            let session = session.map(|name| self.unlike_others(name));
            return parts_of(session, start, &parts, rows);
        }
        let (Some(input), Some(output)) = (input_toks, output_toks) else {
            let key = if input_toks.is_none() { "input_toks" } else { "output_toks" };
            return Err(Error::input(format!("\"{key}\" is missing")).hint(SHAPE));
        };
        let row = rows.push();
        row.start = start;
        fill(row, input, output, input_tok_ids.as_deref())
    }
}

/// The requests of a session, which is told apart from others by its name.
fn parts_of(session: Option<String>, start: Option<Moment>, parts: &[Part], rows: &mut Rows) -> Result<()> {
    let Some(name) = session else {
        return Err(Error::input("\"session_id\" is missing").hint(SHAPE));
    };
    if parts.is_empty() {
        return Err(Error::input("\"sub_requests\" is empty").hint("a session has at least one request"));
    }
    let mut pause = None;
    for part in parts {
        let row = rows.push();
        row.session = Some(name.clone());
        (row.start, row.pause) = (start.filter(|_| pause.is_none()), pause);
        fill(row, part.input_toks, part.output_toks, part.input_tok_ids.as_deref())?;
        pause = Some(Nanos(part.tool_duration_ns));
    }
    Ok(())
}

fn fill(row: &mut Row, input: u32, output: u32, tokens: Option<&[u32]>) -> Result<()> {
    (row.input_tokens, row.output_tokens) = (Some(input), Some(output));
    let tokens = tokens.unwrap_or_default();
    if !tokens.is_empty() && tokens.len() != input as usize {
        return Err(Error::input(format!("\"input_tok_ids\" has {} tokens", tokens.len()))
            .hint(format!("\"input_toks\" says {input}")));
    }
    block_ids(tokens, &mut row.ids);
    Ok(())
}

#[cfg(test)]
mod tests;
