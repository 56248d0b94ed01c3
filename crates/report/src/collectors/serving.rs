//! The headline numbers of a serving run: latency, throughput, reuse, goodput (spec/replay.md 8).

use serde::{Deserialize, Serialize};
use wavetank_model::{
    HandoffTimes, InFlight, Nanos, RejectReason, Request, RequestId, ServeEvent, Sink, TierEvent, WorkerId,
};

use super::course::{CourseOf, Place, Served, Workers};
use crate::summary::{Counts, Pictures, Summary, curve_percentiles};
use crate::{Attribution, Gaps, Samples, Scaling, Spans, WorkerShare};

/// Bounds a request must keep to be good, all inclusive; `None` is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sla {
    /// Time to the first token.
    pub ttft_ms: Option<f64>,
    /// Mean time between tokens.
    pub itl_ms: Option<f64>,
    /// Time to the last token.
    pub e2e_ms: Option<f64>,
}

impl Sla {
    /// Whether any bound is set.
    pub fn is_set(&self) -> bool {
        *self != Self::default()
    }

    /// Without tokens there is nothing to hold a token bound against: such a request is good only when the
    /// end-to-end bound is the only one.
    fn holds(&self, ended: &Ended) -> bool {
        let within = |bound: Option<f64>, value: Option<f64>| match (bound, value) {
            (Some(bound), Some(value)) => value <= bound,
            _ => true,
        };
        let countable = ended.ttft_ms.is_some() || (self.ttft_ms.is_none() && self.itl_ms.is_none());
        countable
            && within(self.ttft_ms, ended.ttft_ms)
            && within(self.itl_ms, ended.tpot_ms)
            && within(self.e2e_ms, Some(ended.e2e_ms))
    }
}

/// A completed request in the units of the report.
struct Ended {
    ttft_ms: Option<f64>,
    tpot_ms: Option<f64>,
    e2e_ms: f64,
}

/// What is known of a request that has not ended.
struct Progress {
    arrival: Nanos,
    worker: WorkerId,
    routed: Nanos,
    first_admit: Option<Nanos>,
    /// Time that loads from tiers held up its admission.
    load: Nanos,
    /// Time in passes that computed its prompt, up to its first token.
    prefill: Nanos,
    handoff: Handoff,
    first_token: Nanos,
    last_token: Nanos,
    second_gap: Option<Nanos>,
    tokens: u32,
    input_tokens: u32,
    first_reuse: u32,
    best_reuse: u32,
    place: Place,
}

/// The parts of a request's way to a decode worker; all zero for one that stays where it is.
#[derive(Clone, Copy, Default)]
struct Handoff {
    /// Waiting for room, and how much of it before a prefill worker was chosen.
    room: Nanos,
    early_room: Nanos,
    transfer: Nanos,
    /// When it came.
    received: Option<Nanos>,
    wait: Nanos,
    step: Nanos,
}

impl Handoff {
    fn sum(&self) -> Nanos {
        self.room + self.transfer + self.wait + self.step
    }
}

/// Collects the summary of a run.
#[derive(Default)]
pub struct Serving {
    sla: Sla,
    course: Option<CourseOf>,
    scaling: Scaling,
    in_flight: InFlight<Progress>,
    counts: Counts,
    ttft_ms: Samples,
    ttst_ms: Samples,
    tpot_ms: Samples,
    e2e_ms: Samples,
    gaps: Gaps,
    router_queue: Spans,
    engine_queue: Spans,
    tier_load: Spans,
    prefill: Spans,
    decode_room: Spans,
    transfer: Spans,
    decode_wait: Spans,
    decode_step: Spans,
    first_token_wait: Spans,
    decode: Spans,
    workers: Vec<WorkerShare>,
    last_completion: Nanos,
    input_tokens: u64,
    output_tokens: u64,
    first_reuse: u64,
    best_reuse: u64,
    good_requests: u64,
    good_tokens: u64,
}

impl Serving {
    /// A collector that judges requests by `sla`.
    pub fn judging(sla: Sla) -> Self {
        Self { sla, ..Self::default() }
    }

    /// The same, which also keeps what pictures are drawn from.
    pub fn picturing(self, fleet: &[Workers]) -> Self {
        Self { course: Some(CourseOf::new(fleet)), ..self }
    }

