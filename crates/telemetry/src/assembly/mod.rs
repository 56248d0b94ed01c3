//! Events in, finished spans out; no clock and no I/O.
//!
//! A session is a root span with a child per operation. It opens with its first event and is held until its
//! end, or until nothing was heard of it for a while: then it is ended and says so. Children leave as they
//! end.

mod connection;
mod request;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use wavetank_model::{CacheEvent, CacheFact, Nanos, TraceParent};

use crate::ids::Ids;
use crate::sampling::{Sampling, is_sampled};
use crate::span::{Attribute, Parent, Scope, Span};
use connection::Connection;
use request::Request;

/// What spans are made by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AssemblyPlan {
    /// What is exported.
    pub sampling: Sampling,
    /// A session of which nothing is heard for so long is over.
    pub orphan_timeout: Duration,
    /// Sessions that may be open; one more ends the one that was silent for longest.
    pub max_sessions: usize,
    /// What ids follow from.
    pub seed: u64,
}

/// What became of sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// Those that are open.
    pub open: u64,
    /// Those that ended as they should.
    pub ended: u64,
    /// Those that ended because nothing was heard of them.
    pub orphaned: u64,
    /// Those that ended because there were too many.
    pub displaced: u64,
    /// Those that were open at the end of the server.
    pub cut_short: u64,
    /// Those of all that were not sampled.
    pub unsampled: u64,
    /// Events that belong to nothing that is open.
    pub strays: u64,
    /// Spans made.
    pub spans: u64,
}

/// A point in time. Clocks of the wall jump, so that silence is measured by another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Since 1970.
    pub wall: Nanos,
    /// Since whenever, and never back.
    pub elapsed: Nanos,
}

/// Makes spans of events.
pub struct Assembler {
    plan: AssemblyPlan,
    /// When it was last told the time.
    now: Moment,
    sessions: HashMap<Arc<str>, Session>,
    /// Every session once, and some that ended, by when it was last looked at.
    ages: BinaryHeap<Reverse<Age>>,
    /// Sessions ever.
    opened: u64,
    ids: Ids,
    finished: Vec<Span>,
    counts: SessionCounts,
}

struct Session {
    /// When something was last heard of it, by the clock that does not jump.
    heard: Nanos,
    /// The time of its last event.
    last: Nanos,
    /// Tells it from others of the same name.
    born: u64,
    kind: Kind,
}

/// When a session was last looked at.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Age {
    looked: Nanos,
    born: u64,
    name: Arc<str>,
}

/// Ages of ended sessions that are not worth looking for.
const SPARE_AGES: usize = 1024;

enum Kind {
    Request(Box<Request>),
    Connection(Box<Connection>),
}

/// Where a session's spans belong.
#[derive(Clone, Copy, Debug)]
struct Context {
    trace_id: [u8; 16],
    root_id: [u8; 8],
    parent: Option<Parent>,
    sampled: bool,
}

/// What a session needs to make spans.
struct Desk<'a> {
    session: &'a Arc<str>,
    now: Moment,
    ids: &'a mut Ids,
    finished: &'a mut Vec<Span>,
    counts: &'a mut SessionCounts,
    sampling: Sampling,
}

/// Why a session ends without an event that says so.
#[derive(Clone, Copy)]
enum Early {
    Orphaned,
    Displaced,
    CutShort,
}

/// The desk for one session, beside the sessions themselves.
macro_rules! desk {
    ($self:ident, $session:expr) => {
        Desk {
            session: $session,
            now: $self.now,
            ids: &mut $self.ids,
            finished: &mut $self.finished,
            counts: &mut $self.counts,
            sampling: $self.plan.sampling,
        }
    };
}

impl Assembler {
    /// Nothing is open.
    pub fn new(plan: AssemblyPlan) -> Self {
        Self {
            plan,
            now: Moment::default(),
            sessions: HashMap::new(),
            ages: BinaryHeap::new(),
            opened: 0,
            ids: Ids::seeded(plan.seed),
            finished: Vec::new(),
            counts: SessionCounts::default(),
        }
    }

    /// Takes note of one event.
    pub fn record(&mut self, event: CacheEvent) {
        let CacheEvent { at, session: name, fact } = event;
        if !self.sessions.contains_key(&name) {
            match opening(&fact) {
                Some(kind) => self.open(&name, kind),
                None => return self.counts.strays += 1,
            }
        }
        let session = self.sessions.get_mut(&name).expect("opened above");
        session.heard = self.now.elapsed;
        session.last = session.last.max(at);
        let mut desk = desk!(self, &name);
        let is_over = match &mut session.kind {
            Kind::Request(request) => request.record(at, fact, &mut desk),
            Kind::Connection(connection) => connection.record(at, fact, &mut desk),
        };
        if is_over {
            self.sessions.remove(&name);
            self.counts.ended += 1;
        }
    }

    /// It is `now`: ends what was not heard of for too long. What is recorded next happens about then.
    pub(crate) fn pass_time(&mut self, now: Moment) {
        self.now = now;
        let timeout = Nanos(u64::try_from(self.plan.orphan_timeout.as_nanos()).unwrap_or(u64::MAX));
        while self.ages.peek().is_some_and(|Reverse(age)| age.looked + timeout <= now.elapsed) {
            let Some(Reverse(mut age)) = self.ages.pop() else { return };
            let Some(session) = self.sessions.get_mut(&age.name).filter(|found| found.born == age.born)
            else {
                continue;
            };
            let mut desk = desk!(self, &age.name);
            let has_left = match &mut session.kind {
                Kind::Request(_) => false,
                Kind::Connection(connection) => connection.let_go(timeout, &mut desk),
            };
            if !has_left && session.heard + timeout <= now.elapsed {
                self.end_early(&age.name, Early::Orphaned);
                continue;
            }
            age.looked = if session.heard > age.looked { session.heard } else { now.elapsed };
            self.ages.push(Reverse(age));
        }
    }

