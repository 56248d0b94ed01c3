//! Spans as a receiver on the official messages gets them, over gRPC and HTTP, plain and with TLS; metrics as
//! the official reader of Prometheus' format reads them.
//!
//! Needs the Python environment that `cargo xtask peers` makes; `WAVETANK_PYTHON` says where it is.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod traceql;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use wavetank_model::{
    BlendHits, CacheEvent, CacheFact, FetchPolicy, LookupOutcome, Nanos, TraceParent, TransferWay,
};
use wavetank_telemetry::prometheus::{Names, Row, Sample, render};
use wavetank_telemetry::{Bus, Exported, Reason, TraceArgs, TracePlan, Tracer};

/// The interpreter with the packages; without it a test is skipped, unless that is forbidden.
fn python() -> Option<String> {
    let found = std::env::var("WAVETANK_PYTHON").ok();
    if found.is_none() {
        assert!(std::env::var_os("WAVETANK_REQUIRE_PEERS").is_none(), "WAVETANK_PYTHON is not set");
        let told = b"SKIPPED: `cargo xtask peers` installs the receiver, WAVETANK_PYTHON says where it is\n";
        std::io::stderr().write_all(told).unwrap();
    }
    found
}

/// The receiver, as a process.
struct Receiver {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    ports: BTreeMap<String, u16>,
    folder: TempDir,
}

impl Receiver {
    fn start(manner: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(python()?);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/otlp_receiver.py")).arg(folder.path());
        // Failed handshakes are what a test is about.
        command.env("GRPC_VERBOSITY", "NONE");
        let mut child =
            command.arg(manner).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let stdin = child.stdin.take();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let ports = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        Some(Self { child, stdin, stdout, ports, folder })
    }

    fn address(&self, door: &str) -> String {
        let scheme = if door.ends_with('s') { "https" } else { "http" };
        format!("{scheme}://localhost:{}", self.ports[door])
    }

