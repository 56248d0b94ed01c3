//! Mooncake JSON lines: one request per line, its prompt named by block ids (FAST'25 release, with the
//! session, delay and priority keys that other tools add).

mod keys;
mod line;
mod plain;

use std::io::{self, Write};

use wavetank_model::{Error, Result};

use super::{Blocks, Entry, Findings, JsonLine, LineReader, Provides, Rows, WriteOptions, Writer};
use crate::row::Decimal;
use crate::{Output, Row, digits};

/// Tokens per id in the public traces.
pub(crate) const TOKENS_PER_ID: u32 = 512;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "mooncake",
    about: "JSON lines: timestamp, input_length, output_length, hash_ids; session_id and delay",
    provides: Provides {
        starts: true,
        sessions: true,
        pauses: true,
        blocks: Blocks::Of(TOKENS_PER_ID),
        ..Provides::LENGTHS
    },
    recognises: |head| {
        let is_row = ["hash_ids", "output_length", "output_tokens"].iter().any(|key| head.has(1, key));
        is_row && !OTHERS.iter().chain(&OF_GRAPHS).any(|key| head.has(1, key))
    },
    read: |inputs, options| {
        let tokens_per_id = options.tokens_per_id.unwrap_or(TOKENS_PER_ID);
        Ok(Box::new(LineReader::open(inputs, Mooncake::default(), Some(tokens_per_id))?))
    },
    write: Some(begin),
};

/// Keys of formats that share some with this one.
const OTHERS: [&str; 2] = ["chat_id", "sub_requests"];

/// Keys that only graphs have.
pub(super) const OF_GRAPHS: [&str; 4] = ["wait_for", "tool_wait_ms", "branches", "prefix_reset"];

#[derive(Default)]
struct Mooncake {
    /// Requests that name others they wait for.
    waiting: u64,
}

impl JsonLine for Mooncake {
    fn parse(&mut self, line: &[u8], rows: &mut Rows) -> Result<()> {
        let row = rows.push();
        parse(line, row)?;
        self.waiting += u64::from(!row.wait_for.is_empty());
        Ok(())
    }

    fn findings(&self) -> Findings {
        let requests = if self.waiting == 1 { "request" } else { "requests" };
        let why = "started without waiting: mooncake has no graphs, agentic_mooncake has";
        let notes =
            (self.waiting > 0).then(|| format!("{} {requests} with \"wait_for\" {why}", self.waiting));
        Findings { skipped: 0, notes: notes.into_iter().collect() }
    }
}

/// Which keys are more than unknown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Plain,
    /// Requests have names and wait for each other.
    Graph,
}

/// Reads one line into a row that is empty.
pub fn parse(line: &[u8], row: &mut Row) -> Result<()> {
    parse_dialect(line, row, Dialect::Plain)
}

/// The same with the keys of `dialect`.
pub(super) fn parse_dialect(line: &[u8], row: &mut Row, dialect: Dialect) -> Result<()> {
    if dialect == Dialect::Plain && plain::parse(line, row).is_some() {
        return Ok(());
    }
    row.clear();
    line::parse(line, row, dialect).map_err(|error| keys::diagnose(line, dialect, error))?;
    if row.ids.is_empty() {
        return Err(Error::input("\"hash_ids\" is empty").hint("a prompt has at least one block"));
    }
    Ok(())
}

fn begin<'w>(output: Output<'w>, _: &WriteOptions) -> io::Result<Box<dyn Writer + 'w>> {
    Ok(Box::new(Lines { output, line: Vec::new() }))
}

/// A trace being written.
struct Lines<'w> {
    output: Output<'w>,
    line: Vec<u8>,
}

impl Writer for Lines<'_> {
    fn write(&mut self, row: &Row) -> io::Result<()> {
        self.line.clear();
        push_line(row, &mut self.line)?;
        self.output.write_all(&self.line)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.output.finish()
    }
}

/// Writes one line.
pub fn write(row: &Row, out: &mut dyn Write) -> io::Result<()> {
    let mut line = Vec::with_capacity(64 + 8 * row.ids.len());
    push_line(row, &mut line)?;
    out.write_all(&line)
}

fn push_line(row: &Row, line: &mut Vec<u8>) -> io::Result<()> {
    members(row, &mut Keys { line, is_first: true })?;
    line.extend_from_slice(b"}\n");
    Ok(())
}

/// Writes the keys that all dialects have.
pub(super) fn members(row: &Row, key: &mut Keys<'_>) -> io::Result<()> {
    for (name, text) in [("request_id", &row.request), ("session_id", &row.session)] {
        if let Some(text) = text {
            serde_json::to_writer(key.begin(name), text)?;
        }
    }
    if let Some(start) = row.start {
        write!(key.begin("timestamp"), "{}", start.ms())?;
    }
    if let Some(pause) = row.pause {
        write!(key.begin("delay"), "{}", Decimal::ms(pause))?;
    }
    if let Some(tokens) = row.input_tokens {
        digits::push(key.begin("input_length"), tokens.into());
    }
    digits::push(key.begin("output_length"), row.output_tokens.unwrap_or(0).into());
    digits::push_list(key.begin("hash_ids"), &row.ids);
    if row.priority.soft != 0 {
        write!(key.begin("priority"), "{}", row.priority.soft)?;
    }
    if row.priority.strict != 0 {
        write!(key.begin("strict_priority"), "{}", row.priority.strict)?;
    }
    if let Some(class) = &row.policy_class {
        serde_json::to_writer(key.begin("policy_class"), class)?;
    }
    Ok(())
}

/// The members of a line.
pub(super) struct Keys<'a> {
    pub(super) line: &'a mut Vec<u8>,
    pub(super) is_first: bool,
}

impl Keys<'_> {
    /// Begins a member; its value follows.
    pub(super) fn begin(&mut self, key: &str) -> &mut Vec<u8> {
        self.line.extend_from_slice(if std::mem::take(&mut self.is_first) { b"{\"" } else { b",\"" });
        self.line.extend_from_slice(key.as_bytes());
        self.line.extend_from_slice(b"\":");
        self.line
    }
}

#[cfg(test)]
mod tests;
