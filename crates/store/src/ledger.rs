//! The tier bookkeeping of a store: decisions under one short lock, never held across I/O.
//!
//! A hit does not take the lock: it leaves a note in a bounded queue, and whoever decides next reads the
//! notes first. At one operation at a time the order of decisions is therefore exactly that of the
//! operations.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wavetank_cache::{
    Destination, Move, Promoted, Refusal, Resident, Rules, Slot, TierId, TierRow, TierSet, Tiers,
};

use crate::backend::Held;
use crate::index::Stored;

/// Hits not yet noted by the policies; above it a hit takes the lock.
const NOTES: usize = 1024;

/// What has to be done to an entry that makes room.
pub(crate) struct Displaced {
    pub(crate) entry: Arc<Stored>,
    pub(crate) from: TierId,
    pub(crate) to: Destination,
    /// The copies that go. They are taken from the entry when that is decided: another one may come to the
    /// same tier before they are gone.
    pub(crate) gone: Vec<(TierId, Arc<dyn Held>)>,
}

/// The ledger.
pub(crate) struct Ledger {
    book: Mutex<Book>,
    notes: SyncSender<Arc<Stored>>,
    promotes: bool,
}

struct Book {
    tiers: Tiers,
    entries: Vec<Option<Arc<Stored>>>,
    hits: Receiver<Arc<Stored>>,
    moves: Vec<Move>,
}

impl Ledger {
    pub(crate) fn new(rows: Vec<TierRow<Box<dyn wavetank_cache::Eviction>>>, rules: Rules) -> Self {
        let (notes, hits) = sync_channel(NOTES);
        let promotes = rules.promotion != wavetank_cache::Promotion::Never;
        let book = Book { tiers: Tiers::new(rows, rules), entries: Vec::new(), hits, moves: Vec::new() };
        Self { book: Mutex::new(book), notes, promotes }
    }

