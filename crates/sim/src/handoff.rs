//! Prompts on their way from prefill to decode workers: held, reserved, sent, activated, released
//! (spec/engine.md 17). Commands wait for the pass boundary of the worker they address.
//!
//! [`Flow::SourceFirst`]: computed and held, then a decode worker is chosen and makes room, then sent.
//! [`Flow::DestinationFirst`]: a decode worker is chosen and makes room, then computed and held, then sent.

use std::collections::{BTreeMap, VecDeque};

use wavetank_model::{Nanos, RejectReason, Request, RequestId, Result, WorkerId};

use crate::engines::{self, Flow, Job};
use crate::lane::TransferId;
use crate::links::{Links, Shipment};
use crate::routers::{self, Fleet, KvConfig, Router};
use crate::{EngineConfig, Plan, Transfer, TransferMode};

/// A prompt between its workers. What has not happened yet has the time of its arrival.
pub(crate) struct Handoff {
    pub(crate) id: RequestId,
    pub(crate) request: Request,
    pub(crate) from: WorkerId,
    pub(crate) to: WorkerId,
    pub(crate) held_at: Nanos,
    pub(crate) reserved_at: Nanos,
    pub(crate) sent_at: Nanos,
    pub(crate) received_at: Nanos,
    /// Tokens the decode worker does not have.
    missing: u32,
}

impl Handoff {
    pub(crate) fn job(&self) -> Job {
        Job::of(self.id, &self.request)
    }
}

