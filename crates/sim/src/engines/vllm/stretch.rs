//! Stretches of passes in which every running request decodes and nothing else can happen: no admission, no
//! completion before the last one, no shortage of blocks. They are priced as a run and booked at once.

use wavetank_model::{Nanos, ServeEvent, ServeSink};

use super::Vllm;
use crate::engines::{Horizon, Signal};
use crate::stretch::{Advance, Course};

impl Vllm {
    /// How many passes can be advanced together now; the last of them may finish requests.
    pub(super) fn uneventful_passes(&self) -> u32 {
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
        self.passes_with_blocks(to_go)
    }

    /// How many of the next `most` passes surely have the blocks they need.
    fn passes_with_blocks(&self, most: u32) -> u32 {
        // In n * block_size passes a request opens at most n blocks.
        let sure = (self.pool.available() / self.running.len() as u32).saturating_mul(self.config.block_size);
        if sure >= most {
            return most;
        }
        let (mut enough, mut short) = (sure, most + 1);
        while short - enough > 1 {
            let middle = enough + (short - enough) / 2;
            match self.blocks_for(middle) <= self.pool.available() {
                true => enough = middle,
                false => short = middle,
            }
        }
        enough
    }

    /// Blocks that `passes` passes open.
    fn blocks_for(&self, passes: u32) -> u32 {
        let opened = |slot| {
            let sequence = &self.sequences[slot];
            (sequence.computed + passes).div_ceil(self.config.block_size) - sequence.blocks.len() as u32
        };
        self.running.iter().map(|&slot| opened(slot)).fold(0, u32::saturating_add)
    }

    /// Advances up to `most` passes, to the horizon.
    pub(super) fn stretch(&mut self, most: u32, horizon: Horizon, sink: &mut ServeSink<'_>) {
        let start = self.boundary;
        let batch = self.decode_batch(self.running.len() as u32, self.running_tokens);
        let course = Course { pace: &self.pace, batch, most };
        let Advance { count, end, halted } = self.stretch.advance(course, start, horizon);
        (self.boundary, self.halted) = (end, halted);
        // A pass that ends beyond the horizon is still in flight there: its changes must stay apart.
        if end > horizon.starts_before && count > 1 && self.pool.log().is_kept() {
            let last = self.stretch.steps(count)[count as usize - 1];
            self.book(start, count - 1, sink);
            self.book(Nanos(end.0 - last.0), 1, sink);
        } else {
            self.book(start, count, sink);
        }
    }

    /// The end of the passes priced so far.
    pub(super) fn end_of_plan(&mut self, most: u32) -> Nanos {
        let batch = self.decode_batch(self.running.len() as u32, self.running_tokens);
        self.stretch.end_of_plan(Course { pace: &self.pace, batch, most }, self.boundary)
    }

    /// Enters `count` passes that began at `start` into every running request.
    fn book(&mut self, start: Nanos, count: u32, sink: &mut ServeSink<'_>) {
        if count == 0 {
            return;
        }
        self.pool.log().settle();
        self.work.advanced_passes += u64::from(count);
        self.running_tokens += self.running.len() as u64 * u64::from(count);
        self.scratch.emitting.clear();
        let mut finishing = false;
        for position in 0..self.running.len() {
            let slot = self.running[position];
            let sequence = &mut self.sequences[slot];
            sequence.len += count;
            sequence.computed += count;
            if sequence.len == sequence.limit {
                finishing = true;
                self.signals.push(Signal::Ended(sequence.id));
            }
            self.scratch.emitting.push(sequence.id);
            let blocks = sequence.computed.div_ceil(self.config.block_size);
            let missing = blocks - sequence.blocks.len() as u32;
            let fits = self.pool.allocate(missing, &mut sequence.blocks);
            assert!(fits, "a stretch is no longer than its blocks");
            self.publish(slot);
        }
        let steps = self.stretch.steps(count);
        let requests = &self.scratch.emitting;
        sink.record(&ServeEvent::TokensEmitted { worker: self.worker, start, steps, requests });
        self.work.busy += steps.iter().copied().sum();
        self.stretch.done(count);
        if finishing {
            self.stretch.forget();
            self.finish(self.boundary, sink);
        }
    }
}
