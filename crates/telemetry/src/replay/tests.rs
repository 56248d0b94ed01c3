//! A small run, told event by event.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use wavetank_model::{
    HandoffTimes, Labels, Priority, Prompt, Request, RequestId, SessionId, TierEvent, WorkerId,
};

use super::*;

const WORKER: WorkerId = WorkerId(0);
const ID: RequestId = RequestId(0);

fn details(session: &str) -> Request {
    Request {
        session: SessionId(0),
        turn: 2,
        prompt: Prompt::unique(1, 100),
        output_tokens: 3,
        priority: Priority::default(),
        think: None,
        labels: Some(Box::new(Labels { session: session.to_owned(), request: None })),
    }
}

/// A request that is preempted after its first token and comes back.
fn preempted(sink: &mut dyn for<'e> Sink<ServeEvent<'e>>) {
    let details = details("a \"name\"");
    let emitted = |start, steps| ServeEvent::TokensEmitted {
        worker: WORKER,
        start: Nanos(start),
        steps,
        requests: &[ID],
    };
    let admitted = |at, reused_tokens| ServeEvent::RequestAdmitted {
        request: ID,
        worker: WORKER,
        at: Nanos(at),
        reused_tokens,
    };
    let computed = |start, step, tokens| ServeEvent::PromptComputed {
        request: ID,
        worker: WORKER,
        start: Nanos(start),
        step: Nanos(step),
        tokens,
    };
    for event in [
        ServeEvent::RequestArrived { request: ID, at: Nanos(5), details: &details },
        ServeEvent::RequestRouted {
            request: ID,
            worker: WORKER,
            at: Nanos(5),
            queued_since: None,
            overlap_tokens: 0,
        },
        ServeEvent::RequestQueued { request: ID, worker: WORKER, at: Nanos(8) },
        admitted(10, 40),
        computed(10, 20, 60),
        emitted(10, &[Nanos(20)]),
        ServeEvent::RequestPreempted { request: ID, worker: WORKER, at: Nanos(35) },
        admitted(50, 96),
        computed(50, 10, 5),
        emitted(50, &[Nanos(10), Nanos(4)]),
        ServeEvent::RequestCompleted { request: ID, worker: WORKER, at: Nanos(64) },
    ] {
        sink.record(&event);
    }
}

