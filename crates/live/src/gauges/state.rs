//! From events to counts: where every request in flight is, and what has been seen of those that were.

use std::collections::HashMap;
use std::mem;

use wavetank_model::{Nanos, Request, RequestId, ServeEvent, WorkerId};
use wavetank_sim::{EngineConfig, Plan};

use super::counts::{Finished, Snapshot, Tally, WorkerCounts};
use super::engines;
use super::histogram::{Bounds, Histogram, Histograms};
use crate::mock::Finish;

/// What gauges know. It grows with what is in flight, and with nothing else.
#[derive(Debug)]
pub(super) struct State {
    pub(super) workers: Vec<Worker>,
    flights: HashMap<RequestId, Flight>,
    arrived: u64,
    pub(super) waiting_in_router: u64,
    pub(super) cancelled_in_router: u64,
    /// Why the answer to the next request that arrives will end.
    pub(super) next_finish: Option<Finish>,
}

/// A worker.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub(super) counts: WorkerCounts,
    pub(super) histograms: Histograms,
}

/// A request in flight.
#[derive(Debug)]
struct Flight {
    place: Place,
    finish: Finish,
    prompt_tokens: u64,
    arrived: Nanos,
    queued: Option<Nanos>,
    admitted: Option<Nanos>,
    tokens: Option<Tokens>,
}

/// Where a request is.
#[derive(Clone, Copy, Debug)]
enum Place {
    Router,
    Sent(WorkerId),
    Waiting(WorkerId),
    Running(WorkerId),
}

impl Place {
    fn worker(self) -> Option<WorkerId> {
        match self {
            Self::Router => None,
            Self::Sent(worker) | Self::Waiting(worker) | Self::Running(worker) => Some(worker),
        }
    }
}

/// What a request got.
#[derive(Clone, Copy, Debug)]
struct Tokens {
    first: Nanos,
    last: Nanos,
    count: u64,
}

