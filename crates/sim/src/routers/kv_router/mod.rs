//! KV-aware routing: the worker with the least work, counting what it would not have to compute again
//! (spec/replay.md 6).
//!
//! `cost` prices a worker, `pick` chooses among prices, `prefill` tracks prompt work in flight, `queue` holds
//! requests while every worker is busy; this file keeps the books.

mod cost;
mod pick;
mod prefill;
mod queue;

use std::rc::Rc;

use serde::{Deserialize, Serialize};
use wavetank_cache::{Change, ChangeKind, Claim, Holdings, Overlap};
use wavetank_model::{InFlight, Nanos, Prompt, Request, RequestId, Result, WorkerId};

use super::{Entry, Fleet, Members, Needs, Placement, Router};
use crate::queues::{self, Waiting};
use crate::timing::{Chunk, DecodeBatch, Pass, Timing, TimingConfig};
use cost::Candidate;
use pick::Pick;
use prefill::Prefills;
use queue::{Queue, Queued};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "kv_router",
    about: "the cheapest worker by prompt tokens to compute, cached prefix and active blocks",
    build: |fleet| Ok(Box::new(KvRouter::build(fleet)?)),
};

/// The keys of the reference's router configuration that have an effect in replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KvConfig {
    /// Blocks of prompt work forgiven per cached block.
    pub overlap_score_credit: f64,
    /// How fast that credit fades on workers with more prompt work than the least.
    pub overlap_score_credit_decay: f64,
    /// Weight of prompt work against active blocks.
    pub prefill_load_scale: f64,
    /// The same per block behind those that the first tier behind the cache has.
    #[serde(skip_serializing_if = "is_usual_for_host")]
    pub host_cache_hit_weight: f64,
    /// The same of the other tiers.
    #[serde(skip_serializing_if = "is_usual_for_disk")]
    pub disk_cache_hit_weight: f64,
    /// Cost of each request in flight, in blocks.
    pub decode_active_request_weight: f64,
    /// Randomness of the choice; 0 takes the cheapest.
    pub router_temperature: f64,
    /// Whether active blocks count.
    pub router_track_active_blocks: bool,
    /// Whether requests with a common prefix share active blocks.
    pub router_assume_kv_reuse: bool,
    /// Whether prompt work counts.
    pub router_track_prefill_tokens: bool,
    /// A timing model that predicts how prompt work in flight shrinks; `None` keeps it until the first token.
    pub router_prefill_load_model: Option<TimingConfig>,
    /// A worker is busy above this many passes' worth of prompt work; `None` never queues.
    pub router_queue_threshold: Option<f64>,
    /// A row of [`crate::queues::ALL`].
    pub router_queue_policy: String,
}

/// What the weights of tiers are where nothing is said (spec/replay.md 6.1); plans leave them out then,
/// because they have no effect without tiers.
const HOST_WEIGHT: f64 = 0.75;
const DISK_WEIGHT: f64 = 0.25;

fn is_usual_for_host(weight: &f64) -> bool {
    *weight == HOST_WEIGHT
}

fn is_usual_for_disk(weight: &f64) -> bool {
    *weight == DISK_WEIGHT
}

impl Default for KvConfig {
    fn default() -> Self {
        Self {
            overlap_score_credit: 1.0,
            overlap_score_credit_decay: 0.0,
            prefill_load_scale: 1.0,
            host_cache_hit_weight: HOST_WEIGHT,
            disk_cache_hit_weight: DISK_WEIGHT,
            decode_active_request_weight: 0.0,
            router_temperature: 0.0,
            router_track_active_blocks: true,
            router_assume_kv_reuse: true,
            router_track_prefill_tokens: true,
            router_prefill_load_model: None,
            router_queue_threshold: Some(4.0),
            router_queue_policy: "fcfs".to_owned(),
        }
    }
}

/// What is known of a request until it ends.
#[derive(Default)]
struct Placed {
    worker: Option<WorkerId>,
    claim: Claim,
    /// Blocks it holds alone, when reuse is not assumed.
    unshared_blocks: u32,
}

#[derive(Default)]
struct Load {
    prefills: Prefills,
    requests: u32,
    unshared_blocks: u32,
}

