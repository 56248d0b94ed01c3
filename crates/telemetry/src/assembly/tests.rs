//! Sessions as spans: scripts of events in, spans out.

use wavetank_model::{BlendHits, FetchPolicy, LookupOutcome, TransferWay};

use super::*;
use crate::span::Value;

const SECOND: u64 = 1_000_000_000;

fn plan() -> AssemblyPlan {
    let sampling = Sampling { requests: 1.0, connections: 1.0, commands: 1.0 };
    AssemblyPlan { sampling, orphan_timeout: Duration::from_secs(600), max_sessions: 100, seed: 1 }
}

/// Both clocks agree.
fn moment(at: u64) -> Moment {
    Moment { wall: Nanos(at), elapsed: Nanos(at) }
}

/// An assembler and what it gave.
struct Bench {
    assembler: Assembler,
    spans: Vec<Span>,
}

impl Bench {
    fn new(plan: AssemblyPlan) -> Self {
        Self { assembler: Assembler::new(plan), spans: Vec::new() }
    }

    fn tell(&mut self, session: &str, at: u64, fact: CacheFact) -> &mut Self {
        self.assembler.pass_time(moment(at));
        self.assembler.record(CacheEvent { at: Nanos(at), session: session.into(), fact });
        self.spans.extend(self.assembler.finished());
        self
    }

    fn wait(&mut self, until: u64) -> &mut Self {
        self.assembler.pass_time(moment(until));
        self.spans.extend(self.assembler.finished());
        self
    }

    fn end(&mut self, now: u64) -> &mut Self {
        self.assembler.end_all(moment(now));
        self.spans.extend(self.assembler.finished());
        self
    }

    /// Name, start and end of every span, in the order they came.
    fn times(&self) -> Vec<(&str, u64, u64)> {
        self.spans.iter().map(|span| (&*span.name, span.start.0, span.end.0)).collect()
    }

    fn named(&self, name: &str) -> &Span {
        let mut found = self.spans.iter().filter(|span| span.name == name);
        let span = found.next().unwrap_or_else(|| panic!("{name} in {:?}", self.times()));
        assert!(found.next().is_none(), "{name} once");
        span
    }
}

