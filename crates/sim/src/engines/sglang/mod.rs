//! The SGLang scheduler: prefill first, a radix cache of pages, room reserved for output by a ratio that
//! shrinks while decoding goes well, retraction when it does not (spec/engine.md 5 as overridden by 15.10 to
//! 15.14 and 16.2).
//!
//! `sequence` is a request inside the engine, `prefill` forms a batch of prompts, `decode` gives every
//! running request a token, `handoff` is for prompts that are computed on one worker and decoded on another,
//! `offload` for tiers behind the tree; this file is the pass and the books.

mod decode;
mod handoff;
mod offload;
mod prefill;
mod sequence;

use std::collections::VecDeque;

use wavetank_cache::{ChangeLog, RadixTree};
use wavetank_model::{Error, ErrorKind, Nanos, RejectReason, RequestId, Result, ServeEvent, ServeSink};

use super::{Backlog, Entry, Flow, Job, Occupancy, Seat, Signal};
use crate::arena::{Arena, Slot};
use crate::shell::{Scheduler, Shell};
use crate::timing::{Chunk, DecodeBatch, Pricing};
use crate::{EngineConfig, WorkerRole};
use handoff::Guests;
use prefill::Part;
use sequence::Sequence;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "sglang",
    about: "SGLang: prefill before decode, radix cache, output reserve, retraction",
    flow: Flow::DestinationFirst,
    schedules_ahead: false,
    overlaps_loads: true,
    longest_pass: |config| Some(config.sglang.chunked_prefill_size),
    flaw: |config| {
        let is_short = config.sglang.chunked_prefill_size < config.block_size;
        is_short.then_some("\"sglang.chunked_prefill_size\" must be a page or more")
    },
    build: |seat| Box::new(Sglang::build(seat)),
};

struct Sglang {
    config: EngineConfig,
    shell: Shell,
    tree: RadixTree,
    /// Pages that requests hold outside the tree.
    private_pages: u32,
    sequences: Arena<Sequence>,
    waiting: VecDeque<Slot>,
    running: Vec<Slot>,
    /// Part of the output still to come for which room is kept.
    ratio: f64,
    /// Sum of the lengths of running requests.
    running_tokens: u64,
    /// Prompts between workers.
    guests: Guests,
    parts: Vec<Part>,
    chunks: Vec<Chunk>,
    rejected: Vec<(Slot, RejectReason)>,
}

impl Sglang {
    fn build(seat: Seat<'_>) -> Self {
        let config = seat.config;
        Self {
            shell: Shell::of(seat),
            tree: RadixTree::default(),
            private_pages: 0,
            sequences: Arena::default(),
            waiting: VecDeque::new(),
            running: Vec::new(),
            ratio: decode::first_ratio(config),
            running_tokens: 0,
            guests: Guests::default(),
            parts: Vec::new(),
            chunks: Vec::new(),
            rejected: Vec::new(),
            config: config.clone(),
        }
    }

    fn page(&self) -> u32 {
        self.config.block_size
    }

    /// Pages that hold nothing.
    fn free_pages(&self) -> u32 {
        self.config.num_gpu_blocks - self.tree.len() - self.private_pages
    }

    /// Pages that could be taken, cached ones that nobody uses included.
    fn available_pages(&self) -> u32 {
        self.free_pages() + self.tree.evictable()
    }

    /// Takes `count` pages out of the free ones, after evicting what is missing; all or none.
    fn allocate(&mut self, count: u32) -> bool {
        if count > self.available_pages() {
            return false;
        }
        let missing = count.saturating_sub(self.free_pages());
        let evicted = self.tree.evict(missing);
        debug_assert_eq!(evicted, missing, "idle pages form whole branches");
        self.private_pages += count;
        true
    }

    /// Gives a token to a sequence whose known tokens are all computed, with the page it may open. A prompt's
    /// own first token may find none left: then it is sampled by decoding.
    fn sample(&mut self, slot: Slot) {
        let holds = self.config.worker_type == WorkerRole::Prefill;
        let sequence = &self.sequences[slot];
        let first = !sequence.has_generated();
        if !sequence.is_finished() {
            let missing = sequence.missing_pages(sequence.len + 1, self.page());
            let opened = if self.allocate(missing) { missing } else { 0 };
            if opened < missing && !holds {
                return;
            }
            let sequence = &mut self.sequences[slot];
            sequence.private_pages += opened;
            sequence.len += 1;
            // The token that ends a prompt on a prefill worker is sampled again where it is decoded.
            if !holds {
                self.shell.emitting.push(sequence.id);
            }
        }
        let sequence = &self.sequences[slot];
        if sequence.is_finished() {
            let signal = if holds { Signal::Held } else { Signal::Ended };
            self.shell.signals.push(signal(sequence.id));
        } else if first {
            self.shell.signals.push(Signal::Prefilled(sequence.id));
        }
    }

