//! All rows in compact form: 32 bytes per request and 4 per block, besides names and priorities where the
//! trace gives them.

use std::collections::HashMap;

use wavetank_model::{Error, Labels, Nanos, Opening, Priority, Prompt, Request, Result, SessionId, Workload};

use super::rows::{Checked, Rows};
use super::{Options, Starts, Survey, no_rows};
use crate::requests::mooncake::Row;

/// "No further turn".
const NONE: u32 = u32::MAX;

/// A turn; its ids follow those of the row before it in the trace.
#[derive(Debug)]
struct Turn {
    /// Start of the session for its first turn, pause before the turn for the others.
    time: Nanos,
    first_id: u32,
    input_tokens: u32,
    output_tokens: u32,
    next: u32,
}

/// A workload held in memory.
#[derive(Debug)]
pub(super) struct Index {
    options: Options,
    turns: Vec<Turn>,
    ids: Vec<u32>,
    /// The turn each session is at.
    at: Vec<u32>,
    /// Sessions in the order of their start.
    order: Vec<u32>,
    opened: usize,
    has_follow_ups: bool,
    /// Empty when all are zero.
    priorities: Vec<Priority>,
    /// Empty when names are not kept.
    names: Vec<Labels>,
}

impl Index {
    pub(super) fn load(mut rows: Rows) -> Result<(Self, Survey)> {
        let mut loader = Loader::of(&rows.options);
        let name = rows.name().to_owned();
        while let Some(checked) = rows.next()? {
            let line = checked.line;
            loader.add(checked).map_err(|error| error.at(format!("{name}:{line}")))?;
        }
        if loader.index.turns.is_empty() {
            return Err(no_rows(&name));
        }
        Ok(loader.finish(rows.clamped))
    }

    /// The request of `turn`, the `number`-th of its session.
    fn request(&self, turn: u32, session: SessionId, number: u32) -> Request {
        let Turn { first_id, input_tokens, output_tokens, next, .. } = self.turns[turn as usize];
        let per_id = self.options.tokens_per_id;
        let ids = &self.ids[first_id as usize..][..input_tokens.div_ceil(per_id) as usize];
        Request {
            session,
            turn: number,
            prompt: Prompt::from_ids(ids.iter().map(|&id| u64::from(id)), input_tokens, per_id),
            output_tokens,
            priority: self.priorities.get(turn as usize).copied().unwrap_or_default(),
            think: (next != NONE).then(|| self.turns[next as usize].time),
            labels: self.names.get(turn as usize).cloned().map(Box::new),
        }
    }
}

impl Workload for Index {
    fn open(&mut self) -> Result<Option<Opening>> {
        let Some(&session) = self.order.get(self.opened) else { return Ok(None) };
        self.opened += 1;
        let turn = self.at[session as usize];
        let at = self.turns[turn as usize].time;
        Ok(Some(Opening { at, request: self.request(turn, SessionId(session), 0) }))
    }

    fn follow_up(&mut self, session: SessionId, turn: u32) -> Result<Request> {
        let next = self.turns[self.at[session.index()] as usize].next;
        assert_ne!(next, NONE, "session {} has no turn {turn}", session.0);
        self.at[session.index()] = next;
        Ok(self.request(next, session, turn))
    }

    fn has_follow_ups(&self) -> bool {
        self.has_follow_ups
    }

    fn requests(&self) -> u64 {
        self.turns.len() as u64
    }
}

/// What is known of a session while its rows are read.
struct Session {
    last_turn: u32,
    last_timestamp: Option<f64>,
}

/// Builds the index row by row.
struct Loader {
    index: Index,
    sessions: Vec<Session>,
    by_name: HashMap<String, u32>,
    /// First turns' timestamps, by session.
    starts: Vec<f64>,
    large_ids: HashMap<u64, u32>,
}

/// Ids from here on stand for ids too large to be held as they are.
const LARGE: u32 = 1 << 31;

impl Loader {
    fn of(options: &Options) -> Self {
        let index = Index {
            options: options.clone(),
            turns: Vec::new(),
            ids: Vec::new(),
            at: Vec::new(),
            order: Vec::new(),
            opened: 0,
            has_follow_ups: false,
            priorities: Vec::new(),
            names: Vec::new(),
        };
        let (sessions, starts) = (Vec::new(), Vec::new());
        Self { index, sessions, by_name: HashMap::new(), starts, large_ids: HashMap::new() }
    }

