//! The vLLM V1 scheduler: one token budget per pass, running requests first, prefix caching, preemption by
//! recompute (spec/engine.md 4 and 6 as overridden by 15 and 16.1).
//!
//! `sequence` is a request inside the engine, `schedule` decides what a pass computes, `stretch` advances
//! passes between which nothing can change, `ahead` schedules a pass while the one before it runs, `ranks`
//! runs several schedulers in lockstep, `reserve` is for prompts that come from other workers, `offload` for
//! tiers behind the blocks; this file is the pass itself.

mod ahead;
mod offload;
mod ranks;
mod reserve;
mod schedule;
mod sequence;
mod stretch;

use std::collections::{BTreeMap, VecDeque};

use wavetank_cache::{BlockId, BlockPool, ChangeLog, Hits};
use wavetank_model::{
    BlockKey, Error, ErrorKind, Nanos, RejectReason, RequestId, Result, ServeEvent, ServeSink, TierObject,
};

use super::{Backlog, Entry, Flow, Job, Occupancy, Seat, Signal};
use crate::arena::{Arena, Slot};
use crate::shell::{Scheduler, Shell};
use crate::timing::{Chunk, DecodeBatch, Pass, Pricing};
use crate::{EngineConfig, WorkerRole};
use ahead::Flight;
use ranks::Ranks;
use schedule::Scheduled;
use sequence::Sequence;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "vllm",
    about: "vLLM V1: chunked prefill, one token budget, prefix caching, preemption by recompute",
    flow: Flow::SourceFirst,
    schedules_ahead: true,
    overlaps_loads: false,
    longest_pass: |config| config.max_num_batched_tokens,
    flaw: |config| (config.block_size < 2).then_some("\"block_size\" must be 2 or more"),
    build: |seat| match seat.config.data_parallel_ranks {
        0 | 1 => Box::new(Vllm::build(seat)),
        _ => Box::new(Ranks::build(seat)),
    },
};

struct Vllm {
    config: EngineConfig,
    shell: Shell,
    pool: BlockPool,
    sequences: Arena<Sequence>,
    waiting: VecDeque<Slot>,
    running: Vec<Slot>,
    /// Sum of the lengths of running requests.
    running_tokens: u64,
    /// Whether the first waiting request lacks blocks, so that it waits until a running one finishes.
    stalled: bool,
    /// Prompts that will come from other workers, in order of their reservation.
    reserved: Vec<(RequestId, Slot)>,
    reservations: u64,
    reservations_wait: Backlog,
    /// KV of prompts that was computed for other workers.
    held: BTreeMap<RequestId, Vec<BlockId>>,
    /// Passes that run, with asynchronous scheduling; they follow each other.
    flights: VecDeque<Flight>,
    scratch: Scratch,
}

/// Lists of one pass, kept to spare allocations.
#[derive(Default)]
struct Scratch {
    /// Tokens the pass may still compute.
    budget: u32,
    scheduled: Vec<Scheduled>,
    chunks: Vec<Chunk>,
    rejected: Vec<(Slot, RejectReason)>,
    hits: Hits,
    /// Requests that began to wait for a load.
    parked: u32,
    /// Requests that completed blocks, if there are tiers.
    filled: Vec<Slot>,
    /// Blocks that passes of a stretch completed, and gave up, with the pass.
    completed: Vec<(u32, TierObject)>,
    evicted: Vec<(u32, BlockKey)>,
    /// In which pass each block was opened.
    opened: Vec<u32>,
}

impl Vllm {
    fn build(seat: Seat<'_>) -> Self {
        let config = seat.config;
        Self {
            shell: Shell::of(seat),
            pool: BlockPool::with_capacity(config.num_gpu_blocks),
            config: config.clone(),
            sequences: Arena::default(),
            waiting: VecDeque::new(),
            running: Vec::new(),
            running_tokens: 0,
            stalled: false,
            reserved: Vec::new(),
            reservations: 0,
            reservations_wait: Backlog::Empty,
            held: BTreeMap::new(),
            flights: VecDeque::new(),
            scratch: Scratch::default(),
        }
    }

