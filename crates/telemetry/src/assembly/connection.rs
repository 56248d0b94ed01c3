//! A connection of a Redis client: a root with a child per command that was sampled.
//!
//! Connections stay open for days. Their commands leave as they end; a root that is as old as the orphan
//! timeout leaves too, says that it goes on, and the next command begins another in a trace of its own.

use std::borrow::Cow;
use std::sync::Arc;

use wavetank_model::{CacheFact, Nanos};

use super::request::ORPHANED;
use super::{Context, Desk, Draft};
use crate::span::{Attribute, Scope, Value};

/// What is open of a connection.
#[derive(Default)]
pub(super) struct Connection {
    peer: Option<Arc<str>>,
    root: Option<Root>,
    /// Roots that have left.
    parts: u32,
    /// What the client did in all, as told before its end.
    told: Vec<Attribute>,
}

struct Root {
    context: Context,
    start: Nanos,
    /// The same by the clock that does not jump.
    opened: Nanos,
    commands: u64,
    failed: u64,
}

/// A command that was answered.
struct Answered {
    command: &'static str,
    started: Nanos,
    at: Nanos,
    attributes: Vec<Attribute>,
    failed: bool,
}

impl Connection {
    /// Takes note of `fact`; says whether the connection is over.
    pub(super) fn record(&mut self, at: Nanos, fact: CacheFact, desk: &mut Desk<'_>) -> bool {
        match fact {
            CacheFact::ConnectionOpened { peer } => {
                self.peer = Some(peer);
                self.root(at, desk);
            }
            CacheFact::CommandEnded { command, started, keys, hits, bytes, failed } => {
                let attributes = vec![("keys", keys.into()), ("hits", hits.into()), ("bytes", bytes.into())];
                self.answered(Answered { command, started, at, attributes, failed }, desk);
            }
            CacheFact::ConnectionCounted { commands, keys, hits, bytes, failed } => {
                self.told = vec![
                    ("commands", commands.into()),
                    ("keys", keys.into()),
                    ("hits", hits.into()),
                    ("bytes", bytes.into()),
                    ("failed_commands", failed.into()),
                ];
            }
            CacheFact::ConnectionClosed => {
                self.leave(at, &[], desk);
                return true;
            }
            _ => desk.stray(),
        }
        false
    }

    /// Lets a root go that is older than `limit`; says whether there was one.
    pub(super) fn let_go(&mut self, limit: Nanos, desk: &mut Desk<'_>) -> bool {
        let is_aged = self.root.as_ref().is_some_and(|root| root.opened + limit <= desk.now.elapsed);
        if is_aged {
            self.leave(desk.now.wall, &[("continued", Value::Bool(true))], desk);
        }
        is_aged
    }

    /// Ends it: nothing was heard of it.
    pub(super) fn end_early(mut self, now: Nanos, desk: &mut Desk<'_>) {
        self.leave(now, &[ORPHANED], desk);
    }

    fn root(&mut self, at: Nanos, desk: &mut Desk<'_>) -> &mut Root {
        self.root.get_or_insert_with(|| {
            let context = desk.context(None, desk.sampling.connections);
            Root { context, start: at, opened: desk.now.elapsed, commands: 0, failed: 0 }
        })
    }

    fn answered(&mut self, answered: Answered, desk: &mut Desk<'_>) {
        let Answered { command, started, at, attributes, failed } = answered;
        let root = self.root(started.min(at), desk);
        root.commands += 1;
        root.failed += u64::from(failed);
        let context = root.context;
        let draft = Draft {
            scope: Scope::Resp,
            id: Some(desk.ids.span()),
            name: span_name(command),
            start: started,
            end: at,
            attributes,
            failure: failed.then(|| "the answer was an error".into()),
        };
        desk.finish(&context, draft);
    }

    fn leave(&mut self, end: Nanos, more: &[Attribute], desk: &mut Desk<'_>) {
        let Some(root) = self.root.take() else { return };
        let peer = self.peer.as_ref().map(|peer| ("peer", peer.into()));
        let mut attributes: Vec<Attribute> = peer.into_iter().collect();
        attributes.extend([
            ("part", self.parts.into()),
            ("sampled_commands", root.commands.into()),
            ("sampled_failures", root.failed.into()),
        ]);
        attributes.append(&mut self.told);
        attributes.extend_from_slice(more);
        self.parts += 1;
        let (scope, name, start) = (Scope::Resp, "resp.connection".into(), root.start);
        desk.finish(&root.context, Draft { scope, id: None, name, start, end, attributes, failure: None });
    }
}

/// `resp.get` for `GET`; common ones without a copy.
fn span_name(command: &'static str) -> Cow<'static, str> {
    match command {
        "GET" => "resp.get".into(),
        "SET" => "resp.set".into(),
        "MGET" => "resp.mget".into(),
        "MSET" => "resp.mset".into(),
        "EXISTS" => "resp.exists".into(),
        "DEL" => "resp.del".into(),
        "GETRANGE" => "resp.getrange".into(),
        "STRLEN" => "resp.strlen".into(),
        _ => format!("resp.{}", command.to_ascii_lowercase()).into(),
    }
}