    fn pictures(&mut self) -> Option<Pictures> {
        let course = self.course.take()?;
        [&mut self.ttft_ms, &mut self.tpot_ms, &mut self.e2e_ms].into_iter().for_each(Samples::sort);
        let percentiles = curve_percentiles();
        let curves = vec![
            ("ttft_ms", self.ttft_ms.curve(&percentiles)),
            ("tpot_ms", self.tpot_ms.curve(&percentiles)),
            ("itl_ms", self.gaps.curve_ms(&percentiles)),
            ("e2e_latency_ms", self.e2e_ms.curve(&percentiles)),
        ];
        Some(Pictures { course, curves })
    }

    /// The numbers of everything recorded.
    pub fn summary(mut self) -> Summary {
        Summary {
            scaling: self.scaling.is_told().then(|| std::mem::take(&mut self.scaling)),
            pictures: self.pictures(),
            tiers: None,
            goodput: self.sla.is_set().then_some((self.good_requests, self.good_tokens)),
            counts: self.counts,
            duration: self.last_completion,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            reused_tokens: self.best_reuse,
            first_reused_tokens: self.first_reuse,
            itl_ms: self.gaps.spans_ms(),
            rate_per_user: self.gaps.rates(),
            ttft_ms: self.ttft_ms.distribution(),
            ttst_ms: self.ttst_ms.distribution(),
            tpot_ms: self.tpot_ms.distribution(),
            e2e_ms: self.e2e_ms.distribution(),
            attribution: Attribution {
                router_queue_ms: self.router_queue.distribution_ms(),
                engine_queue_ms: self.engine_queue.distribution_ms(),
                tier_load_ms: self.tier_load.distribution_ms(),
                prefill_ms: self.prefill.distribution_ms(),
                decode_room_ms: self.decode_room.distribution_ms(),
                transfer_ms: self.transfer.distribution_ms(),
                decode_wait_ms: self.decode_wait.distribution_ms(),
                decode_step_ms: self.decode_step.distribution_ms(),
                first_token_wait_ms: self.first_token_wait.distribution_ms(),
                decode_ms: self.decode.distribution_ms(),
                workers: self.workers,
                span: self.last_completion,
            },
        }
    }

    fn arrived(&mut self, id: RequestId, arrival: Nanos, request: &Request) {
        self.counts.arrived += 1;
        let progress = Progress {
            arrival,
            worker: WorkerId(0),
            routed: arrival,
            first_admit: None,
            load: Nanos::ZERO,
            prefill: Nanos::ZERO,
            handoff: Handoff::default(),
            first_token: Nanos::ZERO,
            last_token: Nanos::ZERO,
            second_gap: None,
            tokens: 0,
            input_tokens: request.prompt.tokens(),
            first_reuse: 0,
            best_reuse: 0,
            place: Place::Router,
        };
        self.in_flight.insert(id, progress);
        self.course.iter_mut().for_each(|course| course.arrived(arrival));
    }

    fn routed(&mut self, id: RequestId, worker: WorkerId, at: Nanos) {
        let progress = live(&mut self.in_flight, id);
        (progress.worker, progress.routed) = (worker, at);
        self.share(worker).requests += 1;
        self.put(id, Place::Waiting(worker), at);
    }

    /// A request is somewhere else from now on.
    fn put(&mut self, id: RequestId, place: Place, at: Nanos) {
        if let Some(course) = &mut self.course {
            let before = std::mem::replace(&mut live(&mut self.in_flight, id).place, place);
            course.moved(before, place, at);
        }
    }

    fn share(&mut self, worker: WorkerId) -> &mut WorkerShare {
        if worker.index() >= self.workers.len() {
            self.workers.resize_with(worker.index() + 1, WorkerShare::default);
        }
        &mut self.workers[worker.index()]
    }

    fn admitted(&mut self, (id, worker): (RequestId, WorkerId), at: Nanos, reused: u32) {
        self.put(id, Place::Running(worker), at);
        let progress = live(&mut self.in_flight, id);
        if progress.first_admit.is_none() {
            progress.first_admit = Some(at);
            progress.first_reuse = reused;
            let (worker, asked) = (progress.worker, progress.input_tokens);
            progress.best_reuse = reused;
            self.share(worker).reused_tokens += u64::from(reused);
            self.course.iter_mut().for_each(|course| course.looked_up(at, asked, reused));
        } else {
            progress.best_reuse = progress.best_reuse.max(reused);
            self.counts.readmissions += 1;
        }
    }

    /// A load that ends before the admission held it up; one beside compute is told of after it.
    fn loaded(&mut self, id: RequestId, asked: Nanos, at: Nanos) {
        let progress = live(&mut self.in_flight, id);
        if progress.first_admit.is_none() {
            progress.load += at.since(asked);
        }
    }

