//! Asynchronous scheduling: a pass is scheduled while the one before it runs, so that the device never waits
//! for the scheduler (spec/vllm-timing.md 2).
//!
//! Two passes are in flight. When the first ends, what it sampled is known, and one more is scheduled, with
//! the tokens the other will sample as place holders. A request whose last token is in flight keeps its seat
//! until it arrives.

use wavetank_model::{Nanos, Result, ServeSink};

use super::Vllm;
use crate::WorkerRole;
use crate::arena::Slot;
use crate::engines::Signal;
use crate::shell::Scheduler;
use crate::timing::DecodeBatch;

/// A pass that runs.
pub(super) struct Flight {
    pub(super) start: Nanos,
    pub(super) end: Nanos,
    /// Requests that get a token from it.
    pub(super) samples: Vec<Slot>,
}

/// Passes in flight at most.
pub(super) const DEPTH: usize = 2;

impl Vllm {
    /// Schedules until two passes are in flight, then lets the first one end.
    pub(super) fn step_ahead(&mut self, ends_by: Nanos, sink: &mut ServeSink<'_>) -> Result<()> {
        let mut changed = false;
        while self.flights.len() < DEPTH {
            changed |= self.schedule(sink) || !self.scratch.rejected.is_empty();
            self.reject(sink);
            if self.scratch.scheduled.is_empty() {
                break;
            }
            let start = self.flights.back().map_or(self.shell.boundary, |flight| flight.end);
            let end = start + self.price();
            self.launch(start, end, sink);
        }
        let Some(flight) = self.flights.front() else {
            return if changed || self.awaits_others() { Ok(()) } else { Err(self.stuck()) };
        };
        if flight.end > ends_by {
            self.shell.halted = true;
            return Ok(());
        }
        let flight = self.flights.pop_front().expect("it is in flight");
        self.land(&flight, sink);
        Ok(())
    }

    /// The scheduled pass runs after those in flight.
    pub(super) fn launch(&mut self, start: Nanos, end: Nanos, sink: &mut ServeSink<'_>) {
        self.tell_prompts(start, end, sink);
        let mut samples = Vec::with_capacity(self.scratch.scheduled.len());
        for work in &self.scratch.scheduled {
            let sequence = &mut self.sequences[work.slot];
            if sequence.is_computed() {
                sequence.pending += 1;
                samples.push(work.slot);
            }
        }
        self.flights.push_back(Flight { start, end, samples });
    }

    /// A pass is over: what it sampled is known.
    pub(super) fn land(&mut self, flight: &Flight, sink: &mut ServeSink<'_>) {
        let holds = self.config.worker_type == WorkerRole::Prefill;
        let (mut finished, mut preempted) = (false, Vec::new());
        for &slot in &flight.samples {
            let sequence = &mut self.sequences[slot];
            let (id, first, runs) = (sequence.id, !sequence.has_generated(), !sequence.blocks.is_empty());
            sequence.pending -= 1;
            if sequence.len < sequence.limit {
                sequence.len += 1;
                self.running_tokens += u64::from(runs);
                if !holds {
                    self.shell.emitting.push(id);
                }
            }
            if sequence.len >= sequence.limit {
                finished = true;
                if !runs {
                    preempted.push(slot);
                }
                let signal = if holds { Signal::Held } else { Signal::Ended };
                self.shell.signals.push(signal(id));
            } else if first {
                self.shell.signals.push(Signal::Prefilled(id));
            }
        }
        self.shell.work.stepped_passes += 1;
        self.shell.work.busy += flight.end - flight.start;
        self.shell.tell_tokens(flight.start, flight.end, sink);
        self.shell.boundary = flight.end;
        if !preempted.is_empty() {
            self.take_back(&preempted);
        }
        if finished {
            self.finish(flight.end, sink);
        }
    }

    /// Preempted requests whose last token was in flight then need no second turn.
    fn take_back(&mut self, finished: &[Slot]) {
        self.waiting.retain(|slot| !finished.contains(slot));
        for &slot in finished {
            let sequence = &mut self.sequences[slot];
            sequence.computed = sequence.len;
            self.running_tokens += u64::from(sequence.len);
            self.running.push(slot);
        }
    }

