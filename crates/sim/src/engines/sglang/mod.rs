//! The SGLang scheduler: prefill first, a radix cache of pages, room reserved for output by a ratio that
//! shrinks while decoding goes well, retraction when it does not (spec/engine.md 5 as overridden by 15.10 to
//! 15.14 and 16.2).
//!
//! `sequence` is a request inside the engine, `prefill` forms a batch of prompts, `decode` gives every running
//! request a token; this file is the pass and the books.

mod decode;
mod prefill;
mod sequence;

use std::collections::VecDeque;

use wavetank_cache::{Change, RadixTree};
use wavetank_model::{
    Error, ErrorKind, Nanos, RejectReason, RequestId, Result, ServeEvent, ServeSink, WorkerId,
};

use super::{Engine, Entry, Horizon, Job, Signal, Work};
use crate::EngineConfig;
use crate::arena::{Arena, Slot};
use crate::pace::Pace;
use crate::stretch::Stretch;
use crate::timing::DecodeBatch;
use prefill::Part;
use sequence::Sequence;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "sglang",
    about: "SGLang: prefill before decode, radix cache, output reserve, retraction",
    build: |config, worker| Ok(Box::new(Sglang::build(config, worker)?)),
};

struct Sglang {
    config: EngineConfig,
    worker: WorkerId,
    pace: Pace,
    tree: RadixTree,
    /// Pages that requests hold outside the tree.
    private_pages: u32,
    sequences: Arena<Sequence>,
    waiting: VecDeque<Slot>,
    running: Vec<Slot>,
    /// Part of the output still to come for which room is kept.
    ratio: f64,
    boundary: Nanos,
    /// Sum of the lengths of running requests.
    running_tokens: u64,
    halted: bool,
    stretch: Stretch,
    signals: Vec<Signal>,
    work: Work,
    parts: Vec<Part>,
    rejected: Vec<(Slot, RejectReason)>,
    emitting: Vec<RequestId>,
}

impl Sglang {
    fn build(config: &EngineConfig, worker: WorkerId) -> Result<Self> {
        Ok(Self {
            worker,
            pace: Pace::of(config)?,
            tree: RadixTree::default(),
            private_pages: 0,
            sequences: Arena::default(),
            waiting: VecDeque::new(),
            running: Vec::new(),
            ratio: decode::first_ratio(config),
            boundary: Nanos::ZERO,
            running_tokens: 0,
            halted: false,
            stretch: Stretch::default(),
            signals: Vec::new(),
            work: Work::default(),
            parts: Vec::new(),
            rejected: Vec::new(),
            emitting: Vec::new(),
            config: config.clone(),
        })
    }