impl State {
    /// Of the workers of `plan`, before anything happens.
    pub(super) fn of(plan: &Plan) -> Self {
        Self {
            workers: engines(plan).map(Worker::of).collect(),
            flights: HashMap::new(),
            arrived: 0,
            waiting_in_router: 0,
            cancelled_in_router: 0,
            next_finish: None,
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let tally = |histogram: fn(&Histograms) -> &Histogram| {
            let all = self.workers.iter().map(|worker| histogram(&worker.histograms));
            all.fold(Tally::default(), |tally, histogram| Tally {
                count: tally.count + histogram.count(),
                seconds: tally.seconds + histogram.sum,
            })
        };
        Snapshot {
            workers: self.workers.iter().map(|worker| worker.counts).collect(),
            arrived: self.arrived,
            waiting_in_router: self.waiting_in_router,
            cancelled_in_router: self.cancelled_in_router,
            first_token: tally(|histograms| &histograms.first_token),
            token_gap: tally(|histograms| &histograms.token_gap),
        }
    }

    pub(super) fn record(&mut self, event: &ServeEvent<'_>) {
        match *event {
            ServeEvent::RequestArrived { request, at, details } => self.arrived(request, at, details),
            ServeEvent::RequestRouted { request, worker, .. } => self.put(request, Place::Sent(worker)),
            ServeEvent::RequestHandedOff { request, to, .. } => self.put(request, Place::Sent(to)),
            ServeEvent::RequestQueued { request, worker, at } => {
                if let Some(flight) = self.flights.get_mut(&request) {
                    flight.queued.get_or_insert(at);
                }
                self.put(request, Place::Waiting(worker));
            }
            ServeEvent::RequestAdmitted { request, worker, at, reused_tokens } => {
                self.admitted(request, worker, at, reused_tokens);
            }
            ServeEvent::RequestPreempted { request, worker, .. } => {
                self.counts(worker).preemptions += 1;
                self.put(request, Place::Waiting(worker));
            }
            ServeEvent::PromptComputed { .. }
            | ServeEvent::Tier(_)
            | ServeEvent::WorkerChanged { .. }
            | ServeEvent::PoolScaled { .. } => {}
            ServeEvent::TokensEmitted { worker, start, steps, requests } => {
                self.emitted(worker, start, steps, requests);
            }
            ServeEvent::PassesRan { worker, blocks_in_use, .. } => {
                let counts = self.counts(worker);
                counts.passes += 1;
                counts.blocks_in_use = u64::from(blocks_in_use);
                self.clear(worker);
            }
            ServeEvent::RequestCompleted { request, worker, at } => self.completed(request, worker, at),
            ServeEvent::RequestRejected { request, worker, .. } => {
                self.gave_up(request, Some(worker), |finished| &mut finished.error);
            }
            ServeEvent::RequestCancelled { request, worker, .. } => {
                self.gave_up(request, worker, |finished| &mut finished.abort);
            }
        }
    }

    fn counts(&mut self, worker: WorkerId) -> &mut WorkerCounts {
        &mut self.workers[worker.index()].counts
    }

    fn arrived(&mut self, request: RequestId, at: Nanos, details: &Request) {
        let flight = Flight {
            place: Place::Router,
            // A recorded request asks for so many tokens and gets them.
            finish: self.next_finish.take().unwrap_or(Finish::Length),
            prompt_tokens: u64::from(details.prompt.tokens()),
            arrived: at,
            queued: None,
            admitted: None,
            tokens: None,
        };
        self.arrived += 1;
        self.waiting_in_router += 1;
        self.flights.insert(request, flight);
    }

    fn admitted(&mut self, request: RequestId, worker: WorkerId, at: Nanos, reused_tokens: u32) {
        let Some(flight) = self.flights.get_mut(&request) else { return };
        if flight.admitted.is_none() {
            flight.admitted = Some(at);
            let counts = &mut self.workers[worker.index()].counts;
            counts.queried_tokens += flight.prompt_tokens;
            counts.hit_tokens += u64::from(reused_tokens);
        }
        self.put(request, Place::Running(worker));
    }

    /// One token for each of `requests` at the end of each of `steps`. A run of steps is the same for all of
    /// them but for the first gap, which each has of its own.
    fn emitted(&mut self, worker: WorkerId, start: Nanos, steps: &[Nanos], requests: &[RequestId]) {
        let Some((&step, later)) = steps.split_first() else { return };
        let first = start + step;
        let last = first + later.iter().copied().sum();
        let Worker { counts, histograms } = &mut self.workers[worker.index()];
        let (mut getters, count) = (0, steps.len() as u64);
        for request in requests {
            // Who went away in the middle of a pass gets nothing.
            let Some(flight) = self.flights.get_mut(request) else { continue };
            getters += 1;
            match &mut flight.tokens {
                Some(tokens) => {
                    histograms.token_gap.observe_span(first.since(tokens.last));
                    *tokens = Tokens { last, count: tokens.count + count, ..*tokens };
                }
                None => {
                    histograms.first_token.observe_span(first.since(flight.arrived));
                    counts.prompt_tokens += flight.prompt_tokens;
                    flight.tokens = Some(Tokens { first, last, count });
                }
            }
        }
        counts.generated_tokens += getters * count;
        for step in later {
            histograms.token_gap.observe_times(step.as_seconds(), getters);
        }
    }

    fn completed(&mut self, request: RequestId, worker: WorkerId, at: Nanos) {
        let Some(flight) = self.take_out(request) else { return };
        let Worker { counts, histograms } = &mut self.workers[worker.index()];
        match flight.finish {
            Finish::Stop => counts.finished.stop += 1,
            Finish::Length => counts.finished.length += 1,
        }
        if flight.tokens.is_none() {
            counts.prompt_tokens += flight.prompt_tokens;
        }
        histograms.whole.observe_span(at.since(flight.arrived));
        histograms.prompt_tokens.observe(flight.prompt_tokens as f64);
        histograms.generated_tokens.observe(flight.tokens.map_or(0, |tokens| tokens.count) as f64);
        flight.observe_phases(histograms);
    }

    /// A request ended without its answer.
    fn gave_up(
        &mut self,
        request: RequestId,
        worker: Option<WorkerId>,
        reason: fn(&mut Finished) -> &mut u64,
    ) {
        if self.take_out(request).is_some() {
            match worker {
                Some(worker) => *reason(&mut self.counts(worker).finished) += 1,
                None => self.cancelled_in_router += 1,
            }
        }
    }

    /// Moves a request.
    fn put(&mut self, request: RequestId, place: Place) {
        let Some(flight) = self.flights.get_mut(&request) else { return };
        let before = mem::replace(&mut flight.place, place);
        *self.crowd(before) -= 1;
        *self.crowd(place) += 1;
        before.worker().into_iter().for_each(|worker| self.clear(worker));
    }

    fn take_out(&mut self, request: RequestId) -> Option<Flight> {
        let flight = self.flights.remove(&request)?;
        *self.crowd(flight.place) -= 1;
        flight.place.worker().into_iter().for_each(|worker| self.clear(worker));
        Some(flight)
    }

    /// How many are at a place.
    fn crowd(&mut self, place: Place) -> &mut u64 {
        match place {
            Place::Router => &mut self.waiting_in_router,
            Place::Sent(worker) => &mut self.counts(worker).sent,
            Place::Waiting(worker) => &mut self.counts(worker).waiting,
            Place::Running(worker) => &mut self.counts(worker).running,
        }
    }

    /// Where nobody is left no block is used: a worker without work has no pass to tell it after, and the
    /// pass in which someone goes away still tells what they used.
    fn clear(&mut self, worker: WorkerId) {
        let counts = self.counts(worker);
        if counts.running + counts.waiting == 0 {
            counts.blocks_in_use = 0;
        }
    }
}

impl Worker {
    fn of(engine: &EngineConfig) -> Self {
        let blocks = u64::from(engine.num_gpu_blocks) * u64::from(engine.data_parallel_ranks.max(1));
        let longest = engine.max_model_len.map_or(blocks * u64::from(engine.block_size), u64::from);
        let counts = WorkerCounts { blocks, ..WorkerCounts::default() };
        Self { counts, histograms: Histograms::within(&Bounds::up_to(longest)) }
    }
}

impl Flight {
    /// The parts of its life, as far as it had them.
    fn observe_phases(&self, histograms: &mut Histograms) {
        let Some(admitted) = self.admitted else { return };
        if let Some(queued) = self.queued {
            histograms.queue.observe_span(admitted.since(queued));
        }
        let Some(Tokens { first, last, count }) = self.tokens else { return };
        let decode = last.since(first);
        histograms.prefill.observe_span(first.since(admitted));
        histograms.decode.observe_span(decode);
        histograms.inference.observe_span(last.since(admitted));
        let gaps = count.saturating_sub(1);
        // vLLM counts one that has no gap as well, with none.
        histograms.time_per_token.observe(decode.as_seconds() / gaps.max(1) as f64);
    }
}
