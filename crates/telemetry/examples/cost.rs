//! What spans cost: publishing an event, making spans of events, and writing them in each form.
//!
//! `cargo run --release -p wavetank-telemetry --example cost [GRPC_RECEIVER HTTP_RECEIVER]`
#![forbid(unsafe_code)]

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use wavetank_model::{CacheEvent, CacheFact, FetchPolicy, LookupOutcome, Nanos, TransferWay};
use wavetank_telemetry::{
    Assembler, AssemblyPlan, Bus, Resource, Sampling, Span, TraceArgs, TracePlan, Tracer, json,
};

/// Each figure is the middle one of so many.
const TIMES: usize = 5;
/// Events published at once, and how often.
const ROUND: u64 = 20_000;
const ROUNDS: usize = 10;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout();
    for threads in [1, 2, 4] {
        let (taken, lost) = publish(threads, 1.0, |bus, event| bus.publish(event));
        writeln!(out, "publish, {threads} threads: {taken:.1} ns per event and thread, {lost} lost")?;
    }
    let (taken, _) = publish(1, 0.01, |bus, event| bus.command(event));
    writeln!(out, "a command of which 0.01 are sampled: {taken:.1} ns")?;
    let (taken, _) = publish(1, 0.01, |bus, event| bus.publish(event));
    writeln!(out, "the same, made before it is known: {taken:.1} ns")?;
    let off = Bus::off();
    writeln!(
        out,
        "nobody listens: {:.2} ns",
        timed(10_000_000, || std::hint::black_box(&off).publish(|| command(&"c".into())))
    )?;
    let events = requests(50_000);
    let made = middle(|| {
        let mut assembler = assembler();
        let begun = thread_nanos();
        events.iter().cloned().for_each(|event| assembler.record(event));
        assembler.finished().count() as f64 / seconds_since(begun)
    });
    writeln!(out, "assembly: {:.0} thousand spans/s on one core", made / 1e3)?;
    let spans = spans(&events);
    let resource = Resource::fixed();
    let mut bytes = 0;
    let written = middle(|| {
        let begun = thread_nanos();
        bytes = 0;
        for batch in spans.chunks(2048) {
            let mut line = Vec::new();
            json::write_line(&mut line, &resource, batch).expect("memory takes it");
            bytes += line.len();
        }
        spans.len() as f64 / seconds_since(begun)
    });
    let each = bytes / spans.len();
    writeln!(out, "JSON lines: {:.0} thousand spans/s on one core, {each} bytes each", written / 1e3)?;
    for (endpoint, protocol) in std::env::args().skip(1).zip(["grpc", "http"]) {
        let (sent, seconds, cpu) = export(&endpoint, protocol);
        let (rate, per) = (sent as f64 / seconds / 1e3, sent as f64 / cpu / 1e3);
        writeln!(out, "{protocol}: {sent} spans, {rate:.0} thousand/s, {per:.0} thousand per CPU second")?;
    }
    Ok(())
}

/// Nanoseconds per event and thread beside a reader, and what was lost.
fn publish(threads: usize, share: f64, how: fn(&Bus, &dyn Fn() -> CacheEvent)) -> (f64, u64) {
    let folder = std::env::temp_dir().join(format!("wavetank-cost-{}", std::process::id()));
    let mut lost = 0;
    let taken = middle(|| {
        let args = TraceArgs {
            enable_tracing: true,
            otlp_file: Some(folder.clone()),
            trace_sample_ratio: Some(0.0),
            command_sample_ratio: Some(share),
            ..Default::default()
        };
        let mut plan = TracePlan::of(&args, &|_| None, Arc::new(|_: &str| {}))
            .expect("a plan")
            .expect("spans are wanted");
        // What is made of events is not what is measured here.
        plan.assembly.sampling.connections = 0.0;
        let tracer = Tracer::start(plan).expect("it starts");
        let all: Vec<f64> = std::thread::scope(|scope| {
            let each = (0..threads).map(|thread| {
                let bus = tracer.bus();
                scope.spawn(move || {
                    let session: Arc<str> = format!("c{thread}").into();
                    let round = || {
                        // The queue is emptied fifty times a second.
                        std::thread::sleep(Duration::from_millis(40));
                        timed(ROUND, || how(&bus, &|| command(&session)))
                    };
                    (0..ROUNDS).map(|_| round()).sum::<f64>() / ROUNDS as f64
                })
            });
            let running: Vec<_> = each.collect();
            running.into_iter().map(|thread| thread.join().expect("it ends")).collect()
        });
        lost = tracer.finish().lost_events;
        all.iter().sum::<f64>() / all.len() as f64
    });
    let _ = std::fs::remove_file(folder);
    (taken, lost)
}

