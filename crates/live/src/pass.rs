//! What a worker tells of a pass, and the same as events with the times at which things were seen.

use wavetank_cache::Change;
use wavetank_model::{Nanos, RejectReason, RequestId, ServeEvent, ServeSink, Sink, WorkerId};
use wavetank_sim::engines::Signal;

/// One pass of a worker on the wall clock.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) worker: WorkerId,
    /// When its worker began it.
    pub(crate) start: Nanos,
    /// When its worker found it over.
    pub(crate) end: Nanos,
    /// How long it should have taken.
    pub(crate) modelled: Nanos,
    /// When it should have been over.
    pub(crate) due: Nanos,
    pub(crate) facts: Facts,
    pub(crate) signals: Vec<Signal>,
    pub(crate) changes: Vec<Change>,
}

impl Pass {
    /// Tells `sink` what happened; what requests get was seen at `seen`.
    pub(crate) fn tell(&self, seen: Nanos, sink: &mut ServeSink<'_>) {
        for fact in &self.facts.0 {
            fact.tell(self, seen, sink);
        }
    }
}

/// What an engine reported of a pass, in its order.
#[derive(Debug, Default)]
pub(crate) struct Facts(Vec<Fact>);

impl Facts {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes out what passes from `at` on compute, by the clock of the model: a scheduler may be ahead.
    pub(crate) fn later(&mut self, at: Nanos) -> Self {
        Self(
            self.0
                .extract_if(.., |fact| matches!(fact, Fact::Computed { start, .. } if *start >= at))
                .collect(),
        )
    }

    /// Forgets what is not told yet of a request that was given up.
    pub(crate) fn forget(&mut self, given_up: RequestId) {
        self.0.retain(|fact| !matches!(fact, Fact::Computed { request, .. } if *request == given_up));
    }
}

/// An event of a pass without the times of the model.
#[derive(Debug)]
enum Fact {
    Queued(RequestId),
    Admitted {
        request: RequestId,
        reused_tokens: u32,
    },
    Preempted(RequestId),
    /// By the pass that begins at `start`, by the clock of the model.
    Computed {
        request: RequestId,
        tokens: u32,
        start: Nanos,
    },
    Emitted {
        requests: Vec<RequestId>,
        steps: usize,
    },
    Ran {
        blocks_in_use: u32,
    },
    Completed(RequestId),
    Rejected {
        request: RequestId,
        reason: RejectReason,
    },
}

impl Sink<ServeEvent<'_>> for Facts {
    fn record(&mut self, event: &ServeEvent<'_>) {
        self.0.push(match *event {
            ServeEvent::RequestQueued { request, .. } => Fact::Queued(request),
            ServeEvent::RequestAdmitted { request, reused_tokens, .. } => {
                Fact::Admitted { request, reused_tokens }
            }
            ServeEvent::RequestPreempted { request, .. } => Fact::Preempted(request),
            ServeEvent::PromptComputed { request, tokens, start, .. } => {
                Fact::Computed { request, tokens, start }
            }
            ServeEvent::TokensEmitted { steps, requests, .. } => {
                Fact::Emitted { requests: requests.to_vec(), steps: steps.len() }
            }
            ServeEvent::PassesRan { blocks_in_use, .. } => Fact::Ran { blocks_in_use },
            ServeEvent::RequestCompleted { request, .. } => Fact::Completed(request),
            ServeEvent::RequestRejected { request, reason, .. } => Fact::Rejected { request, reason },
            ServeEvent::RequestArrived { .. }
            | ServeEvent::RequestRouted { .. }
            | ServeEvent::RequestCancelled { .. }
            | ServeEvent::RequestHandedOff { .. }
            | ServeEvent::WorkerChanged { .. }
            | ServeEvent::PoolScaled { .. } => unreachable!("an engine does not route"),
            ServeEvent::Tier(_) => unreachable!("live workers have no tiers"),
        });
    }
}

impl Fact {
    fn tell(&self, pass: &Pass, seen: Nanos, sink: &mut ServeSink<'_>) {
        let &Pass { worker, start, end, .. } = pass;
        match *self {
            Self::Queued(request) => sink.record(&ServeEvent::RequestQueued { request, worker, at: start }),
            Self::Admitted { request, reused_tokens } => {
                sink.record(&ServeEvent::RequestAdmitted { request, worker, at: start, reused_tokens });
            }
            Self::Preempted(request) => {
                sink.record(&ServeEvent::RequestPreempted { request, worker, at: start });
            }
            Self::Computed { request, tokens, .. } => {
                let step = end - start;
                sink.record(&ServeEvent::PromptComputed { request, worker, start, step, tokens });
            }
            Self::Emitted { ref requests, steps } => {
                // Passes that take no time come together.
                let mut times = vec![Nanos::ZERO; steps];
                times[0] = seen - start;
                sink.record(&ServeEvent::TokensEmitted { worker, start, steps: &times, requests });
            }
            Self::Ran { blocks_in_use } => {
                sink.record(&ServeEvent::PassesRan { worker, start, end, blocks_in_use });
            }
            Self::Completed(request) => {
                sink.record(&ServeEvent::RequestCompleted { request, worker, at: seen });
            }
            Self::Rejected { request, reason } => {
                sink.record(&ServeEvent::RequestRejected { request, worker, at: seen, reason });
            }
        }
    }
}
