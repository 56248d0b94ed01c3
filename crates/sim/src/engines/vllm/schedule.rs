//! What one pass computes: running requests in order of admission, then waiting ones first come first served.

use wavetank_model::{RejectReason, ServeEvent, ServeSink};

use super::Vllm;
use crate::arena::Slot;
use crate::timing::Chunk;
use crate::{PreemptionMode, TierLoad};

/// The work one request got in this pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scheduled {
    pub(super) slot: Slot,
    pub(super) tokens: u32,
    /// Tokens that were there before, found in the cache or computed.
    before: u32,
    /// How many of them belong to the prompt.
    prompt_before: u32,
    /// How many of `tokens` belong to the prompt.
    pub(super) prompt_tokens: u32,
    /// Whether it was waiting before.
    starts: bool,
}

impl Scheduled {
    /// Whether more is computed than the token sampled last.
    pub(super) fn is_chunk(&self) -> bool {
        self.starts || self.prompt_tokens > 0 || self.tokens > 1
    }

    /// Tokens that were there before.
    pub(super) fn before(&self) -> u32 {
        self.before
    }

    /// Length of the request when its next token is computed.
    pub(super) fn length(&self) -> u32 {
        self.before + 1
    }

    pub(super) fn chunk(&self) -> Chunk {
        Chunk {
            tokens: self.tokens,
            context: self.before,
            prompt_tokens: self.prompt_tokens,
            prompt_context: self.prompt_before,
        }
    }
}

/// Tokens to compute for a request.
pub(super) struct Work {
    pub(super) before: u32,
    pub(super) tokens: u32,
    pub(super) starts: bool,
}

/// How scheduling one running request ended.
enum Turn {
    Scheduled,
    Blocked,
    /// It was its own victim.
    Preempted,
}

/// What may be done with the first waiting request.
enum Gate {
    /// Start with this many cached and this many new tokens.
    Admit {
        cached: u32,
        tokens: u32,
    },
    /// Load this many blocks behind the cached ones, and look again when they are there.
    Load(u32),
    Reject(RejectReason),
    /// Not in this pass: others use its tokens.
    Wait,
    /// Not before a running request finishes: there are no blocks.
    Stall,
}

impl Vllm {
    /// Fills `scratch.scheduled` and `scratch.rejected`. Tells whether anyone was preempted.
    pub(super) fn schedule(&mut self, sink: &mut ServeSink<'_>) -> bool {
        self.scratch.scheduled.clear();
        self.scratch.filled.clear();
        self.scratch.parked = 0;
        self.scratch.budget = self.config.max_num_batched_tokens.unwrap_or(u32::MAX);
        let preempted = self.schedule_running(sink);
        if !preempted {
            self.admit(sink);
        }
        preempted
    }

    fn schedule_running(&mut self, sink: &mut ServeSink<'_>) -> bool {
        let mut preempted = 0;
        let mut position = 0;
        while position < self.running.len() && self.scratch.budget > 0 {
            let before = self.running.len();
            let turn = self.schedule_one(self.running[position], sink);
            let victims = before - self.running.len();
            preempted += victims;
            let shift = match self.config.preemption_mode {
                PreemptionMode::Lifo => 0,
                PreemptionMode::Fifo => victims,
            };
            position = match turn {
                Turn::Scheduled => position + 1 - shift,
                Turn::Preempted => (position + 1).saturating_sub(shift.max(1)),
                Turn::Blocked => break,
            };
        }
        preempted > 0
    }

    fn schedule_one(&mut self, slot: Slot, sink: &mut ServeSink<'_>) -> Turn {
        let sequence = &self.sequences[slot];
        let before = sequence.computed;
        let wanted = sequence.reach() - before;
        if sequence.is_provided_for() {
            return Turn::Scheduled;
        }
        if !self.config.enable_chunked_prefill && sequence.prompt_left(before) > self.scratch.budget {
            return Turn::Blocked;
        }
        loop {
            let tokens = wanted.min(self.scratch.budget);
            if self.grow(slot, before + tokens) {
                self.commit(slot, Work { before, tokens, starts: false });
                return Turn::Scheduled;
            }
            if self.preempt(sink) == slot {
                return Turn::Preempted;
            }
        }
    }

