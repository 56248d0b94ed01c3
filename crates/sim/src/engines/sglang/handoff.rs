//! Prompts that are computed on one worker and decoded on another (spec/engine.md 17.3, G3 to G7).

use std::collections::{BTreeMap, VecDeque};

use wavetank_model::{RequestId, ServeSink};

use super::Sglang;
use super::sequence::Sequence;
use crate::arena::Slot;
use crate::engines::{Backlog, Job, Signal};

/// Requests a worker has pages for, although it does not run them now.
#[derive(Default)]
pub(super) struct Guests {
    /// Computed here, until they have come to their decode worker.
    pub(super) held: BTreeMap<RequestId, Slot>,
    /// Reserved for here and still to come, with the order of their reservation.
    expected: BTreeMap<RequestId, (u64, Slot)>,
    /// Come and not running yet, in order of their reservation.
    pub(super) come: VecDeque<(u64, Slot)>,
    reservations: u64,
    /// Whether reservations wait.
    pub(super) backlog: Backlog,
    /// Whether nothing can start before guests give up their pages.
    pub(super) starve: bool,
}

impl Guests {
    /// Whether pages are kept for anyone who does not run.
    pub(super) fn any(&self) -> bool {
        !(self.held.is_empty() && self.expected.is_empty())
    }
}

impl Sglang {
    /// Takes all pages of a prompt, those in the tree included. The tokens of the others, or `None` if there
    /// is no room; seats and output do not count.
    pub(super) fn reserve_prompt(&mut self, job: &Job) -> Option<u32> {
        let page = self.page();
        let slot = self.sequences.insert(Sequence::of(job.clone(), self.config.max_model_len));
        // Nothing is computed here, so the last page may come from the tree too.
        let tokens = self.sequences[slot].len;
        self.match_prefix(slot, tokens / page);
        let needed = self.sequences[slot].missing_pages(tokens, page);
        if !self.allocate(needed) {
            self.give_back(slot);
            self.sequences.remove(slot);
            return None;
        }
        self.sequences[slot].private_pages = needed;
        self.guests.expected.insert(job.id, (self.guests.reservations, slot));
        self.guests.reservations += 1;
        Some(needed * page)
    }

    /// Whether the first waiting request may not start, because reservations come first.
    pub(super) fn is_gated(&self) -> bool {
        let starts = |&slot: &Slot| self.sequences[slot].computed == 0;
        self.guests.backlog == Backlog::Waiting && self.waiting.front().is_some_and(starts)
    }

    /// The prompt is here: its pages are in the tree, and it waits in order of its reservation.
    pub(super) fn welcome(&mut self, request: RequestId) {
        let (order, slot) = self.guests.expected.remove(&request).expect("it has a reservation");
        let place = self.guests.come.partition_point(|&(other, _)| other < order);
        self.guests.come.insert(place, (order, slot));
        self.guests.starve = false;
    }

    /// What was held for a decode worker stays in the tree; room kept in vain is given back.
    pub(super) fn dismiss(&mut self, request: RequestId) {
        if let Some(slot) = self.guests.held.remove(&request) {
            self.leave(slot);
        } else {
            let (_, slot) = self.guests.expected.remove(&request).expect("something is kept for it");
            self.give_back(slot);
            self.sequences.remove(slot);
        }
        self.guests.starve = false;
    }

    /// Prompts that have come start to run while there are seats; one that asks for nothing has ended.
    pub(super) fn promote(&mut self, sink: &mut ServeSink<'_>) {
        let seats = self.config.max_num_seqs.map_or(usize::MAX, |seats| seats as usize);
        while self.running.len() < seats
            && let Some((_, slot)) = self.guests.come.pop_front()
        {
            self.store(slot, self.sequences[slot].len);
            let sequence = &self.sequences[slot];
            if sequence.is_finished() {
                self.shell.signals.push(Signal::Ended(sequence.id));
                self.complete(slot, self.shell.boundary, sink);
            } else {
                self.running_tokens += u64::from(sequence.len);
                self.running.push(slot);
            }
        }
    }
}