fn command(session: &Arc<str>) -> CacheEvent {
    let (command, started) = ("GET", Nanos(1));
    let fact = CacheFact::CommandEnded { command, started, keys: 1, hits: 1, bytes: 4096, failed: false };
    CacheEvent { at: Nanos(2), session: Arc::clone(session), fact }
}

fn assembler() -> Assembler {
    let sampling = Sampling::default();
    let orphan_timeout = Duration::from_secs(600);
    Assembler::new(AssemblyPlan { sampling, orphan_timeout, max_sessions: 100_000, seed: 1 })
}

/// Requests of four spans each.
fn requests(count: u64) -> Vec<CacheEvent> {
    let model: Arc<str> = "meta-llama/Llama-3.1-8B".into();
    let mut events = Vec::new();
    for number in 0..count {
        let session: Arc<str> = format!("chatcmpl-{number:032x}").into();
        let mut at = 1_794_705_468_000_000_000 + number * 1_000_000;
        let mut tell = |fact| {
            at += 10_000;
            events.push(CacheEvent { at: Nanos(at), session: Arc::clone(&session), fact });
        };
        tell(CacheFact::RequestStarted { policy: FetchPolicy::Prefix, parent: None });
        tell(CacheFact::LookupStarted { lookup: 0 });
        let outcome = LookupOutcome {
            found_count: 4,
            requested_tokens: 2048,
            hit_tokens: 1024,
            l1_hit_tokens: 1024,
            model_name: Arc::clone(&model),
            ..Default::default()
        };
        tell(CacheFact::LookupEnded { lookup: 0, outcome: Box::new(outcome) });
        for (way, transfer) in [(TransferWay::Retrieve, number * 2), (TransferWay::Store, number * 2 + 1)] {
            tell(CacheFact::TransferSubmitted { way, transfer, device: "cuda:0".into() });
            let (model_name, cache_salt) = (Arc::clone(&model), "".into());
            tell(CacheFact::TransferStarted { transfer, engine_id: 7, model_name, cache_salt });
            let (total_bytes, num_tokens) = (1 << 27, 1024);
            tell(CacheFact::TransferEnded { transfer, count: 4, total_bytes, num_tokens, failure: None });
        }
        tell(CacheFact::RequestEnded);
    }
    events
}

fn spans(events: &[CacheEvent]) -> Vec<Span> {
    let mut assembler = assembler();
    events.iter().cloned().for_each(|event| assembler.record(event));
    assembler.finished().collect()
}

/// Spans sent, seconds, and CPU seconds of this process.
fn export(endpoint: &str, protocol: &str) -> (u64, f64, f64) {
    let args = TraceArgs {
        enable_tracing: true,
        otlp_endpoint: Some(endpoint.to_owned()),
        otlp_protocol: Some(protocol.to_owned()),
        ..Default::default()
    };
    let mut plan = TracePlan::of(&args, &|_| None, Arc::new(|_: &str| {})).expect("a plan").expect("wanted");
    plan.flush = Duration::from_secs(60);
    plan.queue_events = 1_000_000;
    let events = requests(15_000);
    let tracer = Tracer::start(plan).expect("it starts");
    let (begun, cpu) = (Instant::now(), cpu_seconds());
    let bus = tracer.bus();
    for event in events {
        bus.publish(|| event);
    }
    let exported = tracer.finish();
    (exported.sent(), begun.elapsed().as_secs_f64(), cpu_seconds() - cpu)
}

/// CPU time of this process.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Nanoseconds of CPU time of one of `count` calls: others may use this machine.
fn timed(count: u64, mut call: impl FnMut()) -> f64 {
    let begun = thread_nanos();
    (0..count).for_each(|_| call());
    (thread_nanos() - begun) as f64 / count as f64
}

/// CPU time of this thread.
fn thread_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    (time.tv_sec * 1_000_000_000 + time.tv_nsec) as u64
}

fn seconds_since(begun: u64) -> f64 {
    (thread_nanos() - begun) as f64 / 1e9
}

fn middle(mut measure: impl FnMut() -> f64) -> f64 {
    let mut all: Vec<f64> = (0..TIMES).map(|_| measure()).collect();
    all.sort_by(f64::total_cmp);
    all[TIMES / 2]
}
