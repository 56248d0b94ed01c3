//! A server from its first line to its last: storage, spans, doors, and their end.

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use wavetank_calls::{Keeping, Storage, StorageOptions};
use wavetank_model::Result;
use wavetank_telemetry::prometheus::Row;
use wavetank_telemetry::{Bus, Tell, TraceStatus, Tracer};
use wavetank_trace::recorder::Kept;

use crate::cache::Cache;
use crate::counters::Counters;
use crate::http::status::{Told, evicted};
use crate::http::{Desk, Door, duration};
use crate::phase::Phase;
use crate::plan::Plan;
use crate::recording::Tape;
use crate::resp;

/// How long the recording may have ended before it is told.
const LOOK: Duration = Duration::from_secs(1);

/// Where a server is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// By Redis clients.
    pub resp: SocketAddr,
    /// By HTTP clients.
    pub http: SocketAddr,
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "redis://{}, http://{}", self.resp, self.http)
    }
}

/// Who hears of a server's life.
pub struct Listener {
    /// Told once, when clients are served.
    pub ready: Box<dyn FnOnce(&Addresses)>,
    /// Told what somebody should know, now and then.
    pub tell: Tell,
}

/// What a server did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Commands of Redis clients.
    pub commands: u64,
    /// Requests by HTTP.
    pub http_requests: u64,
    /// Objects asked for.
    pub lookups: u64,
    /// Those found.
    pub hits: u64,
    /// Bytes that clients wrote.
    pub bytes_in: u64,
    /// Bytes that clients read.
    pub bytes_out: u64,
    /// Objects that left a tier to make room.
    pub evicted: u64,
    /// What was recorded; absent if nothing was.
    pub recorded: Option<Recorded>,
    /// Spans that arrived, and events and spans that did not; absent if none were exported.
    pub spans: Option<(u64, u64)>,
    /// What did not end as it should.
    pub warnings: Vec<String>,
}

/// What a recording came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Its files in order.
    pub files: Vec<PathBuf>,
    /// Calls in them.
    pub calls: u64,
    /// Calls that are not.
    pub lost: u64,
}

/// A server while it runs.
struct Running {
    cache: Arc<Cache>,
    desk: Arc<Desk>,
    tracer: Option<Arc<Tracer>>,
    tape: Option<Tape>,
    resp: Arc<Mutex<Option<resp::Door>>>,
    http: Door,
}

/// Serves until `stop` says so, or whoever would say so is gone.
pub fn run(plan: &Plan, stop: &Receiver<()>, listener: Listener) -> Result<Report> {
    let running = Running::start(plan, &listener.tell)?;
    (listener.ready)(&running.addresses(plan));
    let told = running.wait(stop, &listener.tell);
    let report = running.end(Instant::now() + duration(plan.drain))?;
    report
        .warnings
        .iter()
        .filter(|&warning| Some(warning) != told.as_ref())
        .for_each(|it| (listener.tell)(it));
    Ok(report)
}

/// The ports of a server that does not serve yet.
struct Listeners {
    resp: TcpListener,
    http: TcpListener,
}

impl Listeners {
    fn take(plan: &Plan) -> Result<Self> {
        plan.settings().check()?;
        let resp = resp::Door::listen(plan.resp)
            .map_err(|error| error.at(format!("--port {}", plan.resp.port())))?;
        Ok(Self { resp, http: Door::listen(plan.http)? })
    }
}

/// What the doors lead to.
struct Parts {
    cache: Arc<Cache>,
    tracer: Option<Arc<Tracer>>,
}

impl Parts {
    fn open(plan: &Plan, tell: &Tell, tape: Option<&Tape>) -> Result<Self> {
        let options = StorageOptions {
            prefetches_in_flight: plan.prefetches_in_flight,
            keeping: Keeping::All,
            closing: duration(plan.drain),
            ..StorageOptions::default()
        };
        let storage = Storage::open(&plan.storage, &options, tape.map(Tape::journal))?;
        let tracer = match &plan.tracing {
            Some(tracing) => tracing.plan(Arc::clone(tell))?.map(Tracer::start).transpose()?.map(Arc::new),
            None => None,
        };
        let cache = Arc::new(Cache {
            storage,
            counters: Counters::default(),
            bus: tracer.as_ref().map_or_else(Bus::off, |tracer| tracer.bus()),
            patience: duration(plan.patience),
        });
        Ok(Self { cache, tracer })
    }
}