/// What waits for one worker to be between passes.
#[derive(Default)]
pub(crate) struct Commands {
    /// Prompts that need room, first come first served.
    pub(crate) reservations: VecDeque<Handoff>,
    /// Prompts that have come, in order of the ends of their transfers.
    pub(crate) activations: VecDeque<Handoff>,
    /// Prompts whose KV or whose room is not needed any more.
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
    pub(crate) flow: Flow,
    /// Decode workers, by the number that the router knows them by.
    members: Vec<WorkerId>,
    pub(crate) router: Box<dyn Router>,
    transfer: Transfer,
    decode: EngineConfig,
    /// Requests that wait for a prefill worker or are there.
    underway: BTreeMap<RequestId, Handoff>,
    /// By worker.
    pub(crate) commands: Vec<Commands>,
    links: Links,
    sent: BTreeMap<TransferId, Handoff>,
    started: TransferId,
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
        let transfer = plan.engine.transfer;
        Ok(Some(Self {
            flow: engines::entry(&plan.engine.engine_type)?.flow,
            members: (plan.num_workers..workers).map(WorkerId).collect(),
            router: routers::build(&plan.router_mode, &fleet)?,
            transfer,
            decode: pool.engine.clone(),
            underway: BTreeMap::new(),
            commands: (0..workers).map(|_| Commands::default()).collect(),
            links: Links::of(pool.link, transfer.kv_transfer_bandwidth, workers),
            sent: BTreeMap::new(),
            started: 0,
        }))
    }

    /// There is one worker more; one that decodes has the next seat of its pool.
    pub(crate) fn grow(&mut self, decode_worker: Option<WorkerId>) {
        self.members.extend(decode_worker);
        self.commands.push(Commands::default());
        self.links.grow();
    }

    /// Why no decode worker could ever take a request, if so.
    pub(crate) fn refuse(&self, request: &Request) -> Option<RejectReason> {
        let tokens = request.prompt.tokens();
        match tokens.div_ceil(self.decode.block_size) > self.decode.num_gpu_blocks {
            true => Some(RejectReason::PromptExceedsCache),
            false if self.decode.max_model_len.is_some_and(|limit| tokens >= limit) => {
                Some(RejectReason::PromptReachesModelLimit)
            }
            false => None,
        }
    }

    /// A request arrived that is computed before a decode worker is asked for room.
    pub(crate) fn began(&mut self, id: RequestId, request: Request, now: Nanos) {
        let (from, to) = (WorkerId(0), self.members[0]);
        let (held_at, reserved_at, sent_at, received_at) = (now, now, now, now);
        let handoff =
            Handoff { id, request, from, to, held_at, reserved_at, sent_at, received_at, missing: 0 };
        self.underway.insert(id, handoff);
    }

    /// A request was sent to a prefill worker.
    pub(crate) fn placed(&mut self, id: RequestId, worker: WorkerId) {
        self.underway.get_mut(&id).expect("it arrived").from = worker;
    }

    /// A request was rejected by its prefill worker. The decode worker that has room for it in vain, if any.
    pub(crate) fn rejected(&mut self, id: RequestId, now: Nanos) -> Option<WorkerId> {
        let handoff = self.underway.remove(&id).expect("it was on a prefill worker");
        if self.flow == Flow::SourceFirst {
            return None;
        }
        self.router.ended(id, now);
        let commands = &mut self.commands[handoff.to.index()];
        commands.releases.push_back(id);
        commands.fresh = true;
        Some(handoff.to)
    }

    /// A request got all its tokens.
    pub(crate) fn ended(&mut self, id: RequestId, now: Nanos) {
        self.router.ended(id, now);
    }

    /// Chooses the decode worker of a request and queues the reservation there.
    pub(crate) fn ask_for_room(&mut self, id: RequestId, now: Nanos) -> WorkerId {
        let mut handoff = self.underway.remove(&id).expect("it arrived");
        let placement = self.router.arrive(id, &handoff.request, now).expect("decode workers have no queue");
        handoff.to = self.members[placement.worker.index()];
        let to = handoff.to;
        let commands = &mut self.commands[to.index()];
        commands.reservations.push_back(handoff);
        commands.fresh = true;
        to
    }

    /// A prompt is computed; its decode worker, if there is room for it.
    pub(crate) fn hold(&mut self, id: RequestId, now: Nanos) -> WorkerId {
        self.underway.get_mut(&id).expect("it was being prefilled").held_at = now;
        match self.flow {
            Flow::SourceFirst => self.ask_for_room(id, now),
            Flow::DestinationFirst => {
                let handoff = self.underway.remove(&id).expect("it was being prefilled");
                let to = handoff.to;
                self.send(handoff, now);
                while self.receive(now).is_some() {}
                to
            }
        }
    }

    /// Room was found for a prompt of which `missing` tokens are not there: it is sent if it is computed. If
    /// not, it must be now: the request.
    pub(crate) fn reserved(&mut self, mut handoff: Handoff, missing: u32, now: Nanos) -> Option<RequestId> {
        (handoff.reserved_at, handoff.missing) = (now, missing);
        match self.flow {
            Flow::SourceFirst => {
                self.send(handoff, now);
                None
            }
            Flow::DestinationFirst => {
                let id = handoff.id;
                self.underway.insert(id, handoff);
                Some(id)
            }
        }
    }

    /// What is to be computed.
    pub(crate) fn request(&self, id: RequestId) -> &Request {
        &self.underway[&id].request
    }

    fn send(&mut self, mut handoff: Handoff, now: Nanos) {
        let tokens = match self.transfer.kv_transfer_timing_mode {
            TransferMode::FullPrompt => handoff.request.prompt.tokens(),
            TransferMode::DestinationMissing => handoff.missing,
        };
        handoff.sent_at = now;
        let bytes = u64::from(tokens) * u64::from(self.transfer.kv_bytes_per_token);
        let (id, from, to) = (self.started, handoff.from, handoff.to);
        self.links.send(Shipment { id, bytes, from, to }, now);
        self.sent.insert(id, handoff);
        self.started += 1;
    }

    /// When the next thing happens to a transfer.
    pub(crate) fn next_arrival(&self) -> Option<Nanos> {
        self.links.next()
    }

    /// Takes the next transfer that has ended by `now`; its decode worker.
    pub(crate) fn receive(&mut self, now: Nanos) -> Option<WorkerId> {
        let number = self.links.receive(now)?;
        let mut handoff = self.sent.remove(&number).expect("it was sent");
        handoff.received_at = now;
        let to = handoff.to;
        let commands = &mut self.commands[to.index()];
        commands.activations.push_back(handoff);
        commands.fresh = true;
        Some(to)
    }
}
