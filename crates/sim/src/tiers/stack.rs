//! The tiers of one worker as its engine uses them.

use std::rc::Rc;

use wavetank_cache::{leading, objects};
use wavetank_model::{BlockKey, Nanos, RequestId, ServeEvent, ServeSink, TierEvent, TierObject, WorkerId};

use super::Load;
use super::moving::Reader;
use super::tier::TierRef;
use crate::arena::Slot;
use crate::{EngineConfig, TierLoad, TierScope, TierWrite};

/// What a lookup found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) blocks: u32,
    /// What loading them holds up.
    pub(crate) load: TierLoad,
}

/// The tiers of one worker, fastest first, and what it loads from them.
pub struct Stack {
    worker: WorkerId,
    block_size: u32,
    tiers: Vec<TierRef>,
    /// How many of them are the worker's own; the others are behind them.
    own: usize,
    loads_hold_up: Vec<TierLoad>,
    writes: Vec<TierWrite>,
    /// What the last lookup found: tier and blocks.
    found: Vec<(u8, TierObject)>,
    /// What requests wait for, in order.
    loads: Vec<Load>,
    /// What the pass at hand waits for.
    joined: Vec<Load>,
    asked: u64,
    /// Blocks to be read from one tier.
    batch: Vec<TierObject>,
    /// Blocks completed or given up in the pass at hand.
    outgoing: Vec<TierObject>,
}

impl Stack {
    pub(super) fn of(config: &EngineConfig, worker: WorkerId, tiers: &[TierRef]) -> Self {
        let own = config.tiers.iter().filter(|tier| tier.scope == TierScope::Worker).count();
        Self {
            worker,
            block_size: config.block_size,
            tiers: tiers.iter().map(Rc::clone).collect(),
            own,
            loads_hold_up: config.tiers.iter().map(|tier| tier.load).collect(),
            writes: config.tiers.iter().map(|tier| tier.write).collect(),
            found: Vec::new(),
            loads: Vec::new(),
            joined: Vec::new(),
            asked: 0,
            batch: Vec::new(),
            outgoing: Vec::new(),
        }
    }

    /// Whether the first tier is written with what the GPU's memory gives up.
    pub(crate) fn takes_evicted(&self) -> bool {
        self.writes[0] == TierWrite::Evict
    }

    /// Finds the longest run of `wanted` that is in any tier now. Tiers have been settled.
    pub(crate) fn lookup(&mut self, wanted: impl Iterator<Item = TierObject>) -> Found {
        self.found.clear();
        let mut found = Found { blocks: 0, load: TierLoad::Overlap };
        for TierObject { group, slots } in wanted {
            let mut left = slots;
            let first = self.found.len();
            let mut there = 0;
            for (number, tier) in (0..).zip(&self.tiers) {
                let here = tier.borrow().shelf.there(group) & left;
                if here != 0 {
                    self.found.push((number, TierObject { group, slots: here }));
                    there |= here;
                    left &= !here;
                }
                if left == 0 {
                    break;
                }
            }
            let run = leading(there, slots);
            // Behind a gap nothing is of use.
            for (_, object) in &mut self.found[first..] {
                object.slots &= run;
            }
            found.blocks += run.count_ones();
            if run != slots {
                break;
            }
        }
        self.found.retain(|(_, object)| object.slots != 0);
        if self.found.iter().any(|&(tier, _)| self.loads_hold_up[tier as usize] == TierLoad::Delay) {
            found.load = TierLoad::Delay;
        }
        found
    }

    /// Begins to load what the last lookup found, which holds up the request or the pass.
    pub(crate) fn load(&mut self, request: RequestId, slot: Slot, holds_up: TierLoad, now: Nanos) {
        self.asked += 1;
        let number = self.asked;
        let mut tokens = vec![0; self.tiers.len()];
        let reader = Reader { worker: self.worker, request, load: number };
        let mut left = 0;
        for (tier, count) in tokens.iter_mut().enumerate() {
            self.batch.clear();
            let here = self.found.iter().filter(|&&(number, _)| number as usize == tier);
            self.batch.extend(here.map(|&(_, object)| object));
            if !self.batch.is_empty() {
                let blocks = self.batch.iter().map(|object| object.slots.count_ones()).sum::<u32>();
                *count = blocks * self.block_size;
                left += self.tiers[tier].borrow_mut().read(now, reader, &self.batch);
            }
        }
        let load = Load { request, slot, number, asked: now, tokens, left, at: now };
        match holds_up {
            TierLoad::Delay => self.loads.push(load),
            TierLoad::Overlap => self.joined.push(load),
        }
    }

    /// Whether anything is being loaded, or has been and nobody has taken it.
    pub(crate) fn is_loading(&self) -> bool {
        !self.loads.is_empty()
    }

    /// When something happens in the worker's own tiers that a load may wait for.
    pub(crate) fn next(&self) -> Option<Nanos> {
        match self.is_loading() {
            true => self.next_of_own().map(|(at, _)| at),
            false => None,
        }
    }

