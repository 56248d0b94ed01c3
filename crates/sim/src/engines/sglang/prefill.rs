//! Forming a batch of prompts: three budgets, whole prompts or chunks, first come first served or longest
//! cached prefix first.

use std::collections::HashSet;

use wavetank_model::{Nanos, RejectReason, ServeEvent, ServeSink};

use super::Sglang;
use crate::arena::Slot;
use crate::tiers::Found;
use crate::timing::{Chunk, DecodeBatch, Pass, Pricing};
use crate::{SchedulePolicy, TierLoad, WorkerRole};

/// What one request computes in a prefill pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) slot: Slot,
    /// Tokens that were there before, cached or computed.
    before: u32,
    tokens: u32,
    /// Whether its known tokens are all computed then.
    whole: bool,
}

/// What a prefill pass may still take, in tokens.
struct Budget {
    total: f64,
    input: u32,
    chunk: u32,
    seats: usize,
}

/// What may be done with the first waiting request.
enum Offer {
    Take {
        before: u32,
        tokens: u32,
        reserve: u32,
    },
    /// Load this many pages, and look again when they are there.
    Load(u32),
    Reject(RejectReason),
    Stop,
}

/// With more requests waiting, the longest prefix is not searched for.
const MOST_SORTED: usize = 128;
/// A prefix this short does not count, and one this long that is queued already is worth waiting for.
const SHORT_PREFIX: u32 = 32;

impl Sglang {
    /// Fills `parts`; empty when nobody can be prefilled.
    pub(super) fn form_batch(&mut self, sink: &mut ServeSink<'_>) {
        self.parts.clear();
        if self.config.sglang.schedule_policy == SchedulePolicy::Lpm {
            self.sort_by_prefix();
        }
        self.fill_batch(sink);
        while self.nothing_goes() && !self.is_gated() && self.give_back_load(1) {
            self.fill_batch(sink);
        }
        // What a batch computes is found by the next one, not within it.
        for position in 0..self.parts.len() {
            let Part { slot, before, tokens, .. } = self.parts[position];
            let page = self.page();
            self.enter(slot, before + tokens);
            self.note_pages(slot, before / page, (before + tokens) / page);
        }
        self.give_up_hopeless();
    }

    /// Looks at waiting requests until one cannot start or go on.
    fn fill_batch(&mut self, sink: &mut ServeSink<'_>) {
        let mut budget = self.budget();
        let mut continued = None;
        while budget.seats > 0 && budget.chunk > 0 && !self.is_gated() {
            let Some(&slot) = self.waiting.front() else { break };
            match self.offer(slot, &budget, sink) {
                Offer::Take { before, tokens, reserve } => {
                    let charge = tokens.next_multiple_of(self.page());
                    let Some(taken) = self.take(slot, before, tokens, sink) else { break };
                    budget.total -= f64::from(taken) * f64::from(self.page()) + f64::from(reserve);
                    budget.input = budget.input.saturating_sub(charge);
                    budget.chunk = budget.chunk.saturating_sub(charge);
                    budget.seats -= 1;
                    continued = (before + tokens < self.sequences[slot].len).then_some(slot);
                }
                Offer::Load(pages) => {
                    if !self.park(slot, pages) {
                        break;
                    }
                    budget.total -= f64::from(pages) * f64::from(self.page());
                }
                Offer::Reject(reason) => self.rejected.push((slot, reason)),
                Offer::Stop => break,
            }
            self.waiting.pop_front();
        }
        if let Some(slot) = continued {
            self.waiting.push_front(slot);
        }
    }

    fn nothing_goes(&self) -> bool {
        self.parts.is_empty() && self.running.is_empty() && self.rejected.is_empty()
    }

    fn budget(&self) -> Budget {
        let (settings, page) = (&self.config.sglang, f64::from(self.page()));
        let reserved = |&slot: &Slot| {
            let sequence = &self.sequences[slot];
            f64::from((sequence.limit - sequence.len).min(settings.clip_max_new_tokens)) * self.ratio
        };
        let seats = self.config.max_num_seqs.map_or(usize::MAX, |seats| seats as usize);
        Budget {
            total: f64::from(self.available_pages()) * page - self.running.iter().map(reserved).sum::<f64>(),
            input: settings.max_prefill_tokens,
            chunk: settings.chunked_prefill_size,
            seats: seats.saturating_sub(self.running.len()),
        }
    }