    /// Ends all that is open: the server goes.
    pub(crate) fn end_all(&mut self, now: Moment) {
        self.now = now;
        while let Some(Reverse(age)) = self.ages.pop() {
            if self.sessions.get(&age.name).is_some_and(|session| session.born == age.born) {
                self.end_early(&age.name, Early::CutShort);
            }
        }
    }

    /// The spans that ended since the last call.
    pub fn finished(&mut self) -> std::vec::Drain<'_, Span> {
        self.counts.spans += self.finished.len() as u64;
        self.finished.drain(..)
    }

    /// What became of sessions so far.
    pub fn counts(&self) -> SessionCounts {
        SessionCounts { open: self.sessions.len() as u64, ..self.counts }
    }

    fn open(&mut self, name: &Arc<str>, kind: Kind) {
        self.make_room();
        let born = self.opened;
        self.opened += 1;
        let heard = self.now.elapsed;
        self.ages.push(Reverse(Age { looked: heard, born, name: Arc::clone(name) }));
        self.sessions.insert(Arc::clone(name), Session { heard, last: Nanos::ZERO, born, kind });
        // Sessions that ended leave their age behind; not more of them than are open.
        if self.ages.len() > 2 * self.sessions.len() + SPARE_AGES {
            let Self { ages, sessions, .. } = self;
            ages.retain(|Reverse(age)| sessions.get(&age.name).is_some_and(|found| found.born == age.born));
        }
    }

    fn make_room(&mut self) {
        while self.sessions.len() >= self.plan.max_sessions.max(1) {
            let Some(Reverse(mut age)) = self.ages.pop() else { return };
            match self.sessions.get(&age.name).filter(|session| session.born == age.born) {
                // Something was heard since: it is not the most silent.
                Some(session) if session.heard > age.looked => {
                    age.looked = session.heard;
                    self.ages.push(Reverse(age));
                }
                Some(_) => self.end_early(&age.name, Early::Displaced),
                None => {}
            }
        }
    }

    fn end_early(&mut self, name: &Arc<str>, why: Early) {
        let Some(session) = self.sessions.remove(name) else { return };
        let count = match why {
            Early::Orphaned => &mut self.counts.orphaned,
            Early::Displaced => &mut self.counts.displaced,
            Early::CutShort => &mut self.counts.cut_short,
        };
        *count += 1;
        let end = self.now.wall.max(session.last);
        let mut desk = desk!(self, name);
        match session.kind {
            Kind::Request(request) => request.end_early(end, &mut desk),
            Kind::Connection(connection) => connection.end_early(end, &mut desk),
        }
    }
}

/// The session that an event opens, if it can.
fn opening(fact: &CacheFact) -> Option<Kind> {
    match fact {
        CacheFact::RequestStarted { .. }
        | CacheFact::LookupStarted { .. }
        | CacheFact::TransferSubmitted { .. } => Some(Kind::Request(Box::default())),
        CacheFact::ConnectionOpened { .. } | CacheFact::CommandEnded { .. } => {
            Some(Kind::Connection(Box::default()))
        }
        CacheFact::RequestEnded
        | CacheFact::LookupEnded { .. }
        | CacheFact::TransferStarted { .. }
        | CacheFact::TransferEnded { .. }
        | CacheFact::ConnectionCounted { .. }
        | CacheFact::ConnectionClosed => None,
    }
}

impl Desk<'_> {
    /// A trace of its own, or a part of the caller's, which decides whether it is sampled.
    fn context(&mut self, parent: Option<TraceParent>, share: f64) -> Context {
        let root_id = self.ids.span();
        let context = match parent {
            Some(TraceParent { trace_id, span_id, sampled }) => {
                let parent = Some(Parent { span_id, is_remote: true });
                Context { trace_id, root_id, parent, sampled }
            }
            None => {
                let trace_id = self.ids.trace();
                Context { trace_id, root_id, parent: None, sampled: is_sampled(trace_id, share) }
            }
        };
        self.counts.unsampled += u64::from(!context.sampled);
        context
    }

    fn stray(&mut self) {
        self.counts.strays += 1;
    }

    fn finish(&mut self, context: &Context, span: Draft) {
        if !context.sampled {
            return;
        }
        let (span_id, parent) = match span.id {
            Some(id) => (id, Some(Parent { span_id: context.root_id, is_remote: false })),
            None => (context.root_id, context.parent),
        };
        let mut attributes = vec![("session_id", self.session.into())];
        attributes.extend(span.attributes);
        self.finished.push(Span {
            scope: span.scope,
            trace_id: context.trace_id,
            span_id,
            parent,
            name: span.name,
            start: span.start,
            // Clocks of two threads may differ by a little.
            end: span.end.max(span.start),
            attributes,
            failure: span.failure,
        });
    }
}

/// A span before it knows where it belongs.
struct Draft {
    scope: Scope,
    /// None for the root.
    id: Option<[u8; 8]>,
    name: std::borrow::Cow<'static, str>,
    start: Nanos,
    end: Nanos,
    attributes: Vec<Attribute>,
    failure: Option<Arc<str>>,
}

#[cfg(test)]
mod tests;
