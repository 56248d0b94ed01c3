//! What a scaling policy sees of a fleet when it looks (spec/replay.md 9).

use wavetank_model::{Nanos, WorkerId, WorkerRole, WorkerStage};

/// The fleet at one time, and the traffic since the last look.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// How many looks there were before.
    pub ordinal: u64,
    /// When it is.
    pub now: Nanos,
    /// What was asked and served since the last look, or since the start.
    pub traffic: Traffic,
    /// The pool where requests begin, then the one that decodes, if there is one.
    pub pools: Vec<PoolState>,
}

/// What was asked and served in a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// How long the span is.
    pub duration: Nanos,
    /// Prompt tokens of requests that arrived.
    pub offered_tokens: Mean,
    /// Prompt tokens of requests that were first admitted which were found in a cache.
    pub reused_tokens: Mean,
    /// Prompt tokens of requests that completed.
    pub input_tokens: Mean,
    /// Generated tokens of the same.
    pub output_tokens: Mean,
    /// Arrival to first token, of requests whose first token came.
    pub ttft_ms: Mean,
    /// Mean gap between tokens of requests that completed with more than one.
    pub itl_ms: Mean,
}

impl Traffic {
    /// Both spans together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            duration: self.duration + other.duration,
            offered_tokens: self.offered_tokens.and(other.offered_tokens),
            reused_tokens: self.reused_tokens.and(other.reused_tokens),
            input_tokens: self.input_tokens.and(other.input_tokens),
            output_tokens: self.output_tokens.and(other.output_tokens),
            ttft_ms: self.ttft_ms.and(other.ttft_ms),
            itl_ms: self.itl_ms.and(other.itl_ms),
        }
    }

    /// Requests that arrived.
    pub fn offered(&self) -> u64 {
        self.offered_tokens.samples
    }
}

/// Samples by their number and sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    /// How many.
    pub samples: u64,
    /// Their sum.
    pub sum: f64,
}

impl Mean {
    /// One sample more.
    pub(crate) fn add(&mut self, sample: f64) {
        self.samples += 1;
        self.sum += sample;
    }

    fn and(self, other: Self) -> Self {
        Self { samples: self.samples + other.samples, sum: self.sum + other.sum }
    }

    /// The mean, where there is a sample.
    pub fn value(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum / self.samples as f64)
    }
}

/// Workers alike.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolState {
    /// What they do of a request.
    pub role: WorkerRole,
    /// Requests that wait in the router for one of them.
    pub queued: u32,
    /// All that are there, in order of their numbers.
    pub workers: Vec<WorkerState>,
}

impl PoolState {
    /// Workers in some stage.
    pub fn staged(&self, stage: WorkerStage) -> impl Iterator<Item = &WorkerState> {
        self.workers.iter().filter(move |worker| worker.stage == stage)
    }

    /// Workers that are active or will be: what a target is held against.
    pub(crate) fn strength(&self) -> u32 {
        self.workers.iter().filter(|worker| worker.stage <= WorkerStage::Active).count() as u32
    }

    /// Requests that wait, in the router and on workers that go on.
    pub fn waiting(&self) -> u32 {
        self.queued + self.staged(WorkerStage::Active).map(|worker| worker.waiting).sum::<u32>()
    }
}

/// One worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkerState {
    /// Its number in the fleet.
    pub worker: WorkerId,
    /// How far it is.
    pub stage: WorkerStage,
    /// Requests that wait for a place in its batch.
    pub waiting: u32,
    /// Requests in its batch.
    pub running: u32,
    /// Blocks that requests use.
    pub blocks_in_use: u64,
    /// All its blocks.
    pub blocks: u64,
    /// The part of the time since the last look that it was in passes.
    pub busy_share: f64,
}
