//! Simulated requests as the spans a server would export, in virtual time.

use std::io::{self, Write};

use wavetank_model::Nanos;

use super::life::{Fate, Kind, Life, Load, Phase};
use crate::ids::Ids;
use crate::json;
use crate::resource::Resource;
use crate::span::{Attribute, Parent, Scope, Span, Value, rate};

/// The start of every simulation, 2020-01-01: viewers take 1970 for a time that is missing.
pub(super) const EPOCH: Nanos = Nanos(1_577_836_800_000_000_000);
/// Spans of a line.
const LINE: usize = 512;

/// Writes spans as JSON lines.
pub(super) struct Spans<W> {
    out: W,
    seed: u64,
    resource: Resource,
    waiting: Vec<Span>,
}

impl<W: Write> Spans<W> {
    pub(super) fn new(out: W, seed: u64) -> Self {
        Self { out, seed, resource: Resource::fixed(), waiting: Vec::with_capacity(LINE) }
    }

    pub(super) fn take(&mut self, life: &Life) -> io::Result<()> {
        let mut ids = Ids::of(self.seed, u64::from(life.id.0));
        let (trace_id, root_id) = (ids.trace(), ids.span());
        let mut add = |span_id, name, (start, end): (Nanos, Nanos), attributes| {
            let parent = (span_id != root_id).then_some(Parent { span_id: root_id, is_remote: false });
            let (start, end) = (EPOCH + start, EPOCH + end);
            let span = Span {
                scope: Scope::Replay,
                trace_id,
                span_id,
                parent,
                name,
                start,
                end,
                attributes,
                failure: None,
            };
            self.waiting.push(span);
        };
        add(root_id, "request".into(), (life.arrival, life.end), root_attributes(life));
        if let Some(admission) = life.admission {
            let times = (admission.at, admission.at);
            let mut attributes = hits(admission.reused_tokens, life.prompt_tokens);
            attributes.push(("worker", admission.worker.0.into()));
            add(ids.span(), "mp.lookup_prefetch".into(), times, attributes);
        }
        for phase in &life.phases {
            add(ids.span(), phase.kind.name().into(), (phase.start, phase.end), phase_attributes(phase));
        }
        for load in &life.loads {
            add(ids.span(), "load".into(), (load.asked, load.at), load_attributes(load));
        }
        if let Fate::Rejected(reason) = life.fate {
            let root = self.waiting.iter_mut().rev().find(|span| span.span_id == root_id);
            root.expect("added above").failure = Some(reason.name().into());
        }
        if self.waiting.len() >= LINE { self.flush() } else { Ok(()) }
    }

    pub(super) fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        Ok(self.out)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty() {
            json::write_line(&mut self.out, &self.resource, &self.waiting)?;
            self.waiting.clear();
        }
        Ok(())
    }
}

/// A request that no worker admitted looked nothing up, and says nothing of hits.
fn root_attributes(life: &Life) -> Vec<Attribute> {
    let mut attributes = vec![
        ("session_id", Value::Text(life.session.as_str().into())),
        ("request", life.id.0.into()),
        ("turn", life.turn.into()),
    ];
    if let Some(admission) = life.admission {
        attributes.extend(hits(admission.reused_tokens, life.prompt_tokens));
    }
    attributes
        .extend([("output_tokens", life.output_tokens.into()), ("preemptions", life.preemptions.into())]);
    attributes.extend(life.first_token.map(|first| ("ttft_ns", first.since(life.arrival).0.into())));
    match life.fate {
        Fate::Completed | Fate::Rejected(_) => {}
        Fate::Cancelled => attributes.push(("cancelled", Value::Bool(true))),
        Fate::Unfinished => attributes.push(("unfinished", Value::Bool(true))),
    }
    attributes
}

fn hits(reused: u32, prompt: u32) -> Vec<Attribute> {
    vec![
        ("hit_tokens", reused.into()),
        ("requested_tokens", prompt.into()),
        ("hit_rate", rate(reused.into(), prompt.into())),
    ]
}

fn load_attributes(load: &Load) -> Vec<Attribute> {
    vec![
        ("worker", load.worker.0.into()),
        ("loaded_tokens", load.tokens.into()),
        ("tier_tokens", Value::Text(load.by_tier.as_str().into())),
    ]
}

fn phase_attributes(phase: &Phase) -> Vec<Attribute> {
    let mut attributes: Vec<Attribute> =
        phase.worker.map(|worker| ("worker", worker.0.into())).into_iter().collect();
    match phase.kind {
        Kind::Queue => {}
        Kind::Prefill => attributes.push(("computed_tokens", phase.tokens.into())),
        Kind::Decode => attributes.push(("output_tokens", phase.tokens.into())),
        Kind::Handoff { to, times } => attributes.extend([
            ("to_worker", to.0.into()),
            ("room_ns", times.sent_at.since(times.held_at).0.into()),
            ("transfer_ns", times.received_at.since(times.sent_at).0.into()),
        ]),
    }
    attributes
}
