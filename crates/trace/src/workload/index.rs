//! All rows in compact form: 32 bytes per request and 4 per block, besides names and priorities where the
//! trace gives them.

use std::collections::HashMap;
use std::sync::Arc;

use wavetank_model::{
    Dependencies, Error, Labels, Nanos, Opening, Priority, Prompt, Request, Result, SessionId, Workload,
};

use super::check::{Checked, Rows};
use super::graph::Graph;
use super::growth::{Gaps, seed};
use super::stream::unlike_others;
use super::{Options, Starts, Survey, no_rows, turn};
use crate::requests::Prompts;
use crate::{HashFill, Moment, Row};

/// "No further turn", or "no ids".
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
    tokens_per_id: u32,
    turns: Vec<Turn>,
    ids: Vec<u32>,
    /// The turn each session is at.
    at: Vec<u32>,
    /// Sessions in the order of their start.
    order: Vec<u32>,
    opened: usize,
    has_follow_ups: bool,
    dependencies: Option<Arc<Dependencies>>,
    growth: Option<Growth>,
    /// Empty when all are zero.
    priorities: Vec<Priority>,
    /// Empty when names are not kept.
    names: Vec<Labels>,
}

/// What a session has said, where a row tells only what a turn adds to it.
#[derive(Debug, Default)]
struct Growth {
    /// The first turn of each session.
    first: Vec<u32>,
    /// The prompt of the turn each session is at, were all answers given.
    tokens: Vec<u32>,
    gaps: Gaps,
}

impl Index {
    pub(super) fn load(mut rows: Rows) -> Result<(Self, Survey)> {
        let mut loader = Loader::of(&rows);
        while let Some(checked) = rows.next()? {
            let added = loader.add(checked);
            added.map_err(|error| error.at(rows.reader().place()))?;
            if let Some(graph) = &mut loader.graph {
                graph.note_place(rows.reader());
            }
        }
        if loader.index.turns.is_empty() {
            return Err(no_rows(&rows));
        }
        if let Some(turns) = loader.by_time.take() {
            loader.place_by_time(&turns)?;
        }
        let survey = Survey::of(&rows, loader.index.turns.len() as u64);
        loader.finish(survey)
    }

    /// The request of `turn`, the `number`-th of its session.
    fn request(&self, turn: u32, session: SessionId, number: u32) -> Request {
        let Turn { output_tokens, next, .. } = self.turns[turn as usize];
        let prompt = match &self.growth {
            None => self.prompt(turn, session),
            Some(Growth { first, tokens, gaps }) => {
                let first = self.prompt(first[session.index()], session).continued(seed(session, 0));
                gaps.prompt(session, first, tokens[session.index()])
            }
        };
        Request {
            session,
            turn: number,
            prompt,
            output_tokens,
            priority: self.priorities.get(turn as usize).copied().unwrap_or_default(),
            think: (next != NONE).then(|| self.turns[next as usize].time),
            labels: self.names.get(turn as usize).cloned().map(Box::new),
        }
    }

    /// What a row alone says of a prompt.
    fn prompt(&self, turn: u32, session: SessionId) -> Prompt {
        let Turn { first_id, input_tokens, .. } = self.turns[turn as usize];
        let per_id = self.tokens_per_id;
        match (first_id, self.options.fill.hash) {
            (NONE, HashFill::Session) => of_session(session, input_tokens),
            (NONE, HashFill::Unique | HashFill::None) => unlike_others(turn, input_tokens),
            (first, _) => {
                let ids = &self.ids[first as usize..][..input_tokens.div_ceil(per_id) as usize];
                Prompt::from_ids(ids.iter().map(|&id| u64::from(id)), input_tokens, per_id)
            }
        }
    }
}

/// Tokens that one id stands for in prompts whose ids are filled.
pub(super) const FILLED_PER_ID: u32 = 16;

/// A prompt that begins as all others of its session do: an id names a stretch of the session, of which a
/// prompt may hold only the beginning.
fn of_session(session: SessionId, tokens: u32) -> Prompt {
    let ids = (0..).map(|block: u64| 1 << 63 | u64::from(session.0) << 28 | block);
    Prompt::from_ids(ids, tokens, FILLED_PER_ID)
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
        let at = self.at[session.index()];
        if turn == 0 {
            return Ok(self.request(at, session, 0));
        }
        let Turn { next, output_tokens, .. } = self.turns[at as usize];
        assert_ne!(next, NONE, "session {} has no turn {turn}", session.0);
        self.at[session.index()] = next;
        if let Some(growth) = &mut self.growth {
            growth.tokens[session.index()] += output_tokens + self.turns[next as usize].input_tokens;
        }
        Ok(self.request(next, session, turn))
    }

    fn has_follow_ups(&self) -> bool {
        self.has_follow_ups
    }

    fn requests(&self) -> u64 {
        self.turns.len() as u64
    }

    fn dependencies(&self) -> Option<Arc<Dependencies>> {
        self.dependencies.clone()
    }

    fn rejected(&mut self, session: SessionId, _turn: u32) {
        if let Some(Growth { tokens, gaps, .. }) = &mut self.growth {
            let answer = self.turns[self.at[session.index()] as usize].output_tokens;
            gaps.note(session, tokens[session.index()], answer);
        }
    }
}

