//! A part of a trace: whole sessions, chosen by when they begin, by their place in the file, or by chance.

use std::collections::HashMap;
use std::ops::Range;

use rand::RngExt;
use wavetank_model::{Draw, Error, Result, seeded};

use super::around::Around;
use crate::convert::key;
use crate::requests::Reader;
use crate::{Moment, Row};

/// Which sessions are kept; a request of no session is one of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Those that begin in this range of seconds from the first request.
    pub seconds: Range<f64>,
    /// Those whose first request has one of these numbers, from 0.
    pub requests: Range<u64>,
    /// So many, the first ones that are otherwise chosen.
    pub sessions: u64,
    /// This part of them, drawn.
    pub sample: f64,
    /// The seed of the draw.
    pub seed: u64,
}

impl Default for Choice {
    /// Everything.
    fn default() -> Self {
        Self {
            seconds: f64::NEG_INFINITY..f64::INFINITY,
            requests: 0..u64::MAX,
            sessions: u64::MAX,
            sample: 1.0,
            seed: 42,
        }
    }
}

impl Choice {
    fn is_by_time(&self) -> bool {
        self.seconds != Self::default().seconds
    }
}

/// What was kept and what was cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Requests that are kept.
    pub kept: u64,
    /// Requests that are not.
    pub cut: u64,
    /// Sessions that are kept.
    pub kept_sessions: u64,
    /// Sessions that are not.
    pub cut_sessions: u64,
    /// Requests that are kept and no longer wait for some that are not.
    pub released: u64,
}

/// A part of a trace being read.
pub struct Slice {
    reader: Box<dyn Reader>,
    choice: Choice,
    draw: Draw,
    origin: Option<Moment>,
    /// Whether names of requests matter, because others wait for them.
    has_dependencies: bool,
    /// What was decided about sessions, and about requests that others wait for.
    sessions: HashMap<u128, bool>,
    named: HashMap<u128, bool>,
    read: u64,
    cut: Cut,
}

impl Slice {
    /// What `choice` keeps of `reader`; with dependencies, a request goes with those it waits for.
    pub fn of(reader: Box<dyn Reader>, choice: Choice, has_dependencies: bool) -> Self {
        let draw = seeded(choice.seed, "sample of sessions");
        let (sessions, named) = (HashMap::new(), HashMap::new());
        let (origin, read, cut) = (None, 0, Cut::default());
        Self { reader, choice, draw, origin, has_dependencies, sessions, named, read, cut }
    }

    /// What was kept so far.
    pub fn cut(&self) -> Cut {
        self.cut
    }

    /// Whether `row` is kept.
    fn keeps(&mut self, row: &Row) -> Result<bool> {
        let session = row.session.as_deref().map(key);
        let own = row.request.as_deref().filter(|_| self.has_dependencies).map(key);
        let by_session = session.and_then(|session| self.sessions.get(&session));
        let by_name = own.and_then(|own| self.named.get(&own));
        let by_others = || row.wait_for.iter().find_map(|name| self.named.get(&key(name)));
        let known = by_session.or(by_name).or_else(by_others).copied();
        let is_kept = match known {
            Some(is_kept) => is_kept,
            None => {
                let is_kept = self.chooses(row)?;
                self.cut.kept_sessions += u64::from(is_kept);
                self.cut.cut_sessions += u64::from(!is_kept);
                is_kept
            }
        };
        if let Some(session) = session {
            self.sessions.entry(session).or_insert(is_kept);
        }
        if let Some(own) = own {
            self.named.insert(own, is_kept);
            // What it waits for may come later in the file, and then goes with it.
            for name in &row.wait_for {
                self.named.entry(key(name)).or_insert(is_kept);
            }
        }
        Ok(is_kept)
    }

    /// Whether a session that begins with `row`, the one read last, is kept.
    fn chooses(&mut self, row: &Row) -> Result<bool> {
        let is_drawn = self.choice.sample >= 1.0 || self.draw.random::<f64>() < self.choice.sample;
        let is_there = self.choice.requests.contains(&(self.read - 1));
        let is_early = self.cut.kept_sessions < self.choice.sessions;
        Ok(self.is_in_time(row)? && is_drawn && is_there && is_early)
    }

    fn is_in_time(&self, row: &Row) -> Result<bool> {
        if !self.choice.is_by_time() {
            return Ok(true);
        }
        let Some((start, origin)) = row.start.zip(self.origin) else {
            return Err(Error::input("it has no time")
                .at(self.reader.place())
                .hint("--from and --to need times; --requests, --sessions and --sample do not"));
        };
        let seconds = (start.nanos as i128 - origin.nanos as i128) as f64 / 1e9;
        Ok(self.choice.seconds.contains(&seconds))
    }
}

impl Around for Slice {
    fn advance(&mut self, row: &mut Row) -> Result<bool> {
        while self.reader.read(row)? {
            self.read += 1;
            self.origin = self.origin.or(row.start);
            if self.keeps(row)? {
                let waits = row.wait_for.len();
                row.wait_for.retain(|name| self.named.get(&key(name)) != Some(&false));
                self.cut.released += u64::from(row.wait_for.len() < waits);
                self.cut.kept += 1;
                return Ok(true);
            }
            self.cut.cut += 1;
        }
        Ok(false)
    }

    fn inner(&self) -> &dyn Reader {
        self.reader.as_ref()
    }

    fn note(&self, notes: &mut Vec<String>) {
        let Cut { kept, cut, kept_sessions, cut_sessions, released } = self.cut;
        let (all, sessions) = (kept + cut, kept_sessions + cut_sessions);
        notes.push(format!("kept {kept} of {all} requests: {kept_sessions} of {sessions} whole sessions"));
        if released > 0 {
            notes.push(format!("{released} requests no longer wait for requests that were cut"));
        }
    }
}