/// Broken by: a phase that is lost, or hits of a later admission in place of the first.
#[test]
fn a_request_goes_through_its_phases() {
    let mut trace = ReplayTrace::new(Some(Vec::new()), Some(Vec::new()), 7, 0);
    preempted(&mut trace);
    let finished = trace.finish(Nanos(64));
    let line: Value = serde_json::from_slice(&finished.spans.unwrap().unwrap()).unwrap();
    let spans = line["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let since =
        |span: &Value, key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap() - spans::EPOCH.0;
    let times: Vec<(&str, u64, u64)> = spans
        .iter()
        .map(|span| {
            let (start, end) = (since(span, "startTimeUnixNano"), since(span, "endTimeUnixNano"));
            (span["name"].as_str().unwrap(), start, end)
        })
        .collect();
    let expected = [
        ("request", 5, 64),
        ("mp.lookup_prefetch", 10, 10),
        ("queue", 5, 10),
        ("prefill", 10, 30),
        ("decode", 30, 35),
        ("queue", 35, 50),
        ("prefill", 50, 60),
        ("decode", 60, 64),
    ];
    assert_eq!(times, expected);
    let root = spans[0]["attributes"].to_string();
    for told in [
        r#"{"key":"session_id","value":{"stringValue":"a \"name\""}}"#,
        r#"{"key":"hit_tokens","value":{"intValue":"40"}}"#,
        r#"{"key":"hit_rate","value":{"doubleValue":0.4}}"#,
        r#"{"key":"preemptions","value":{"intValue":"1"}}"#,
        r#"{"key":"ttft_ns","value":{"intValue":"25"}}"#,
        r#"{"key":"output_tokens","value":{"intValue":"3"}}"#,
    ] {
        assert!(root.contains(told), "{told}: {root}");
    }
    let slices: Value = serde_json::from_slice(&finished.slices.unwrap().unwrap()).unwrap();
    let counts: Vec<String> = slices["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["ph"] == "C")
        .map(|event| format!("{} {} {}", event["ts"], event["args"]["running"], event["args"]["waiting"]))
        .collect();
    assert_eq!(counts, ["0.008 0 1", "0.01 1 0", "0.035 0 1", "0.05 1 0", "0.064 0 0"]);
}

/// Broken by: counting a prompt on its prefill worker until the decode worker has it, or what was reused as
/// missing.
#[test]
fn a_prompt_leaves_its_prefill_worker_when_it_is_computed() {
    let (from, to, details) = (WORKER, WorkerId(1), details("x"));
    let times = HandoffTimes {
        held_at: Nanos(30),
        reserved_at: Nanos(31),
        sent_at: Nanos(32),
        received_at: Nanos(40),
    };
    let mut trace = ReplayTrace::new(None, Some(Vec::new()), 7, 1);
    for event in [
        ServeEvent::RequestArrived { request: ID, at: Nanos(5), details: &details },
        ServeEvent::RequestQueued { request: ID, worker: from, at: Nanos(8) },
        ServeEvent::RequestAdmitted { request: ID, worker: from, at: Nanos(10), reused_tokens: 40 },
        ServeEvent::PromptComputed {
            request: ID,
            worker: from,
            start: Nanos(10),
            step: Nanos(20),
            tokens: 60,
        },
        ServeEvent::RequestHandedOff { request: ID, from, to, times, at: Nanos(41) },
        ServeEvent::TokensEmitted { worker: to, start: Nanos(41), steps: &[Nanos(2); 3], requests: &[ID] },
        ServeEvent::RequestCompleted { request: ID, worker: to, at: Nanos(47) },
    ] {
        trace.record(&event);
    }
    let slices = trace.finish(Nanos(47)).slices.unwrap().unwrap();
    let slices: Value = serde_json::from_slice(&slices).unwrap();
    let told = |kind: &str| -> Vec<String> {
        let events = slices["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == kind);
        let shown = |event: &Value| {
            let running = event["args"].get("running").map(ToString::to_string).unwrap_or_default();
            format!("{} {} {}{running}", event["pid"], event["ts"], event["name"].as_str().unwrap())
        };
        events.map(shown).collect()
    };
    let counts = [
        "1 0.008 requests0",
        "1 0.01 requests1",
        "1 0.03 requests0",
        "2 0.041 requests1",
        "2 0.047 requests0",
    ];
    assert_eq!(told("C"), counts);
    let begun = [
        "1 0.005 request",
        "1 0.005 queue",
        "1 0.01 prefill",
        "1 0.03 handoff",
        "2 0.041 request",
        "2 0.041 decode",
    ];
    assert_eq!(told("b"), begun);
}

/// Broken by: a request that goes on running or waiting after the one who asked went away.
#[test]
fn who_is_given_up_ends_where_it_was() {
    let (details, never) = (details("x"), RequestId(1));
    let mut trace = ReplayTrace::new(Some(Vec::new()), Some(Vec::new()), 7, 0);
    for event in [
        ServeEvent::RequestArrived { request: ID, at: Nanos(5), details: &details },
        ServeEvent::RequestArrived { request: never, at: Nanos(6), details: &details },
        ServeEvent::RequestQueued { request: ID, worker: WORKER, at: Nanos(8) },
        ServeEvent::RequestCancelled { request: ID, worker: Some(WORKER), at: Nanos(12) },
        ServeEvent::RequestCancelled { request: never, worker: None, at: Nanos(13) },
    ] {
        trace.record(&event);
    }
    let finished = trace.finish(Nanos(50));
    let spans = String::from_utf8(finished.spans.unwrap().unwrap()).unwrap();
    assert_eq!(spans.matches(r#"{"key":"cancelled","value":{"boolValue":true}}"#).count(), 2, "{spans}");
    assert!(!spans.contains("unfinished"), "{spans}");
    let slices: Value = serde_json::from_slice(&finished.slices.unwrap().unwrap()).unwrap();
    let events = slices["traceEvents"].as_array().unwrap();
    let load =
        |event: &Value| format!("{} {} {}", event["ts"], event["args"]["running"], event["args"]["waiting"]);
    let counts: Vec<_> = events.iter().filter(|event| event["ph"] == "C").map(load).collect();
    assert_eq!(counts, ["0.008 0 1", "0.012 0 0"]);
    let drawn: Vec<_> = events.iter().filter(|event| event["ph"] == "b").collect();
    assert_eq!((drawn.len(), &drawn[0]["args"]["cancelled"]), (2, &Value::Bool(true)));
}

/// A place that takes some bytes and then no more.
#[derive(Clone, Default)]
struct Disk {
    room: usize,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room -= bytes.len();
        self.written.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Broken by: swallowing that a file is not whole, or letting it cost the other.
#[test]
fn a_full_disk_is_told_and_costs_one_file() {
    let (full, empty) = (Disk { room: 100, ..Disk::default() }, Disk { room: 1 << 20, ..Disk::default() });
    let mut trace = ReplayTrace::new(Some(empty.clone()), Some(full), 7, 0);
    preempted(&mut trace);
    let finished = trace.finish(Nanos(64));
    let failure = finished.slices.unwrap().err().unwrap();
    assert_eq!(failure.kind(), io::ErrorKind::StorageFull);
    finished.spans.unwrap().unwrap();
    assert!(empty.written.lock().unwrap().ends_with(b"]}]}]}\n"));
}

/// Broken by: forgetting what is in flight at the end, or an empty run that is no JSON.
#[test]
fn what_is_in_flight_is_written_as_such() {
    let mut trace = ReplayTrace::new(Some(Vec::new()), Some(Vec::new()), 7, 0);
    trace.record(&ServeEvent::RequestArrived { request: ID, at: Nanos(5), details: &details("x") });
    let finished = trace.finish(Nanos(9));
    let spans = String::from_utf8(finished.spans.unwrap().unwrap()).unwrap();
    assert!(spans.contains(r#"{"key":"unfinished","value":{"boolValue":true}}"#), "{spans}");
    assert!(!spans.contains("hit_rate"), "nothing was looked up");
    let slices = finished.slices.unwrap().unwrap();
    let slices: Value = serde_json::from_slice(&slices).unwrap();
    assert_eq!(slices["traceEvents"], serde_json::json!([]), "no worker took it");
}

/// Broken by: a load that is lost, has no names, or is drawn outside the phase that waits for it.
#[test]
fn a_load_is_a_child_of_its_request() {
    let details = details("x");
    let tiers = ["cpu".to_owned(), "disk".to_owned()];
    let mut trace = ReplayTrace::new(Some(Vec::new()), Some(Vec::new()), 7, 0).naming(&tiers);
    for event in [
        ServeEvent::RequestArrived { request: ID, at: Nanos(5), details: &details },
        ServeEvent::RequestQueued { request: ID, worker: WORKER, at: Nanos(8) },
        ServeEvent::Tier(TierEvent::Loaded {
            request: ID,
            worker: WORKER,
            tokens: &[32, 0],
            asked: Nanos(8),
            at: Nanos(20),
        }),
        ServeEvent::RequestAdmitted { request: ID, worker: WORKER, at: Nanos(24), reused_tokens: 32 },
        ServeEvent::TokensEmitted { worker: WORKER, start: Nanos(24), steps: &[Nanos(9)], requests: &[ID] },
        ServeEvent::RequestCompleted { request: ID, worker: WORKER, at: Nanos(33) },
    ] {
        trace.record(&event);
    }
    let finished = trace.finish(Nanos(33));
    let line: Value = serde_json::from_slice(&finished.spans.unwrap().unwrap()).unwrap();
    let spans = line["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let load = spans.iter().find(|span| span["name"] == "load").unwrap();
    assert_eq!(load["parentSpanId"], spans[0]["spanId"]);
    assert_eq!(load["endTimeUnixNano"], (spans::EPOCH.0 + 20).to_string());
    let told = load["attributes"].to_string();
    assert!(told.contains("cpu=32") && !told.contains("disk"), "{told}");
    let slices: Value = serde_json::from_slice(&finished.slices.unwrap().unwrap()).unwrap();
    let drawn: Vec<String> = slices["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["ph"] == "b" || event["ph"] == "e")
        .map(|event| format!("{} {} {}", event["ph"], event["name"], event["ts"]).replace('"', ""))
        .collect();
    let queue = ["b request 0.005", "b queue 0.005", "b load 0.008", "e load 0.02", "e queue 0.024"];
    assert_eq!(drawn[..5], queue);
}