    /// Whether the first waiting request may start or go on. One that starts is matched with the tree, which
    /// locks what it finds; [`Self::take`] or a refusal follows.
    fn offer(&mut self, slot: Slot, budget: &Budget, sink: &mut ServeSink<'_>) -> Offer {
        let page = self.page();
        let sequence = &self.sequences[slot];
        if self.config.max_model_len.is_some_and(|limit| sequence.prompt.tokens() >= limit) {
            return Offer::Reject(RejectReason::PromptReachesModelLimit);
        }
        if sequence.len.div_ceil(page) > self.config.num_gpu_blocks {
            return Offer::Reject(self.too_large(slot));
        }
        let starts = sequence.computed == 0;
        let looks = starts && !sequence.is_loaded;
        let mut found = Found { blocks: 0, load: TierLoad::Overlap };
        if looks {
            // The page of the last token is always computed.
            self.match_prefix(slot, (sequence.len - 1) / page);
            found = self.look_behind(slot, sink);
        }
        let sequence = &self.sequences[slot];
        let left = (sequence.limit - sequence.len).min(self.config.sglang.clip_max_new_tokens);
        let before = if starts { sequence.held.len() as u32 * page } else { sequence.computed };
        if found.blocks > 0 && found.load == TierLoad::Delay {
            let room = f64::from((sequence.len - before).next_multiple_of(page)) + f64::from(left);
            if room < budget.total {
                return Offer::Load(found.blocks);
            }
            if !self.running.is_empty() || !self.parts.is_empty() || self.is_loading() {
                self.give_back(slot);
                return Offer::Stop;
            }
            // Nobody else will make room for it: it is computed, as far as that goes.
            found.blocks = 0;
        }
        let before = before + found.blocks * page;
        let missing = sequence.len - before;
        let whole = missing <= budget.chunk;
        let tokens = if whole { missing } else { budget.chunk / page * page };
        let reserve = if whole { left } else { 0 };
        let charge = tokens.next_multiple_of(page);
        // A pass may be longer than its input budget for the sake of its first prompt.
        let enters = charge <= budget.input || self.parts.is_empty();
        let room = f64::from(charge) + f64::from(reserve) + f64::from(found.blocks) * f64::from(page);
        let fits = room < budget.total && enters && charge <= budget.chunk;
        if tokens == 0 || !fits {
            if looks {
                self.give_back(slot);
            }
            return Offer::Stop;
        }
        Offer::Take { before, tokens, reserve }
    }

    fn too_large(&self, slot: Slot) -> RejectReason {
        match self.sequences[slot].has_generated() {
            true => RejectReason::OutgrewCache,
            false => RejectReason::PromptExceedsCache,
        }
    }

    /// Locks the cached prefix of a request, at most `most` pages.
    pub(super) fn match_prefix(&mut self, slot: Slot, most: u32) {
        if !self.config.enable_prefix_caching {
            return;
        }
        let page = self.config.block_size;
        let sequence = &mut self.sequences[slot];
        let keys = sequence.prompt.content_keys(u64::from(sequence.id.0), sequence.len, 0, page);
        let keys = keys.take(most as usize);
        self.tree.lock_prefix(keys, &mut sequence.held);
    }