    /// What it got, batch by batch.
    fn finish(mut self) -> Vec<Value> {
        drop(self.stdin.take());
        let lines = self.stdout.by_ref().lines();
        lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What was said to the person who runs the server.
type Said = Arc<Mutex<Vec<String>>>;

fn plan(door: &str, address: String, said: &Said) -> TracePlan {
    let args = TraceArgs {
        enable_tracing: true,
        otlp_endpoint: Some(address),
        otlp_protocol: Some(door[..4].to_owned()),
        otlp_headers: vec!["Authorization=env:TOKEN".to_owned(), "x-tenant=a b".to_owned()],
        command_sample_ratio: Some(1.0),
        ..Default::default()
    };
    let environment = |name: &str| (name == "TOKEN").then(|| "Bearer secret".to_owned());
    let heard = Arc::clone(said);
    let tell = Arc::new(move |text: &str| heard.lock().unwrap().push(text.to_owned()));
    let mut plan = TracePlan::of(&args, &environment, tell).unwrap().unwrap();
    plan.patience.first_pause = Duration::from_millis(5);
    plan
}

/// A script of events.
struct Stage {
    bus: Bus,
    now: u64,
    transfers: u64,
}

impl Stage {
    fn of(tracer: &Tracer) -> Self {
        Self { bus: tracer.bus(), now: 1_794_705_468_000_000_000, transfers: 0 }
    }

    fn tell(&mut self, session: &str, fact: CacheFact) {
        self.now += 1_000_000;
        let at = Nanos(self.now);
        self.bus.publish(|| CacheEvent { at, session: session.into(), fact });
    }

    fn look_up(&mut self, session: &str, (hit, asked): (u64, u64), blend: Option<BlendHits>) {
        self.tell(session, CacheFact::LookupStarted { lookup: 0 });
        let outcome = LookupOutcome {
            found_count: hit / 256,
            requested_tokens: asked,
            hit_tokens: hit,
            l1_hit_tokens: hit,
            l1_hit_keys: hit / 256,
            model_name: "m".into(),
            cache_salt: "tenant".into(),
            blend,
            ..Default::default()
        };
        self.tell(session, CacheFact::LookupEnded { lookup: 0, outcome: Box::new(outcome) });
    }

    fn transfer(&mut self, session: &str, way: TransferWay, failure: Option<&str>) {
        let transfer = self.transfers;
        self.transfers += 1;
        self.tell(session, CacheFact::TransferSubmitted { way, transfer, device: "cuda:0".into() });
        let (model_name, cache_salt) = ("m".into(), "tenant".into());
        self.tell(session, CacheFact::TransferStarted { transfer, engine_id: 7, model_name, cache_salt });
        let (count, total_bytes, num_tokens) = (2, 262_144, 512);
        let failure = failure.map(Into::into);
        self.tell(session, CacheFact::TransferEnded { transfer, count, total_bytes, num_tokens, failure });
    }

    fn request(&mut self, session: &str, hit: u64, asked: u64) {
        self.tell(session, CacheFact::RequestStarted { policy: FetchPolicy::Prefix, parent: None });
        self.look_up(session, (hit, asked), None);
        if hit > 0 {
            self.transfer(session, TransferWay::Retrieve, None);
        }
        self.transfer(session, TransferWay::Store, None);
        self.tell(session, CacheFact::RequestEnded);
    }

    /// The sessions of the reference's sample, a caller's trace, a failure, and a Redis client.
    fn play(&mut self) {
        self.request("full-hit", 1024, 1024);
        self.request("partial", 256, 1024);
        self.request("miss", 0, 1024);
        self.request("short", 0, 0);
        self.transfer("store-only", TransferWay::Store, Some("no room"));
        self.tell("store-only", CacheFact::RequestEnded);
        let parent = Some(TraceParent { trace_id: [0xa1; 16], span_id: [0xb2; 8], sampled: true });
        self.tell("cb-1", CacheFact::RequestStarted { policy: FetchPolicy::Full, parent });
        let blend = BlendHits {
            prefix_hits: 1,
            prefix_hit_tokens: 256,
            segmented_prefix_hit_tokens: 0,
            non_prefix_hit_tokens: 512,
        };
        self.look_up("cb-1", (768, 1024), Some(blend));
        self.transfer("cb-1", TransferWay::Retrieve, None);
        self.tell("cb-1", CacheFact::RequestEnded);
        self.tell("resp-1", CacheFact::ConnectionOpened { peer: "127.0.0.1:5".into() });
        let started = Nanos(self.now);
        let get =
            CacheFact::CommandEnded { command: "GET", started, keys: 1, hits: 1, bytes: 4096, failed: false };
        self.tell("resp-1", get);
        self.tell("resp-1", CacheFact::ConnectionClosed);
    }
}

/// Spans of the script.
const SPANS: u64 = 4 + 4 + 3 + 3 + 2 + 3 + 2;

fn export(plan: TracePlan) -> Exported {
    let tracer = Tracer::start(plan).unwrap();
    Stage::of(&tracer).play();
    tracer.finish()
}

fn attribute(span: &Value, name: &str) -> Value {
    span["attributes"][name].clone()
}

/// Broken by: a name, a parent, a type, a value, a header or a flag that does not arrive as it was meant.
fn check(batches: &[Value], door: &str) {
    let spans: Vec<&Value> = batches.iter().flat_map(|batch| batch["spans"].as_array().unwrap()).collect();
    assert_eq!(spans.len() as u64, SPANS);
    for batch in batches {
        assert_eq!(batch["door"], door[..4]);
        assert_eq!(batch["headers"]["authorization"], "Bearer secret");
        assert_eq!(batch["headers"]["x-tenant"], "a b");
        assert_eq!(batch["resource"]["service.name"], json!(["string_value", "wavetank"]));
    }
    let of = |session: &str, name: &str| {
        let is_it = |span: &&&Value| {
            span["attributes"]["session_id"] == json!(["string_value", session]) && span["name"] == name
        };
        *spans.iter().find(is_it).unwrap_or_else(|| panic!("{session} {name}"))
    };
    for span in &spans {
        let parent = span["parent"].as_str().unwrap();
        if let Some(root) = spans.iter().find(|root| root["id"] == parent) {
            assert_eq!(root["trace"], span["trace"]);
            assert!(
                root["start"].as_u64() <= span["start"].as_u64()
                    && span["end"].as_u64() <= root["end"].as_u64()
            );
        } else {
            assert!(parent.is_empty() || parent == "b2".repeat(8), "{span}");
        }
        assert_eq!((&span["kind"], span["trace"].as_str().unwrap().len()), (&json!(1), 32));
    }
    let store = of("partial", "mp.store");
    assert_eq!(store["scope"], "wavetank.server");
    for (name, expected) in [
        ("stored_count", json!(["int_value", 2])),
        ("total_bytes", json!(["int_value", 262_144])),
        ("num_tokens", json!(["int_value", 512])),
        ("engine_id", json!(["int_value", 7])),
        ("device", json!(["string_value", "cuda:0"])),
        ("cache_salt", json!(["string_value", "tenant"])),
        ("transfer_key", json!(["string_value", "partial#3"])),
    ] {
        assert_eq!(attribute(store, name), expected, "{name}");
    }
    let root = of("partial", "request");
    assert_eq!(attribute(root, "hit_rate"), json!(["double_value", 0.25]));
    assert_eq!(attribute(root, "l1_hit_rate"), json!(["double_value", 0.25]));
    assert_eq!(attribute(root, "requested_tokens"), json!(["int_value", 1024]));
    assert_eq!(attribute(of("partial", "mp.lookup_prefetch"), "found_count"), json!(["int_value", 1]));
    assert_eq!(of("store-only", "request")["attributes"].as_object().unwrap().len(), 1);
    assert_eq!(of("store-only", "mp.store")["status"], json!([2, "no room"]));
    let blend = of("cb-1", "cb.request");
    assert_eq!((&blend["scope"], &blend["trace"]), (&json!("wavetank.blend"), &json!("a1".repeat(16))));
    assert_eq!((&blend["parent"], &blend["flags"]), (&json!("b2".repeat(8)), &json!(0x301)));
    assert_eq!(attribute(blend, "non_prefix_hit_rate"), json!(["double_value", 0.5]));
    assert_eq!(of("cb-1", "cb.retrieve")["flags"], 0x101);
    let get = of("resp-1", "resp.get");
    assert_eq!(
        (&get["scope"], &get["parent"]),
        (&json!("wavetank.resp"), &of("resp-1", "resp.connection")["id"])
    );
}

/// The product text's queries, and what they find.
const QUERIES: [(&str, &[&str]); 3] = [
    (r#"{ name = "request" && span.hit_rate < 0.5 }"#, &["miss", "partial", "short"]),
    (r#"{ name = "request" && span.hit_rate = 1.0 }"#, &["full-hit"]),
    (r#"{ name = "request" && span.requested_tokens > 0 && span.hit_tokens = 0 }"#, &["miss"]),
];

/// Broken by: attributes that are text, as the reference's children have them: comparisons find nothing.
fn check_queries(batches: &[Value]) {
    let spans: Vec<&Value> = batches.iter().flat_map(|batch| batch["spans"].as_array().unwrap()).collect();
    for (query, expected) in QUERIES {
        let mut found: Vec<&str> = spans
            .iter()
            .filter(|span| traceql::matches(query, span))
            .map(|span| span["attributes"]["session_id"][1].as_str().unwrap())
            .collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{query}");
    }
}

#[test]
fn spans_arrive_through_every_door() {
    for door in ["grpc", "http", "grpcs", "https"] {
        let Some(receiver) = Receiver::start("take") else { return };
        let said = Said::default();
        let mut plan = plan(door, receiver.address(door), &said);
        if door.ends_with('s') {
            plan.targets[0].certificates = Some(receiver.folder.path().join("ca.pem"));
        }
        let exported = export(plan);
        assert_eq!((exported.sent(), exported.lost()), (SPANS, 0), "{door}: {said:?}");
        assert_eq!((exported.lost_events, exported.sessions.open), (0, 0));
        let batches = receiver.finish();
        check(&batches, door);
        check_queries(&batches);
        assert_eq!(said.lock().unwrap().len(), 0, "{said:?}");
    }
}

/// Broken by: giving up at once, or sending twice what was taken.
#[test]
fn a_receiver_that_comes_back_gets_all() {
    for door in ["grpc", "http"] {
        let Some(receiver) = Receiver::start("fail:3") else { return };
        let said = Said::default();
        let exported = export(plan(door, receiver.address(door), &said));
        assert_eq!((exported.sent(), exported.lost()), (SPANS, 0), "{door}: {said:?}");
        check(&receiver.finish(), door);
        let said = said.lock().unwrap();
        assert_eq!(said.len(), 1, "once, not after every attempt: {said:?}");
        assert!(said[0].contains("come back"), "{said:?}");
    }
}

/// Broken by: counting what was refused as sent, or trying again what is refused for good.
#[test]
fn what_a_receiver_does_not_want_is_counted() {
    for door in ["grpc", "http"] {
        for (manner, lost) in [("reject:5", (Reason::Rejected, 5)), ("deny", (Reason::Refused, SPANS))] {
            let Some(receiver) = Receiver::start(manner) else { return };
            let said = Said::default();
            let exported = export(plan(door, receiver.address(door), &said));
            assert_eq!(exported.exports[0].lost, [lost], "{door} {manner}");
            assert_eq!(exported.sent(), SPANS - lost.1);
            let expected = if manner == "deny" { "who are you?" } else { "not wanted" };
            assert!(exported.exports[0].problem.contains(expected), "{exported:?}");
            assert_eq!(said.lock().unwrap().len(), 1);
        }
    }
}

/// Broken by: trusting anybody, or sending over a line that is not encrypted.
#[test]
fn a_receiver_that_is_not_trusted_gets_nothing() {
    for door in ["grpcs", "https"] {
        let Some(receiver) = Receiver::start("take") else { return };
        let said = Said::default();
        let mut plan = plan(door, receiver.address(door), &said);
        // Trying again does not help here.
        plan.patience.in_all = Duration::ZERO;
        let exported = export(plan);
        assert_eq!((exported.sent(), exported.lost()), (0, SPANS), "{door}");
        assert_eq!(receiver.finish().len(), 0);
        let told = said.lock().unwrap().join("\n").to_lowercase();
        assert!(told.contains("certificate") || told.contains("issuer"), "{told}");
    }
}

/// Broken by: a line that the official reader refuses, or reads as something else.
#[test]
fn metrics_are_read_as_they_were_meant() {
    let Some(python) = python() else { return };
    let value = Sample::Buckets { bounds: vec![0.1, 1.0], counts: vec![2, 0, 1], sum: 7.5 };
    let wait = Row::histogram("wait", "Waiting.", value).unit("seconds");
    let rows = [
        Row::counter("l1_hits", "Found \\ in\nmemory.", 3).label("l2", "a \"b\" \\ c\nd"),
        wait,
        Row::gauge("l1_used", "Bytes.", 1e18).unit("bytes"),
        Row::counter("l1_hits", "Found.", 4).label("l2", "é"),
    ];
    let script = "import sys, json\n\
        from prometheus_client.parser import text_string_to_metric_families as read\n\
        for family in read(sys.stdin.read()):\n\
        \x20 for sample in family.samples:\n\
        \x20   print(json.dumps([family.type, sample.name, sample.labels, float(sample.value)]))\n";
    let mut child = Command::new(python)
        .args(["-c", script])
        .env("PYTHONIOENCODING", "utf-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = render(&rows, Names::WithReference);
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let read: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    let expected = [
        json!(["counter", "wavetank_l1_hits_total", {"l2": "a \"b\" \\ c\nd"}, 3.0]),
        json!(["counter", "wavetank_l1_hits_total", {"l2": "é"}, 4.0]),
        json!(["histogram", "wavetank_wait_seconds_bucket", {"le": "0.1"}, 2.0]),
        json!(["histogram", "wavetank_wait_seconds_bucket", {"le": "1.0"}, 2.0]),
        json!(["histogram", "wavetank_wait_seconds_bucket", {"le": "+Inf"}, 3.0]),
        json!(["histogram", "wavetank_wait_seconds_sum", {}, 7.5]),
        json!(["histogram", "wavetank_wait_seconds_count", {}, 3.0]),
        json!(["gauge", "wavetank_l1_used_bytes", {}, 1e18]),
        json!(["counter", "lmcache_mp_l1_read_chunks_total", {"l2": "a \"b\" \\ c\nd"}, 3.0]),
        json!(["counter", "lmcache_mp_l1_read_chunks_total", {"l2": "é"}, 4.0]),
        json!(["gauge", "lmcache_mp_l1_memory_usage_bytes", {}, 1e18]),
    ];
    assert_eq!(read, expected, "{text}");
}