    /// The requests of the scheduled pass that only decode.
    pub(super) fn scheduled_decodes(&self) -> DecodeBatch {
        let (mut requests, mut kv_tokens, mut longest) = (0, 0, 0);
        for work in self.scratch.scheduled.iter().filter(|work| !work.is_chunk()) {
            requests += 1;
            kv_tokens += u64::from(work.length());
            longest = longest.max(work.length());
        }
        DecodeBatch { longest, ..self.batch_of(requests, kv_tokens) }
    }

    /// How many more passes like the one in flight can be scheduled, when every running request has at least
    /// `to_go` tokens to come: none of them is provided for before.
    pub(super) fn passes_ahead(&self, to_go: u32) -> u32 {
        let alike = |flight: &Flight| flight.samples.len() == self.running.len();
        let steady = self.flights.len() == 1 && self.flights.iter().all(alike);
        let sampled = |&slot: &Slot| self.sequences[slot].pending == 1;
        if steady && self.running.iter().all(sampled) { to_go.saturating_sub(1) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use wavetank_model::{Prompt, RequestId, ServeEvent, Sink, WorkerId};

    use super::*;
    use crate::EngineConfig;
    use crate::engines::{Engine, Horizon, Job, Seat};

    /// When each request got its tokens.
    #[derive(Debug, Default, PartialEq)]
    struct Tokens(BTreeMap<u32, Vec<u64>>);

    impl Sink<ServeEvent<'_>> for Tokens {
        fn record(&mut self, event: &ServeEvent<'_>) {
            if let ServeEvent::TokensEmitted { start, steps, requests, .. } = event {
                let mut at = start.0;
                for step in *steps {
                    at += step.0;
                    requests.iter().for_each(|request| self.0.entry(request.0).or_default().push(at));
                }
            }
        }
    }

    fn engine(jobs: &[(u32, u32)], blocks: u32) -> Vllm {
        let config = EngineConfig {
            async_scheduling: true,
            num_gpu_blocks: blocks,
            block_size: 16,
            max_num_seqs: Some(4),
            max_num_batched_tokens: Some(64),
            ..EngineConfig::default()
        };
        let timing = config.timing.build().unwrap();
        let mut engine = Vllm::build(Seat { worker: WorkerId(0), config: &config, timing: &timing });
        for (id, &(input, output_tokens)) in (0..).zip(jobs) {
            let prompt = Prompt::unique(u64::from(id), input);
            engine.submit(Job { id: RequestId(id), prompt, output_tokens }, Nanos::ZERO);
        }
        engine
    }

    proptest! {
        /// Passes advanced together give what single passes give. Pricing the pass in flight again, or
        /// letting a stretch reach the pass that provides for a request, breaks it.
        #[test]
        fn a_stretch_is_its_passes(
            jobs in proptest::collection::vec((1u32..150, 0u32..60), 1..9),
            blocks in 14u32..60,
        ) {
            let (mut together, mut single) = (Tokens::default(), Tokens::default());
            let mut advanced = engine(&jobs, blocks);
            let horizon = Horizon { starts_before: Nanos::MAX, ends_by: Nanos::MAX };
            while advanced.wake().is_some() {
                advanced.advance(horizon, &mut together).unwrap();
                advanced.take_signals(&mut Vec::new());
            }
            let mut stepped = engine(&jobs, blocks);
            while !stepped.is_idle() || !stepped.flights.is_empty() {
                stepped.step(Nanos::MAX, &mut single).unwrap();
            }
            prop_assert_eq!(together, single);
            prop_assert_eq!(advanced.work().busy, stepped.work().busy);
        }
    }

    #[test]
    fn an_uncontended_first_token_takes_two_passes_when_the_engine_is_busy() {
        let mut tokens = Tokens::default();
        let mut engine = engine(&[(40, 50)], 60);
        engine
            .advance(Horizon { starts_before: Nanos(30_000_000), ends_by: Nanos::MAX }, &mut tokens)
            .unwrap();
        let before = engine.boundary();
        engine.take_signals(&mut Vec::new());
        let job = Job { id: RequestId(1), prompt: Prompt::unique(9, 20), output_tokens: 2 };
        engine.submit(job, before);
        while engine.wake().is_some() {
            engine.advance(Horizon { starts_before: Nanos::MAX, ends_by: Nanos::MAX }, &mut tokens).unwrap();
            engine.take_signals(&mut Vec::new());
        }
        let passes = tokens.0[&0].iter().filter(|&&at| at > before.0 && at <= tokens.0[&1][0]).count();
        assert_eq!(passes, 2, "one was in flight, the other has its prompt");
    }
}
