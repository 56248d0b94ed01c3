//! One vLLM worker, one pass at a time, token by token (spec/engine.md 3.4, 4, 15, 16.1).

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use wavetank_model::RejectReason;
use wavetank_sim::PreemptionMode;

use crate::case::{EngineCase, TimingCase};
use crate::pool::Pool;

/// A request inside the worker.
pub(crate) struct Sequence {
    pub(crate) id: u32,
    /// The prompt and what was generated after it.
    pub(crate) tokens: Vec<u64>,
    pub(crate) prompt: usize,
    pub(crate) output: usize,
    computed: usize,
    blocks: Vec<usize>,
    /// Whether it ran before and was preempted.
    preempted: bool,
}

impl Sequence {
    pub(crate) fn of(id: u32, tokens: Vec<u64>, output: usize) -> Self {
        let prompt = tokens.len();
        Self { id, tokens, prompt, output, computed: 0, blocks: Vec::new(), preempted: false }
    }

    fn generated(&self) -> usize {
        self.tokens.len() - self.prompt
    }
}

/// What one pass did.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    pub(crate) duration: u64,
    /// Request and reused tokens.
    pub(crate) admitted: Vec<(u32, u32)>,
    pub(crate) preempted: Vec<u32>,
    pub(crate) emitted: Vec<u32>,
    pub(crate) completed: Vec<u32>,
    pub(crate) rejected: Vec<(u32, RejectReason)>,
    budget: usize,
    work: BTreeMap<u32, Work>,
}

/// What a request was given in a pass.
#[derive(Debug)]
struct Work {
    tokens: usize,
    /// Prompt tokens known before and after.
    before: usize,
    after: usize,
}

pub(crate) struct Engine {
    config: EngineCase,
    pool: Pool,
    waiting: VecDeque<Sequence>,
    running: Vec<Sequence>,
}

/// What to do with the head of the queue.
enum Verdict {
    Wait,
    Reject(RejectReason),
    Admit(Vec<usize>),
}

impl Engine {
    pub(crate) fn of(config: &EngineCase) -> Self {
        let (blocks, size) = (config.num_gpu_blocks as usize, config.block_size as usize);
        let pool = Pool::of(blocks, size, config.prefix_caching);
        Self { config: config.clone(), pool, waiting: VecDeque::new(), running: Vec::new() }
    }

    pub(crate) fn submit(&mut self, sequence: Sequence) {
        self.waiting.push_back(sequence);
    }

    pub(crate) fn has_work(&self) -> bool {
        !self.waiting.is_empty() || !self.running.is_empty()
    }

    /// Runs one pass: all of its state changes happen now, its results count when it ends.
    pub(crate) fn pass(&mut self) -> Pass {
        let mut pass = Pass { budget: self.pass_limit(), ..Pass::default() };
        self.schedule_running(&mut pass);
        self.schedule_waiting(&mut pass);
        pass.duration = self.prefill_time(&pass) + self.decode_time();
        self.emit(&mut pass);
        let effect = !pass.work.is_empty() || !pass.preempted.is_empty() || !pass.rejected.is_empty();
        assert!(effect, "a pass without effect");
        pass
    }

    fn pass_limit(&self) -> usize {
        self.config.max_num_batched_tokens.map_or(usize::MAX, |limit| limit as usize)
    }

    fn block_count(&self, tokens: usize) -> usize {
        tokens.div_ceil(self.config.block_size as usize)
    }

    fn schedule_running(&mut self, pass: &mut Pass) {
        let mut at = 0;
        while at < self.running.len() && pass.budget > 0 {
            let id = self.running[at].id;
            let Some((position, take)) = self.make_room(id, pass) else {
                at = self.first_unscheduled(pass);
                continue;
            };
            self.advance(position, take, pass);
            at = position + 1;
        }
    }

