//! One record per request that ended, as the reference writes them (spec/replay.md 8.3).

use std::borrow::{Borrow, Cow};
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use wavetank_model::{InFlight, Nanos, RequestId, ServeEvent, Sink, TierEvent, WorkerId};

/// One line of the per-request output. Times are milliseconds from the start of the simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// `request_id` of the trace.
    pub request_id: Option<String>,
    /// `session_id` of the trace, or a name made from its position.
    pub session_id: String,
    /// Position within the session, from 0.
    pub turn_index: u32,
    /// The request's number, written as a UUID.
    pub uuid: String,
    /// When its waiting began.
    pub arrival_time_ms: f64,
    /// When an engine first took it.
    pub first_admit_ms: Option<f64>,
    /// When it ended.
    pub terminal_time_ms: f64,
    /// When its first token came.
    pub first_token_ms: Option<f64>,
    /// When its last token came.
    pub last_token_ms: Option<f64>,
    /// Arrival to first token.
    pub ttft_ms: Option<f64>,
    /// First to second token.
    pub ttst_ms: Option<f64>,
    /// Arrival to last token.
    pub e2e_latency_ms: Option<f64>,
    /// Mean gap between tokens.
    pub itl_ms: Option<f64>,
    /// Prompt tokens.
    pub input_length: u32,
    /// Tokens asked for.
    pub requested_output_length: u32,
    /// Tokens generated.
    pub output_length: u32,
    /// Prompt tokens found in the cache at first admission.
    pub reused_input_tokens: u32,
    /// Tokens that its first load found in each tier, from the fastest; empty where it loaded nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tier_tokens: Vec<u32>,
    /// How long that load took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier_load_ms: Option<f64>,
    /// The worker that computed its prompt for another.
    pub prefill_worker_idx: Option<u32>,
    /// The worker that served it.
    pub decode_worker_idx: Option<u32>,
    /// When its prompt was computed for another worker.
    pub source_held_ms: Option<f64>,
    /// When that worker had room.
    pub destination_reserved_ms: Option<f64>,
    /// When that worker could begin with it.
    pub destination_activated_ms: Option<f64>,
    /// Prompt tokens the router believed to be cached there.
    pub decode_route_overlap_tokens: Option<u32>,
    /// Waiting in the router.
    pub router_queue_ms: Option<f64>,
    /// From the router's decision to the first admission.
    pub engine_queue_ms: Option<f64>,
    /// In passes that computed its prompt, up to its first token.
    pub prefill_ms: f64,
    /// Every decision of a router.
    pub routing_history: Vec<Routing>,
    /// Every admission.
    pub admission_history: Vec<Admission>,
    /// How many there were.
    pub admission_count: u32,
    /// How many came after a preemption.
    pub readmission_count: u32,
    /// `completed`, `rejected` or `canceled`.
    pub terminal_status: Cow<'static, str>,
    /// Why it was rejected.
    pub rejection_reason: Option<Cow<'static, str>>,
}

/// Writes one compact JSON object per line.
pub fn write_records(
    records: impl IntoIterator<Item = impl Borrow<Record>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    for record in records {
        serde_json::to_writer(&mut *out, record.borrow())?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// One decision of a router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Routing {
    /// `agg`.
    pub pool: Cow<'static, str>,
    /// `immediate` or `queued`.
    pub outcome: Cow<'static, str>,
    /// When it entered the router's queue.
    pub queue_entered_at_ms: Option<f64>,
    /// When it was sent to the worker.
    pub released_at_ms: f64,
    /// How long it waited for that.
    pub queue_wait_ms: f64,
    /// The worker.
    pub logical_worker_id: u32,
    /// The worker's scheduler.
    pub scheduler_id: u32,
    /// Its rank.
    pub dp_rank: u32,
    /// Prompt tokens believed to be cached there.
    pub reported_overlap_tokens: u32,
}

/// One admission of a request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Admission {
    /// From 0.
    pub admission_ordinal: u32,
    /// When.
    pub at_ms: f64,
    /// Prompt tokens found in the cache.
    pub reused_input_tokens: u32,
    /// Whether it followed a preemption.
    pub is_readmission: bool,
}