impl Running {
    /// Ports come first and files last, so that a start that fails leaves alone what another server has.
    fn start(plan: &Plan, tell: &Tell) -> Result<Self> {
        let listeners = Listeners::take(plan)?;
        let tape = plan.recording.as_ref().map(|to| Tape::start(to, &plan.storage)).transpose()?;
        let opened =
            Parts::open(plan, tell, tape.as_ref()).and_then(|parts| Self::serve(plan, listeners, parts));
        match opened {
            Ok(running) => Ok(running.recorded(tape)),
            Err(error) => {
                if let Some(tape) = tape {
                    tape.discard();
                }
                Err(error)
            }
        }
    }

    fn serve(plan: &Plan, listeners: Listeners, parts: Parts) -> Result<Self> {
        let Parts { cache, tracer } = parts;
        let desk = Arc::new(Desk::new(Arc::clone(&cache), plan.clone()));
        let http = Door::open(listeners.http, Arc::clone(&desk))?;
        let resp = resp::Door::serve(listeners.resp, plan.settings(), Arc::clone(&cache))?;
        Ok(Self { cache, desk, tracer, tape: None, resp: Arc::new(Mutex::new(Some(resp))), http })
    }

    /// The same with its recording, from here on for all.
    fn recorded(mut self, tape: Option<Tape>) -> Self {
        self.tape = tape;
        self.listen_to_parts();
        self.desk.phase.enter(Phase::Serving);
        self
    }

    /// Waits until `stop` says so; tells once if the recording ended before, and gives what was told.
    fn wait(&self, stop: &Receiver<()>, tell: &Tell) -> Option<String> {
        let mut recorded = self.tape.as_ref().map(Tape::teller);
        let mut told = None;
        loop {
            // Any other error is that nobody can say it any more.
            let is_over = stop.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout);
            let kept = recorded.as_ref().map(|recorded| recorded());
            if let Some(end) = kept.as_ref().and_then(Kept::end) {
                let words = ended_early(end);
                tell(&words);
                told = Some(words);
                recorded = None;
            }
            if is_over {
                return told;
            }
        }
    }

    fn addresses(&self, plan: &Plan) -> Addresses {
        let resp = self.resp.lock().unwrap_or_else(PoisonError::into_inner);
        Addresses { resp: resp.as_ref().map_or(plan.resp, resp::Door::address), http: self.http.address() }
    }

    /// Status and metrics have what other parts say.
    fn listen_to_parts(&self) {
        let resp = Arc::clone(&self.resp);
        self.desk.parts.add("resp", Box::new(move || told_by_resp(&resp)));
        if let Some(tracer) = self.tracer.clone() {
            self.desk.parts.add("spans", Box::new(move || told_by_tracer(&tracer.status())));
        }
        if let Some(recorded) = self.tape.as_ref().map(Tape::teller) {
            self.desk.parts.add("recording", Box::new(move || told_by_recorder(&recorded())));
        }
    }

    /// Lets clients finish until `deadline`; what is behind memory stays.
    fn end(self, deadline: Instant) -> Result<Report> {
        let Self { cache, desk, tracer, tape, resp, http } = self;
        desk.phase.enter(Phase::Draining);
        desk.parts.clear();
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        let front = resp.lock().unwrap_or_else(PoisonError::into_inner).take();
        std::thread::scope(|scope| {
            scope.spawn(|| front.map(|door| door.drain(left(deadline))));
            http.drain(left(deadline));
        });
        let mut report = report(&desk);
        drop(desk);
        report.spans = tracer.map(|tracer| {
            let exported = tracer.finish();
            (exported.sent(), exported.lost() + exported.lost_events)
        });
        if let Err(error) = close(cache, deadline) {
            report.warnings.push(error);
        }
        // Last, because the end of the storage layer is recorded too.
        match tape.map(Tape::finish) {
            None => {}
            Some(Ok(kept)) => report.keep(kept),
            Some(Err(error)) => report.warnings.push(format!("the recording is not whole: {error}")),
        }
        Ok(report)
    }
}

