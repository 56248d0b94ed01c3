//! Tiers of KV behind the GPU's memory: what is found there is loaded instead of computed.
//!
//! A `Stack` is what one worker sees, fastest first: lookups, loads and writes. A `Tier` is one of them,
//! its own or shared by the workers of its pool: what it holds, and what is under way there. `load` is what a
//! request waits for.
//!
//! The rules are those of vLLM's offloading connector and of SGLang's HiCache (spec/engine.md 7 and 15.9), as
//! far as they are about content and time:
//! * A write begins when the pass that completed its blocks has ended (`through`), or when the memory above
//!   gives them up (`evict`: the GPU's at the start of the pass that takes its blocks, a tier's when
//!   something else needs the room). What is written can be found when its write has ended.
//! * A load reads every block from the fastest tier that has it; all tiers are read at once. What was read
//!   from a slower tier is then written to those above it, and nobody waits for that.
//! * Within what ends at once, the beginning of a prompt counts as used last, so that ends of prompts go
//!   first. What the GPU has is not looked for, so finding it there is no use of a tier.

mod load;
mod moving;
mod stack;
mod tier;

use std::cell::RefCell;
use std::rc::Rc;

use wavetank_cache::{Change, MOST_TIERS};
use wavetank_model::{Nanos, Result, WorkerId, mix};

use crate::{EngineConfig, TierScope, WorkerRole};
pub(crate) use load::Load;
pub(crate) use stack::Found;
pub use stack::Stack;
pub(crate) use tier::{Tier, TierRef};

/// Why an engine cannot have the tiers of its configuration; `None` if it can, or has none.
pub fn refusal(config: &EngineConfig) -> Option<String> {
    if config.tiers.is_empty() {
        return None;
    }
    let shared = |tier: &crate::TierConfig| tier.scope == TierScope::Shared;
    let first_shared = config.tiers.iter().position(shared).unwrap_or(config.tiers.len());
    let behind = config.tiers[first_shared..].iter().find(|tier| !shared(tier));
    let overlaps = |tier: &&crate::TierConfig| shared(tier) && tier.load == crate::TierLoad::Overlap;
    let reason = if config.data_parallel_ranks > 1 {
        "data_parallel_ranks above 1 cannot have tiers".to_owned()
    } else if config.worker_type == WorkerRole::Decode {
        "a decode worker cannot have tiers".to_owned()
    } else if config.async_scheduling {
        "async_scheduling cannot have tiers".to_owned()
    } else if !config.enable_prefix_caching {
        "tiers need enable_prefix_caching".to_owned()
    } else if config.transfer.kv_bytes_per_token == 0 {
        "tiers need kv_bytes_per_token".to_owned()
    } else if config.tiers.len() > MOST_TIERS {
        format!("there can be {MOST_TIERS} tiers at most")
    } else if let Some(tier) = behind {
        format!("tier \"{}\" of each worker cannot be behind one that is shared", tier.name)
    } else if let Some(tier) = config.tiers.iter().find(overlaps) {
        format!("tier \"{}\" is shared and cannot have load overlap", tier.name)
    } else {
        return None;
    };
    Some(reason)
}

/// What a tier did, over all its instances: one for each worker, or one that is shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierWork {
    /// How many there are.
    pub instances: u32,
    /// Blocks they can hold.
    pub capacity_blocks: u64,
    /// Blocks they held at the end.
    pub held_blocks: u64,
    /// Bytes of reads that ended.
    pub bytes_read: u64,
    /// Bytes of writes that ended.
    pub bytes_written: u64,
    /// Time with something under way, of all instances together.
    pub busy: Nanos,
    /// The end of the run, for its tiers: that of the last pass or transfer.
    pub until: Nanos,
}

impl TierWork {
    /// The part of the run in which something was under way.
    pub fn utilisation(&self) -> f64 {
        let all = self.until.0 as f64 * f64::from(self.instances);
        if all > 0.0 { self.busy.0 as f64 / all } else { 0.0 }
    }
}

/// The tiers of a pool's workers.
pub(crate) struct Pool {
    /// By worker, fastest first.
    pub(crate) workers: Vec<Vec<TierRef>>,
    /// How many of them, from the slowest, are one for all.
    shared: usize,
}

impl Pool {
    /// The tiers of so many workers, empty.
    pub(crate) fn of(config: &EngineConfig, workers: u32, seed: u64) -> Result<Self> {
        if let Some(reason) = refusal(config) {
            return Err(wavetank_model::Error::usage(reason));
        }
        let own = config.tiers.iter().position(|tier| tier.scope == TierScope::Shared);
        let own = own.unwrap_or(config.tiers.len());
        let build = |number: usize, worker: u64| {
            let seed = mix(seed, mix(number as u64, worker));
            Ok(Rc::new(RefCell::new(Tier::build(config, number as u8, seed)?)))
        };
        let shared = (own..config.tiers.len()).map(|number| build(number, u64::MAX));
        let shared = shared.collect::<Result<Vec<TierRef>>>()?;
        let mut stacks = Vec::new();
        for worker in 0..workers {
            let mut stack =
                (0..own).map(|number| build(number, worker.into())).collect::<Result<Vec<_>>>()?;
            stack.extend(shared.iter().cloned());
            for (upper, lower) in stack.iter().zip(stack.iter().skip(1)) {
                upper.borrow_mut().lead_to(lower);
            }
            stacks.push(stack);
        }
        Ok(Self { workers: stacks, shared: shared.len() })
    }

    /// What the worker `worker` sees of it.
    pub(crate) fn stack(&self, config: &EngineConfig, worker: WorkerId) -> Stack {
        Stack::of(config, worker, &self.workers[worker.index()])
    }

    /// The tiers that are one for all.
    pub(crate) fn shared(&self) -> &[TierRef] {
        let first = self.workers.first().map_or(&[][..], Vec::as_slice);
        &first[first.len() - self.shared..]
    }

    /// Keeps track of what enters and leaves the tiers, for [`Self::take_changes`].
    pub(crate) fn watch(&self) {
        self.workers.iter().flatten().for_each(|tier| tier.borrow_mut().shelf.log().keep());
    }

    /// Moves out what changed: whose tier, which, and what; a shared one is nobody's.
    pub(crate) fn take_changes(&self, mut tell: impl FnMut(Option<WorkerId>, u8, Change)) {
        let mut changes = Vec::new();
        let own = |stack: &[TierRef]| stack.len() - self.shared;
        for (worker, stack) in (0..).map(WorkerId).zip(&self.workers) {
            for (number, tier) in (0..).zip(&stack[..own(stack)]) {
                tier.borrow_mut().shelf.log().take(&mut changes);
                changes.drain(..).for_each(|change| tell(Some(worker), number, change));
            }
        }
        let first = self.workers.first().map_or(0, |stack| own(stack)) as u8;
        for (number, tier) in (first..).zip(self.shared()) {
            tier.borrow_mut().shelf.log().take(&mut changes);
            changes.drain(..).for_each(|change| tell(None, number, change));
        }
    }

    /// What each tier did by `end`.
    pub(crate) fn work(&self, end: Nanos) -> Vec<TierWork> {
        let depth = self.workers.first().map_or(0, Vec::len);
        let own = depth - self.shared;
        let of = |number: usize| {
            let all = if number < own { &self.workers[..] } else { &self.workers[..1] };
            let mut sum = TierWork { until: end, ..TierWork::default() };
            all.iter().for_each(|stack| stack[number].borrow().add_to(&mut sum));
            sum
        };
        (0..depth).map(of).collect()
    }
}