    fn preempted(&mut self, id: RequestId, worker: WorkerId, at: Nanos) {
        self.counts.preemptions += 1;
        self.put(id, Place::Waiting(worker), at);
        self.course.iter_mut().for_each(|course| course.preempted(at));
    }

    fn prompt_computed(
        &mut self,
        id: RequestId,
        worker: WorkerId,
        (start, step): (Nanos, Nanos),
        tokens: u32,
    ) {
        let progress = live(&mut self.in_flight, id);
        if progress.tokens == 0 {
            progress.prefill += step;
        }
        self.share(worker).prompt_tokens += u64::from(tokens);
        self.course.iter_mut().for_each(|course| course.computed(start, start + step, tokens));
    }

    /// One token per request and step. All but a request's first token close a gap; within a run every gap is
    /// a step, so the run is recorded by step and not by request.
    fn emitted(&mut self, start: Nanos, steps: &[Nanos], requests: &[RequestId]) {
        let first_end = start + steps[0];
        let end = start + steps.iter().copied().sum();
        let mut in_step = 0;
        for &id in requests {
            let progress = live(&mut self.in_flight, id);
            match progress.tokens {
                0 => {
                    progress.first_token = first_end;
                    if let Some(received) = progress.handoff.received {
                        progress.handoff.wait = start - received;
                        progress.handoff.step = steps[0];
                    }
                }
                _ if progress.last_token == start => in_step += 1,
                _ => self.gaps.record(first_end - progress.last_token, 1),
            }
            if progress.second_gap.is_none() {
                progress.second_gap = match (progress.tokens, steps.get(1)) {
                    (0, second) => second.copied(),
                    _ => Some(first_end - progress.last_token),
                };
            }
            progress.tokens += steps.len() as u32;
            progress.last_token = end;
        }
        if in_step > 0 {
            self.gaps.record(steps[0], in_step);
        }
        self.gaps.record_all(&steps[1..], requests.len() as u64);
        let tokens = (steps.len() * requests.len()) as u64;
        self.course.iter_mut().for_each(|course| course.emitted(start, end, tokens));
    }

    fn completed(&mut self, id: RequestId, at: Nanos) {
        self.put(id, Place::Elsewhere, at);
        let progress = self.in_flight.remove(id).expect("a request completes once");
        self.counts.completed += 1;
        self.last_completion = self.last_completion.max(at);
        self.input_tokens += u64::from(progress.input_tokens);
        self.output_tokens += u64::from(progress.tokens);
        self.first_reuse += u64::from(progress.first_reuse);
        self.best_reuse += u64::from(progress.best_reuse);
        let ended = self.latencies(&progress, at);
        let served = ended.ttft_ms.map(|ttft_ms| Served {
            first_token: progress.first_token,
            last_token: progress.last_token,
            ttft_ms,
            tpot_ms: ended.tpot_ms,
            e2e_ms: ended.e2e_ms,
        });
        self.course.iter_mut().for_each(|course| course.completed(at, served));
        if self.sla.holds(&ended) {
            self.good_requests += 1;
            self.good_tokens += u64::from(progress.tokens);
        }
    }

    /// Records the latencies of a completed request; one without tokens has only its end.
    fn latencies(&mut self, progress: &Progress, at: Nanos) -> Ended {
        let Progress { arrival, first_token, last_token, tokens, .. } = *progress;
        if tokens == 0 {
            return Ended { ttft_ms: None, tpot_ms: None, e2e_ms: at.since(arrival).as_ms() };
        }
        let ttft_ms = first_token.since(arrival).as_ms();
        let e2e_ms = last_token.since(arrival).as_ms();
        let decode = last_token - first_token;
        let tpot_ms = (tokens > 1).then(|| decode.as_ms() / f64::from(tokens - 1));
        self.ttft_ms.record(ttft_ms);
        self.e2e_ms.record(e2e_ms);
        tpot_ms.into_iter().for_each(|ms| self.tpot_ms.record(ms));
        progress.second_gap.into_iter().for_each(|gap| self.ttst_ms.record(gap.as_ms()));
        self.decode.record(decode);
        self.parts(progress);
        let share = self.share(progress.worker);
        share.completed += 1;
        share.output_tokens += u64::from(tokens);
        share.ttft_ms_sum += ttft_ms;
        Ended { ttft_ms: Some(ttft_ms), tpot_ms, e2e_ms }
    }