    /// Gets blocks for the first `tokens` tokens of a request.
    fn grow(&mut self, slot: Slot, tokens: u32) -> bool {
        let blocks = &mut self.sequences[slot].blocks;
        let missing = tokens.div_ceil(self.config.block_size).saturating_sub(blocks.len() as u32);
        self.pool.allocate(missing, blocks)
    }

    /// Books `tokens` of work for a request whose blocks are there, and publishes what it completes.
    pub(super) fn commit(&mut self, slot: Slot, work: Work) {
        let Work { before, tokens, starts } = work;
        let sequence = &mut self.sequences[slot];
        let prompt_tokens = tokens.min(sequence.prompt_left(before));
        let prompt_before = before.min(sequence.prompt.tokens());
        sequence.computed = before + tokens;
        self.scratch.budget -= tokens;
        self.scratch.scheduled.push(Scheduled { slot, tokens, before, prompt_before, prompt_tokens, starts });
        self.publish(slot);
    }

    /// Makes the blocks that are completely computed visible to lookups, this pass's included.
    pub(super) fn publish(&mut self, slot: Slot) {
        if !self.config.enable_prefix_caching {
            return;
        }
        let block_size = self.config.block_size;
        let sequence = &self.sequences[slot];
        let (first, last) = (sequence.published, sequence.computed.min(sequence.len) / block_size);
        if first >= last {
            return;
        }
        let fresh = &sequence.blocks[first as usize..last as usize];
        self.pool.publish(fresh, sequence.keys(first, block_size));
        self.sequences[slot].published = last;
        if self.shell.tiers.is_some() {
            self.scratch.filled.push(slot);
        }
    }

    /// Sends a victim back to the head of the queue and takes back its work of this pass.
    fn preempt(&mut self, sink: &mut ServeSink<'_>) -> Slot {
        let victim = match self.config.preemption_mode {
            PreemptionMode::Lifo => self.running.pop().expect("the request that needs blocks is running"),
            PreemptionMode::Fifo => self.running.remove(0),
        };
        let scheduled = &mut self.scratch.scheduled;
        if let Some(position) = scheduled.iter().position(|work| work.slot == victim) {
            self.scratch.budget += scheduled.remove(position).tokens;
        }
        let sequence = &mut self.sequences[victim];
        self.running_tokens -= u64::from(sequence.len);
        self.pool.release(&mut sequence.blocks);
        (sequence.computed, sequence.published) = (0, 0);
        self.waiting.push_front(victim);
        self.stalled = false;
        let (request, worker, at) = (sequence.id, self.shell.worker, self.shell.boundary);
        sink.record(&ServeEvent::RequestPreempted { request, worker, at });
        victim
    }

    /// Admits waiting requests until one must wait.
    fn admit(&mut self, sink: &mut ServeSink<'_>) {
        let seats = self.config.max_num_seqs.map_or(usize::MAX, |seats| seats as usize);
        while self.running.len() < seats {
            let Some(position) = self.next_to_admit() else {
                self.stalled = true;
                return;
            };
            let slot = self.waiting[position];
            if self.sequences[slot].reservation.is_some() {
                self.admit_prebuilt(position);
                if self.scratch.budget == 0 {
                    return;
                }
                continue;
            }
            match self.gate(slot, sink) {
                Gate::Admit { cached, tokens } => self.start(slot, cached, tokens, sink),
                Gate::Load(blocks) => self.park(slot, blocks),
                Gate::Reject(reason) => self.scratch.rejected.push((slot, reason)),
                Gate::Wait => return,
                Gate::Stall => {
                    // Blocks that waiting prompts brought with them must not keep everybody from running.
                    if self.running.is_empty()
                        && let Some(position) = self.first_prebuilt()
                    {
                        self.admit_prebuilt(position);
                        continue;
                    }
                    if self.running.is_empty() && self.give_back_load() {
                        continue;
                    }
                    self.stalled = true;
                    return;
                }
            }
            self.waiting.pop_front();
        }
    }