    fn next_of_own(&self) -> Option<(Nanos, usize)> {
        let next = |number: usize| self.tiers[number].borrow().next().map(|at| (at, number));
        (0..self.own).filter_map(next).min()
    }

    /// The earliest end of a load that was not taken.
    pub(crate) fn ended(&self) -> Option<Nanos> {
        self.loads.iter().filter_map(Load::ended).min()
    }

    /// Everything that happens in the worker's own tiers up to `now`, and what has come from the others.
    pub(crate) fn settle(&mut self, now: Nanos, sink: &mut ServeSink<'_>) {
        (self.own..self.tiers.len()).for_each(|number| self.receive(number));
        while let Some((at, number)) = self.next_of_own()
            && at <= now
        {
            // What a tier does concerns those below it, and those above only when a read ends: up to the
            // next thing in another tier it goes on by itself.
            let others = (0..self.own).filter(|&other| other != number);
            let next_of_others = others.filter_map(|other| self.tiers[other].borrow().next()).min();
            let until = next_of_others.map_or(now, |next| next.min(now));
            self.tiers[number].borrow_mut().advance(until, sink);
            self.receive(number);
        }
    }

    /// Takes what has come from a tier; it goes to those above it too.
    fn receive(&mut self, number: usize) {
        let mut tier = self.tiers[number].borrow_mut();
        let mut position = 0;
        while let Some(arrived) = tier.arrived.get(position) {
            if arrived.worker != self.worker {
                position += 1;
                continue;
            }
            let arrived = tier.arrived.remove(position);
            let mut loads = self.loads.iter_mut().chain(&mut self.joined);
            if let Some(load) = loads.find(|load| load.number == arrived.load) {
                load.left -= 1;
                load.at = load.at.max(arrived.at);
            }
            for above in &self.tiers[..number] {
                above.borrow_mut().write_at(arrived.at, self.worker, &arrived.objects);
            }
        }
    }

    /// Takes the loads that have ended by `now`, in the order in which they were asked for.
    pub(crate) fn take_ended(&mut self, now: Nanos, slots: &mut Vec<Slot>, sink: &mut ServeSink<'_>) {
        let worker = self.worker;
        self.loads.retain(|load| {
            let ended = load.ended().filter(|&at| at <= now);
            if let Some(at) = ended {
                let Load { request, ref tokens, asked, slot, .. } = *load;
                sink.record(&ServeEvent::Tier(TierEvent::Loaded { request, worker, tokens, asked, at }));
                slots.push(slot);
            }
            ended.is_none()
        });
    }

    /// Lets time pass until what the pass at hand loads is there: only the worker's own tiers take part in
    /// it, and nothing begins meanwhile. When that is, at `now` at the earliest.
    pub(crate) fn finish_joined(&mut self, now: Nanos, sink: &mut ServeSink<'_>) -> Nanos {
        while self.joined.iter().any(|load| load.left > 0) {
            let (at, _) = self.next_of_own().expect("a load under way ends");
            self.settle(at, sink);
        }
        let end = self.joined.iter().map(|load| load.at).max().unwrap_or(now);
        let worker = self.worker;
        for Load { request, tokens, asked, at, .. } in self.joined.drain(..) {
            let tokens = &tokens;
            sink.record(&ServeEvent::Tier(TierEvent::Loaded { request, worker, tokens, asked, at }));
        }
        end
    }

    /// Where the engine keeps a request that waits for a load.
    pub(crate) fn waiting_for(&self, request: RequestId) -> Option<Slot> {
        self.loads.iter().find(|load| load.request == request).map(|load| load.slot)
    }

    /// A request is gone: nobody takes what is loaded for it.
    pub(crate) fn forget(&mut self, slot: Slot) {
        self.loads.retain(|load| load.slot != slot);
    }

    /// Notes blocks that the pass at hand completes.
    pub(crate) fn note(&mut self, blocks: impl Iterator<Item = TierObject>) {
        self.outgoing.extend(blocks);
    }

    /// The blocks noted are written where all is written that is computed, from `at` on.
    pub(crate) fn write_completed(&mut self, at: Nanos) {
        if self.outgoing.is_empty() {
            return;
        }
        for (tier, _) in
            self.tiers.iter().zip(&self.writes).filter(|(_, write)| **write == TierWrite::Through)
        {
            tier.borrow_mut().write_at(at, self.worker, &self.outgoing);
        }
        self.outgoing.clear();
    }

    /// The GPU's memory has given up blocks at `at`.
    pub(crate) fn write_evicted(&mut self, at: Nanos, keys: impl Iterator<Item = BlockKey>) {
        self.outgoing.extend(objects(keys));
        if !self.outgoing.is_empty() {
            self.tiers[0].borrow_mut().write_at(at, self.worker, &self.outgoing);
            self.outgoing.clear();
        }
    }
}