    /// Reports the parts of prompts this pass computes.
    fn tell_prompts(&mut self, start: Nanos, end: Nanos, sink: &mut ServeSink<'_>) {
        let (worker, step) = (self.shell.worker, end - start);
        for work in self.scratch.scheduled.iter().filter(|work| work.prompt_tokens > 0) {
            let (request, tokens) = (self.sequences[work.slot].id, work.prompt_tokens);
            self.shell.work.prompt_tokens += u64::from(tokens);
            sink.record(&ServeEvent::PromptComputed { request, worker, start, step, tokens });
        }
    }

    /// What the scheduled work costs.
    fn price(&mut self) -> Nanos {
        let decode = self.form_pass();
        if self.scratch.chunks.is_empty() && decode.requests == 0 {
            return Nanos::ZERO;
        }
        self.shell.pace.pass(Pass { chunks: &self.scratch.chunks, decode })
    }

    /// Fills `scratch.chunks` from the scheduled work; the requests that decode beside them.
    fn form_pass(&mut self) -> DecodeBatch {
        let fused = self.shell.pace.pricing() == Pricing::Fused;
        let decodes_only = self.config.worker_type == WorkerRole::Decode;
        self.scratch.chunks.clear();
        for work in &self.scratch.scheduled {
            // A decode worker gets its prompts from elsewhere; by formula, what it computes again is free.
            let counts = if fused { work.is_chunk() } else { work.prompt_tokens > 0 && !decodes_only };
            if counts {
                self.scratch.chunks.push(work.chunk());
            }
        }
        match self.config.async_scheduling {
            true => self.scheduled_decodes(),
            false => self.decodes_of_pass(),
        }
    }

    /// The requests that decode in the pass at hand. The first token comes out of the prompt's own pass,
    /// unless the prompt came from elsewhere.
    fn decodes_of_pass(&self) -> DecodeBatch {
        let prebuilt = self.config.worker_type == WorkerRole::Decode;
        let asks = |s: &Sequence| s.has_generated() || (prebuilt && s.len < s.limit);
        // In one step, a request that computes again what it lost is a chunk and nothing else.
        let fused = self.shell.pace.pricing() == Pricing::Fused;
        let is_chunk = |slot| self.scratch.scheduled.iter().any(|work| work.slot == slot && work.is_chunk());
        let counted = |slot: &&Slot| !(fused && !self.scratch.chunks.is_empty() && is_chunk(**slot));
        let decodes = |s: &&Sequence| s.is_computed() && asks(s);
        let running = self.running.iter().filter(counted);
        let decoding = running.map(|&slot| &self.sequences[slot]).filter(decodes);
        let (mut requests, mut kv_tokens, mut longest) = (0, 0, 0);
        for sequence in decoding {
            requests += 1;
            kv_tokens += u64::from(sequence.len);
            longest = longest.max(sequence.len);
        }
        DecodeBatch { longest, ..self.batch_of(requests, kv_tokens) }
    }

    fn longest_running(&self) -> u32 {
        self.running.iter().map(|&slot| self.sequences[slot].len).max().unwrap_or(0)
    }

    fn batch_of(&self, requests: u32, kv_tokens: u64) -> DecodeBatch {
        let capacity_tokens = u64::from(self.config.num_gpu_blocks) * u64::from(self.config.block_size);
        DecodeBatch { requests, kv_tokens, capacity_tokens, longest: 0 }
    }

    /// Gives a token to every running request whose known tokens are all computed. Tells whether any were.
    fn emit(&mut self, end: Nanos, sink: &mut ServeSink<'_>) -> bool {
        let mut ready = false;
        for &slot in &self.running {
            let sequence = &mut self.sequences[slot];
            if !sequence.is_computed() {
                continue;
            }
            ready = true;
            let first = !sequence.has_generated();
            if sequence.len < sequence.limit {
                sequence.len += 1;
                self.running_tokens += 1;
                self.shell.emitting.push(sequence.id);
            }
            if sequence.is_finished() {
                let holds = self.config.worker_type == WorkerRole::Prefill;
                let signal = if holds { Signal::Held } else { Signal::Ended };
                self.shell.signals.push(signal(sequence.id));
            } else if first {
                self.shell.signals.push(Signal::Prefilled(sequence.id));
            }
        }
        if self.config.worker_type == WorkerRole::Prefill {
            // The token that ends a prompt here is sampled again where it is decoded.
            self.shell.emitting.clear();
        }
        self.shell.tell_tokens(self.shell.boundary, end, sink);
        if ready {
            self.finish(end, sink);
        }
        ready
    }