    /// Books the work; the pages it took, or `None` if they could not be found.
    fn take(&mut self, slot: Slot, before: u32, tokens: u32, sink: &mut ServeSink<'_>) -> Option<u32> {
        let after = before + tokens;
        let starts = self.sequences[slot].computed == 0;
        let needed = self.sequences[slot].missing_pages(after, self.page());
        if !self.allocate(needed) {
            if starts && !self.sequences[slot].is_loaded {
                self.give_back(slot);
            }
            return None;
        }
        let sequence = &mut self.sequences[slot];
        sequence.private_pages += needed;
        sequence.computed = after;
        let whole = after == sequence.len;
        if starts {
            sequence.is_loaded = false;
            let behind = before > sequence.held.len() as u32 * self.config.block_size;
            let reused_tokens = before.min(sequence.prompt.tokens());
            let (request, worker, at) = (sequence.id, self.shell.worker, self.shell.boundary);
            sink.record(&ServeEvent::RequestAdmitted { request, worker, at, reused_tokens });
            if behind && let Some(tiers) = &mut self.shell.tiers {
                tiers.load(request, slot, TierLoad::Overlap, at);
            }
        }
        self.parts.push(Part { slot, before, tokens, whole });
        Some(needed)
    }

    /// With nobody running and nothing scheduled, the first in the queue can never start, unless pages are
    /// kept for somebody else.
    fn give_up_hopeless(&mut self) {
        if !self.nothing_goes() || self.is_gated() {
            return;
        }
        if self.guests.any() || self.is_loading() {
            self.guests.starve = !self.waiting.is_empty();
            return;
        }
        if let Some(slot) = self.waiting.pop_front() {
            self.rejected.push((slot, RejectReason::ReserveExceedsCache));
        }
    }

    /// Longest cached prefix first; of requests that share a beginning not cached yet, all but the first wait
    /// for it to be computed.
    fn sort_by_prefix(&mut self) {
        if self.waiting.len() > MOST_SORTED {
            return;
        }
        let page = self.page();
        let mut beginnings = HashSet::new();
        let mut ranked = Vec::with_capacity(self.waiting.len());
        for &slot in &self.waiting {
            let sequence = &self.sequences[slot];
            let keys = || sequence.prompt.content_keys(u64::from(sequence.id.0), sequence.len, 0, page);
            let most = ((sequence.len - 1) / page) as usize;
            let cached = self.tree.peek(keys().take(most)) * page;
            let beginning = keys().nth(SHORT_PREFIX.div_ceil(page) as usize - 1);
            let queued = beginning.is_some_and(|key| !beginnings.insert(key));
            ranked.push((cached <= SHORT_PREFIX && queued, u32::MAX - cached, slot));
        }
        ranked.sort_by_key(|&(later, rank, _)| (later, rank));
        self.waiting.clear();
        self.waiting.extend(ranked.into_iter().map(|(_, _, slot)| slot));
    }

    pub(super) fn prefill_time(&mut self) -> Nanos {
        // A decode worker gets its prompts from elsewhere; by formula, what it computes again costs no time.
        let parts = self.shell.pace.pricing() == Pricing::Parts;
        if parts && self.config.worker_type == WorkerRole::Decode {
            return Nanos::ZERO;
        }
        self.chunks.clear();
        self.chunks.extend(self.parts.iter().map(|part| Chunk::of_prompt(part.tokens, part.before)));
        self.shell.pace.pass(Pass { chunks: &self.chunks, decode: DecodeBatch::default() })
    }

    /// The end of a prefill pass: whole prompts give a token and start to run.
    pub(super) fn finish_prefill(&mut self, end: Nanos, sink: &mut ServeSink<'_>) {
        let (start, step) = (self.shell.boundary, end - self.shell.boundary);
        let parts = std::mem::take(&mut self.parts);
        for &Part { slot, before, tokens, whole } in &parts {
            let sequence = &self.sequences[slot];
            let prompt_part = tokens.min(sequence.prompt.tokens().saturating_sub(before));
            self.shell.work.prompt_tokens += u64::from(prompt_part);
            let (request, worker) = (sequence.id, self.shell.worker);
            sink.record(&ServeEvent::PromptComputed { request, worker, start, step, tokens: prompt_part });
            if whole {
                self.sample(slot);
            }
        }
        self.shell.tell_tokens(self.shell.boundary, end, sink);
        for &Part { slot, .. } in parts.iter().filter(|part| part.whole) {
            let sequence = &self.sequences[slot];
            if sequence.is_finished() {
                self.complete(slot, end, sink);
            } else {
                self.running_tokens += u64::from(sequence.len);
                self.running.push(slot);
            }
        }
        self.parts = parts;
    }
}
