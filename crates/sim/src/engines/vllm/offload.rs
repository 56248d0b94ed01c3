//! Tiers behind the block pool: what is found there is loaded instead of computed, what is computed or given
//! up is written there.
//!
//! A request whose load holds it up waits outside the queue, with blocks for all that was found and its
//! cached prefix. It comes back to the head of the queue and is admitted as soon as the rest of it fits.

use wavetank_model::{Nanos, ServeSink};

use super::{Scratch, Vllm};
use crate::TierLoad;
use crate::arena::Slot;
use crate::tiers::Found;

impl Vllm {
    /// What tiers have of the first waiting request behind its cached prefix in `scratch.hits`.
    pub(super) fn look_behind(&mut self, slot: Slot, reusable: u32, sink: &mut ServeSink<'_>) -> Found {
        let (block_size, cached) = (self.config.block_size, self.scratch.hits.len());
        let Some(tiers) = &mut self.shell.tiers else {
            return Found { blocks: 0, load: TierLoad::Overlap };
        };
        if cached >= reusable {
            return Found { blocks: 0, load: TierLoad::Overlap };
        }
        tiers.settle(self.shell.boundary, sink);
        let sequence = &self.sequences[slot];
        tiers.lookup(sequence.objects(cached..reusable, block_size))
    }

    /// Blocks that the prompts of running requests still need.
    pub(super) fn head_room(&self) -> u32 {
        let missing = |slot: &Slot| {
            let sequence = &self.sequences[*slot];
            sequence.len.div_ceil(self.config.block_size).saturating_sub(sequence.blocks.len() as u32)
        };
        self.running.iter().map(missing).sum()
    }

    /// The first waiting request takes blocks for what was found, and waits for it elsewhere.
    pub(super) fn park(&mut self, slot: Slot, blocks: u32) {
        let sequence = &mut self.sequences[slot];
        self.pool.take_hits(&self.scratch.hits, &mut sequence.blocks);
        sequence.published = self.scratch.hits.len();
        let fits = self.pool.allocate(blocks, &mut sequence.blocks);
        assert!(fits, "the gate left room for what request {} loads", sequence.id.0);
        sequence.computed = sequence.blocks.len() as u32 * self.config.block_size;
        let (request, now) = (sequence.id, self.shell.boundary);
        if let Some(tiers) = &mut self.shell.tiers {
            tiers.load(request, slot, TierLoad::Delay, now);
        }
        self.scratch.parked += 1;
    }

    /// Loads have ended: what they brought can be found, and their requests are the first in the queue.
    pub(super) fn enqueue_loaded(&mut self, loaded: &[Slot]) {
        for &slot in loaded.iter().rev() {
            self.publish(slot);
            self.waiting.push_front(slot);
        }
        self.stalled = false;
    }

    /// Nothing runs and the first waiting request does not fit: the last one that holds what it loaded gives
    /// it back. Tells whether there was one.
    pub(super) fn give_back_load(&mut self) -> bool {
        let holds = |slot: &&Slot| self.sequences[**slot].is_loaded();
        let others = self.waiting.iter().skip(1);
        let Some(&slot) = others.rev().find(holds) else { return false };
        let sequence = &mut self.sequences[slot];
        self.pool.release(&mut sequence.blocks);
        (sequence.computed, sequence.published) = (0, 0);
        true
    }

    /// What the pass at hand took the place of is written when it begins. What it loads beside it must be
    /// there when it ends, at `end` at the earliest; what it completes is written then.
    pub(super) fn move_blocks(&mut self, end: Nanos, sink: &mut ServeSink<'_>) -> Nanos {
        let Some(tiers) = &mut self.shell.tiers else { return end };
        let start = self.shell.boundary;
        if tiers.takes_evicted() {
            tiers.write_evicted(start, self.pool.given_up().take().flatten());
        }
        let end = tiers.finish_joined(start, sink).max(end);
        let block_size = self.config.block_size;
        for work in &self.scratch.scheduled {
            let sequence = &self.sequences[work.slot];
            let (first, last) =
                (work.before() / block_size, sequence.computed.min(sequence.len) / block_size);
            if first < last {
                tiers.note(sequence.objects(first..last, block_size));
            }
        }
        tiers.write_completed(end);
        end
    }

    /// The same for `count` passes of a stretch that began at `start` and has been entered.
    pub(super) fn move_blocks_of_stretch(&mut self, start: Nanos, count: u32) {
        self.note_evicted(count);
        self.note_completed(count);
        let Some(tiers) = &mut self.shell.tiers else { return };
        let Scratch { evicted, completed, .. } = &mut self.scratch;
        let (mut evicted, mut completed) = (evicted.drain(..).peekable(), completed.drain(..).peekable());
        let steps = self.shell.stretch.steps(count);
        let (mut at, mut passed) = (start, 0);
        loop {
            let passes = [evicted.peek().map(|next| next.0), completed.peek().map(|next| next.0)];
            let Some(pass) = passes.into_iter().flatten().min() else { return };
            at += steps[passed..pass as usize].iter().copied().sum();
            passed = pass as usize;
            if passes[0] == Some(pass) {
                let keys = std::iter::from_fn(|| evicted.next_if(|next| next.0 == pass));
                tiers.write_evicted(at, keys.map(|(_, key)| key));
            }
            if passes[1] == Some(pass) {
                let full = std::iter::from_fn(|| completed.next_if(|next| next.0 == pass));
                tiers.note(full.map(|(_, object)| object));
                tiers.write_completed(at + steps[passed]);
            }
        }
    }

    /// Takes down the blocks that the last `count` passes completed, with the pass that did, counted from 0.
    fn note_completed(&mut self, count: u32) {
        let block_size = self.config.block_size;
        let completed = &mut self.scratch.completed;
        for &slot in &self.scratch.filled {
            let sequence = &self.sequences[slot];
            let before = sequence.computed - count;
            for block in before / block_size..sequence.computed / block_size {
                let pass = (block + 1) * block_size - before - 1;
                completed.push((pass, sequence.object(block, block_size)));
            }
        }
        completed.sort_by_key(|&(pass, _)| pass);
    }

    /// Takes down the blocks whose places the last `count` passes took, with the pass that did, from 0 on.
    fn note_evicted(&mut self, count: u32) {
        let victims = self.pool.given_up().take();
        if victims.len() == 0 {
            return;
        }
        let block_size = self.config.block_size;
        let Scratch { evicted, opened, .. } = &mut self.scratch;
        opened.clear();
        for &slot in &self.running {
            let after = self.sequences[slot].computed;
            let before = after - count;
            let blocks = before.div_ceil(block_size)..after.div_ceil(block_size);
            opened.extend(blocks.map(|block| block * block_size - before));
        }
        // Evicted blocks are taken last, in their order.
        opened.sort_unstable();
        let empty = opened.len().saturating_sub(victims.len());
        let taken = opened.drain(empty..).zip(victims);
        evicted.extend(taken.filter_map(|(pass, key)| Some((pass, key?))));
    }

    /// How many of the next `most` passes nothing can begin in that would change when a load ends.
    pub(super) fn passes_beside_loads(&self, most: u32) -> u32 {
        let Some(tiers) = self.shell.tiers.as_ref().filter(|tiers| tiers.is_loading()) else { return most };
        let block_size = self.config.block_size;
        let until_full = |slot: &Slot| {
            let filled = self.sequences[*slot].computed % block_size;
            if filled == 0 && tiers.takes_evicted() { 1 } else { block_size - filled }
        };
        self.running.iter().map(until_full).fold(most, u32::min)
    }
}
