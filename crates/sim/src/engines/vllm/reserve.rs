//! A decode worker's side of a handoff: room for a prompt that another worker computes, and its entry into
//! the queue when it has come (spec/engine.md 17.1, D5 to D9).

use wavetank_model::RequestId;

use super::Vllm;
use super::schedule::Work;
use super::sequence::Sequence;
use crate::engines::{Backlog, Job};

impl Vllm {
    /// Takes all blocks of a prompt at once, those found in the cache included. The tokens of the others, or
    /// `None` if there is no seat or no room.
    pub(super) fn reserve_prompt(&mut self, job: &Job) -> Option<u32> {
        let seats = self.config.max_num_seqs.map_or(usize::MAX, |seats| seats as usize);
        let block_size = self.config.block_size;
        let mut sequence = Sequence::of(job.clone(), self.config.max_model_len);
        let blocks = sequence.len.div_ceil(block_size);
        // Nothing is computed here, so the last block may come from the cache too.
        let findable = if self.config.enable_prefix_caching { sequence.len / block_size } else { 0 };
        let keys = sequence.keys(0, block_size).take(findable as usize);
        self.pool.lookup(keys, &mut self.scratch.hits);
        let (found, in_use) = (self.scratch.hits.len(), self.scratch.hits.in_use());
        if self.running.len() >= seats || blocks - in_use > self.pool.available() {
            return None;
        }
        self.pool.take_hits(&self.scratch.hits, &mut sequence.blocks);
        let fits = self.pool.allocate(blocks - found, &mut sequence.blocks);
        assert!(fits, "there was room for the prompt of request {}", job.id.0);
        (sequence.computed, sequence.published) = (sequence.len, found);
        sequence.reservation = Some(self.reservations);
        self.reservations += 1;
        let slot = self.sequences.insert(sequence);
        self.reserved.push((job.id, slot));
        Some((blocks - found) * block_size)
    }

    /// The prompt is here: its blocks can be found, and its request waits behind preempted ones and behind
    /// those that reserved before it.
    pub(super) fn enqueue_prebuilt(&mut self, request: RequestId) {
        let position = self.reserved.iter().position(|&(id, _)| id == request).expect("it has a reservation");
        let (_, slot) = self.reserved.remove(position);
        self.publish(slot);
        let order = self.sequences[slot].reservation;
        let later = |&other: &crate::arena::Slot| self.sequences[other].reservation > order;
        let place = self.waiting.iter().rposition(|other| !later(other)).map_or(0, |before| before + 1);
        self.waiting.insert(place, slot);
        self.stalled = false;
    }

    /// Whether the first waiting request lacks blocks that are kept for prompts between workers, or for what
    /// is being loaded.
    pub(super) fn awaits_others(&self) -> bool {
        let loads = self.shell.tiers.as_ref().is_some_and(|tiers| tiers.is_loading());
        self.stalled && (loads || !(self.held.is_empty() && self.reserved.is_empty()))
    }

    /// Moves a request whose prompt came from elsewhere into the running batch.
    pub(super) fn admit_prebuilt(&mut self, position: usize) {
        let slot = self.waiting.remove(position).expect("it waits");
        self.sequences[slot].reservation = None;
        let len = self.sequences[slot].len;
        self.running_tokens += u64::from(len);
        self.running.push(slot);
        if self.config.async_scheduling {
            self.commit(slot, Work { before: len, tokens: 0, starts: false });
        }
    }

    /// The first waiting request whose prompt came from elsewhere.
    pub(super) fn first_prebuilt(&self) -> Option<usize> {
        self.waiting.iter().position(|&slot| self.sequences[slot].reservation.is_some())
    }

    /// The next waiting request that may be looked at: the first, but only those whose prompts came from
    /// elsewhere while others wait for a reservation.
    pub(super) fn next_to_admit(&self) -> Option<usize> {
        match self.reservations_wait {
            Backlog::Empty => (!self.waiting.is_empty()).then_some(0),
            Backlog::Waiting => self.first_prebuilt(),
        }
    }
}
