//! Prompts on their way from prefill to decode workers: held, reserved, sent, activated, released
//! (spec/engine.md 17.1). Commands wait for the pass boundary of the worker they address.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use wavetank_model::{Nanos, RejectReason, Request, RequestId, Result, WorkerId};

use crate::engines::Job;
use crate::routers::{self, Fleet, KvConfig, Router};
use crate::{Plan, Transfer, TransferMode};

/// A prompt between its workers.
pub(crate) struct Handoff {
    pub(crate) job: Job,
    pub(crate) from: WorkerId,
    pub(crate) to: WorkerId,
    pub(crate) held_at: Nanos,
    pub(crate) reserved_at: Nanos,
}

/// What waits for one worker to be between passes.
#[derive(Default)]
pub(crate) struct Commands {
    /// Prompts that need room, first come first served.
    pub(crate) reservations: VecDeque<Handoff>,
    /// Prompts that have come, in order of the ends of their transfers.
    pub(crate) activations: VecDeque<Handoff>,
    /// Prompts whose KV is not needed any more.
    pub(crate) releases: VecDeque<RequestId>,
    /// Whether something came since the worker was last between passes.
    pub(crate) fresh: bool,
    /// Whether a pass of the worker ends in this instant.
    pub(crate) pass_ended: bool,
}

impl Commands {
    /// Whether the worker has something to do at the end of its pass.
    pub(crate) fn wait(&self) -> bool {
        self.fresh || !self.reservations.is_empty()
    }
}

/// All handoffs of a run.
pub(crate) struct Handoffs {
    prefill_workers: u32,
    router: Box<dyn Router>,
    transfer: Transfer,
    /// Blocks, tokens per block and `max_model_len` of a decode worker.
    decode_limits: (u32, u32, Option<u32>),
    /// Requests that are being prefilled.
    requests: BTreeMap<RequestId, (Request, WorkerId)>,
    /// By worker.
    pub(crate) commands: Vec<Commands>,
    transfers: BinaryHeap<Reverse<(Nanos, u64)>>,
    sent: BTreeMap<u64, Handoff>,
    started: u64,
}

impl Handoffs {
    /// The handoffs of `plan`, if it has decode workers.
    pub(crate) fn of(plan: &Plan) -> Result<Option<Self>> {
        let Some(pool) = &plan.decode else { return Ok(None) };
        // Decode workers are chosen by the blocks they hold, not by what is cached or prefilled there.
        let config = KvConfig {
            overlap_score_credit: 0.0,
            router_assume_kv_reuse: false,
            router_track_prefill_tokens: false,
            router_prefill_load_model: None,
            router_queue_threshold: None,
            ..plan.router_config.clone()
        };
        let seed = plan.seed.wrapping_add(1);
        let fleet = Fleet { workers: pool.num_workers, engine: &pool.engine, config: &config, seed };
        let workers = plan.num_workers + pool.num_workers;
        Ok(Some(Self {
            prefill_workers: plan.num_workers,
            router: routers::build(&plan.router_mode, &fleet)?,
            transfer: plan.engine.transfer,
            decode_limits: (pool.engine.num_gpu_blocks, pool.engine.block_size, pool.engine.max_model_len),
            requests: BTreeMap::new(),
            commands: (0..workers).map(|_| Commands::default()).collect(),
            transfers: BinaryHeap::new(),
            sent: BTreeMap::new(),
            started: 0,
        }))
    }

    /// Why no decode worker could ever take a request, if so.
    pub(crate) fn refuse(&self, request: &Request) -> Option<RejectReason> {
        let (blocks, block_size, model_limit) = self.decode_limits;
        let tokens = request.prompt.tokens();
        match tokens.div_ceil(block_size) > blocks {
            true => Some(RejectReason::PromptExceedsCache),
            false if model_limit.is_some_and(|limit| tokens >= limit) => {
                Some(RejectReason::PromptReachesModelLimit)
            }
            false => None,
        }
    }

    /// A request arrived.
    pub(crate) fn began(&mut self, id: RequestId, request: Request) {
        self.requests.insert(id, (request, WorkerId(0)));
    }

    /// A request was sent to a prefill worker.
    pub(crate) fn placed(&mut self, id: RequestId, worker: WorkerId) {
        self.requests.get_mut(&id).expect("it arrived").1 = worker;
    }

    /// A request was rejected by its prefill worker.
    pub(crate) fn rejected(&mut self, id: RequestId) {
        self.requests.remove(&id);
    }

    /// A request got all its tokens.
    pub(crate) fn ended(&mut self, id: RequestId, now: Nanos) {
        self.router.ended(id, now);
    }

    /// A prompt is computed: chooses its decode worker and queues the reservation there.
    pub(crate) fn hold(&mut self, id: RequestId, now: Nanos) -> WorkerId {
        let (request, from) = self.requests.remove(&id).expect("it was being prefilled");
        let placement = self.router.arrive(id, &request, now).expect("decode workers have no queue");
        let to = WorkerId(self.prefill_workers + placement.worker.0);
        let job = Job { id, prompt: request.prompt, output_tokens: request.output_tokens };
        let commands = &mut self.commands[to.index()];
        commands.reservations.push_back(Handoff { job, from, to, held_at: now, reserved_at: now });
        commands.fresh = true;
        to
    }

    /// Room was found: the transfer of `missing` tokens begins.
    pub(crate) fn send(&mut self, mut handoff: Handoff, missing: u32, now: Nanos) {
        let tokens = match self.transfer.kv_transfer_timing_mode {
            TransferMode::FullPrompt => handoff.job.prompt.tokens(),
            TransferMode::DestinationMissing => missing,
        };
        handoff.reserved_at = now;
        self.transfers.push(Reverse((now + self.duration(tokens), self.started)));
        self.sent.insert(self.started, handoff);
        self.started += 1;
    }

    fn duration(&self, tokens: u32) -> Nanos {
        let bytes_per_ms = self.transfer.kv_transfer_bandwidth * 1e6;
        let bytes = f64::from(tokens) * f64::from(self.transfer.kv_bytes_per_token);
        if bytes_per_ms > 0.0 { Nanos::from_ms(bytes / bytes_per_ms) } else { Nanos::ZERO }
    }

    /// When the next transfer ends.
    pub(crate) fn next_arrival(&self) -> Option<Nanos> {
        self.transfers.peek().map(|&Reverse((at, _))| at)
    }

    /// Takes the next transfer that has ended by `now`; its decode worker.
    pub(crate) fn receive(&mut self, now: Nanos) -> Option<WorkerId> {
        self.next_arrival().filter(|&at| at <= now)?;
        let Reverse((_, number)) = self.transfers.pop()?;
        let handoff = self.sent.remove(&number).expect("it was sent");
        let to = handoff.to;
        let commands = &mut self.commands[to.index()];
        commands.activations.push_back(handoff);
        commands.fresh = true;
        Some(to)
    }
}
