//! A request of a serving engine: lookups and transfers under one root (spec/storage-trace.md 4).

use std::sync::Arc;

use wavetank_model::{CacheFact, FetchPolicy, LookupOutcome, Nanos, TraceParent, TransferWay};

use super::{Context, Desk, Draft};
use crate::span::{Attribute, Scope, Value, rate};

/// What is open of a request.
#[derive(Default)]
pub(super) struct Request {
    /// Set with its first event.
    context: Option<Context>,
    start: Nanos,
    /// Whether its start was told, not only implied.
    is_told: bool,
    is_blend: bool,
    /// When it ended, but for transfers under way.
    ended: Option<Nanos>,
    /// What the lookup found that began last of those that ended, and its place among all.
    found: (u64, Vec<Attribute>),
    /// Lookups that began.
    looked: u64,
    lookups: Vec<Lookup>,
    transfers: Vec<Transfer>,
    /// Whether a child has left, so that nothing about the trace can change.
    has_left: bool,
}

struct Lookup {
    number: u64,
    /// How many began before it, and itself.
    place: u64,
    id: [u8; 8],
    start: Nanos,
}

struct Transfer {
    number: u64,
    id: [u8; 8],
    way: TransferWay,
    device: Arc<str>,
    submitted: Nanos,
    begun: Option<Begun>,
}

struct Begun {
    at: Nanos,
    engine_id: u64,
    model_name: Arc<str>,
    cache_salt: Arc<str>,
}

/// How a transfer ended.
struct Moved {
    at: Nanos,
    count: u64,
    total_bytes: u64,
    num_tokens: u64,
    failure: Option<Arc<str>>,
}

impl Request {
    /// Takes note of `fact`; says whether the request is over.
    pub(super) fn record(&mut self, at: Nanos, fact: CacheFact, desk: &mut Desk<'_>) -> bool {
        if let CacheFact::RequestStarted { policy, parent } = fact {
            self.start(at, policy, parent, desk);
            return false;
        }
        let context = self.context(at, desk);
        match fact {
            CacheFact::RequestEnded => self.ended = Some(at),
            CacheFact::LookupStarted { lookup } => {
                self.looked += 1;
                let (id, place) = (desk.ids.span(), self.looked);
                self.lookups.push(Lookup { number: lookup, place, id, start: at });
            }
            CacheFact::LookupEnded { lookup, outcome } => {
                match self.lookups.iter().position(|open| open.number == lookup) {
                    Some(open) => self.looked_up(at, (open, &outcome), &context, desk),
                    None => desk.stray(),
                }
            }
            CacheFact::TransferSubmitted { way, transfer, device } => {
                let id = desk.ids.span();
                self.transfers.push(Transfer {
                    number: transfer,
                    id,
                    way,
                    device,
                    submitted: at,
                    begun: None,
                });
            }
            CacheFact::TransferStarted { transfer, engine_id, model_name, cache_salt } => {
                match self.transfers.iter_mut().find(|open| open.number == transfer) {
                    Some(open) => open.begun = Some(Begun { at, engine_id, model_name, cache_salt }),
                    None => desk.stray(),
                }
            }
            CacheFact::TransferEnded { transfer, count, total_bytes, num_tokens, failure } => {
                let moved = Moved { at, count, total_bytes, num_tokens, failure };
                match self.transfers.iter().position(|open| open.number == transfer) {
                    Some(place) => {
                        let open = self.transfers.swap_remove(place);
                        self.moved(open, moved, &context, desk);
                    }
                    None => desk.stray(),
                }
            }
            _ => desk.stray(),
        }
        self.is_over(at, &context, desk)
    }

    /// Ends it and all that is open of it.
    pub(super) fn end_early(mut self, now: Nanos, desk: &mut Desk<'_>) {
        let context = self.context(now, desk);
        self.abandon_lookups(now, &context, desk);
        for open in std::mem::take(&mut self.transfers) {
            let mut draft = self.transfer_draft(&open, now, desk);
            draft.attributes.push(ORPHANED);
            desk.finish(&context, draft);
        }
        let mut root = self.root(now);
        root.attributes.push(ORPHANED);
        desk.finish(&context, root);
    }