    /// After the current request preempted itself: the first one behind it, which is the first without work.
    fn first_unscheduled(&self, pass: &Pass) -> usize {
        let without = |sequence: &Sequence| !pass.work.contains_key(&sequence.id);
        self.running.iter().position(without).unwrap_or(self.running.len())
    }

    /// Preempts until request `id` can be given tokens. Its position and how many; `None` if it was itself
    /// preempted. The specification does not say whether budget that a victim gives back counts for the
    /// request that needed its blocks; as in the simulator, it does.
    fn make_room(&mut self, id: u32, pass: &mut Pass) -> Option<(usize, usize)> {
        loop {
            let position = self.running.iter().position(|sequence| sequence.id == id)?;
            let sequence = &self.running[position];
            let take = (sequence.tokens.len() - sequence.computed).min(pass.budget);
            let blocks = self.block_count(sequence.computed + take);
            if self.pool.available() >= blocks.saturating_sub(sequence.blocks.len()) {
                return Some((position, take));
            }
            let victim = match self.config.preemption {
                PreemptionMode::Lifo => self.running.len() - 1,
                PreemptionMode::Fifo => 0,
            };
            self.preempt(victim, pass);
        }
    }

    fn preempt(&mut self, victim: usize, pass: &mut Pass) {
        let mut sequence = self.running.remove(victim);
        if let Some(work) = pass.work.remove(&sequence.id) {
            pass.budget = pass.budget.saturating_add(work.tokens);
        }
        self.pool.release(std::mem::take(&mut sequence.blocks));
        sequence.computed = 0;
        sequence.preempted = true;
        pass.preempted.push(sequence.id);
        self.waiting.push_front(sequence);
    }

    /// Gives `take` tokens to a running request; room for them is there.
    fn advance(&mut self, position: usize, take: usize, pass: &mut Pass) {
        let blocks = self.block_count(self.running[position].computed + take);
        let sequence = &mut self.running[position];
        let (before, after) = (sequence.computed, sequence.computed + take);
        while sequence.blocks.len() < blocks {
            sequence.blocks.push(self.pool.take());
        }
        sequence.computed = after;
        let size = self.config.block_size as usize;
        for (number, &block) in (1..=after / size).zip(&sequence.blocks) {
            self.pool.publish(block, &sequence.tokens[..number * size]);
        }
        let prompt = sequence.prompt;
        let work = Work { tokens: take, before: before.min(prompt), after: after.min(prompt) };
        pass.budget -= take;
        pass.work.insert(sequence.id, work);
    }

    fn schedule_waiting(&mut self, pass: &mut Pass) {
        let most = self.config.max_num_seqs.map_or(usize::MAX, |most| most as usize);
        while pass.preempted.is_empty() && self.running.len() < most {
            let Some(head) = self.waiting.pop_front() else { return };
            match self.judge(&head, pass.budget) {
                Verdict::Wait => {
                    self.waiting.push_front(head);
                    return;
                }
                Verdict::Reject(reason) => pass.rejected.push((head.id, reason)),
                Verdict::Admit(hits) => self.admit(head, hits, pass),
            }
        }
    }

    fn admit(&mut self, mut sequence: Sequence, hits: Vec<usize>, pass: &mut Pass) {
        let cached = hits.len() * self.config.block_size as usize;
        hits.iter().for_each(|&block| self.pool.pin(block));
        pass.admitted.push((sequence.id, cached.min(sequence.prompt) as u32));
        let take = (sequence.tokens.len() - cached).min(pass.budget);
        (sequence.blocks, sequence.computed) = (hits, cached);
        self.running.push(sequence);
        self.advance(self.running.len() - 1, take, pass);
    }