    /// Reports the requests this pass gave up, at its end.
    fn reject(&mut self, sink: &mut ServeSink<'_>) {
        for (slot, reason) in self.scratch.rejected.drain(..) {
            self.flights.iter_mut().for_each(|flight| flight.samples.retain(|&other| other != slot));
            let request = self.sequences[slot].id;
            self.pool.release(&mut self.sequences[slot].blocks);
            self.shell.signals.push(Signal::Rejected(request));
            self.sequences.remove(slot);
            let (worker, at) = (self.shell.worker, self.shell.boundary);
            sink.record(&ServeEvent::RequestRejected { request, worker, at, reason });
        }
    }

    fn stuck(&self) -> Error {
        let message = format!(
            "worker {} makes no progress at {}: {} running, {} waiting, {} of {} blocks in use",
            self.shell.worker.0,
            self.shell.boundary,
            self.running.len(),
            self.waiting.len(),
            self.pool.in_use(),
            self.pool.capacity()
        );
        Error::new(ErrorKind::Stuck, message)
            .hint("this is a defect of the simulator; please report the plan")
    }
}

impl Scheduler for Vllm {
    fn shell(&self) -> &Shell {
        &self.shell
    }

    fn shell_mut(&mut self) -> &mut Shell {
        &mut self.shell
    }

    fn enqueue(&mut self, job: Job) {
        if self.waiting.is_empty() {
            self.stalled = false;
        }
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
            (Some(position), _) => {
                self.stalled &= position > 0 && self.sequences[self.waiting[position]].blocks.is_empty();
                self.waiting.remove(position).expect("it was found there")
            }
            (None, Some(position)) => {
                self.stalled = false;
                let slot = self.running.remove(position);
                self.running_tokens -= u64::from(self.sequences[slot].len);
                slot
            }
            (None, None) => {
                let Some(slot) = parked else { return false };
                self.stalled = false;
                slot
            }
        };
        if let Some(tiers) = &mut self.shell.tiers {
            tiers.forget(slot);
        }
        self.flights.iter_mut().for_each(|flight| flight.samples.retain(|&other| other != slot));
        self.pool.release(&mut self.sequences[slot].blocks);
        self.sequences.remove(slot);
        true
    }

    fn is_idle(&self) -> bool {
        // A pass in flight goes on when those it was for have been dropped.
        let nobody_runs = self.running.is_empty() && self.flights.is_empty();
        nobody_runs && (self.next_to_admit().is_none() || self.awaits_others())
    }

    fn step(&mut self, ends_by: Nanos, sink: &mut ServeSink<'_>) -> Result<()> {
        self.shell.stretch.forget();
        self.pool.log().settle();
        if self.config.async_scheduling {
            return self.step_ahead(ends_by, sink);
        }
        let preempted = self.schedule(sink);
        let end = self.shell.boundary + self.price();
        let end = self.move_blocks(end, sink);
        if end > ends_by {
            self.shell.halted = true;
            return Ok(());
        }
        self.shell.work.stepped_passes += 1;
        self.shell.work.busy += end - self.shell.boundary;
        self.tell_prompts(self.shell.boundary, end, sink);
        let emitted = self.emit(end, sink);
        self.shell.boundary = end;
        self.reject(sink);
        let progressed = emitted
            || preempted
            || !self.scratch.scheduled.is_empty()
            || self.scratch.parked > 0
            || !self.shell.signals.is_empty()
            || self.awaits_others();
        if progressed { Ok(()) } else { Err(self.stuck()) }
    }

    fn uneventful_passes(&self) -> u32 {
        self.passes_to_advance()
    }

    fn decode_batch(&self) -> DecodeBatch {
        let batch = self.batch_of(self.running.len() as u32, self.running_tokens);
        match self.shell.pace.pricing() {
            Pricing::Parts => batch,
            Pricing::Fused => DecodeBatch { longest: self.longest_running(), ..batch },
        }
    }

    fn in_flight(&self) -> Option<Nanos> {
        self.flights.front().map(|flight| flight.end)
    }

    fn take_off(&mut self, end: Nanos) {
        let start = self.shell.boundary;
        if let Some(flight) = self.flights.front_mut() {
            (flight.start, flight.end) = (start, end);
        }
    }

    fn grow_all(&mut self, count: u32) -> bool {
        self.grow_running(count)
    }

    fn finish(&mut self, end: Nanos, sink: &mut ServeSink<'_>) {
        let Self { running, sequences, pool, running_tokens, stalled, held, .. } = self;
        let (worker, holds) = (self.shell.worker, self.config.worker_type == WorkerRole::Prefill);
        running.retain(|&slot| {
            let sequence = &mut sequences[slot];
            if !sequence.is_finished() {
                return true;
            }
            *running_tokens -= u64::from(sequence.len);
            *stalled = false;
            if holds {
                held.insert(sequence.id, std::mem::take(&mut sequence.blocks));
            } else {
                pool.release(&mut sequence.blocks);
                sink.record(&ServeEvent::RequestCompleted { request: sequence.id, worker, at: end });
            }
            sequences.remove(slot);
            false
        });
    }

    fn reserve_blocks(&mut self, job: &Job) -> Option<u32> {
        self.reserve_prompt(job)
    }

    fn enqueue_reserved(&mut self, request: RequestId) {
        self.enqueue_prebuilt(request);
    }

    fn release_held(&mut self, request: RequestId) {
        let mut blocks = self.held.remove(&request).expect("a prompt is released once");
        self.pool.release(&mut blocks);
        self.stalled = false;
    }

    fn note_backlog(&mut self, reservations: Backlog) {
        self.stalled &= reservations == self.reservations_wait;
        self.reservations_wait = reservations;
    }

    fn waits_for_reservations(&self) -> bool {
        let gated = self.reservations_wait == Backlog::Waiting && !self.waiting.is_empty();
        gated && self.running.is_empty() && self.next_to_admit().is_none()
    }

    fn readmit(&mut self, loaded: &[Slot]) {
        self.enqueue_loaded(loaded);
    }

    fn meet_tiers(&mut self) {
        if self.shell.tiers.as_ref().is_some_and(|tiers| tiers.takes_evicted()) {
            self.pool.given_up().keep();
        }
    }

    fn write_passes(&mut self, start: Nanos, count: u32) {
        self.move_blocks_of_stretch(start, count);
    }

    fn blocks_in_use(&self) -> u32 {
        self.pool.in_use()
    }

    fn requests(&self) -> Occupancy {
        Occupancy { waiting: self.waiting.len() as u32, running: self.running.len() as u32 }
    }

    fn log(&mut self) -> &mut ChangeLog {
        self.pool.log()
    }
}