impl Span {
    fn value(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    fn int(&self, name: &str) -> i64 {
        match self.value(name) {
            Some(Value::Int(number)) => *number,
            other => panic!("{name} is {other:?}"),
        }
    }

    fn double(&self, name: &str) -> f64 {
        match self.value(name) {
            Some(Value::Double(number)) => *number,
            other => panic!("{name} is {other:?}"),
        }
    }

    fn text(&self, name: &str) -> &str {
        match self.value(name) {
            Some(Value::Text(text)) => text,
            Some(Value::Name(text)) => text,
            other => panic!("{name} is {other:?}"),
        }
    }
}

fn started(policy: FetchPolicy, parent: Option<TraceParent>) -> CacheFact {
    CacheFact::RequestStarted { policy, parent }
}

fn submitted(way: TransferWay, transfer: u64) -> CacheFact {
    CacheFact::TransferSubmitted { way, transfer, device: "cuda:0".into() }
}

fn begun(transfer: u64) -> CacheFact {
    CacheFact::TransferStarted { transfer, engine_id: 7, model_name: "m".into(), cache_salt: "tenant".into() }
}

fn moved(transfer: u64) -> CacheFact {
    CacheFact::TransferEnded { transfer, count: 2, total_bytes: 262_144, num_tokens: 512, failure: None }
}

const LOOKED: CacheFact = CacheFact::LookupStarted { lookup: 0 };

fn found(hit: u64, asked: u64) -> CacheFact {
    found_by(0, hit, asked)
}

fn found_by(lookup: u64, hit: u64, asked: u64) -> CacheFact {
    let outcome = Box::new(LookupOutcome {
        found_count: hit / 256,
        requested_tokens: asked,
        hit_tokens: hit,
        l1_hit_tokens: hit / 2,
        l2_hit_tokens: hit - hit / 2,
        l1_hit_keys: 3,
        l2_hit_keys: 4,
        model_name: "m".into(),
        ..Default::default()
    });
    CacheFact::LookupEnded { lookup, outcome }
}

fn command(started: u64) -> CacheFact {
    let started = Nanos(started);
    CacheFact::CommandEnded { command: "GET", started, keys: 2, hits: 1, bytes: 4096, failed: false }
}

fn whole_request(bench: &mut Bench, name: &str, parent: Option<TraceParent>) {
    bench
        .tell(name, 10, started(FetchPolicy::Prefix, parent))
        .tell(name, 11, LOOKED)
        .tell(name, 20, found(512, 1024))
        .tell(name, 21, submitted(TransferWay::Retrieve, 0))
        .tell(name, 25, begun(0))
        .tell(name, 30, moved(0))
        .tell(name, 31, submitted(TransferWay::Store, 1))
        .tell(name, 32, begun(1))
        .tell(name, 40, moved(1))
        .tell(name, 50, CacheFact::RequestEnded);
}

/// Broken by: a name, a parent, a time, a type or a value that is not the specification's (4).
#[test]
fn a_request_is_a_root_with_a_child_per_operation() {
    let mut bench = Bench::new(plan());
    whole_request(&mut bench, "r", None);
    let expected =
        [("mp.lookup_prefetch", 11, 20), ("mp.retrieve", 25, 30), ("mp.store", 32, 40), ("request", 10, 50)];
    assert_eq!(bench.times(), expected);
    let root = bench.named("request");
    assert_eq!(root.parent, None);
    for child in &bench.spans[..3] {
        assert_eq!(child.parent, Some(Parent { span_id: root.span_id, is_remote: false }));
        assert_eq!(child.trace_id, root.trace_id);
        assert_eq!((child.text("session_id"), child.scope), ("r", Scope::Server));
    }
    assert_eq!((root.int("hit_tokens"), root.int("requested_tokens")), (512, 1024));
    assert_eq!(root.double("hit_rate"), 0.5);
    assert_eq!((root.int("l1_hit_tokens"), root.double("l1_hit_rate")), (256, 0.25));
    assert_eq!((root.int("l2_hit_tokens"), root.double("l2_hit_rate")), (256, 0.25));
    assert_eq!((root.int("l1_hit_keys"), root.int("l2_hit_keys")), (3, 4));
    assert_eq!(root.text("early_exit_reason"), "");
    let lookup = bench.named("mp.lookup_prefetch");
    assert_eq!((lookup.int("found_count"), lookup.text("model_name")), (2, "m"));
    let (retrieve, store) = (bench.named("mp.retrieve"), bench.named("mp.store"));
    assert_eq!((retrieve.int("retrieved_count"), store.int("stored_count")), (2, 2));
    assert_eq!((retrieve.text("transfer_key"), store.text("transfer_key")), ("r#0", "r#1"));
    assert_eq!((store.text("device"), store.int("engine_id")), ("cuda:0", 7));
    assert_eq!((store.int("total_bytes"), store.int("num_tokens")), (262_144, 512));
    assert_eq!((store.text("cache_salt"), retrieve.int("queued_ns")), ("tenant", 4));
    let counts = bench.assembler.counts();
    assert_eq!((counts.open, counts.ended, counts.strays, counts.spans), (0, 1, 0, 4));
}

/// Broken by: naming blend as the rest, or leaving out where its hits lie.
#[test]
fn blend_has_its_own_names() {
    let mut bench = Bench::new(plan());
    let blend = BlendHits {
        prefix_hits: 1,
        prefix_hit_tokens: 256,
        segmented_prefix_hit_tokens: 0,
        non_prefix_hit_tokens: 512,
    };
    let outcome = LookupOutcome {
        found_count: 3,
        requested_tokens: 1024,
        hit_tokens: 768,
        blend: Some(blend),
        ..Default::default()
    };
    bench
        .tell("b", 1, started(FetchPolicy::Full, None))
        .tell("b", 2, LOOKED)
        .tell("b", 3, CacheFact::LookupEnded { lookup: 0, outcome: Box::new(outcome) })
        .tell("b", 4, submitted(TransferWay::Retrieve, 5))
        .tell("b", 5, begun(5))
        .tell("b", 6, moved(5))
        .tell("b", 7, submitted(TransferWay::Store, 6))
        .tell("b", 8, moved(6))
        .tell("b", 9, CacheFact::RequestEnded);
    let expected = [("cb.lookup", 2, 3), ("cb.retrieve", 5, 6), ("mp.store", 7, 8), ("cb.request", 1, 9)];
    assert_eq!(bench.times(), expected);
    let scopes = bench.spans.iter().map(|span| span.scope).collect::<Vec<_>>();
    assert_eq!(scopes, [Scope::Blend, Scope::Blend, Scope::Server, Scope::Blend]);
    let root = bench.named("cb.request");
    assert_eq!((root.double("hit_rate"), root.int("prefix_hits")), (0.75, 1));
    assert_eq!((root.int("prefix_hit_tokens"), root.double("prefix_hit_rate")), (256, 0.25));
    assert_eq!(root.double("segmented_prefix_hit_rate"), 0.0);
    assert_eq!((root.int("non_prefix_hit_tokens"), root.double("non_prefix_hit_rate")), (512, 0.5));
    assert_eq!(bench.named("cb.lookup").int("non_prefix_hit_tokens"), 512);
    assert_eq!(bench.named("mp.store").value("engine_id"), None, "it never began");
}

/// Broken by: one open span per kind, as the reference has it: its session "overlap" loses one of two; the
/// end of a lookup that is taken for another's; or a root that goes by the lookup that ended last.
#[test]
fn concurrent_operations_are_spans_of_their_own() {
    let mut bench = Bench::new(plan());
    bench
        .tell("o", 1, started(FetchPolicy::Prefix, None))
        .tell("o", 2, CacheFact::LookupStarted { lookup: 5 })
        .tell("o", 3, CacheFact::LookupStarted { lookup: 6 })
        .tell("o", 4, submitted(TransferWay::Store, 7))
        .tell("o", 4, submitted(TransferWay::Store, 8))
        .tell("o", 5, begun(8))
        .tell("o", 6, begun(7))
        .tell("o", 7, moved(7))
        .tell("o", 8, found_by(6, 256, 256))
        .tell("o", 9, found_by(5, 0, 512))
        .tell("o", 10, moved(8))
        .tell("o", 11, CacheFact::RequestEnded);
    let (lookup, store) = ("mp.lookup_prefetch", "mp.store");
    let expected = [(store, 6, 7), (lookup, 3, 8), (lookup, 2, 9), (store, 5, 10), ("request", 1, 11)];
    assert_eq!(bench.times(), expected);
    let keys: Vec<&str> = [0, 3].map(|place: usize| bench.spans[place].text("transfer_key")).into();
    assert_eq!(keys, ["o#7", "o#8"]);
    let asked: Vec<i64> = [1, 2].map(|place: usize| bench.spans[place].int("requested_tokens")).into();
    assert_eq!(asked, [256, 512], "each has what it found");
    assert_eq!(bench.named("request").double("hit_rate"), 1.0, "that of the lookup that began last");
}

/// Broken by: dividing by zero, or by closing with the request while a transfer moves.
#[test]
fn a_request_ends_with_its_last_transfer() {
    let mut bench = Bench::new(plan());
    bench
        .tell("d", 1, LOOKED)
        .tell("d", 2, found(0, 0))
        .tell("d", 3, submitted(TransferWay::Store, 1))
        .tell("d", 3, submitted(TransferWay::Store, 2))
        .tell("d", 4, CacheFact::RequestEnded)
        .tell("d", 9, moved(2));
    assert_eq!(bench.assembler.counts().open, 1);
    bench.tell("d", 12, moved(1));
    let root = bench.named("request");
    assert_eq!((root.start.0, root.end.0), (1, 12), "opened by its first event, closed by its last");
    assert_eq!(root.double("hit_rate"), 0.0);
    assert_eq!(bench.assembler.counts().open, 0);
}

/// Broken by: putting rates on requests that looked nothing up.
#[test]
fn a_request_that_only_stores_says_nothing_of_hits() {
    let mut bench = Bench::new(plan());
    bench.tell("s", 5, submitted(TransferWay::Store, 1)).tell("s", 6, begun(1)).tell("s", 7, moved(1)).tell(
        "s",
        8,
        CacheFact::RequestEnded,
    );
    assert_eq!(bench.times(), [("mp.store", 6, 7), ("request", 5, 8)]);
    let names: Vec<&str> = bench.named("request").attributes.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["session_id"]);
}