    fn add(&mut self, Checked { row, input_tokens, line }: Checked<'_>) -> Result<()> {
        let turn = self.index.turns.len() as u32;
        let known = row.session_id.as_ref().and_then(|name| self.by_name.get(name.as_ref())).copied();
        let time = match known {
            Some(session) => self.continue_session(session, turn, &row)?,
            None => self.begin_session(turn, &row)?,
        };
        let first_id = u32::try_from(self.index.ids.len()).map_err(|_| too_large())?;
        let covering = input_tokens.div_ceil(self.index.options.tokens_per_id) as usize;
        for &id in &row.hash_ids[..covering] {
            let id = self.compact(id)?;
            self.index.ids.push(id);
        }
        self.note_priority(turn, Priority { soft: row.priority, strict: row.strict_priority });
        if self.index.options.keep_names {
            let session = row.session_id.map_or_else(|| format!("request_{line}"), |name| name.into_owned());
            self.index.names.push(Labels { session, request: row.request_id.map(|name| name.into_owned()) });
        }
        let output_tokens = row.output_length;
        self.index.turns.push(Turn { time, first_id, input_tokens, output_tokens, next: NONE });
        Ok(())
    }

    /// The first row of a session; its time is set when the earliest start is known.
    fn begin_session(&mut self, turn: u32, row: &Row<'_>) -> Result<Nanos> {
        if row.delay.is_some_and(|delay| delay != 0.0) {
            return Err(Error::input("\"delay\" on the first turn of a session")
                .hint("the first turn starts at its timestamp; delays come after a turn's end"));
        }
        let scheduled = matches!(self.index.options.starts, Starts::Scheduled { .. });
        if scheduled && row.timestamp.is_none() {
            return Err(Error::input("\"timestamp\" is missing")
                .hint("a session starts at its first turn's timestamp; --replay-concurrency does without"));
        }
        let session = self.sessions.len() as u32;
        self.sessions.push(Session { last_turn: turn, last_timestamp: row.timestamp });
        self.starts.push(row.timestamp.unwrap_or(0.0));
        self.index.at.push(turn);
        if let Some(name) = &row.session_id {
            self.by_name.insert(name.clone().into_owned(), session);
        }
        Ok(Nanos::ZERO)
    }

    /// A later row of a session: how long after the previous turn's end it comes.
    fn continue_session(&mut self, session: u32, turn: u32, row: &Row<'_>) -> Result<Nanos> {
        let state = &mut self.sessions[session as usize];
        let inferred = match (row.timestamp, state.last_timestamp) {
            (None, _) => 0.0,
            (Some(now), Some(before)) if now < before => {
                return Err(Error::input(format!("\"timestamp\" goes back from {before} to {now}"))
                    .hint("the turns of a session stand in the order of their times"));
            }
            (Some(now), Some(before)) => now - before,
            (Some(_), None) if row.delay.is_some() => 0.0,
            (Some(_), None) => {
                return Err(Error::input("\"timestamp\" on a later turn, but no earlier turn has one")
                    .hint("give the first turn a timestamp, or this one a delay"));
            }
        };
        state.last_timestamp = row.timestamp.or(state.last_timestamp);
        self.index.turns[state.last_turn as usize].next = turn;
        state.last_turn = turn;
        self.index.has_follow_ups = true;
        Ok(Nanos::from_ms(row.delay.unwrap_or(inferred) / self.index.options.starts.speedup()))
    }

    fn compact(&mut self, id: u64) -> Result<u32> {
        if id < u64::from(LARGE) {
            return Ok(id as u32);
        }
        let next = LARGE.checked_add(self.large_ids.len() as u32).ok_or_else(too_large)?;
        Ok(*self.large_ids.entry(id).or_insert(next))
    }

    fn note_priority(&mut self, turn: u32, priority: Priority) {
        let priorities = &mut self.index.priorities;
        if priority != Priority::default() || !priorities.is_empty() {
            priorities.resize(turn as usize, Priority::default());
            priorities.push(priority);
        }
    }

    fn finish(mut self, clamped: u64) -> (Index, Survey) {
        let first_start_ms = self.starts.iter().copied().fold(f64::INFINITY, f64::min);
        let Index { turns, at, order, options, .. } = &mut self.index;
        *order = (0..at.len() as u32).collect();
        if let Starts::Scheduled { speedup } = options.starts {
            for (&turn, start) in at.iter().zip(&self.starts) {
                turns[turn as usize].time = Nanos::from_ms((start - first_start_ms) / speedup);
            }
            order.sort_by_key(|&session| turns[at[session as usize] as usize].time);
        }
        let requests = turns.len() as u64;
        (self.index, Survey { requests, clamped, first_start_ms, ..Survey::default() })
    }
}

fn too_large() -> Error {
    Error::input("the trace has more than 2^31 distinct blocks outside the range of small ids")
        .hint("sort it by time and drop session ids, so that it can be streamed")
}

#[cfg(test)]
mod tests;