    /// A request has all its tokens. A prefill worker holds it until it has come to its decode worker.
    fn complete(&mut self, slot: Slot, end: Nanos, sink: &mut ServeSink<'_>) {
        let request = self.sequences[slot].id;
        if self.config.worker_type == WorkerRole::Prefill {
            let tokens = self.sequences[slot].len;
            self.store(slot, tokens);
            self.private_pages -= std::mem::take(&mut self.sequences[slot].private_pages);
            self.guests.held.insert(request, slot);
            return;
        }
        self.leave(slot);
        sink.record(&ServeEvent::RequestCompleted { request, worker: self.shell.worker, at: end });
    }

    /// The whole pages of a request stay in the tree, the last sampled token's included; it is forgotten.
    fn leave(&mut self, slot: Slot) {
        let tokens = self.sequences[slot].len;
        self.store(slot, tokens);
        self.give_back(slot);
        self.sequences.remove(slot);
    }

    /// Enters whole pages into the tree; those that were not written yet will be.
    fn store(&mut self, slot: Slot, tokens: u32) {
        self.enter(slot, tokens);
        let Sequence { written_pages, ref held, .. } = self.sequences[slot];
        self.note_pages(slot, written_pages, held.len() as u32);
    }

    /// Enters the whole pages of the first `tokens` tokens into the tree, as far as the request has pages for
    /// them. A page the tree has already is not needed twice.
    fn enter(&mut self, slot: Slot, tokens: u32) {
        if !self.config.enable_prefix_caching {
            return;
        }
        let page = self.config.block_size;
        let Sequence { prompt, held, id, private_pages, .. } = &mut self.sequences[slot];
        let before = held.len() as u32;
        let pages = (tokens / page).min(before + *private_pages);
        let keys = prompt.content_keys(u64::from(id.0), tokens, before, page);
        self.tree.insert(keys.take(pages.saturating_sub(before) as usize), held);
        let stored = held.len() as u32 - before;
        *private_pages -= stored;
        self.private_pages -= stored;
    }

    /// Frees the pages of a request; what is in the tree stays there without a user.
    fn give_back(&mut self, slot: Slot) {
        let sequence = &mut self.sequences[slot];
        sequence.is_loaded = false;
        self.tree.unlock(&mut sequence.held);
        self.private_pages -= std::mem::take(&mut sequence.private_pages);
    }

    /// Reports the requests this pass gave up, at its end.
    fn reject(&mut self, sink: &mut ServeSink<'_>) {
        for (slot, reason) in std::mem::take(&mut self.rejected) {
            self.give_back(slot);
            let request = self.sequences[slot].id;
            self.shell.signals.push(Signal::Rejected(request));
            self.sequences.remove(slot);
            let (worker, at) = (self.shell.worker, self.shell.boundary);
            sink.record(&ServeEvent::RequestRejected { request, worker, at, reason });
        }
    }

    fn stuck(&self) -> Error {
        let message = format!(
            "worker {} makes no progress at {}: {} running, {} waiting, {} of {} pages available",
            self.shell.worker.0,
            self.shell.boundary,
            self.running.len(),
            self.waiting.len(),
            self.available_pages(),
            self.config.num_gpu_blocks
        );
        Error::new(ErrorKind::Stuck, message)
            .hint("this is a defect of the simulator; please report the plan")
    }
}

impl Scheduler for Sglang {
    fn shell(&self) -> &Shell {
        &self.shell
    }

    fn shell_mut(&mut self) -> &mut Shell {
        &mut self.shell
    }

    fn enqueue(&mut self, job: Job) {
        let mut sequence = Sequence::of(job, self.config.max_model_len);
        if self.config.worker_type == WorkerRole::Prefill {
            sequence.limit = sequence.len + 1;
        }
        let slot = self.sequences.insert(sequence);
        self.waiting.push_back(slot);
    }