struct Open {
    record: Record,
    arrival: Nanos,
    routed: Nanos,
    prefill: Nanos,
    first_token: Nanos,
    second_token: Option<Nanos>,
    last_token: Nanos,
}

/// Collects records.
#[derive(Default)]
pub struct Records {
    open: InFlight<Open>,
    ended: Vec<(Nanos, RequestId, Record)>,
}

impl Records {
    /// The records of all requests that ended, in order of arrival.
    pub fn sorted(mut self) -> impl Iterator<Item = Record> {
        self.ended.sort_by_key(|&(arrival, id, _)| (arrival, id));
        self.ended.into_iter().map(|(_, _, record)| record)
    }

    /// Writes one compact JSON object per line.
    pub fn write(self, out: &mut dyn Write) -> io::Result<()> {
        write_records(self.sorted(), out)
    }

    fn routed(&mut self, id: RequestId, routing: Routing, at: Nanos) {
        let open = live(&mut self.open, id);
        open.routed = at;
        open.record.decode_route_overlap_tokens = Some(routing.reported_overlap_tokens);
        open.record.router_queue_ms = Some(routing.queue_wait_ms);
        open.record.routing_history.push(routing);
    }

    fn admitted(&mut self, id: RequestId, worker: WorkerId, at: Nanos, reused: u32) {
        let Open { record, routed, .. } = live(&mut self.open, id);
        let ordinal = record.admission_count;
        if ordinal == 0 {
            record.first_admit_ms = Some(at.as_ms());
            record.engine_queue_ms = Some(at.since(*routed).as_ms());
            record.reused_input_tokens = reused;
        }
        record.decode_worker_idx = Some(worker.0);
        record.admission_count += 1;
        record.readmission_count = ordinal;
        record.admission_history.push(Admission {
            admission_ordinal: ordinal,
            at_ms: at.as_ms(),
            reused_input_tokens: reused,
            is_readmission: ordinal > 0,
        });
    }

    fn emitted(&mut self, start: Nanos, steps: &[Nanos], requests: &[RequestId]) {
        let first_end = start + steps[0];
        let end = start + steps.iter().copied().sum();
        for &id in requests {
            let open = live(&mut self.open, id);
            match open.record.output_length {
                0 => {
                    open.first_token = first_end;
                    open.second_token = steps.get(1).map(|&step| first_end + step);
                }
                1 => open.second_token = Some(first_end),
                _ => {}
            }
            open.record.output_length += steps.len() as u32;
            open.last_token = end;
        }
    }

    fn end(&mut self, id: RequestId, at: Nanos, status: &'static str, reason: Option<&'static str>) {
        let Open { mut record, arrival, prefill, first_token, second_token, last_token, .. } =
            self.open.remove(id).expect("a request ends once");
        record.prefill_ms = prefill.as_ms();
        record.terminal_time_ms = at.as_ms();
        record.terminal_status = status.into();
        record.rejection_reason = reason.map(Cow::Borrowed);
        if record.output_length > 0 {
            record.first_token_ms = Some(first_token.as_ms());
            record.last_token_ms = Some(last_token.as_ms());
            record.ttft_ms = Some(first_token.since(arrival).as_ms());
            record.e2e_latency_ms = Some(last_token.since(arrival).as_ms());
        }
        record.ttst_ms = second_token.map(|second| (second - first_token).as_ms());
        if record.output_length > 1 {
            record.itl_ms = Some((last_token - first_token).as_ms() / f64::from(record.output_length - 1));
        }
        self.ended.push((arrival, id, record));
    }
}

fn live(open: &mut InFlight<Open>, id: RequestId) -> &mut Open {
    open.value_mut(id).expect("events of a request come between its arrival and its end")
}

fn routing(worker: WorkerId, at: Nanos, queued_since: Option<Nanos>, overlap_tokens: u32) -> Routing {
    Routing {
        pool: "agg".into(),
        outcome: if queued_since.is_some() { "queued" } else { "immediate" }.into(),
        queue_entered_at_ms: queued_since.map(Nanos::as_ms),
        released_at_ms: at.as_ms(),
        queue_wait_ms: queued_since.map_or(0.0, |since| (at - since).as_ms()),
        logical_worker_id: worker.0,
        scheduler_id: worker.0,
        dp_rank: 0,
        reported_overlap_tokens: overlap_tokens,
    }
}