/// Ends the storage layer once nobody uses it any more.
fn close(mut cache: Arc<Cache>, deadline: Instant) -> Result<(), String> {
    loop {
        match Arc::try_unwrap(cache) {
            Ok(cache) => return cache.storage.close().map_err(|error| error.to_string()),
            Err(_) if Instant::now() > deadline => return Err("clients were cut off".to_owned()),
            Err(shared) => cache = shared,
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn told_by_resp(door: &Mutex<Option<resp::Door>>) -> Told {
    let door = door.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(status) = door.as_ref().map(resp::Door::status) else {
        return Told { json: json!({}), rows: Vec::new() };
    };
    Told {
        json: json!({
            "connections": status.connections,
            "memory_bytes": status.memory_bytes,
            "leased_bytes": status.leased_bytes,
        }),
        rows: vec![
            Row::gauge("resp_connections", "Redis clients that are connected", status.connections as f64),
            Row::gauge("resp_memory", "What they have under way", status.memory_bytes as f64).unit("bytes"),
            Row::gauge("resp_leased", "What stays for those that saw it", status.leased_bytes as f64)
                .unit("bytes"),
        ],
    }
}

fn told_by_tracer(status: &TraceStatus) -> Told {
    let exports = status.exports.iter().map(|export| {
        let lost: serde_json::Map<String, serde_json::Value> =
            export.lost.iter().map(|(reason, count)| (reason.name().to_owned(), (*count).into())).collect();
        let target = crate::http::without_login(&export.target);
        json!({ "target": target, "sent": export.sent, "lost": lost, "problem": export.problem })
    });
    Told {
        json: json!({
            "queued_events": status.queued_events,
            "events": status.events,
            "lost_events": status.lost_events,
            "spans": status.sessions.spans,
            "open": status.sessions.open,
            "orphaned": status.sessions.orphaned,
            "exports": exports.collect::<Vec<_>>(),
        }),
        rows: vec![
            Row::gauge(
                "trace_events_queued",
                "Events that wait to become spans",
                status.queued_events as f64,
            ),
            Row::counter("trace_events_lost", "Events that found no room", status.lost_events),
            Row::counter("trace_spans", "Spans made", status.sessions.spans),
            Row::counter("trace_spans_sent", "Spans that arrived", status.sent()),
            Row::counter("trace_spans_lost", "Spans that did not", status.lost()),
        ],
    }
}

fn told_by_recorder(kept: &Kept) -> Told {
    let (written, is_over) = (&kept.written, kept.end().is_some());
    Told {
        json: json!({
            "files": written.files,
            "calls": written.calls,
            "bytes": written.bytes,
            "lost": kept.lost(),
            "ended_early": kept.end(),
        }),
        rows: vec![
            Row::counter("recorded_calls", "Calls in the recording", written.calls),
            Row::counter("recorded", "What they take before compression", written.bytes).unit("bytes"),
            Row::counter("recording_lost_calls", "Calls that are not in it", kept.lost()),
            Row::gauge("recording_ended_early", "Whether it ended early", f64::from(u8::from(is_over))),
        ],
    }
}

fn ended_early(why: &str) -> String {
    format!("the recording ended early: {why}")
}

fn report(desk: &Desk) -> Report {
    let counters = &desk.cache.counters;
    Report {
        commands: counters.commands.total(),
        http_requests: desk.counts.http_requests.total(),
        lookups: counters.lookups.total(),
        hits: counters.l1_hits.total() + counters.l2_hits.total(),
        bytes_in: counters.bytes_in.total(),
        bytes_out: counters.bytes_out.total(),
        evicted: evicted(&desk.cache.storage.background()),
        ..Report::default()
    }
}

impl Report {
    fn keep(&mut self, kept: Kept) {
        let lost = kept.lost();
        self.warnings.extend((lost > 0).then(|| format!("{lost} calls are missing in the recording")));
        self.warnings.extend(kept.end().map(ended_early));
        self.recorded = Some(Recorded { files: kept.written.files, calls: kept.written.calls, lost });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MIB: f64 = (1u64 << 20) as f64;
        let mib = |bytes: u64| bytes as f64 / MIB;
        writeln!(f, "Answered: {} commands, {} HTTP requests", self.commands, self.http_requests)?;
        writeln!(f, "Objects asked for: {}, found: {}", self.lookups, self.hits)?;
        writeln!(f, "Written: {:.1} MiB, read: {:.1} MiB", mib(self.bytes_in), mib(self.bytes_out))?;
        writeln!(f, "Evicted: {}", self.evicted)?;
        if let Some(Recorded { files, calls, lost }) = &self.recorded {
            let files: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
            writeln!(f, "Recorded in {}: {calls} calls, {lost} lost", files.join(", "))?;
        }
        if let Some((sent, lost)) = self.spans {
            writeln!(f, "Spans: {sent} sent, {lost} lost")?;
        }
        self.warnings.iter().try_for_each(|warning| writeln!(f, "Warning: {warning}"))
    }
}