    /// Records where the time to the first token went; what no part explains is the wait for it.
    fn parts(&mut self, progress: &Progress) {
        let Progress { arrival, routed, load, prefill, handoff, first_token, .. } = *progress;
        let admitted = progress.first_admit.expect("tokens come after admission");
        let (router_queue, engine_queue) =
            (routed.since(arrival).since(handoff.early_room), admitted.since(routed).since(load));
        self.router_queue.record(router_queue);
        self.engine_queue.record(engine_queue);
        self.tier_load.record(load);
        self.prefill.record(prefill);
        self.decode_room.record(handoff.room);
        self.transfer.record(handoff.transfer);
        self.decode_wait.record(handoff.wait);
        self.decode_step.record(handoff.step);
        let explained = router_queue + engine_queue + load + prefill + handoff.sum();
        self.first_token_wait.record(first_token.since(arrival).since(explained));
    }

    fn handed_off(&mut self, id: RequestId, (to, at): (WorkerId, Nanos), times: HandoffTimes) {
        let HandoffTimes { held_at, reserved_at, sent_at, received_at } = times;
        self.put(id, Place::Elsewhere, held_at);
        self.put(id, Place::Running(to), at);
        let progress = live(&mut self.in_flight, id);
        progress.worker = to;
        // Room is found before the request is sent to a prefill worker, or after its prompt is computed.
        let early = reserved_at <= progress.routed && reserved_at < held_at;
        let early_room = if early { reserved_at.since(progress.arrival) } else { Nanos::ZERO };
        let room = early_room + sent_at.since(held_at);
        let transfer = received_at - sent_at;
        let received = Some(received_at);
        progress.handoff = Handoff { room, early_room, transfer, received, ..Handoff::default() };
        self.share(to).requests += 1;
    }

    fn rejected(&mut self, id: RequestId, at: Nanos, reason: RejectReason) {
        self.put(id, Place::Elsewhere, at);
        self.course.iter_mut().for_each(|course| course.rejected(at));
        self.in_flight.remove(id).expect("a request is rejected once");
        *self.counts.rejected.entry(reason).or_default() += 1;
    }

    fn cancelled(&mut self, id: RequestId, at: Nanos) {
        self.put(id, Place::Elsewhere, at);
        self.in_flight.remove(id).expect("a request is cancelled once");
        self.counts.cancelled += 1;
    }
}

fn live(in_flight: &mut InFlight<Progress>, id: RequestId) -> &mut Progress {
    in_flight.value_mut(id).expect("events of a request come between its arrival and its end")
}

impl Sink<ServeEvent<'_>> for Serving {
    fn record(&mut self, event: &ServeEvent<'_>) {
        match *event {
            ServeEvent::RequestArrived { request, at, details } => self.arrived(request, at, details),
            ServeEvent::RequestAdmitted { request, worker, at, reused_tokens } => {
                self.admitted((request, worker), at, reused_tokens);
            }
            ServeEvent::RequestRouted { request, worker, at, .. } => self.routed(request, worker, at),
            ServeEvent::PromptComputed { request, worker, start, step, tokens } => {
                self.prompt_computed(request, worker, (start, step), tokens);
            }
            ServeEvent::RequestHandedOff { request, to, times, at, .. } => {
                self.handed_off(request, (to, at), times);
            }
            ServeEvent::RequestQueued { .. } => {}
            ServeEvent::RequestPreempted { request, worker, at } => self.preempted(request, worker, at),
            ServeEvent::PassesRan { worker, start, end, blocks_in_use } => {
                self.course.iter_mut().for_each(|course| course.ran(worker, (start, end), blocks_in_use));
            }
            ServeEvent::TokensEmitted { start, steps, requests, .. } => self.emitted(start, steps, requests),
            ServeEvent::RequestCompleted { request, at, .. } => self.completed(request, at),
            ServeEvent::RequestRejected { request, at, reason, .. } => self.rejected(request, at, reason),
            ServeEvent::RequestCancelled { request, at, .. } => self.cancelled(request, at),
            ServeEvent::Tier(TierEvent::Loaded { request, asked, at, .. }) => self.loaded(request, asked, at),
            ServeEvent::Tier(_) => {}
            ServeEvent::WorkerChanged { worker, pool, .. } => {
                self.course.iter_mut().for_each(|course| course.joined(worker, pool));
                self.scaling.record(event);
            }
            ServeEvent::PoolScaled { .. } => self.scaling.record(event),
        }
    }
}