/// A record of which nothing is known but the request.
fn opened(id: RequestId, at: Nanos, request: &wavetank_model::Request) -> Record {
    let labels = request.labels.as_deref();
    Record {
        request_id: labels.and_then(|labels| labels.request.clone()),
        session_id: labels.map_or_else(|| format!("session_{}", request.session.0), |l| l.session.clone()),
        turn_index: request.turn,
        uuid: format!("00000000-0000-0000-0000-{:012x}", u64::from(id.0) + 1),
        arrival_time_ms: at.as_ms(),
        first_admit_ms: None,
        terminal_time_ms: 0.0,
        first_token_ms: None,
        last_token_ms: None,
        ttft_ms: None,
        ttst_ms: None,
        e2e_latency_ms: None,
        itl_ms: None,
        input_length: request.prompt.tokens(),
        requested_output_length: request.output_tokens,
        output_length: 0,
        reused_input_tokens: 0,
        tier_tokens: Vec::new(),
        tier_load_ms: None,
        prefill_worker_idx: None,
        decode_worker_idx: None,
        source_held_ms: None,
        destination_reserved_ms: None,
        destination_activated_ms: None,
        decode_route_overlap_tokens: None,
        router_queue_ms: None,
        engine_queue_ms: None,
        prefill_ms: 0.0,
        routing_history: Vec::new(),
        admission_history: Vec::new(),
        admission_count: 0,
        readmission_count: 0,
        terminal_status: "".into(),
        rejection_reason: None,
    }
}

impl Sink<ServeEvent<'_>> for Records {
    fn record(&mut self, event: &ServeEvent<'_>) {
        match *event {
            ServeEvent::RequestArrived { request, at, details } => {
                let open = Open {
                    record: opened(request, at, details),
                    arrival: at,
                    routed: at,
                    prefill: Nanos::ZERO,
                    first_token: Nanos::ZERO,
                    second_token: None,
                    last_token: Nanos::ZERO,
                };
                self.open.insert(request, open);
            }
            ServeEvent::RequestAdmitted { request, worker, at, reused_tokens } => {
                self.admitted(request, worker, at, reused_tokens);
            }
            ServeEvent::RequestRouted { request, worker, at, queued_since, overlap_tokens } => {
                self.routed(request, routing(worker, at, queued_since, overlap_tokens), at);
            }
            ServeEvent::PromptComputed { request, step, .. } => {
                let open = live(&mut self.open, request);
                if open.record.output_length == 0 {
                    open.prefill += step;
                }
            }
            ServeEvent::RequestHandedOff { request, from, to, times, at } => {
                let record = &mut live(&mut self.open, request).record;
                record.prefill_worker_idx = Some(from.0);
                record.decode_worker_idx = Some(to.0);
                record.source_held_ms = Some(times.held_at.as_ms());
                record.destination_reserved_ms = Some(times.reserved_at.as_ms());
                record.destination_activated_ms = Some(at.as_ms());
            }
            ServeEvent::Tier(TierEvent::Loaded { request, tokens, asked, at, .. }) => {
                let record = &mut live(&mut self.open, request).record;
                if record.tier_load_ms.is_none() {
                    record.tier_tokens = tokens.to_vec();
                    record.tier_load_ms = Some(at.since(asked).as_ms());
                }
            }
            ServeEvent::RequestQueued { .. }
            | ServeEvent::RequestPreempted { .. }
            | ServeEvent::PassesRan { .. }
            | ServeEvent::WorkerChanged { .. }
            | ServeEvent::PoolScaled { .. }
            | ServeEvent::Tier(_) => {}
            ServeEvent::TokensEmitted { start, steps, requests, .. } => self.emitted(start, steps, requests),
            ServeEvent::RequestCompleted { request, at, .. } => self.end(request, at, "completed", None),
            ServeEvent::RequestRejected { request, at, reason, .. } => {
                self.end(request, at, "rejected", Some(reason.name()));
            }
            ServeEvent::RequestCancelled { request, at, .. } => self.end(request, at, "canceled", None),
        }
    }
}