    fn drop_request(&mut self, request: RequestId) -> bool {
        let is_it = |&slot: &Slot| self.sequences[slot].id == request;
        let waits = self.waiting.iter().position(is_it);
        let runs = self.running.iter().position(is_it);
        let parked = self.shell.tiers.as_ref().and_then(|tiers| tiers.waiting_for(request));
        let slot = match (waits, runs) {
            (Some(position), _) => self.waiting.remove(position).expect("it was found there"),
            (None, Some(position)) => {
                let slot = self.running.remove(position);
                self.running_tokens -= u64::from(self.sequences[slot].len);
                slot
            }
            (None, None) => {
                let Some(slot) = parked else { return false };
                self.give_back(slot);
                slot
            }
        };
        if let Some(tiers) = &mut self.shell.tiers {
            tiers.forget(slot);
            self.guests.starve = false;
        }
        self.leave(slot);
        true
    }

    fn is_idle(&self) -> bool {
        let nobody_waits = self.waiting.is_empty() || self.guests.starve || self.is_gated();
        self.running.is_empty() && self.guests.come.is_empty() && nobody_waits
    }

    /// One pass: prompts if any can be computed, otherwise a token for everyone.
    fn step(&mut self, ends_by: Nanos, sink: &mut ServeSink<'_>) -> Result<()> {
        self.shell.stretch.forget();
        self.tree.log().settle();
        let (waiting, running) = (self.waiting.len(), self.running.len());
        self.promote(sink);
        self.form_batch(sink);
        let prefills = !self.parts.is_empty();
        let time = if prefills { self.prefill_time() } else { self.prepare_decode(sink) };
        let end = self.await_pages(self.shell.boundary + time, sink);
        if end > ends_by {
            self.shell.halted = true;
            return Ok(());
        }
        self.shell.work.stepped_passes += 1;
        self.shell.work.busy += end - self.shell.boundary;
        match prefills {
            true => self.finish_prefill(end, sink),
            false => self.emit_decode(end, sink),
        }
        self.write_pages(end);
        self.shell.boundary = end;
        self.reject(sink);
        let moved = (self.waiting.len(), self.running.len()) != (waiting, running);
        let progressed =
            prefills || moved || time > Nanos::ZERO || !self.shell.signals.is_empty() || self.guests.starve;
        if progressed { Ok(()) } else { Err(self.stuck()) }
    }

    fn uneventful_passes(&self) -> u32 {
        self.passes_to_advance()
    }

    fn decode_batch(&self) -> DecodeBatch {
        let capacity_tokens = u64::from(self.config.num_gpu_blocks) * u64::from(self.page());
        let longest = match self.shell.pace.pricing() {
            Pricing::Parts => 0,
            Pricing::Fused => self.running.iter().map(|&slot| self.sequences[slot].len).max().unwrap_or(0),
        };
        let requests = self.running.len() as u32;
        DecodeBatch { requests, kv_tokens: self.running_tokens, capacity_tokens, longest }
    }

    fn grow_all(&mut self, count: u32) -> bool {
        self.grow_running(count)
    }

    fn finish(&mut self, end: Nanos, sink: &mut ServeSink<'_>) {
        self.complete_finished(end, sink);
        if let Some(tiers) = &mut self.shell.tiers {
            tiers.write_completed(end);
        }
    }

    fn reserve_blocks(&mut self, job: &Job) -> Option<u32> {
        self.reserve_prompt(job)
    }

    fn enqueue_reserved(&mut self, request: RequestId) {
        self.welcome(request);
    }

    fn release_held(&mut self, request: RequestId) {
        self.dismiss(request);
    }

    fn note_backlog(&mut self, reservations: Backlog) {
        self.guests.starve &= reservations == self.guests.backlog;
        self.guests.backlog = reservations;
    }

    fn waits_for_reservations(&self) -> bool {
        self.running.is_empty() && self.guests.come.is_empty() && self.is_gated()
    }

    fn readmit(&mut self, loaded: &[Slot]) {
        self.enqueue_loaded(loaded);
    }

    fn meet_tiers(&mut self) {
        if self.shell.tiers.as_ref().is_some_and(|tiers| tiers.takes_evicted()) {
            self.tree.given_up().keep();
        }
    }

    fn write_passes(&mut self, start: Nanos, count: u32) {
        self.write_evicted_of_stretch(start, count);
    }

    fn blocks_in_use(&self) -> u32 {
        self.config.num_gpu_blocks - self.available_pages()
    }

    fn requests(&self) -> Occupancy {
        let waiting = (self.waiting.len() + self.guests.come.len()) as u32;
        Occupancy { waiting, running: self.running.len() as u32 }
    }

    fn log(&mut self) -> &mut ChangeLog {
        self.tree.log()
    }
}