    /// The first event opens the root, whatever it is. What the start says holds if nothing has left yet.
    fn start(&mut self, at: Nanos, policy: FetchPolicy, parent: Option<TraceParent>, desk: &mut Desk<'_>) {
        let is_first = self.context.is_none();
        if is_first || (!self.is_told && !self.has_left) {
            if parent.is_some() || is_first {
                self.context = Some(desk.context(parent, desk.sampling.requests));
            }
            self.is_blend = policy == FetchPolicy::Full;
        }
        if is_first {
            self.start = at;
        }
        self.is_told = true;
        // The same name begins again while transfers of before are under way: one request.
        self.ended = None;
    }

    fn context(&mut self, at: Nanos, desk: &mut Desk<'_>) -> Context {
        match self.context {
            Some(context) => context,
            None => {
                self.start = at;
                *self.context.insert(desk.context(None, desk.sampling.requests))
            }
        }
    }

    fn looked_up(
        &mut self,
        at: Nanos,
        (open, outcome): (usize, &LookupOutcome),
        context: &Context,
        desk: &mut Desk<'_>,
    ) {
        let lookup = self.lookups.remove(open);
        let mut draft = self.lookup_draft(&lookup, at);
        draft.attributes = lookup_attributes(outcome);
        desk.finish(context, draft);
        self.has_left = true;
        // One that began earlier and ended later is not what the request goes by.
        if lookup.place > self.found.0 {
            self.found = (lookup.place, hit_attributes(outcome));
        }
    }

    fn moved(&mut self, open: Transfer, moved: Moved, context: &Context, desk: &mut Desk<'_>) {
        let mut draft = self.transfer_draft(&open, moved.at, desk);
        let count = match open.way {
            TransferWay::Store => "stored_count",
            TransferWay::Retrieve => "retrieved_count",
        };
        draft.attributes.extend([
            (count, moved.count.into()),
            ("total_bytes", moved.total_bytes.into()),
            ("num_tokens", moved.num_tokens.into()),
        ]);
        draft.failure = moved.failure;
        desk.finish(context, draft);
        self.has_left = true;
    }

    /// A request is over when it was said to be and nothing is under way; the last end is its end.
    fn is_over(&mut self, at: Nanos, context: &Context, desk: &mut Desk<'_>) -> bool {
        let Some(ended) = self.ended else { return false };
        if !self.transfers.is_empty() {
            return false;
        }
        let end = ended.max(at);
        self.abandon_lookups(end, context, desk);
        desk.finish(context, self.root(end));
        true
    }

    /// A lookup whose request is over will not end.
    fn abandon_lookups(&mut self, now: Nanos, context: &Context, desk: &mut Desk<'_>) {
        for lookup in std::mem::take(&mut self.lookups) {
            let mut draft = self.lookup_draft(&lookup, now);
            draft.attributes.push(ORPHANED);
            desk.finish(context, draft);
        }
    }

    fn root(&mut self, end: Nanos) -> Draft {
        let (scope, name) = match self.is_blend {
            true => (Scope::Blend, "cb.request"),
            false => (Scope::Server, "request"),
        };
        let attributes = std::mem::take(&mut self.found.1);
        Draft { scope, id: None, name: name.into(), start: self.start, end, attributes, failure: None }
    }

    fn lookup_draft(&self, lookup: &Lookup, end: Nanos) -> Draft {
        let (scope, name) = match self.is_blend {
            true => (Scope::Blend, "cb.lookup"),
            false => (Scope::Server, "mp.lookup_prefetch"),
        };
        let (id, start, attributes) = (Some(lookup.id), lookup.start, Vec::new());
        Draft { scope, id, name: name.into(), start, end, attributes, failure: None }
    }

