//! Tiers behind the radix cache, as HiCache has them: pages that enter the tree are written, pages that are
//! found behind a cached prefix are loaded, beside the pass that goes on from them or before it.

use wavetank_model::{Nanos, ServeSink};

use super::Sglang;
use crate::TierLoad;
use crate::arena::Slot;
use crate::tiers::{Found, Stack};

impl Sglang {
    /// What tiers have of a request behind the cached prefix it holds.
    pub(super) fn look_behind(&mut self, slot: Slot, sink: &mut ServeSink<'_>) -> Found {
        let page = self.config.block_size;
        let sequence = &self.sequences[slot];
        let (cached, reusable) = (sequence.held.len() as u32, (sequence.len - 1) / page);
        let nothing = Found { blocks: 0, load: TierLoad::Overlap };
        let Some(tiers) = self.shell.tiers.as_mut().filter(|_| cached < reusable) else { return nothing };
        tiers.settle(self.shell.boundary, sink);
        tiers.lookup(sequence.prompt.content_objects(u64::from(sequence.id.0), cached..reusable, page))
    }

    /// Whether anything is being loaded for requests that wait for it.
    pub(super) fn is_loading(&self) -> bool {
        self.shell.tiers.as_ref().is_some_and(|tiers| tiers.is_loading())
    }

    /// A request takes pages for what was found, and waits for it outside the queue. Tells whether there were
    /// as many.
    pub(super) fn park(&mut self, slot: Slot, pages: u32) -> bool {
        if !self.allocate(pages) {
            self.give_back(slot);
            return false;
        }
        self.sequences[slot].private_pages += pages;
        let (request, now) = (self.sequences[slot].id, self.shell.boundary);
        if let Some(tiers) = &mut self.shell.tiers {
            tiers.load(request, slot, TierLoad::Delay, now);
        }
        true
    }

    /// Loads have ended: what they brought is in the tree, and their requests are the first in the queue.
    pub(super) fn enqueue_loaded(&mut self, loaded: &[Slot]) {
        let page = self.page();
        for &slot in loaded.iter().rev() {
            let sequence = &mut self.sequences[slot];
            sequence.is_loaded = true;
            let tokens = (sequence.held.len() as u32 + sequence.private_pages) * page;
            self.enter(slot, tokens);
            self.waiting.push_front(slot);
        }
        self.guests.starve = false;
    }

    /// The last waiting request that holds what it loaded, of those behind the first `spared`, gives it back.
    /// Tells whether there was one.
    pub(super) fn give_back_load(&mut self, spared: usize) -> bool {
        let holds = |slot: &&Slot| self.sequences[**slot].is_loaded;
        let Some(&slot) = self.waiting.iter().skip(spared).rev().find(holds) else { return false };
        self.give_back(slot);
        true
    }

    /// Notes pages that are to be written when the pass at hand ends: from `first` on, up to `last`.
    pub(super) fn note_pages(&mut self, slot: Slot, first: u32, last: u32) {
        let page = self.config.block_size;
        let sequence = &mut self.sequences[slot];
        let Some(tiers) = self.shell.tiers.as_mut().filter(|_| first < last) else { return };
        tiers.note(sequence.prompt.content_objects(u64::from(sequence.id.0), first..last, page));
        sequence.written_pages = sequence.written_pages.max(last);
    }

    /// What the pass at hand took the place of so far is written when it begins, and what it loads must be
    /// there when it ends: at `end` at the earliest.
    pub(super) fn await_pages(&mut self, end: Nanos, sink: &mut ServeSink<'_>) -> Nanos {
        self.write_given_up();
        let start = self.shell.boundary;
        self.shell.tiers.as_mut().map_or(end, |tiers| tiers.finish_joined(start, sink).max(end))
    }

    fn write_given_up(&mut self) {
        let start = self.shell.boundary;
        if let Some(tiers) = self.shell.tiers.as_mut().filter(|tiers| tiers.takes_evicted()) {
            tiers.write_evicted(start, self.tree.given_up().take().flatten());
        }
    }

    /// What the pass at hand completed is written at its end.
    pub(super) fn write_pages(&mut self, end: Nanos) {
        self.write_given_up();
        if let Some(tiers) = &mut self.shell.tiers {
            tiers.write_completed(end);
        }
    }

    /// Writes what `count` passes of a stretch that began at `start` and has been entered took the place of.
    pub(super) fn write_evicted_of_stretch(&mut self, start: Nanos, count: u32) {
        let page = self.page();
        let Some(tiers) = self.shell.tiers.as_mut().filter(|tiers| tiers.takes_evicted()) else { return };
        let victims = self.tree.given_up().take();
        if victims.len() == 0 {
            return;
        }
        let mut opened = Vec::new();
        for &slot in &self.running {
            let sequence = &self.sequences[slot];
            let (before, pages) = (sequence.len - count, sequence.held.len() as u32 + sequence.private_pages);
            let first = before.div_ceil(page);
            opened.extend((first..pages).map(|number| (number * page).saturating_sub(before)));
        }
        // Pages are taken from what is free first, and evicted in their order then.
        opened.sort_unstable();
        let free = opened.len().saturating_sub(victims.len());
        let mut evicted =
            opened.drain(free..).zip(victims).filter_map(|(pass, key)| Some((pass, key?))).peekable();
        let mut pass_start = start;
        for (pass, &step) in (0..).zip(self.shell.stretch.steps(count)) {
            let of_pass = |next: &(u32, _)| next.0 == pass;
            if evicted.peek().is_some_and(of_pass) {
                let keys = std::iter::from_fn(|| evicted.next_if(of_pass)).map(|(_, key)| key);
                tiers.write_evicted(pass_start, keys);
            }
            pass_start += step;
        }
    }

    /// How many of the next `most` passes nothing can begin in that would change when a load ends.
    pub(super) fn passes_beside_loads(&self, most: u32) -> u32 {
        let evicts = |tiers: &Stack| tiers.is_loading() && tiers.takes_evicted();
        if !self.shell.tiers.as_deref().is_some_and(evicts) {
            return most;
        }
        let until_open = |slot: &Slot| {
            let sequence = &self.sequences[*slot];
            let pages = sequence.held.len() as u32 + sequence.private_pages;
            (pages * self.page()).saturating_sub(sequence.len).max(1)
        };
        self.running.iter().map(until_open).fold(most, u32::min)
    }
}