struct KvRouter {
    config: KvConfig,
    block_size: u32,
    /// Prompt tokens above which a worker is busy where there are several; `None` never queues.
    busy_limit: Option<f64>,
    /// The same now: with one worker there is nothing to choose, so nothing is held back.
    busy_above: Option<f64>,
    members: Members,
    model: Option<Rc<dyn Timing>>,
    holdings: Holdings,
    loads: Vec<Load>,
    requests: InFlight<Placed>,
    queue: Queue,
    pick: Pick,
    overlaps: Vec<Overlap>,
    costs: Vec<f64>,
}

/// Stands for `max_num_batched_tokens` where the engine has no limit.
const UNLIMITED_PASS: f64 = 10_000_000.0;

impl KvRouter {
    fn build(fleet: &Fleet<'_>) -> Result<Self> {
        let config = fleet.config.clone();
        let pass = fleet.engine.max_num_batched_tokens.map_or(UNLIMITED_PASS, f64::from);
        let busy_limit = config.router_queue_threshold.map(|threshold| threshold * pass);
        Ok(Self {
            block_size: fleet.engine.block_size,
            busy_limit,
            busy_above: busy_limit.filter(|_| fleet.workers > 1),
            members: Members::of(fleet.workers),
            model: config.router_prefill_load_model.as_ref().map(TimingConfig::build).transpose()?,
            holdings: Holdings::of(fleet.workers),
            loads: (0..fleet.workers).map(|_| Load::default()).collect(),
            requests: InFlight::default(),
            queue: Queue::of(*queues::policy(&config.router_queue_policy)?),
            pick: Pick::of(config.router_temperature, fleet.seed),
            overlaps: vec![Overlap::default(); fleet.workers as usize],
            costs: Vec::new(),
            config,
        })
    }

    fn all_busy(&self, now: Nanos) -> bool {
        let Some(limit) = self.busy_above else { return false };
        let mut members = self.members.0.iter();
        members.all(|worker| self.loads[worker.index()].prefills.tokens(now) as f64 > limit)
    }

    /// Chooses a worker by the overlaps in `self.overlaps` and enters the request there.
    fn admit(&mut self, id: RequestId, prompt: &Prompt, now: Nanos) -> Placement {
        self.price(prompt, now);
        let worker = self.members.0[self.pick.cheapest(&self.costs)];
        let cached = self.overlaps[worker.index()].cached * self.block_size;
        let overlap_tokens = cached.min(prompt.tokens());
        let load = &mut self.loads[worker.index()];
        load.requests += 1;
        if self.config.router_track_prefill_tokens {
            let expected =
                self.model.as_ref().map(|model| expected_prefill(model.as_ref(), prompt, overlap_tokens));
            load.prefills.add(id, prompt.tokens() - overlap_tokens, expected, now);
        }
        let mut placed = Placed { worker: Some(worker), ..Placed::default() };
        if self.config.router_track_active_blocks {
            match self.config.router_assume_kv_reuse {
                true => placed.claim = self.holdings.claim(worker, prompt.keys_from(0, self.block_size)),
                false => placed.unshared_blocks = prompt.full_blocks(self.block_size),
            }
        }
        self.loads[worker.index()].unshared_blocks += placed.unshared_blocks;
        *self.requests.value_mut(id).expect("a request is known from its arrival") = placed;
        Placement { request: id, worker, overlap_tokens }
    }

    /// Fills `self.costs`, member by member.
    fn price(&mut self, prompt: &Prompt, now: Nanos) {
        let prefills = || {
            let members = self.members.0.iter();
            members.map(|&worker| (worker, self.loads[worker.index()].prefills.tokens(now)))
        };
        let least_prefill_tokens = prefills().map(|(_, tokens)| tokens).min().unwrap_or(0);
        let blocks = prompt.full_blocks(self.block_size);
        self.costs.clear();
        for (worker, prefill_tokens) in prefills() {
            let (overlap, load) = (self.overlaps[worker.index()], &self.loads[worker.index()]);
            let (active_blocks, additional_blocks) = match self.config.router_track_active_blocks {
                true => {
                    let live = self.holdings.live_blocks(worker);
                    (live + load.unshared_blocks, blocks - overlap.live)
                }
                false => (0, 0),
            };
            let candidate = Candidate {
                input_tokens: prompt.tokens(),
                matched_blocks: overlap.cached,
                host_blocks: overlap.host,
                disk_blocks: overlap.disk,
                prefill_tokens,
                least_prefill_tokens,
                active_blocks,
                additional_blocks,
                active_requests: load.requests,
            };
            self.costs.push(candidate.cost(&self.config, self.block_size));
        }
    }
}