#[cfg(test)]
mod tests {
    use wavetank_model::{Prompt, Sink, WorkerId};

    use super::*;
    use crate::engines::{Engine, Horizon};

    struct Ignore;
    impl Sink<ServeEvent<'_>> for Ignore {
        fn record(&mut self, _event: &ServeEvent<'_>) {}
    }

    fn engine() -> Vllm {
        let config = EngineConfig::default();
        let timing = config.timing.build().unwrap();
        Vllm::build(Seat { worker: WorkerId(0), config: &config, timing: &timing })
    }

    #[test]
    fn k8_a_request_of_one_token_is_never_prefilled() {
        let mut engine = engine();
        for (id, output_tokens) in [(0, 1), (1, 2)] {
            let prompt = Prompt::unique(u64::from(id), 64);
            engine.submit(Job { id: RequestId(id), prompt, output_tokens }, Nanos::ZERO);
        }
        let mut signals = Vec::new();
        let horizon = Horizon { starts_before: Nanos::MAX, ends_by: Nanos::MAX };
        while engine.wake().is_some() {
            engine.advance(horizon, &mut Ignore).unwrap();
            engine.take_signals(&mut signals);
        }
        let (first, second) = (RequestId(0), RequestId(1));
        assert_eq!(signals, [Signal::Ended(first), Signal::Prefilled(second), Signal::Ended(second)]);
    }

    #[test]
    fn changes_show_when_their_pass_has_ended() {
        let mut engine = engine();
        engine.watch_cache();
        let prompt = Prompt::unique(3, 256);
        engine.submit(Job { id: RequestId(0), prompt, output_tokens: 300 }, Nanos::ZERO);
        engine.advance(Horizon { starts_before: Nanos(1), ends_by: Nanos::MAX }, &mut Ignore).unwrap();
        let mut changes = Vec::new();
        engine.take_changes(Nanos(1), &mut changes);
        assert!(changes.is_empty(), "the prompt's pass is in flight");
        engine.take_changes(engine.shell.boundary, &mut changes);
        assert_eq!(changes.iter().map(|change| change.slots.count_ones()).sum::<u32>(), 4);
    }
}
