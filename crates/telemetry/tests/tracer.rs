//! The way of events to a file, and what happens when nobody takes spans.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use wavetank_model::{CacheEvent, CacheFact, FetchPolicy, Nanos};
use wavetank_telemetry::{Reason, TraceArgs, TracePlan, Tracer};

type Said = Arc<Mutex<Vec<String>>>;

fn plan(args: &TraceArgs, said: &Said) -> TracePlan {
    let heard = Arc::clone(said);
    let tell = Arc::new(move |text: &str| heard.lock().unwrap().push(text.to_owned()));
    TracePlan::of(args, &|_| None, tell).unwrap().unwrap()
}

fn to_file(path: &Path) -> TraceArgs {
    TraceArgs { enable_tracing: true, otlp_file: Some(path.to_owned()), ..Default::default() }
}

fn to_nobody(protocol: &str) -> TraceArgs {
    // Nobody listens at a port that was just given back.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    TraceArgs {
        enable_tracing: true,
        otlp_endpoint: Some(format!("http://127.0.0.1:{port}")),
        otlp_protocol: Some(protocol.to_owned()),
        ..Default::default()
    }
}

/// A request that looks nothing up is one span.
fn request(tracer: &Tracer, number: u64) {
    let session: Arc<str> = format!("r{number}").into();
    let started = CacheFact::RequestStarted { policy: FetchPolicy::Prefix, parent: None };
    for (at, fact) in [(1, started), (2, CacheFact::RequestEnded)] {
        tracer.bus().publish(|| CacheEvent {
            at: Nanos(number * 10 + at),
            session: Arc::clone(&session),
            fact,
        });
    }
}

fn spans(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let of_line = |line: &str| -> Vec<Value> {
        let line: Value = serde_json::from_str(line).unwrap();
        line["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
    };
    text.lines().flat_map(of_line).collect()
}

/// Broken by: a batch that is dropped or written twice, or an end that does not wait for what is queued.
#[test]
fn every_span_is_in_the_file_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spans.jsonl");
    let said = Said::default();
    let tracer = Tracer::start(plan(&to_file(&path), &said)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let tracer = &tracer;
            scope.spawn(move || (0..2_000).for_each(|number| request(tracer, thread * 2_000 + number)));
        }
    });
    let exported = tracer.finish();
    assert_eq!((exported.sent(), exported.lost(), exported.lost_events), (8_000, 0, 0));
    assert_eq!((exported.events, exported.sessions.ended, exported.sessions.spans), (16_000, 8_000, 8_000));
    let spans = spans(&path);
    let ids: BTreeSet<&str> = spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
    assert_eq!((spans.len(), ids.len()), (8_000, 8_000));
    assert_eq!(tracer.finish(), exported, "an end is an end");
}

/// Broken by: leaving open at the end what is open, or not saying that its end was not seen.
#[test]
fn what_is_open_at_the_end_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spans.jsonl");
    let tracer = Tracer::start(plan(&to_file(&path), &Said::default())).unwrap();
    let fact = CacheFact::LookupStarted { lookup: 0 };
    tracer.bus().publish(|| CacheEvent { at: Nanos(5), session: "x".into(), fact });
    let exported = tracer.finish();
    assert_eq!((exported.sessions.cut_short, exported.sent()), (1, 2));
    let orphaned = serde_json::json!({"key": "orphaned", "value": {"boolValue": true}});
    assert!(spans(&path).iter().all(|span| span["attributes"].as_array().unwrap().contains(&orphaned)));
}

/// Broken by: waiting for the receiver, holding without bound what it does not take, or not counting it.
#[test]
fn a_dead_receiver_costs_spans_and_nothing_else() {
    for protocol in ["grpc", "http"] {
        let said = Said::default();
        let mut plan = plan(&to_nobody(protocol), &said);
        plan.queue_events = 1 << 20;
        plan.flush = Duration::from_millis(500);
        let tracer = Tracer::start(plan).unwrap();
        let requests = 80_000;
        (0..requests).for_each(|number| request(&tracer, number));
        let exported = tracer.finish();
        assert_eq!((exported.sent(), exported.lost(), exported.lost_events), (0, requests, 0), "{protocol}");
        let lost: Vec<Reason> = exported.exports[0].lost.iter().map(|(why, _)| *why).collect();
        assert_eq!(lost, [Reason::QueueFull, Reason::CutShort], "what waits is bounded");
        let said = said.lock().unwrap();
        assert_eq!(said.len(), 1, "once a minute: {said:?}");
        assert!(said[0].to_lowercase().contains("connection refused"), "{said:?}");
    }
}

/// Broken by: trying for ever.
#[test]
fn a_batch_is_given_up_after_a_while() {
    let said = Said::default();
    let mut plan = plan(&to_nobody("http"), &said);
    plan.patience.first_pause = Duration::from_millis(1);
    plan.patience.in_all = Duration::from_millis(20);
    let tracer = Tracer::start(plan).unwrap();
    request(&tracer, 1);
    let exported = tracer.finish();
    assert_eq!(exported.exports[0].lost, [(Reason::Unreachable, 1)]);
}

/// Broken by: a file made anew, a line that goes on where a killed process stopped, or two who share one.
#[test]
fn lines_of_earlier_runs_stay_and_nobody_shares_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spans.jsonl");
    std::fs::write(&path, "{}\n{\"half").unwrap();
    let tracer = Tracer::start(plan(&to_file(&path), &Said::default())).unwrap();
    let said = Tracer::start(plan(&to_file(&path), &Said::default())).err().unwrap().to_string();
    assert!(said.contains("spans.jsonl: another process writes spans to it\nhint: "), "{said}");
    request(&tracer, 1);
    assert_eq!(tracer.finish().sent(), 1);
    drop(tracer);
    let again = Tracer::start(plan(&to_file(&path), &Said::default())).unwrap();
    request(&again, 2);
    again.finish();
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), &lines[..2]), (4, &["{}", "{\"half"][..]));
    assert!(lines[2..].iter().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{text}");
}