    /// The order of the reasons matters: a prompt that can never fit is given up even without budget, one
    /// that is longer than a pass only when there are blocks for it.
    fn judge(&self, head: &Sequence, budget: usize) -> Verdict {
        let all_blocks = self.block_count(head.tokens.len());
        if self.config.max_model_len.is_some_and(|limit| head.prompt >= limit as usize) {
            return Verdict::Reject(RejectReason::PromptReachesModelLimit);
        }
        if all_blocks > self.pool.capacity() {
            let ran = head.preempted;
            let reason = if ran { RejectReason::OutgrewCache } else { RejectReason::PromptExceedsCache };
            return Verdict::Reject(reason);
        }
        if budget == 0 {
            return Verdict::Wait;
        }
        let hits = self.pool.lookup(&head.tokens);
        let uncached = head.prompt.saturating_sub(hits.len() * self.config.block_size as usize);
        let shared = hits.iter().filter(|&&block| self.pool.is_active(block)).count();
        if all_blocks - shared > self.pool.available() {
            return Verdict::Wait;
        }
        if !self.config.chunked_prefill && uncached > self.pass_limit() {
            return Verdict::Reject(RejectReason::PromptExceedsPass);
        }
        if !self.config.chunked_prefill && uncached > budget {
            return Verdict::Wait;
        }
        Verdict::Admit(hits)
    }

    fn prefill_time(&self, pass: &Pass) -> u64 {
        let prompts: Vec<_> = pass.work.values().filter(|work| work.after > work.before).collect();
        let count = prompts.len();
        if count == 0 {
            return 0;
        }
        let mean_context = prompts.iter().map(|work| work.after).sum::<usize>() / count;
        let mean_prefix = prompts.iter().map(|work| work.before).sum::<usize>() / count;
        let fresh = (count * (mean_context - mean_prefix)) as f64;
        let ms = match self.config.timing {
            TimingCase::Fixed { prefill_ms, .. } => prefill_ms,
            TimingCase::Polynomial => 4.209989e-7 * (fresh * fresh) + 1.518344e-2 * fresh + 16.50142,
        };
        scaled(ms, self.config.speedup)
    }

    /// Requests whose tokens are all computed and that generated before; a first token comes from prefill.
    fn decode_time(&self) -> u64 {
        let ready = self.running.iter().filter(|sequence| sequence.computed == sequence.tokens.len());
        let lengths: Vec<_> =
            ready.filter(|sequence| sequence.generated() > 0).map(|sequence| sequence.tokens.len()).collect();
        if lengths.is_empty() {
            return 0;
        }
        let capacity = self.pool.capacity() * self.config.block_size as usize;
        let used = (lengths.iter().sum::<usize>() as f64 / capacity as f64).min(1.0);
        let ms = match self.config.timing {
            TimingCase::Fixed { decode_ms, .. } => decode_ms,
            TimingCase::Polynomial => (-25.74 * (used * used) + 54.01 * used + 5.74).max(1.0),
        };
        scaled(ms, self.config.speedup * self.config.decode_speedup)
    }

    /// Every request with nothing left to compute gets its next token, and leaves if that was the last one.
    fn emit(&mut self, pass: &mut Pass) {
        let limit = self.config.max_model_len.map_or(usize::MAX, |limit| limit as usize);
        let mut stay = Vec::new();
        for mut sequence in std::mem::take(&mut self.running) {
            let ready = sequence.computed == sequence.tokens.len();
            if ready && sequence.generated() < sequence.output {
                // No prompt has such a token, and no other request.
                sequence.tokens.push((1 << 63) | u64::from(sequence.id));
                pass.emitted.push(sequence.id);
            }
            let done = sequence.generated() == sequence.output || sequence.tokens.len() == limit;
            if ready && done {
                pass.completed.push(sequence.id);
                self.pool.release(sequence.blocks);
            } else {
                stay.push(sequence);
            }
        }
        self.running = stay;
    }
}

/// Milliseconds as nanoseconds, divided by a ratio that zero turns off.
fn scaled(ms: f64, ratio: f64) -> u64 {
    let mut span = Duration::from_secs_f64(ms / 1000.0);
    if ratio > 0.0 {
        span = Duration::from_secs_f64(span.as_secs_f64() / ratio);
    }
    u64::try_from(span.as_nanos()).expect("the generated times are short")
}
