//! Stretches of passes in which every running request decodes and nothing else can happen: no admission, no
//! completion before the last one, no shortage of blocks. They are priced as a run and booked at once.

use super::Vllm;
use crate::engines::Signal;
use crate::stretch::longest;

impl Vllm {
    /// How many passes can be advanced together now; the last of them may finish requests.
    pub(super) fn passes_to_advance(&self) -> u32 {
        let batch = self.running.len() as u32;
        let seats_taken = self.config.max_num_seqs.is_some_and(|seats| batch >= seats);
        let nobody_enters = self.waiting.is_empty() || self.stalled || seats_taken;
        let budget_covers = self.config.max_num_batched_tokens.is_none_or(|budget| batch <= budget);
        if batch == 0 || !nobody_enters || !budget_covers {
            return 0;
        }
        let mut to_go = u32::MAX;
        for &slot in &self.running {
            let sequence = &self.sequences[slot];
            if !sequence.is_decoding() {
                return 0;
            }
            to_go = to_go.min(sequence.limit - sequence.len);
        }
        let to_go = if self.config.async_scheduling { self.passes_ahead(to_go) } else { to_go };
        self.passes_with_blocks(self.passes_beside_loads(to_go))
    }

    /// How many of the next `most` passes surely have the blocks they need.
    fn passes_with_blocks(&self, most: u32) -> u32 {
        // In n * block_size passes a request opens at most n blocks.
        let sure = (self.pool.available() / self.running.len() as u32).saturating_mul(self.config.block_size);
        longest(sure, most, |passes| self.blocks_for(passes) <= self.pool.available())
    }

    /// Blocks that `passes` passes open.
    fn blocks_for(&self, passes: u32) -> u32 {
        let opened = |slot| {
            let sequence = &self.sequences[slot];
            (sequence.computed + passes).div_ceil(self.config.block_size) - sequence.blocks.len() as u32
        };
        self.running.iter().map(|&slot| opened(slot)).fold(0, u32::saturating_add)
    }

    /// Enters `count` tokens into every running request. Tells whether any has all of them.
    pub(super) fn grow_running(&mut self, count: u32) -> bool {
        self.running_tokens += self.running.len() as u64 * u64::from(count);
        self.scratch.filled.clear();
        let mut finishing = false;
        for position in 0..self.running.len() {
            let slot = self.running[position];
            let sequence = &mut self.sequences[slot];
            // What the last of these passes samples is not known when it is scheduled, and blocks are
            // published then.
            sequence.len += count - 1;
            sequence.computed += count;
            if sequence.len + 1 == sequence.limit {
                finishing = true;
                self.shell.signals.push(Signal::Ended(sequence.id));
            }
            self.shell.emitting.push(sequence.id);
            let blocks = sequence.computed.div_ceil(self.config.block_size);
            let missing = blocks - sequence.blocks.len() as u32;
            let fits = self.pool.allocate(missing, &mut sequence.blocks);
            assert!(fits, "a stretch is no longer than its blocks");
            self.publish(slot);
            self.sequences[slot].len += 1;
        }
        finishing
    }
}