    /// Whether the first waiting request may start: all its known tokens must fit beside what is in use,
    /// even if this pass computes only a part. Leaves the cached prefix in `scratch.hits`.
    fn gate(&mut self, slot: Slot, sink: &mut ServeSink<'_>) -> Gate {
        let budget = self.scratch.budget;
        let block_size = self.config.block_size;
        let sequence = &self.sequences[slot];
        let blocks = sequence.len.div_ceil(block_size);
        if self.config.max_model_len.is_some_and(|limit| sequence.prompt.tokens() >= limit) {
            return Gate::Reject(RejectReason::PromptReachesModelLimit);
        }
        if blocks > self.pool.capacity() {
            return Gate::Reject(match sequence.has_generated() {
                true => RejectReason::OutgrewCache,
                false => RejectReason::PromptExceedsCache,
            });
        }
        if budget == 0 {
            return Gate::Wait;
        }
        if sequence.is_loaded() {
            self.scratch.hits.clear();
            let held = sequence.blocks.len() as u32;
            return match blocks - held > self.pool.available() {
                true => Gate::Stall,
                false => self.gate_budget(slot, held * block_size),
            };
        }
        // The last token is always computed, so a block that holds it is never taken from the cache.
        let reusable = if self.config.enable_prefix_caching { (sequence.len - 1) / block_size } else { 0 };
        self.pool.lookup(sequence.keys(0, block_size).take(reusable as usize), &mut self.scratch.hits);
        let needed = blocks - self.scratch.hits.in_use();
        if needed > self.pool.available() {
            return Gate::Stall;
        }
        let found = self.look_behind(slot, reusable, sink);
        if found.blocks > 0 && found.load == TierLoad::Delay {
            // What running prompts still need is not given to a load.
            return match needed + self.head_room() > self.pool.available() {
                true => Gate::Stall,
                false => Gate::Load(found.blocks),
            };
        }
        self.gate_budget(slot, (self.scratch.hits.len() + found.blocks) * block_size)
    }

    /// Whether this pass has the tokens to start a request that has `cached` ones.
    fn gate_budget(&self, slot: Slot, cached: u32) -> Gate {
        let (sequence, budget) = (&self.sequences[slot], self.scratch.budget);
        let prompt_left = sequence.prompt_left(cached);
        if !self.config.enable_chunked_prefill && prompt_left > budget {
            let whole_pass = self.config.max_num_batched_tokens.unwrap_or(u32::MAX);
            return match prompt_left > whole_pass {
                true => Gate::Reject(RejectReason::PromptExceedsPass),
                false => Gate::Wait,
            };
        }
        Gate::Admit { cached, tokens: (sequence.len - cached).min(budget) }
    }

    /// Moves the first waiting request into the running batch.
    fn start(&mut self, slot: Slot, cached: u32, tokens: u32, sink: &mut ServeSink<'_>) {
        let sequence = &mut self.sequences[slot];
        self.pool.take_hits(&self.scratch.hits, &mut sequence.blocks);
        sequence.published = sequence.blocks.len() as u32;
        self.running_tokens += u64::from(sequence.len);
        self.running.push(slot);
        let reused_tokens = cached.min(sequence.prompt.tokens());
        let (request, worker, at) = (sequence.id, self.shell.worker, self.shell.boundary);
        sink.record(&ServeEvent::RequestAdmitted { request, worker, at, reused_tokens });
        let found = cached > self.sequences[slot].published * self.config.block_size;
        if found && let Some(tiers) = &mut self.shell.tiers {
            tiers.load(request, slot, TierLoad::Overlap, at);
        }
        let fits = self.grow(slot, cached + tokens);
        assert!(fits, "the gate left room for request {}", request.0);
        self.commit(slot, Work { before: cached, tokens, starts: true });
    }
}
