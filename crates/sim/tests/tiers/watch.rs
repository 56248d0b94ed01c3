//! What a run told, checked against what a tier can have done.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicBool;

use wavetank_model::{
    Nanos, Operation, RequestId, ServeEvent, Sink, TierEvent, TierObject, WorkerId, Workload,
};
use wavetank_sim::{Outcome, Plan, TierScope};

/// One load.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loaded {
    pub(crate) request: RequestId,
    pub(crate) tokens: Vec<u32>,
    pub(crate) asked: Nanos,
    pub(crate) at: Nanos,
}

/// What happened in one tier of one worker, or of all where it is shared.
#[derive(Debug, Default)]
struct Content {
    /// When each block was last written.
    written: HashMap<(u64, u32), Nanos>,
    written_blocks: u64,
    read_blocks: u64,
    evicted_blocks: u64,
    /// When something was under way.
    periods: Vec<(Nanos, Nanos)>,
}

impl Content {
    /// How long anything was under way, once.
    fn busy(&self) -> Nanos {
        let mut periods = self.periods.clone();
        periods.sort_unstable();
        let mut until = Nanos::ZERO;
        let mut new_part = |(began, ended): (Nanos, Nanos)| {
            let part = ended.since(began.max(until));
            until = until.max(ended);
            part
        };
        periods.into_iter().map(&mut new_part).sum()
    }
}

/// Everything that happened.
pub(crate) struct Watched {
    /// Of each request, in order.
    pub(crate) requests: BTreeMap<RequestId, Vec<String>>,
    pub(crate) lines: Vec<String>,
    pub(crate) arrived: u64,
    pub(crate) completed: u64,
    pub(crate) rejected: u64,
    pub(crate) preempted: u64,
    pub(crate) input_tokens: u64,
    /// By its first admission.
    pub(crate) reused: BTreeMap<RequestId, u32>,
    pub(crate) loads: Vec<Loaded>,
    pub(crate) dropped: u64,
    block_bytes: u64,
    shared: Vec<bool>,
    /// Whether it may end amid reads.
    is_cut_short: bool,
    contents: BTreeMap<(u8, u32), Content>,
}

impl Watched {
    fn of(plan: &Plan) -> Self {
        let engine = &plan.engine;
        Self {
            requests: BTreeMap::new(),
            lines: Vec::new(),
            arrived: 0,
            completed: 0,
            rejected: 0,
            preempted: 0,
            input_tokens: 0,
            reused: BTreeMap::new(),
            loads: Vec::new(),
            dropped: 0,
            block_bytes: u64::from(engine.block_size) * u64::from(engine.transfer.kv_bytes_per_token),
            shared: engine.tiers.iter().map(|tier| tier.scope == TierScope::Shared).collect(),
            is_cut_short: plan.max_sim_time.is_some(),
            contents: BTreeMap::new(),
        }
    }

    pub(crate) fn reused_tokens(&self) -> u64 {
        self.reused.values().map(|&tokens| u64::from(tokens)).sum()
    }

    fn tier(&mut self, event: &TierEvent<'_>) {
        match *event {
            TierEvent::Moved { worker, tier, operation, objects, bytes, began, ended, .. } => {
                assert!(began <= ended);
                let blocks: u64 = objects.iter().map(|object| u64::from(object.slots.count_ones())).sum();
                assert_eq!(bytes, blocks * self.block_bytes, "bytes are those of the blocks");
                let content = self.content(tier, worker);
                content.periods.push((began, ended));
                for key in objects.iter().flat_map(keys) {
                    match operation {
                        Operation::Write => drop(content.written.insert(key, ended)),
                        Operation::Read => {
                            let written = content.written.get(&key).copied();
                            assert!(
                                written.is_some_and(|at| at <= began),
                                "{key:?} is read before it is there"
                            );
                        }
                    }
                }
                match operation {
                    Operation::Write => content.written_blocks += blocks,
                    Operation::Read => content.read_blocks += blocks,
                }
            }
            TierEvent::Evicted { worker, tier, blocks, .. } => {
                self.content(tier, worker).evicted_blocks += u64::from(blocks);
            }
            TierEvent::Dropped { blocks, .. } => self.dropped += u64::from(blocks),
            TierEvent::Loaded { request, tokens, asked, at, .. } => {
                assert!(asked <= at);
                self.loads.push(Loaded { request, tokens: tokens.to_vec(), asked, at });
            }
        }
    }

    fn content(&mut self, tier: u8, worker: WorkerId) -> &mut Content {
        let instance = if self.shared[tier as usize] { u32::MAX } else { worker.0 };
        self.contents.entry((tier, instance)).or_default()
    }

    /// The books of the run and of the events agree.
    fn check(&self, outcome: &Outcome) {
        for (number, work) in outcome.tiers.iter().enumerate() {
            let mine = || self.contents.iter().filter(|((tier, _), _)| *tier as usize == number);
            let sum = |value: fn(&Content) -> u64| mine().map(|(_, content)| value(content)).sum::<u64>();
            assert_eq!(work.bytes_written, sum(|content| content.written_blocks) * self.block_bytes);
            assert_eq!(work.bytes_read, sum(|content| content.read_blocks) * self.block_bytes);
            let left = sum(|content| content.written_blocks) - sum(|content| content.evicted_blocks);
            assert!(left <= work.held_blocks, "what is under way is held too");
            let is_under_way = left < work.held_blocks || self.is_cut_short;
            let busy = mine().map(|(_, content)| content.busy()).sum::<Nanos>();
            assert!(busy <= work.busy && (busy == work.busy || is_under_way), "{busy:?} {work:?}");
            assert!(work.held_blocks <= work.capacity_blocks);
            assert!((0.0..=1.0).contains(&work.utilisation()), "{work:?}");
        }
    }
}

fn keys(object: &TierObject) -> impl Iterator<Item = (u64, u32)> {
    let TierObject { group, slots } = *object;
    (0..8).filter(move |slot| slots & 1 << slot != 0).map(move |slot| (group, slot))
}

impl Sink<ServeEvent<'_>> for Watched {
    fn record(&mut self, event: &ServeEvent<'_>) {
        let line = format!("{event:?}");
        let mut of = |request: RequestId| self.requests.entry(request).or_default().push(line.clone());
        match *event {
            ServeEvent::RequestArrived { details, .. } => {
                self.arrived += 1;
                self.input_tokens += u64::from(details.prompt.tokens());
            }
            ServeEvent::RequestAdmitted { request, reused_tokens, .. } => {
                of(request);
                self.reused.entry(request).or_insert(reused_tokens);
            }
            ServeEvent::RequestPreempted { request, .. } => {
                of(request);
                self.preempted += 1;
            }
            ServeEvent::PromptComputed { request, .. } => of(request),
            ServeEvent::RequestCompleted { request, .. } => {
                of(request);
                self.completed += 1;
            }
            ServeEvent::RequestRejected { request, .. } => {
                of(request);
                self.rejected += 1;
            }
            ServeEvent::Tier(ref event) => {
                if let TierEvent::Loaded { request, .. } = *event {
                    of(request);
                }
                self.tier(event);
            }
            _ => {}
        }
        self.lines.push(line);
    }
}

/// Runs a plan.
pub(crate) fn run(plan: &Plan, workload: &mut dyn Workload) -> (Watched, Outcome) {
    let mut watched = Watched::of(plan);
    let outcome = wavetank_sim::run(plan, workload, &mut watched, &AtomicBool::new(false));
    let outcome = outcome.expect("the plan is sound");
    watched.check(&outcome);
    (watched, outcome)
}