#[test]
fn what_failed_says_why() {
    let mut bench = Bench::new(plan());
    let failure = Some("no room".into());
    let failed = CacheFact::TransferEnded { transfer: 1, count: 0, total_bytes: 0, num_tokens: 0, failure };
    bench.tell("f", 1, submitted(TransferWay::Store, 1)).tell("f", 2, failed).tell(
        "f",
        3,
        CacheFact::RequestEnded,
    );
    assert_eq!(bench.named("mp.store").failure.as_deref(), Some("no room"));
    assert_eq!(bench.named("request").failure, None, "the request did not");
}

/// Broken by: ids of our own, a parent's decision that is not kept, or flags that hide where the parent is.
#[test]
fn a_caller_s_trace_goes_on() {
    let parent = TraceParent { trace_id: [7; 16], span_id: [8; 8], sampled: true };
    let mut none = plan();
    none.sampling.requests = 0.0;
    let mut bench = Bench::new(none);
    whole_request(&mut bench, "p", Some(parent));
    assert!(
        bench.spans.iter().all(|span| span.trace_id == [7; 16]),
        "in the caller's trace, though no other is"
    );
    let root = bench.named("request");
    assert_eq!(root.parent, Some(Parent { span_id: [8; 8], is_remote: true }));
    assert_eq!((root.flags(), bench.named("mp.store").flags()), (0x301, 0x101));
    let mut bench = Bench::new(plan());
    whole_request(&mut bench, "p", Some(TraceParent { sampled: false, ..parent }));
    assert_eq!(bench.times(), [], "the caller is not sampled");
    assert_eq!(bench.assembler.counts().unsampled, 1);
}