/// What is known of a session while its rows are read.
struct Session {
    last_turn: u32,
    last_start: Option<Moment>,
    /// Tokens of its rows, asked and answered.
    tokens: u64,
}

/// Builds the index row by row.
struct Loader {
    index: Index,
    sessions: Vec<Session>,
    by_name: HashMap<String, u32>,
    /// First turns' starts, by session.
    starts: Vec<Moment>,
    large_ids: HashMap<u64, u32>,
    /// Turns whose pause is the difference of two starts.
    inferred_pauses: u64,
    /// What every turn is of, where turns are found by time and not by the order of rows.
    by_time: Option<Vec<Timed>>,
    /// Who waits for whom, where rows say that.
    graph: Option<Graph>,
}

/// When a turn came, and the number of its session's name.
struct Timed {
    start: Moment,
    name: Option<u32>,
}

/// Ids from here on stand for ids too large to be held as they are.
const LARGE: u32 = 1 << 31;

impl Loader {
    fn of(rows: &Rows) -> Self {
        let index = Index {
            options: rows.options.clone(),
            tokens_per_id: rows.tokens_per_id(),
            turns: Vec::new(),
            ids: Vec::new(),
            at: Vec::new(),
            order: Vec::new(),
            opened: 0,
            has_follow_ups: false,
            dependencies: None,
            growth: (rows.provides.prompts == Prompts::Added).then(Growth::default),
            priorities: Vec::new(),
            names: Vec::new(),
        };
        let (sessions, starts, by_name) = (Vec::new(), Vec::new(), HashMap::new());
        // Tables are sorted by nothing in particular; traces that name pauses stand in the order of turns.
        let is_by_time = rows.provides.sessions && rows.provides.starts && !rows.provides.pauses;
        let by_time = is_by_time.then(Vec::new);
        let graph = rows.provides.dependencies.then(Graph::default);
        Self {
            index,
            sessions,
            by_name,
            starts,
            large_ids: HashMap::new(),
            inferred_pauses: 0,
            by_time,
            graph,
        }
    }

    fn add(&mut self, Checked { row, input_tokens, output_tokens, line }: Checked<'_>) -> Result<()> {
        let turn = self.index.turns.len() as u32;
        let time = self.place(turn, row)?;
        self.grow(turn, row, input_tokens.into(), output_tokens.into())?;
        let first_id = self.add_ids(row, input_tokens)?;
        self.note_priority(turn, row.priority);
        if self.index.options.keep_names {
            let session = row.session.clone().unwrap_or_else(|| format!("request_{line}"));
            self.index.names.push(Labels { session, request: row.request.clone() });
        }
        self.index.turns.push(Turn { time, first_id, input_tokens, output_tokens, next: NONE });
        Ok(())
    }

    /// Finds the session of a row; tells how long after the turn before it comes.
    fn place(&mut self, turn: u32, row: &Row) -> Result<Nanos> {
        if let Some(graph) = &mut self.graph {
            graph.add(row, self.index.options.starts)?;
            self.index.at.push(turn);
            return Ok(Nanos::ZERO);
        }
        let known = row.session.as_ref().and_then(|name| self.by_name.get(name)).copied();
        if let (Some(by_time), Some(start)) = (&mut self.by_time, row.start) {
            let next = self.by_name.len() as u32;
            let name = row.session.as_ref().map(|name| match known {
                Some(number) => number,
                None => *self.by_name.entry(name.clone()).or_insert(next),
            });
            by_time.push(Timed { start, name });
            return Ok(Nanos::ZERO);
        }
        match known {
            Some(session) => self.continue_session(session, turn, row),
            None => self.begin_session(turn, row),
        }
    }