    fn transfer_draft(&self, open: &Transfer, end: Nanos, desk: &Desk<'_>) -> Draft {
        let (scope, name) = match (open.way, self.is_blend) {
            (TransferWay::Store, _) => (Scope::Server, "mp.store"),
            (TransferWay::Retrieve, false) => (Scope::Server, "mp.retrieve"),
            (TransferWay::Retrieve, true) => (Scope::Blend, "cb.retrieve"),
        };
        let key: Arc<str> = format!("{}#{}", desk.session, open.number).into();
        let mut attributes = vec![("device", (&open.device).into()), ("transfer_key", Value::Text(key))];
        if let Some(begun) = &open.begun {
            attributes.extend([
                ("engine_id", begun.engine_id.into()),
                ("model_name", (&begun.model_name).into()),
                ("cache_salt", (&begun.cache_salt).into()),
                ("queued_ns", begun.at.since(open.submitted).0.into()),
            ]);
        }
        let start = open.begun.as_ref().map_or(open.submitted, |begun| begun.at);
        Draft { scope, id: Some(open.id), name: name.into(), start, end, attributes, failure: None }
    }
}

/// Says of a span that its end was not seen.
pub(super) const ORPHANED: Attribute = ("orphaned", Value::Bool(true));

fn lookup_attributes(outcome: &LookupOutcome) -> Vec<Attribute> {
    let mut attributes = vec![
        ("found_count", outcome.found_count.into()),
        ("requested_tokens", outcome.requested_tokens.into()),
        ("hit_tokens", outcome.hit_tokens.into()),
        ("l1_hit_tokens", outcome.l1_hit_tokens.into()),
        ("l2_hit_tokens", outcome.l2_hit_tokens.into()),
        ("l1_hit_keys", outcome.l1_hit_keys.into()),
        ("l2_hit_keys", outcome.l2_hit_keys.into()),
        ("early_exit_reason", Value::Name(outcome.early_exit_reason)),
        ("model_name", (&outcome.model_name).into()),
        ("cache_salt", (&outcome.cache_salt).into()),
    ];
    if let Some(blend) = outcome.blend {
        attributes.extend([
            ("prefix_hits", blend.prefix_hits.into()),
            ("prefix_hit_tokens", blend.prefix_hit_tokens.into()),
            ("segmented_prefix_hit_tokens", blend.segmented_prefix_hit_tokens.into()),
            ("non_prefix_hit_tokens", blend.non_prefix_hit_tokens.into()),
        ]);
    }
    attributes
}

/// What the root says of the last lookup. Rates are there because trace viewers cannot divide.
fn hit_attributes(outcome: &LookupOutcome) -> Vec<Attribute> {
    let asked = outcome.requested_tokens;
    let mut attributes = vec![
        ("hit_tokens", outcome.hit_tokens.into()),
        ("requested_tokens", asked.into()),
        ("hit_rate", rate(outcome.hit_tokens, asked)),
        ("l1_hit_tokens", outcome.l1_hit_tokens.into()),
        ("l2_hit_tokens", outcome.l2_hit_tokens.into()),
        ("l1_hit_rate", rate(outcome.l1_hit_tokens, asked)),
        ("l2_hit_rate", rate(outcome.l2_hit_tokens, asked)),
        ("l1_hit_keys", outcome.l1_hit_keys.into()),
        ("l2_hit_keys", outcome.l2_hit_keys.into()),
        ("early_exit_reason", Value::Name(outcome.early_exit_reason)),
    ];
    if let Some(blend) = outcome.blend {
        let rated = [
            ("prefix_hit_tokens", "prefix_hit_rate", blend.prefix_hit_tokens),
            ("segmented_prefix_hit_tokens", "segmented_prefix_hit_rate", blend.segmented_prefix_hit_tokens),
            ("non_prefix_hit_tokens", "non_prefix_hit_rate", blend.non_prefix_hit_tokens),
        ];
        attributes.push(("prefix_hits", blend.prefix_hits.into()));
        attributes.extend(
            rated
                .into_iter()
                .flat_map(|(tokens, share, hit)| [(tokens, hit.into()), (share, rate(hit, asked))]),
        );
    }
    attributes
}
