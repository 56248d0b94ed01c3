//! A token for every running request: retraction when pages run short, and stretches of passes in which
//! nothing else happens.

use wavetank_model::{Nanos, RejectReason, ServeEvent, ServeSink};

use super::Sglang;
use crate::EngineConfig;
use crate::arena::Slot;
use crate::engines::Signal;
use crate::shell::Scheduler;
use crate::stretch::longest;

/// The reserve ratio an engine starts with.
pub(super) fn first_ratio(config: &EngineConfig) -> f64 {
    0.7 * config.sglang.schedule_conservativeness
}

/// Decode passes from the first ratio to the least.
const PASSES_TO_LEAST: f64 = 600.0;
/// The least ratio, as a part of the first.
const LEAST: f64 = 0.14;
/// Tokens each survivor of a retraction is expected to generate at least.
const HEAD_START: u32 = 20;

impl Sglang {
    /// Makes sure that every running request can get the page it may open, and prices the pass.
    pub(super) fn prepare_decode(&mut self, sink: &mut ServeSink<'_>) -> Nanos {
        let mut retracted = false;
        while !self.running.is_empty() && self.pages_for(1) > self.available_pages() {
            if self.running.len() > 1 {
                self.retract(sink);
                retracted = true;
            } else if self.give_back_load(0) {
                continue;
            } else if self.is_loading() {
                // What is being loaded cannot be given back yet.
                self.retract(sink);
                retracted = true;
            } else if let Some(begun) = self.begun_prompt() {
                // Half a prompt that waits must not starve the only request that runs: it begins again.
                self.give_back(begun);
                self.sequences[begun].computed = 0;
                let (request, worker, at) =
                    (self.sequences[begun].id, self.shell.worker, self.shell.boundary);
                sink.record(&ServeEvent::RequestPreempted { request, worker, at });
            } else {
                let slot = self.running.remove(0);
                self.running_tokens = 0;
                self.rejected.push((slot, RejectReason::OutgrewCache));
            }
        }
        if self.running.is_empty() {
            return Nanos::ZERO;
        }
        if !retracted {
            self.decay(1);
        }
        self.shell.pace.decode(self.decode_batch())
    }

    /// A waiting request that holds pages of the part of its prompt that is computed.
    fn begun_prompt(&self) -> Option<Slot> {
        self.waiting.iter().copied().find(|&slot| self.sequences[slot].computed > 0)
    }

    /// Every decode pass that goes well lowers the reserve.
    fn decay(&mut self, passes: u32) {
        let first = first_ratio(&self.config);
        let least = LEAST * first;
        let step = (first - least) / PASSES_TO_LEAST;
        for _ in 0..passes {
            if self.ratio <= least {
                return;
            }
            self.ratio = (self.ratio - step).max(least);
        }
    }

    /// Sends the request that loses least back to the end of the queue: fewest generated tokens, then the
    /// longest prompt, then the latest.
    fn retract(&mut self, sink: &mut ServeSink<'_>) {
        let loss = |position: &usize| {
            let sequence = &self.sequences[self.running[*position]];
            (sequence.generated(), u32::MAX - sequence.prompt.tokens(), usize::MAX - position)
        };
        let victim = (0..self.running.len()).min_by_key(loss).expect("several are running");
        let slot = self.running.remove(victim);
        self.give_back(slot);
        let sequence = &mut self.sequences[slot];
        sequence.computed = 0;
        self.running_tokens -= u64::from(sequence.len);
        let (request, worker, at) = (sequence.id, self.shell.worker, self.shell.boundary);
        sink.record(&ServeEvent::RequestPreempted { request, worker, at });
        self.waiting.push_back(slot);
        let (mut expected, mut asked) = (0, 0);
        for &slot in &self.running {
            let sequence = &self.sequences[slot];
            expected += u64::from(sequence.generated() + HEAD_START);
            asked += u64::from(sequence.most_output());
        }
        self.ratio = (expected as f64 / asked as f64).min(1.0);
    }

    /// Pages that `passes` decode passes open.
    fn pages_for(&self, passes: u32) -> u32 {
        let opened = |slot| {
            let sequence = &self.sequences[slot];
            sequence.missing_pages(sequence.len + passes, self.config.block_size)
        };
        self.running.iter().map(|&slot| opened(slot)).fold(0, u32::saturating_add)
    }

    pub(super) fn emit_decode(&mut self, end: Nanos, sink: &mut ServeSink<'_>) {
        for position in 0..self.running.len() {
            self.sample(self.running[position]);
        }
        self.running_tokens += self.running.len() as u64;
        self.shell.tell_tokens(self.shell.boundary, end, sink);
        self.complete_finished(end, sink);
    }

    /// The requests that have all their tokens leave, in order.
    pub(super) fn complete_finished(&mut self, end: Nanos, sink: &mut ServeSink<'_>) {
        let mut kept = 0;
        for position in 0..self.running.len() {
            let slot = self.running[position];
            if self.sequences[slot].is_finished() {
                self.running_tokens -= u64::from(self.sequences[slot].len);
                self.complete(slot, end, sink);
            } else {
                self.running[kept] = slot;
                kept += 1;
            }
        }
        self.running.truncate(kept);
    }

    fn nobody_enters(&self) -> bool {
        self.waiting.is_empty() && self.guests.come.is_empty()
    }

    /// How many decode passes can be advanced together now; the last of them may finish requests.
    pub(super) fn passes_to_advance(&self) -> u32 {
        let seats_taken = self.config.max_num_seqs.is_some_and(|seats| self.running.len() >= seats as usize);
        if self.running.is_empty() || !(self.nobody_enters() || seats_taken) {
            return 0;
        }
        let left = |slot| self.sequences[slot].limit - self.sequences[slot].len;
        let most = self.running.iter().map(|&slot| left(slot)).min().unwrap_or(0);
        let most = self.passes_beside_loads(most);
        longest(0, most, |passes| self.pages_for(passes) <= self.available_pages())
    }

    /// Enters `count` tokens into every running request. Tells whether any has all of them.
    pub(super) fn grow_running(&mut self, count: u32) -> bool {
        self.decay(count);
        let page = self.page();
        let mut finishing = false;
        for position in 0..self.running.len() {
            let slot = self.running[position];
            let sequence = &mut self.sequences[slot];
            sequence.len += count;
            let opened = sequence.missing_pages(sequence.len, page);
            sequence.private_pages += opened;
            self.shell.emitting.push(sequence.id);
            if sequence.is_finished() {
                finishing = true;
                self.shell.signals.push(Signal::Ended(sequence.id));
            }
            let fits = self.allocate(opened);
            assert!(fits, "a stretch is no longer than its pages");
        }
        self.running_tokens += self.running.len() as u64 * u64::from(count);
        finishing
    }
}
