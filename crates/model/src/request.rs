//! Requests, sessions, and the seam through which a workload reaches a simulation.

use std::sync::Arc;

use crate::{Dependencies, Nanos, Prompt, Result, SessionId};

/// One turn of a session, as the trace or the generator describes it.
#[derive(Clone, Debug)]
pub struct Request {
    /// The session this turn belongs to.
    pub session: SessionId,
    /// Position within the session, from 0.
    pub turn: u32,
    /// What is sent.
    pub prompt: Prompt,
    /// How many tokens are asked for; zero is legal.
    pub output_tokens: u32,
    /// How a router may order it.
    pub priority: Priority,
    /// Pause between the end of this turn and the next one of the session; `None` for the last turn.
    pub think: Option<Nanos>,
    /// Names from the trace, where it gives any.
    pub labels: Option<Box<Labels>>,
}

/// Priorities as the trace gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Priority {
    /// One point is worth a second of waiting.
    pub soft: i32,
    /// A higher tier always goes first.
    pub strict: u32,
}

/// Names of a request in its trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// `session_id` of the row, or `request_<line>`.
    pub session: String,
    /// `request_id` of the row.
    pub request: Option<String>,
}

/// The first turn of a session and when the trace starts it.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Start of the session, from the start of the simulation; zero when the trace gives no times.
    pub at: Nanos,
    /// Its first turn.
    pub request: Request,
}

/// Where requests come from: a trace or a generator.
///
/// The implementation guarantees that openings come in order of `at` (ties in session order) when the
/// schedule is followed, and in session order when it is not; and that a session's ids are its position.
pub trait Workload {
    /// The next session that waits for no other, `None` after the last.
    fn open(&mut self) -> Result<Option<Opening>>;

    /// Turn `turn` (1 or later) of a session that was opened, or the first turn (0) of one that waits for
    /// others. Turns are asked for in their order, each after the end of what it follows.
    fn follow_up(&mut self, session: SessionId, turn: u32) -> Result<Request>;

    /// Whether any session has more than one turn or waits for another, so that completions cause arrivals.
    fn has_follow_ups(&self) -> bool;

    /// How many requests there are in all, of whatever session.
    fn requests(&self) -> u64;

    /// Which sessions wait for which others; nothing where none does.
    fn dependencies(&self) -> Option<Arc<Dependencies>> {
        None
    }

    /// Takes note that a turn was given up: what follows it holds its prompt, but no answer to it.
    fn rejected(&mut self, _session: SessionId, _turn: u32) {}
}
