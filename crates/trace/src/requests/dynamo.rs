//! Dynamo's request trace `dynamo.request.trace.v1`, JSON lines, each an event or `{timestamp, event}`
//! (spec/replay.md 2.3). Requests without an agent's context come one by one; with it they are a graph: what
//! an agent asks next waits for what it asked before, those it started for it, and it for those.

mod event;
mod graph;

use std::collections::HashSet;

use wavetank_model::{Error, Result};
use xxhash_rust::xxh3::xxh3_128;

use super::{Blocks, Entry, Findings, Provides, ReadOptions, Reader};
use crate::reading::lines::Shards;
use crate::{Input, Moment, Row};
use event::Event;
use graph::Graph;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "dynamo",
    about: "JSON lines of dynamo.request.trace.v1: request_end with replay hashes, tools; agents as a graph",
    provides: Provides {
        starts: true,
        sessions: true,
        pauses: true,
        dependencies: true,
        blocks: Blocks::Told,
        ..Provides::LENGTHS
    },
    recognises: |head| head.has_anywhere("event_type") && head.contains("dynamo.request.trace."),
    read: |inputs, options| Ok(Box::new(Events::open(inputs, options)?)),
    write: None,
};

/// A request as its event tells it.
#[derive(Debug)]
struct Ended {
    row: Row,
    /// When its answer was complete.
    end: Moment,
    /// The session that its session works for.
    parent: Option<String>,
    place: Place,
}

/// Where an event stands.
#[derive(Clone, Debug, Default)]
struct Place {
    text: String,
    line: u64,
}

/// The files being read.
struct Events {
    shards: Shards,
    /// What the user says of ids.
    wanted: Option<u32>,
    block: Option<u32>,
    /// Whether requests have an agent's context; known from the first one on.
    has_context: Option<bool>,
    /// Names that were met, as hashes.
    names: HashSet<u128>,
    graph: Graph,
    /// The first request, read to know the size of blocks.
    ahead: Option<Result<Ended>>,
    at: Place,
    skipped: u64,
}

impl Events {
    fn open(inputs: &[Input], options: &ReadOptions) -> Result<Self> {
        let mut events = Self {
            shards: Shards::open(inputs)?,
            wanted: options.tokens_per_id,
            block: None,
            has_context: None,
            names: HashSet::new(),
            graph: Graph::default(),
            ahead: None,
            at: Place::default(),
            skipped: 0,
        };
        events.ahead = events.next().transpose();
        Ok(events)
    }

    /// The next request; tools on the way to it go into the graph.
    fn next(&mut self) -> Result<Option<Ended>> {
        loop {
            let Some(line) = self.shards.advance()? else { return Ok(None) };
            let event = event::parse(line);
            let taken = event.and_then(|event| self.take(event));
            match taken.map_err(|error| error.at(self.shards.place()))? {
                Some(ended) => return Ok(Some(ended)),
                None => continue,
            }
        }
    }

    /// Takes an event; tells the request that it ended.
    fn take(&mut self, event: Event) -> Result<Option<Ended>> {
        match event {
            Event::Skipped => {
                self.skipped += 1;
                Ok(None)
            }
            Event::Tool(tool) => {
                self.graph.add_tool(tool);
                Ok(None)
            }
            Event::Request { block, mut ended } => {
                self.check(block, &ended)?;
                self.graph.check_parent(&ended)?;
                ended.place = Place { text: self.shards.place(), line: self.shards.number() };
                Ok(Some(*ended))
            }
        }
    }

    /// What must be the same, or must not be, among all requests of a trace.
    fn check(&mut self, block: u32, ended: &Ended) -> Result<()> {
        let known = *self.block.get_or_insert(block);
        if known != block {
            return Err(Error::input(format!("\"trace_block_size\" is {block}, and was {known} before"))
                .hint("the blocks of one trace have one size"));
        }
        if let Some(wanted) = self.wanted.filter(|wanted| *wanted != block) {
            return Err(Error::usage(format!("\"trace_block_size\" is {block}, not {wanted} tokens"))
                .hint("leave --trace-block-size away: the file says it"));
        }
        let has_context = ended.row.session.is_some();
        if *self.has_context.get_or_insert(has_context) != has_context {
            let which = if has_context { "with" } else { "without" };
            return Err(Error::input(format!("a request {which} \"agent_context\", unlike those before"))
                .hint("all requests of a trace have it, or none: split the file"));
        }
        let name = ended.row.request.as_deref().unwrap_or_default();
        if !self.names.insert(xxh3_128(name.as_bytes())) {
            return Err(
                Error::input(format!("\"request_id\" is \"{name}\" again")).hint("every request has its own")
            );
        }
        Ok(())
    }
}

impl Reader for Events {
    fn read(&mut self, row: &mut Row) -> Result<bool> {
        while !self.graph.is_complete() {
            let next = match self.ahead.take() {
                Some(ahead) => Some(ahead?),
                None => self.next()?,
            };
            match next {
                Some(ended) if ended.row.session.is_some() => self.graph.add(ended),
                Some(Ended { row: found, place, .. }) => {
                    (*row, self.at) = (found, place);
                    return Ok(true);
                }
                None => self.graph.complete(),
            }
        }
        let Some(ended) = self.graph.take() else { return Ok(false) };
        (*row, self.at) = (ended.row, ended.place);
        Ok(true)
    }

    fn place(&self) -> String {
        self.at.text.clone()
    }

    fn line(&self) -> u64 {
        self.at.line
    }

    fn tokens_per_id(&self) -> Option<u32> {
        self.block
    }

    fn findings(&self) -> Findings {
        let events = |count: u64| if count == 1 { "event" } else { "events" };
        let note = |count: u64| format!("{count} {} skipped: payloads and starts of tools", events(count));
        Findings { skipped: 0, notes: (self.skipped > 0).then(|| note(self.skipped)).into_iter().collect() }
    }
}

#[cfg(test)]
mod tests;