    /// Where a row is what a turn adds, the session grows by it.
    fn grow(&mut self, turn: u32, row: &Row, asked: u64, answered: u64) -> Result<()> {
        let Some(growth) = &mut self.index.growth else { return Ok(()) };
        let named = row.session.as_ref().and_then(|name| self.by_name.get(name));
        let session = named.map_or(self.sessions.len() - 1, |session| *session as usize);
        if session == growth.first.len() {
            growth.first.push(turn);
            growth.tokens.push(asked as u32);
        }
        let said = &mut self.sessions[session].tokens;
        *said += asked + answered;
        if *said > u64::from(u32::MAX) {
            return Err(Error::input("what was said in its session is more than 2^32 tokens")
                .hint("each row of this format adds to all rows of its session before it"));
        }
        Ok(())
    }

    /// Makes rows of one name the turns of one session, in the order of their times.
    fn place_by_time(&mut self, turns: &[Timed]) -> Result<()> {
        let mut order: Vec<u32> = (0..turns.len() as u32).collect();
        order.sort_by_key(|&turn| turns[turn as usize].start);
        let mut sessions = vec![NONE; self.by_name.len()];
        for turn in order {
            let Timed { start, name } = turns[turn as usize];
            let row = Row { start: Some(start), ..Row::default() };
            let known = name.map(|name| sessions[name as usize]).filter(|session| *session != NONE);
            self.index.turns[turn as usize].time = match known {
                Some(session) => self.continue_session(session, turn, &row)?,
                None => self.begin_session(turn, &row)?,
            };
            if let (None, Some(name)) = (known, name) {
                sessions[name as usize] = self.sessions.len() as u32 - 1;
            }
        }
        Ok(())
    }

    /// Keeps the ids that cover the prompt; tells where they begin.
    fn add_ids(&mut self, row: &Row, input_tokens: u32) -> Result<u32> {
        if row.ids.is_empty() {
            return Ok(NONE);
        }
        let first = u32::try_from(self.index.ids.len()).ok().filter(|first| *first != NONE);
        let first = first.ok_or_else(too_large)?;
        let covering = input_tokens.div_ceil(self.index.tokens_per_id) as usize;
        for &id in &row.ids[..covering] {
            let id = self.compact(id)?;
            self.index.ids.push(id);
        }
        Ok(first)
    }

    /// The first row of a session; its time is set when the earliest start is known.
    fn begin_session(&mut self, turn: u32, row: &Row) -> Result<Nanos> {
        turn::check_first(row, self.index.options.starts)?;
        let session = self.sessions.len() as u32;
        self.sessions.push(Session { last_turn: turn, last_start: row.start, tokens: 0 });
        self.starts.push(row.start.unwrap_or_default());
        self.index.at.push(turn);
        if let Some(name) = &row.session {
            self.by_name.insert(name.clone(), session);
        }
        Ok(Nanos::ZERO)
    }

    /// A later row of a session: how long after the previous turn's end it comes.
    fn continue_session(&mut self, session: u32, turn: u32, row: &Row) -> Result<Nanos> {
        let state = &mut self.sessions[session as usize];
        let inferred = turn::inferred_pause(row, state.last_start)?;
        state.last_start = row.start.or(state.last_start);
        self.index.turns[state.last_turn as usize].next = turn;
        state.last_turn = turn;
        self.index.has_follow_ups = true;
        self.inferred_pauses += u64::from(row.pause.is_none() && row.start.is_some());
        Ok(self.index.options.starts.scaled(row.pause.unwrap_or(inferred)))
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

    fn finish(mut self, survey: Survey) -> Result<(Index, Survey)> {
        let (mut first_start, mut paused_roots) = (self.starts.iter().copied().min().unwrap_or_default(), 0);
        if let Some(graph) = self.graph {
            let (first, starts) = graph.starts();
            (first_start, paused_roots, self.starts) = (first, graph.paused_roots, starts.collect());
            self.index.dependencies = graph.dependencies()?.map(Arc::new);
            self.index.has_follow_ups = self.index.dependencies.is_some();
        }
        let Index { turns, at, order, options, dependencies, .. } = &mut self.index;
        let is_root =
            |session: &u32| dependencies.as_ref().is_none_or(|graph| graph.is_root(SessionId(*session)));
        *order = (0..at.len() as u32).filter(is_root).collect();
        if matches!(options.starts, Starts::Scheduled { .. }) {
            for (&turn, &start) in at.iter().zip(&self.starts) {
                turns[turn as usize].time = options.starts.at(start, first_start);
            }
            order.sort_by_key(|&session| turns[at[session as usize] as usize].time);
        }
        let inferred_pauses = self.inferred_pauses;
        Ok((self.index, Survey { first_start, inferred_pauses, paused_roots, ..survey }))
    }
}

fn too_large() -> Error {
    Error::input("the trace has more than 2^31 distinct blocks outside the range of small ids")
        .hint("sort it by time and drop session ids, so that it can be streamed")
}

#[cfg(test)]
mod tests;
