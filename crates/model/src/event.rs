//! What happens in a simulated or live serving run, as facts in the past tense.
//!
//! Engines and the event loop emit them, collectors and exporters receive them. Times of one request are in
//! order; events of different workers may come out of order, because workers are simulated ahead of each
//! other wherever nothing can pass between them.

use crate::{Nanos, RejectReason, Request, RequestId, TierEvent, WorkerId, WorkerRole, WorkerStage};

/// One fact of a serving run.
#[derive(Clone, Debug)]
pub enum ServeEvent<'a> {
    /// A request reached the router.
    RequestArrived {
        /// Its number.
        request: RequestId,
        /// When its waiting time starts.
        at: Nanos,
        /// What was asked.
        details: &'a Request,
    },
    /// The router sent a request to a worker.
    RequestRouted {
        /// Its number.
        request: RequestId,
        /// Where to.
        worker: WorkerId,
        /// When.
        at: Nanos,
        /// When it entered the router's queue, if it had to wait there.
        queued_since: Option<Nanos>,
        /// Prompt tokens the router believed to be in the worker's cache.
        overlap_tokens: u32,
    },
    /// The KV of a prompt moved from the worker that computed it to the one that decodes.
    RequestHandedOff {
        /// Its number.
        request: RequestId,
        /// The prefill worker.
        from: WorkerId,
        /// The decode worker.
        to: WorkerId,
        /// What happened before.
        times: HandoffTimes,
        /// When the decode worker could begin with it.
        at: Nanos,
    },
    /// An engine saw a request for the first time: it looks at new ones between passes.
    RequestQueued {
        /// Its number.
        request: RequestId,
        /// Where.
        worker: WorkerId,
        /// When.
        at: Nanos,
    },
    /// An engine took a request into its running batch, for the first time or again after a preemption.
    RequestAdmitted {
        /// Its number.
        request: RequestId,
        /// Where.
        worker: WorkerId,
        /// The start of the pass.
        at: Nanos,
        /// Prompt tokens found in the worker's cache.
        reused_tokens: u32,
    },
    /// A running request lost its blocks and went back to the queue.
    RequestPreempted {
        /// Its number.
        request: RequestId,
        /// Where.
        worker: WorkerId,
        /// The start of the pass.
        at: Nanos,
    },
    /// KV moved between workers and tiers behind them.
    Tier(TierEvent<'a>),
    /// A pass computed a part of a prompt.
    PromptComputed {
        /// Whose.
        request: RequestId,
        /// Where.
        worker: WorkerId,
        /// The start of the pass.
        start: Nanos,
        /// Its duration.
        step: Nanos,
        /// How much.
        tokens: u32,
    },
    /// Each of `requests` emitted one token at the end of each of `steps`.
    TokensEmitted {
        /// Where.
        worker: WorkerId,
        /// The start of the first step.
        start: Nanos,
        /// Durations of consecutive passes.
        steps: &'a [Nanos],
        /// The batch.
        requests: &'a [RequestId],
    },
    /// A worker was in passes without a break, of which what they computed is told apart.
    PassesRan {
        /// Which.
        worker: WorkerId,
        /// The start of the first.
        start: Nanos,
        /// The end of the last.
        end: Nanos,
        /// Blocks of its cache that requests used then.
        blocks_in_use: u32,
    },
    /// A request got all its tokens.
    RequestCompleted {
        /// Its number.
        request: RequestId,
        /// Where.
        worker: WorkerId,
        /// The end of its last pass.
        at: Nanos,
    },
    /// A request can never finish and was given up.
    RequestRejected {
        /// Its number.
        request: RequestId,
        /// Where.
        worker: WorkerId,
        /// The end of the pass that gave it up.
        at: Nanos,
        /// Why.
        reason: RejectReason,
    },
    /// The one who asked went away; it was given up.
    RequestCancelled {
        /// Its number.
        request: RequestId,
        /// Where; `None` if it had not reached a worker.
        worker: Option<WorkerId>,
        /// When.
        at: Nanos,
    },
    /// A worker of a fleet that changes came to another stage; the first workers come at time 0.
    WorkerChanged {
        /// Which.
        worker: WorkerId,
        /// Its pool.
        pool: WorkerRole,
        /// When.
        at: Nanos,
        /// What it is from then on.
        stage: WorkerStage,
    },
    /// A scaling policy gave a pool another number of workers.
    PoolScaled {
        /// Which.
        pool: WorkerRole,
        /// When.
        at: Nanos,
        /// Workers active or starting before.
        from: u32,
        /// The same from then on.
        to: u32,
        /// Why, in words.
        reason: &'a str,
    },
}

impl ServeEvent<'_> {
    /// Whether a request ended with it, one way or another.
    pub fn ends_request(&self) -> bool {
        matches!(
            self,
            Self::RequestCompleted { .. } | Self::RequestRejected { .. } | Self::RequestCancelled { .. }
        )
    }
}

/// The way of a prompt from a prefill to a decode worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandoffTimes {
    /// When the prompt was computed.
    pub held_at: Nanos,
    /// When the decode worker had room for it.
    pub reserved_at: Nanos,
    /// When its transfer began.
    pub sent_at: Nanos,
    /// When its transfer ended.
    pub received_at: Nanos,
}

/// Receives events.
pub trait Sink<E> {
    /// Takes note of one event.
    fn record(&mut self, event: &E);
}

/// A receiver of serving events.
pub type ServeSink<'s> = dyn for<'a> Sink<ServeEvent<'a>> + 's;