/// A lookup that came before the request's start does not cost the caller's trace.
#[test]
fn a_start_that_comes_late_still_says_whose_it_is() {
    let parent = TraceParent { trace_id: [7; 16], span_id: [8; 8], sampled: true };
    let mut bench = Bench::new(plan());
    bench
        .tell("l", 1, LOOKED)
        .tell("l", 2, started(FetchPolicy::Full, Some(parent)))
        .tell("l", 3, found(1, 1))
        .tell("l", 4, CacheFact::RequestEnded);
    assert_eq!(bench.times(), [("cb.lookup", 1, 3), ("cb.request", 1, 4)]);
    assert!(bench.spans.iter().all(|span| span.trace_id == [7; 16]));
}

/// Broken by: sampling children apart from their root.
#[test]
fn a_share_of_requests_is_exported_whole() {
    let mut half = plan();
    half.sampling.requests = 0.5;
    let mut bench = Bench::new(half);
    for number in 0..400 {
        whole_request(&mut bench, &format!("r{number}"), None);
    }
    let roots = bench.spans.iter().filter(|span| span.name == "request").count();
    assert!((150..250).contains(&roots), "{roots}");
    assert_eq!(bench.spans.len(), roots * 4);
    assert_eq!(bench.assembler.counts().unsampled, 400 - roots as u64);
}

