//! What happened to each request of a simulated run, as a receiver of its events.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wavetank_model::{Nanos, RequestId, ServeEvent, Sink};

use super::metrics::Latency;
use super::schedule::measured_clock;

/// The times of all requests, by their row in the workload.
pub(super) struct Times {
    requests: Vec<Request>,
    /// The row of each request, in the order of arrival.
    rows: Vec<usize>,
    completed: u64,
    preempted: u64,
    rejected: BTreeMap<&'static str, u64>,
}

#[derive(Clone, Copy, Default)]
struct Request {
    queued: Option<Nanos>,
    admitted: Option<Nanos>,
    first_token: Option<Nanos>,
    last_token: Option<Nanos>,
    tokens: u32,
    completed: bool,
}

impl Times {
    pub(super) fn of(requests: usize) -> Self {
        Self {
            requests: vec![Request::default(); requests],
            rows: Vec::with_capacity(requests),
            completed: 0,
            preempted: 0,
            rejected: BTreeMap::new(),
        }
    }

    /// By row; `None` for a request that did not complete or has no token.
    pub(super) fn latencies(&self) -> Vec<Option<Latency>> {
        self.requests.iter().map(Request::latency).collect()
    }

    /// Requests that did not complete.
    pub(super) fn unserved(&self) -> u64 {
        self.requests.len() as u64 - self.completed
    }

    pub(super) fn counts(&self) -> Value {
        json!({
            "requests": self.requests.len(),
            "completed": self.completed,
            "rejected": self.rejected,
            "preemptions": self.preempted,
        })
    }

    fn request(&mut self, id: RequestId) -> &mut Request {
        &mut self.requests[self.rows[id.index()]]
    }

    fn emitted(&mut self, start: Nanos, steps: &[Nanos], requests: &[RequestId]) {
        let first_end = start + steps.first().copied().unwrap_or_default();
        let end = start + steps.iter().copied().sum();
        for &id in requests {
            let request = self.request(id);
            request.first_token.get_or_insert(first_end);
            request.last_token = Some(end);
            request.tokens += steps.len() as u32;
        }
    }
}

impl Request {
    fn latency(&self) -> Option<Latency> {
        let times = [self.queued?, self.admitted?, self.first_token?, self.last_token?];
        self.completed.then(|| Latency::of(times.map(measured_clock), self.tokens))
    }
}

impl Sink<ServeEvent<'_>> for Times {
    fn record(&mut self, event: &ServeEvent<'_>) {
        match *event {
            ServeEvent::RequestArrived { details, .. } => self.rows.push(details.session.index()),
            ServeEvent::RequestQueued { request, at, .. } => {
                self.request(request).queued.get_or_insert(at);
            }
            ServeEvent::RequestAdmitted { request, at, .. } => {
                self.request(request).admitted.get_or_insert(at);
            }
            ServeEvent::TokensEmitted { start, steps, requests, .. } => self.emitted(start, steps, requests),
            ServeEvent::RequestPreempted { .. } => self.preempted += 1,
            ServeEvent::RequestCompleted { request, .. } => {
                self.request(request).completed = true;
                self.completed += 1;
            }
            ServeEvent::RequestRejected { reason, .. } => {
                *self.rejected.entry(reason.name()).or_default() += 1
            }
            ServeEvent::RequestRouted { .. }
            | ServeEvent::RequestHandedOff { .. }
            | ServeEvent::PromptComputed { .. }
            | ServeEvent::RequestCancelled { .. }
            | ServeEvent::PassesRan { .. }
            | ServeEvent::WorkerChanged { .. }
            | ServeEvent::PoolScaled { .. }
            | ServeEvent::Tier(_) => {}
        }
    }
}