    fn page(&self) -> u32 {
        self.config.block_size
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
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

    /// One pass: prompts if any can be computed, otherwise a token for everyone.
    fn step(&mut self, ends_by: Nanos, sink: &mut ServeSink<'_>) -> Result<()> {
        self.stretch.forget();
        self.tree.log().settle();
        let (waiting, running) = (self.waiting.len(), self.running.len());
        self.form_batch(sink);
        let prefills = !self.parts.is_empty();
        let time = if prefills { self.prefill_time() } else { self.prepare_decode(sink) };
        let end = self.boundary + time;
        if end > ends_by {
            self.halted = true;
            return Ok(());
        }
        self.work.stepped_passes += 1;
        self.work.busy += time;
        match prefills {
            true => self.finish_prefill(end, sink),
            false => self.emit_decode(end, sink),
        }
        self.boundary = end;
        self.reject(sink);
        let moved = (self.waiting.len(), self.running.len()) != (waiting, running);
        let progressed = prefills || moved || time > Nanos::ZERO || !self.signals.is_empty();
        if progressed { Ok(()) } else { Err(self.stuck()) }
    }

    fn decode_batch(&self) -> DecodeBatch {
        let capacity_tokens = u64::from(self.config.num_gpu_blocks) * u64::from(self.page());
        DecodeBatch { requests: self.running.len() as u32, kv_tokens: self.running_tokens, capacity_tokens }
    }

    /// Gives a token to a sequence whose known tokens are all computed, with the page it may open.
    fn sample(&mut self, slot: Slot) {
        let page = self.page();
        let sequence = &mut self.sequences[slot];
        let first = !sequence.has_generated();
        if sequence.len < sequence.limit {
            sequence.len += 1;
            self.emitting.push(sequence.id);
            let missing = sequence.missing_pages(sequence.len, page);
            // A prompt's own first token may find none left; decoding takes it up again.
            if self.allocate(missing) {
                self.sequences[slot].private_pages += missing;
            }
        }
        let sequence = &self.sequences[slot];
        if sequence.is_finished() {
            self.signals.push(Signal::Ended(sequence.id));
        } else if first {
            self.signals.push(Signal::Prefilled(sequence.id));
        }
    }

    /// Reports the tokens of a pass or a stretch.
    fn tell_tokens(&mut self, start: Nanos, steps: &[Nanos], sink: &mut ServeSink<'_>) {
        if !self.emitting.is_empty() {
            let (worker, requests) = (self.worker, &self.emitting);
            sink.record(&ServeEvent::TokensEmitted { worker, start, steps, requests });
        }
        self.emitting.clear();
    }

    /// A request has all its tokens: whole pages stay in the tree, the last sampled token's included.
    fn complete(&mut self, slot: Slot, end: Nanos, sink: &mut ServeSink<'_>) {
        let tokens = self.sequences[slot].len;
        self.store(slot, tokens);
        self.give_back(slot);
        let request = self.sequences[slot].id;
        sink.record(&ServeEvent::RequestCompleted { request, worker: self.worker, at: end });
        self.sequences.remove(slot);
    }

    /// Enters the whole pages of the first `tokens` tokens into the tree. A page the tree has already is not
    /// needed twice.
    fn store(&mut self, slot: Slot, tokens: u32) {
        if !self.config.enable_prefix_caching {
            return;
        }
        let page = self.config.block_size;
        let Sequence { prompt, held, id, private_pages, .. } = &mut self.sequences[slot];
        let before = held.len() as u32;
        let keys = prompt.content_keys(u64::from(id.0), tokens, 0, page).take((tokens / page) as usize);
        self.tree.insert(keys, held);
        let stored = held.len() as u32 - before;
        *private_pages -= stored;
        self.private_pages -= stored;
    }

    /// Frees the pages of a request; what is in the tree stays there without a user.
    fn give_back(&mut self, slot: Slot) {
        let sequence = &mut self.sequences[slot];
        self.tree.unlock(&mut sequence.held);
        self.private_pages -= std::mem::take(&mut sequence.private_pages);
    }

    /// Reports the requests this pass gave up, at its end.
    fn reject(&mut self, sink: &mut ServeSink<'_>) {
        for (slot, reason) in std::mem::take(&mut self.rejected) {
            self.give_back(slot);
            let request = self.sequences[slot].id;
            self.signals.push(Signal::Ended(request));
            self.sequences.remove(slot);
            let (worker, at) = (self.worker, self.boundary);
            sink.record(&ServeEvent::RequestRejected { request, worker, at, reason });
        }
    }

    fn stuck(&self) -> Error {
        let message = format!(
            "worker {} makes no progress at {}: {} running, {} waiting, {} of {} pages available",
            self.worker.0,
            self.boundary,
            self.running.len(),
            self.waiting.len(),
            self.available_pages(),
            self.config.num_gpu_blocks
        );
        Error::new(ErrorKind::Stuck, message)
            .hint("this is a defect of the simulator; please report the plan")
    }
}

impl Engine for Sglang {
    fn submit(&mut self, job: Job, now: Nanos) {
        if self.is_idle() {
            self.boundary = self.boundary.max(now);
        }
        let slot = self.sequences.insert(Sequence::of(job, self.config.max_model_len));
        self.waiting.push_back(slot);
    }

    fn advance(&mut self, horizon: Horizon, sink: &mut ServeSink<'_>) -> Result<()> {
        while self.boundary < horizon.starts_before && self.signals.is_empty() {
            if self.is_idle() || self.halted {
                break;
            }
            match self.uneventful_passes() {
                0 => self.step(horizon.ends_by, sink)?,
                most => self.stretch(most, horizon, sink),
            }
        }
        Ok(())
    }

    fn wake(&mut self) -> Option<Nanos> {
        if !self.signals.is_empty() {
            return Some(self.boundary);
        }
        if self.is_idle() || self.halted {
            return None;
        }
        Some(match self.uneventful_passes() {
            0 => self.boundary,
            most => self.end_of_plan(most),
        })
    }

    fn take_signals(&mut self, into: &mut Vec<Signal>) -> bool {
        let any = !self.signals.is_empty();
        into.append(&mut self.signals);
        any
    }

    fn watch_cache(&mut self) {
        self.tree.log().keep();
    }

    fn take_changes(&mut self, now: Nanos, into: &mut Vec<Change>) {
        match self.boundary <= now {
            true => self.tree.log().take(into),
            false => self.tree.log().take_settled(into),
        }
    }

    fn work(&self) -> Work {
        self.work
    }
}
