//! Rows that give a time and two lengths, ordered by time: 24 bytes each. Contents are never shared.

use std::collections::HashMap;

use wavetank_model::{Error, Labels, Nanos, Opening, Priority, Prompt, Request, Result, SessionId, Workload};

use super::rows::LONGEST_SPAN_MS;
use super::{Options, Starts};

/// "No session", then "no further turn".
const NONE: u32 = u32::MAX;

/// A request of the trace.
struct Row {
    at_seconds: f64,
    input_tokens: u32,
    output_tokens: u32,
    /// While rows are read, the number of the name; then the session in the order of first turns.
    session: u32,
    /// While rows are read, the line; then the next turn of the session.
    link: u32,
}

/// What one row of a file says.
pub(crate) struct Arrival<'a> {
    pub(crate) at_seconds: f64,
    /// Not zero.
    pub(crate) input_tokens: u32,
    pub(crate) output_tokens: u32,
    /// The name of its session; without one it is a session of its own.
    pub(crate) session: Option<&'a str>,
    pub(crate) line: u64,
}

/// A workload held in memory.
pub(crate) struct Timed {
    starts: Starts,
    keep_names: bool,
    rows: Vec<Row>,
    /// Numbers of session names, while rows are read.
    numbers: HashMap<Box<str>, u32>,
    /// Names of sessions; empty when names are not kept.
    names: Vec<Box<str>>,
    /// The turn each session is at; empty when all have one.
    at: Vec<u32>,
    /// The row to look at next, and the sessions opened.
    next: usize,
    opened: u32,
}

impl Timed {
    /// Nothing yet.
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            starts: options.starts,
            keep_names: options.keep_names,
            rows: Vec::new(),
            numbers: HashMap::new(),
            names: Vec::new(),
            at: Vec::new(),
            next: 0,
            opened: 0,
        }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, arrival: Arrival<'_>) -> Result<()> {
        let first = self.rows.first().map_or(arrival.at_seconds, |row| row.at_seconds);
        let away_ms = (arrival.at_seconds - first).abs() * 1000.0 / self.starts.speedup();
        if !(0.0..=LONGEST_SPAN_MS).contains(&away_ms) {
            return Err(Error::input("more than a century away from the first row")
                .hint("times are seconds, and the rows of one trace belong together"));
        }
        if self.rows.len() as u64 >= u64::from(NONE) {
            return Err(Error::input("more than 2^32 rows").hint("replay a part of the trace"));
        }
        let session = match arrival.session {
            None => NONE,
            Some(name) => self.number(name),
        };
        let Arrival { at_seconds, input_tokens, output_tokens, .. } = arrival;
        let link = u32::try_from(arrival.line).unwrap_or(NONE);
        self.rows.push(Row { at_seconds, input_tokens, output_tokens, session, link });
        Ok(())
    }

    fn number(&mut self, name: &str) -> u32 {
        let next = self.numbers.len() as u32;
        match self.numbers.get(name) {
            Some(&number) => number,
            None => *self.numbers.entry(name.into()).or_insert(next),
        }
    }

    /// Orders the rows by time and makes those of one name the turns of one session.
    pub(crate) fn finish(&mut self) {
        self.rows.sort_by(|a, b| a.at_seconds.total_cmp(&b.at_seconds));
        let mut names: Vec<(Box<str>, u32)> = self.numbers.drain().collect();
        names.sort_unstable_by_key(|(_, number)| *number);
        let mut last_turns = vec![NONE; names.len()];
        let mut sessions = 0;
        for position in 0..self.rows.len() {
            let Row { session, link, .. } = self.rows[position];
            let last = last_turns.get(session as usize).copied().unwrap_or(NONE);
            if last == NONE {
                self.rows[position].session = sessions;
                sessions += 1;
                let own = || format!("request_{link}").into_boxed_str();
                let name = || names.get(session as usize).map_or_else(own, |(name, _)| name.clone());
                self.names.extend(self.keep_names.then(name));
            } else {
                self.rows[position].session = self.rows[last as usize].session;
                self.rows[last as usize].link = position as u32;
            }
            self.rows[position].link = NONE;
            if let Some(last) = last_turns.get_mut(session as usize) {
                *last = position as u32;
            }
        }
        if (sessions as usize) < self.rows.len() {
            self.at = vec![NONE; sessions as usize];
        }
    }

    /// How many rows follow another one of their session.
    pub(crate) fn follow_ups(&self) -> u64 {
        (self.rows.len() - self.rows.iter().map(|row| row.session as usize + 1).max().unwrap_or(0)) as u64
    }

    /// The earliest time, once finished.
    pub(crate) fn first_seconds(&self) -> Option<f64> {
        self.rows.first().map(|row| row.at_seconds)
    }

    /// The span from `earlier` to `later`, as the run has it.
    fn span(&self, earlier: f64, later: f64) -> Nanos {
        Nanos::from_seconds((later - earlier) / self.starts.speedup())
    }

    fn request(&self, position: usize, turn: u32) -> Request {
        let Row { at_seconds, input_tokens, output_tokens, session, link } = self.rows[position];
        Request {
            session: SessionId(session),
            turn,
            prompt: Prompt::unique(position as u64, input_tokens),
            output_tokens,
            priority: Priority::default(),
            think: self.rows.get(link as usize).map(|next| self.span(at_seconds, next.at_seconds)),
            labels: self.names.get(session as usize).map(|name| {
                let session = name.to_string();
                Box::new(Labels { session, request: None })
            }),
        }
    }
}

impl Workload for Timed {
    fn open(&mut self) -> Result<Option<Opening>> {
        // Sessions are numbered by their first turns: a smaller number here is a later turn.
        let later = self.rows[self.next..].iter().take_while(|row| row.session < self.opened).count();
        let position = self.next + later;
        self.next = (position + 1).min(self.rows.len());
        let Some(row) = self.rows.get(position) else { return Ok(None) };
        let scheduled = matches!(self.starts, Starts::Scheduled { .. });
        let at = match scheduled {
            true => self.span(self.rows[0].at_seconds, row.at_seconds),
            false => Nanos::ZERO,
        };
        self.opened += 1;
        if let Some(at) = self.at.get_mut(row.session as usize) {
            *at = position as u32;
        }
        Ok(Some(Opening { at, request: self.request(position, 0) }))
    }

    fn follow_up(&mut self, session: SessionId, turn: u32) -> Result<Request> {
        let at = &mut self.at[session.index()];
        *at = self.rows[*at as usize].link;
        let position = *at;
        assert_ne!(position, NONE, "session {} has no turn {turn}", session.0);
        Ok(self.request(position as usize, turn))
    }

    fn has_follow_ups(&self) -> bool {
        !self.at.is_empty()
    }

    fn requests(&self) -> u64 {
        self.rows.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_takes_24_bytes() {
        assert_eq!(size_of::<Row>(), 24);
    }
}