/// Broken by: leaving open what is silent, ending what is not, or not saying so.
#[test]
fn what_nothing_is_heard_of_is_ended() {
    let mut bench = Bench::new(plan());
    bench
        .tell("gone", 1, LOOKED)
        .tell("gone", 2, submitted(TransferWay::Store, 3))
        .tell("busy", 3, LOOKED)
        .tell("busy", 500 * SECOND, submitted(TransferWay::Store, 4))
        .wait(600 * SECOND);
    assert_eq!(bench.times(), []);
    let now = 601 * SECOND;
    bench.wait(now);
    let expected = [("mp.lookup_prefetch", 1, now), ("mp.store", 2, now), ("request", 1, now)];
    assert_eq!(bench.times(), expected);
    assert!(bench.spans.iter().all(|span| span.value("orphaned") == Some(&Value::Bool(true))));
    bench.tell("gone", now + 1, moved(3));
    let counts = bench.assembler.counts();
    assert_eq!((counts.orphaned, counts.open, counts.strays), (1, 1, 1));
    bench.wait(1100 * SECOND);
    assert_eq!(bench.assembler.counts().orphaned, 2);
}

/// Broken by: measuring silence by a clock that is set forward.
#[test]
fn a_clock_that_jumps_ends_nothing() {
    let mut bench = Bench::new(plan());
    bench.tell("x", 1, LOOKED);
    bench.assembler.pass_time(Moment { wall: Nanos(9000 * SECOND), elapsed: Nanos(2) });
    assert_eq!(bench.assembler.counts().open, 1);
    bench.assembler.pass_time(Moment { wall: Nanos(0), elapsed: Nanos(601 * SECOND) });
    assert_eq!(bench.assembler.counts().orphaned, 1);
    bench.spans.extend(bench.assembler.finished());
    assert_eq!(bench.times(), [("mp.lookup_prefetch", 1, 1), ("request", 1, 1)], "not before its last event");
}

/// Broken by: growing without bound, or by displacing who was heard last.
#[test]
fn no_more_sessions_are_open_than_may_be() {
    let mut bench = Bench::new(AssemblyPlan { max_sessions: 3, ..plan() });
    for (at, name) in [(1, "a"), (2, "b"), (3, "c"), (4, "a"), (5, "d"), (6, "e")] {
        bench.tell(name, at, LOOKED);
    }
    let displaced: Vec<&str> = bench
        .spans
        .iter()
        .filter(|span| span.name == "request")
        .map(|span| span.text("session_id"))
        .collect();
    assert_eq!(displaced, ["b", "c"]);
    let counts = bench.assembler.counts();
    assert_eq!((counts.displaced, counts.open), (2, 3));
    bench.end(9);
    assert_eq!((bench.assembler.counts().cut_short, bench.assembler.counts().open), (3, 0));
    assert_eq!(bench.named_of("a").len(), 3, "two lookups and the root");
}

impl Bench {
    fn named_of(&self, session: &str) -> Vec<&Span> {
        self.spans.iter().filter(|span| span.text("session_id") == session).collect()
    }
}

/// Broken by: keeping what is known of sessions that are over.
#[test]
fn sessions_that_ended_take_no_memory() {
    let mut bench = Bench::new(plan());
    for number in 0..20_000 {
        whole_request(&mut bench, &format!("r{}", number % 7), None);
        bench.spans.clear();
    }
    assert!(bench.assembler.ages.len() <= SPARE_AGES + 2, "{}", bench.assembler.ages.len());
    assert_eq!((bench.assembler.sessions.len(), bench.assembler.counts().ended), (0, 20_000));
}