    /// The book, with every hit so far in it.
    fn book(&self) -> MutexGuard<'_, Book> {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        book.note_hits();
        book
    }

    /// Finds a place for a new entry, which `make` builds for its slot. What is displaced is appended, in the
    /// order in which it has to be carried out, also when there is no place.
    pub(crate) fn admit(
        &self,
        resident: &Resident,
        displaced: &mut Vec<Displaced>,
        make: impl FnOnce(Slot) -> Stored,
    ) -> Result<(Arc<Stored>, TierSet), Refusal> {
        let book = &mut *self.book();
        let result = {
            let Book { tiers, entries, moves, .. } = book;
            tiers.admit(resident, &mut |slot, _| is_idle(entries, slot), moves)
        };
        book.carry(displaced);
        let admitted = result?;
        let entry = Arc::new(make(admitted.slot));
        book.enter(&entry);
        Ok((entry, admitted.tiers))
    }

    /// Takes an entry of an earlier process into `tier`, if it has room.
    pub(crate) fn restore(
        &self,
        resident: &Resident,
        tier: TierId,
        make: impl FnOnce(Slot) -> Stored,
    ) -> Option<Arc<Stored>> {
        let book = &mut *self.book();
        let slot = book.tiers.restore(resident, tier)?;
        let entry = Arc::new(make(slot));
        book.enter(&entry);
        Some(entry)
    }

    /// Takes another copy of an entry of an earlier process into `tier`, if the rules keep two and it has
    /// room.
    pub(crate) fn restore_copy(&self, entry: &Arc<Stored>, tier: TierId) -> bool {
        self.book().tiers.restore_copy(entry.slot, tier)
    }

    /// Notes a hit.
    pub(crate) fn hit(&self, entry: &Arc<Stored>) {
        if let Err(full) = self.notes.try_send(Arc::clone(entry)) {
            let mut book = self.book();
            let (std::sync::mpsc::TrySendError::Full(entry)
            | std::sync::mpsc::TrySendError::Disconnected(entry)) = full;
            book.touch(&entry);
        }
    }

    /// After a hit: where the entry moves up to, if the rules say so.
    pub(crate) fn promote(&self, entry: &Arc<Stored>, displaced: &mut Vec<Displaced>) -> Option<Promoted> {
        if !self.promotes {
            return None;
        }
        let book = &mut *self.book();
        if !book.holds(entry) || !book.tiers.promotes(entry.slot) {
            return None;
        }
        let promoted = {
            let Book { tiers, entries, moves, .. } = book;
            tiers.promote(entry.slot, &mut |slot, _| is_idle(entries, slot), moves)
        };
        book.carry(displaced);
        promoted
    }

    /// An entry was written or moved. `false` when it was removed meanwhile.
    pub(crate) fn settle(&self, entry: &Arc<Stored>) -> bool {
        let mut book = self.book();
        let there = book.holds(entry);
        if there {
            book.tiers.settle(entry.slot);
        }
        there
    }

    /// An entry that was promoted stays where it was. `false` when there is no room for it any more: it is
    /// forgotten.
    pub(crate) fn retreat(&self, entry: &Arc<Stored>, promoted: Promoted) -> bool {
        let mut book = self.book();
        if !book.holds(entry) {
            return false;
        }
        let kept = book.tiers.retreat(entry.slot, promoted);
        if !kept {
            book.entries[entry.slot as usize] = None;
        }
        kept
    }

    /// A copy is gone. `true` when it was the last.
    pub(crate) fn lose(&self, entry: &Arc<Stored>, tier: TierId) -> bool {
        let mut book = self.book();
        if !book.holds(entry) || !book.tiers.copies(entry.slot).contains(tier) {
            return !book.holds(entry);
        }
        let last = book.tiers.lose(entry.slot, tier).is_empty();
        if last {
            book.entries[entry.slot as usize] = None;
        }
        last
    }

    /// Forgets an entry.
    pub(crate) fn remove(&self, entry: &Arc<Stored>) {
        let mut book = self.book();
        if book.holds(entry) {
            book.tiers.remove(entry.slot);
            book.entries[entry.slot as usize] = None;
        }
    }

    /// Bytes and entries in each tier.
    pub(crate) fn usage(&self) -> Vec<(u64, u64)> {
        let book = self.book();
        (0..book.tiers.len()).map(|tier| (book.tiers.used_bytes(tier), book.tiers.entries(tier))).collect()
    }
}

impl Book {
    fn note_hits(&mut self) {
        while let Ok(entry) = self.hits.try_recv() {
            self.touch(&entry);
        }
    }

    fn touch(&mut self, entry: &Arc<Stored>) {
        if self.holds(entry) {
            self.tiers.touch(entry.slot);
        }
    }

    /// Slots are used again: an entry is only this one if it is still in its slot.
    fn holds(&self, entry: &Arc<Stored>) -> bool {
        let there = self.entries.get(entry.slot as usize).and_then(Option::as_ref);
        there.is_some_and(|there| Arc::ptr_eq(there, entry))
    }

    fn enter(&mut self, entry: &Arc<Stored>) {
        let slot = entry.slot as usize;
        if slot >= self.entries.len() {
            self.entries.resize(slot + 1, None);
        }
        self.entries[slot] = Some(Arc::clone(entry));
    }

    /// Turns the moves just decided into entries.
    fn carry(&mut self, displaced: &mut Vec<Displaced>) {
        for Move { slot, from, to } in self.moves.drain(..) {
            let place = &mut self.entries[slot as usize];
            let entry = match to {
                Destination::Out => place.take(),
                _ => place.clone(),
            };
            let entry = entry.expect("a victim is an entry");
            let gone = match to {
                Destination::Tier(_) => Vec::new(),
                Destination::Below(_) | Destination::Above(_) => {
                    entry.release(from).map(|held| (from, held)).into_iter().collect()
                }
                Destination::Out => entry.release_all(),
            };
            displaced.push(Displaced { entry, from, to, gone });
        }
    }
}

fn is_idle(entries: &[Option<Arc<Stored>>], slot: Slot) -> bool {
    entries[slot as usize].as_ref().is_some_and(|entry| !entry.is_read())
}
