//! Agentic Mooncake JSON lines: Mooncake's rows, each with a name and the names of those it waits for
//! (spec/replay.md 2.3). What a request led to, whether its prompt begins anew and what tools did are kept,
//! and have no effect on a replay.

use std::io::{self, Write};

use serde_json::to_writer;
use wavetank_model::{Error, Result};

use super::mooncake::{Dialect, Keys, OF_GRAPHS, TOKENS_PER_ID, members, parse_dialect};
use super::{Blocks, Entry, JsonLine, LineReader, Provides, Rows, WriteOptions, Writer};
use crate::row::{AgentNotes, Decimal};
use crate::{Output, Row};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "agentic_mooncake",
    about: "JSON lines: mooncake's keys, request_id, wait_for, tool_wait_ms; a graph of requests",
    provides: Provides {
        starts: true,
        sessions: true,
        pauses: true,
        dependencies: true,
        blocks: Blocks::Of(TOKENS_PER_ID),
        ..Provides::LENGTHS
    },
    recognises: |head| head.has(1, "hash_ids") && OF_GRAPHS.iter().any(|key| head.has(1, key)),
    read: |inputs, options| {
        let tokens_per_id = options.tokens_per_id.unwrap_or(TOKENS_PER_ID);
        Ok(Box::new(LineReader::open(inputs, AgenticMooncake, Some(tokens_per_id))?))
    },
    write: Some(begin),
};

struct AgenticMooncake;

impl JsonLine for AgenticMooncake {
    fn parse(&mut self, line: &[u8], rows: &mut Rows) -> Result<()> {
        parse(line, rows.push())
    }
}

fn parse(line: &[u8], row: &mut Row) -> Result<()> {
    parse_dialect(line, row, Dialect::Graph)?;
    if row.request.as_ref().is_some_and(|name| name.trim().is_empty()) {
        return Err(Error::input("\"request_id\" is blank").hint("others wait for a request by its name"));
    }
    Ok(())
}

fn begin<'w>(output: Output<'w>, _: &WriteOptions) -> io::Result<Box<dyn Writer + 'w>> {
    Ok(Box::new(Lines { output, written: 0 }))
}

/// A trace being written.
struct Lines<'w> {
    output: Output<'w>,
    written: u64,
}

impl Writer for Lines<'_> {
    /// A request without a name gets that of its line.
    fn write(&mut self, row: &Row) -> io::Result<()> {
        self.written += 1;
        match row.request {
            Some(_) => write(row, &mut self.output),
            None => {
                let name = format!("request_{}", self.written);
                write(&Row { request: Some(name), ..row.clone() }, &mut self.output)
            }
        }
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.output.finish()
    }
}

fn write(row: &Row, out: &mut dyn Write) -> io::Result<()> {
    let mut line = Vec::with_capacity(128 + 8 * row.ids.len());
    let mut key = Keys { line: &mut line, is_first: true };
    members(row, &mut key)?;
    if let Some(kind) = &row.kind {
        to_writer(key.begin("request_kind"), kind)?;
    }
    if !row.wait_for.is_empty() {
        to_writer(key.begin("wait_for"), &row.wait_for)?;
    }
    if let Some(wait) = row.tool_wait {
        write!(key.begin("tool_wait_ms"), "{}", Decimal::ms(wait))?;
    }
    if let Some(AgentNotes { branches, prefix_reset, tool_events }) = row.agent.as_deref() {
        if !branches.is_empty() {
            to_writer(key.begin("branches"), branches)?;
        }
        if let Some(reset) = prefix_reset {
            write!(key.begin("prefix_reset"), "{reset}")?;
        }
        if let Some(events) = tool_events {
            key.begin("tool_events").extend_from_slice(events.as_bytes());
        }
    }
    line.extend_from_slice(b"}\n");
    out.write_all(&line)
}

#[cfg(test)]
mod tests;