/// Broken by: holding the commands of a connection until it closes.
#[test]
fn a_connection_is_a_root_with_a_child_per_command() {
    let mut bench = Bench::new(plan());
    bench.tell("c", 1, CacheFact::ConnectionOpened { peer: "127.0.0.1:5".into() }).tell("c", 9, command(4));
    assert_eq!(bench.times(), [("resp.get", 4, 9)]);
    let failed = CacheFact::CommandEnded {
        command: "FLUSHALL",
        started: Nanos(10),
        keys: 0,
        hits: 0,
        bytes: 0,
        failed: true,
    };
    let totals = CacheFact::ConnectionCounted { commands: 200, keys: 400, hits: 100, bytes: 5, failed: 1 };
    bench.tell("c", 12, failed).tell("c", 13, totals).tell("c", 14, CacheFact::ConnectionClosed);
    let expected = [("resp.get", 4, 9), ("resp.flushall", 10, 12), ("resp.connection", 1, 14)];
    assert_eq!(bench.times(), expected);
    assert!(bench.spans[1].failure.is_some());
    let (get, root) = (bench.named("resp.get"), bench.named("resp.connection"));
    assert_eq!((get.int("keys"), get.int("hits"), get.int("bytes")), (2, 1, 4096));
    assert_eq!(get.parent, Some(Parent { span_id: root.span_id, is_remote: false }));
    assert_eq!((root.text("peer"), root.scope), ("127.0.0.1:5", Scope::Resp));
    assert_eq!((root.int("commands"), root.int("sampled_commands"), root.int("part")), (200, 2, 0));
    assert_eq!(bench.assembler.counts().open, 0);
}

/// Broken by: a root that is held for days, or one that leaves and is forgotten with its peer.
#[test]
fn a_connection_that_stays_is_told_in_parts() {
    let mut bench = Bench::new(plan());
    bench.tell("c", 0, CacheFact::ConnectionOpened { peer: "p".into() });
    for minute in 1..=25 {
        let at = minute * 60 * SECOND;
        bench.tell("c", at, command(at - 1)).wait(at + 1);
    }
    bench.tell("c", 1501 * SECOND, CacheFact::ConnectionClosed);
    let roots: Vec<&Span> = bench.spans.iter().filter(|span| span.name == "resp.connection").collect();
    let longest = roots.iter().map(|root| root.end.since(root.start).0).max();
    assert!(roots.len() >= 2 && longest <= Some(1201 * SECOND), "{:?}", bench.times());
    assert_eq!(roots.iter().map(|root| root.int("part")).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(roots.iter().map(|root| root.int("sampled_commands")).sum::<i64>(), 25);
    assert_eq!(roots[0].value("continued"), Some(&Value::Bool(true)));
    assert!(roots.iter().all(|root| root.text("peer") == "p"));
    assert_ne!(roots[0].trace_id, roots[1].trace_id);
    assert_eq!(bench.assembler.counts().open, 0);
}

/// Broken by: treating what comes without a beginning as a session.
#[test]
fn what_belongs_to_nothing_is_counted() {
    let mut bench = Bench::new(plan());
    bench
        .tell("x", 1, CacheFact::RequestEnded)
        .tell("x", 1, found(1, 1))
        .tell("x", 1, begun(1))
        .tell("x", 1, moved(1))
        .tell("x", 1, CacheFact::ConnectionClosed);
    assert_eq!((bench.assembler.counts().strays, bench.assembler.counts().open), (5, 0));
    bench.tell("x", 2, LOOKED).tell("x", 3, CacheFact::ConnectionClosed).tell("x", 3, moved(1));
    assert_eq!((bench.assembler.counts().strays, bench.assembler.counts().open), (7, 1));
}

/// Broken by: ids that depend on anything but the seed.
#[test]
fn the_same_events_give_the_same_spans() {
    let spans = || {
        let mut bench = Bench::new(plan());
        whole_request(&mut bench, "r", None);
        bench.spans
    };
    assert_eq!(spans(), spans());
}