/// How long the model expects the prompt to take on its own.
fn expected_prefill(model: &dyn Timing, prompt: &Prompt, cached: u32) -> Nanos {
    let chunks = &[Chunk::of_prompt(prompt.tokens() - cached, cached)];
    Nanos::from_ms(model.pass_ms(Pass { chunks, decode: DecodeBatch::default() }).prompt_ms)
}

impl Router for KvRouter {
    fn needs(&self) -> Needs {
        Needs::Caches
    }

    fn arrive(&mut self, id: RequestId, request: &Request, now: Nanos) -> Option<Placement> {
        self.requests.insert(id, Placed::default());
        self.holdings.overlaps(request.prompt.keys_from(0, self.block_size), &mut self.overlaps);
        if self.queue.is_empty() && !self.all_busy(now) {
            return Some(self.admit(id, &request.prompt, now));
        }
        let on = |worker: &WorkerId| self.overlaps[worker.index()].cached;
        let most = self.members.0.iter().map(on).max().unwrap_or(0);
        let waiting = Waiting {
            since_seconds: now.as_seconds(),
            priority: f64::from(request.priority.soft.max(0)),
            input_tokens: request.prompt.tokens(),
            cached_tokens: most * self.block_size,
        };
        let cached = self.overlaps.iter().map(|overlap| overlap.cached).collect();
        let queued = Queued { id, prompt: request.prompt.clone(), cached };
        self.queue.push(queued, request.priority.strict, &waiting);
        None
    }

    fn prefilled(&mut self, id: RequestId, now: Nanos) {
        if let Some(worker) = self.requests.value_mut(id).and_then(|placed| placed.worker) {
            self.loads[worker.index()].prefills.remove(id, now);
        }
    }

    fn ended(&mut self, id: RequestId, now: Nanos) {
        let placed = self.requests.remove(id).expect("a request ends once");
        let worker = placed.worker.expect("only a placed request ends");
        self.holdings.release(placed.claim);
        let load = &mut self.loads[worker.index()];
        load.prefills.remove(id, now);
        load.requests -= 1;
        load.unshared_blocks -= placed.unshared_blocks;
    }

    fn withdrawn(&mut self, id: RequestId, now: Nanos) {
        let placed = self.requests.value_mut(id).expect("it has arrived and not ended");
        if placed.worker.is_some() {
            return self.ended(id, now);
        }
        self.requests.remove(id);
        self.queue.remove(id);
    }

    fn cache_changed(&mut self, worker: WorkerId, change: Change) {
        if !self.members.has(worker) {
            return;
        }
        match change.kind {
            ChangeKind::Stored => self.holdings.store(worker, change.group, change.slots),
            ChangeKind::Removed => self.holdings.remove(worker, change.group, change.slots),
        }
    }

    fn joined(&mut self, worker: WorkerId) {
        self.members.joined(worker);
        self.holdings.admit(worker);
        self.loads.resize_with(worker.index() + 1, Load::default);
        self.overlaps.resize(worker.index() + 1, Overlap::default());
        self.busy_above = self.busy_limit.filter(|_| self.members.len() > 1);
    }

    fn left(&mut self, worker: WorkerId) {
        self.members.left(worker);
        self.holdings.forget(worker);
        self.busy_above = self.busy_limit.filter(|_| self.members.len() > 1);
    }

    fn tier_changed(&mut self, worker: Option<WorkerId>, tier: u8, change: Change) {
        let Change { group, slots, kind } = change;
        match (kind, worker) {
            (ChangeKind::Stored, Some(worker)) => self.holdings.store_behind(worker, tier, group, slots),
            (ChangeKind::Stored, None) => self.holdings.store_shared(tier, group, slots),
            (ChangeKind::Removed, Some(worker)) => self.holdings.remove_behind(worker, tier, group, slots),
            (ChangeKind::Removed, None) => self.holdings.remove_shared(tier, group, slots),
        }
    }

    fn release(&mut self, now: Nanos) -> Option<Placement> {
        if self.queue.is_empty() || self.all_busy(now) {
            return None;
        }
        let Queued { id, prompt, cached } = self.queue.pop()?;
        // What was cached is as of the arrival, what is live as of now.
        self.holdings.overlaps(prompt.keys_from(0, self.block_size), &mut self.overlaps);
        let then = cached.iter().copied().chain(std::iter::repeat(0));
        for (overlap, cached) in self.overlaps.iter_mut().zip(then) {
            overlap.cached = cached;
        }
        Some(self.admit(id, &prompt, now))
    }
}

#[cfg(test)]
mod tests;
