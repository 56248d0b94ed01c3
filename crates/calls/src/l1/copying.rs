//! Objects in memory that are being copied to tiers behind, or are to be later.

use wavetank_model::KeyId;

use super::L1;
use crate::late::{Late, Waiting};
use crate::record::Record;

impl L1 {
    /// A copy of `key`, an object of `bytes`, to a tier behind begins.
    pub(crate) fn copying(&mut self, key: KeyId, bytes: u64) {
        let busy = self.busy(key);
        busy.copies += 1;
        busy.bytes = bytes;
    }

    /// It has ended; whether it was the last.
    pub(crate) fn copied(&mut self, key: KeyId) -> bool {
        let was = self.change(key, |busy| {
            let was = busy.copies;
            busy.copies = was.saturating_sub(1);
            was
        });
        was == Some(1)
    }

    /// An object is to be copied to a tier behind later.
    pub(crate) fn postpone(&mut self, adapter: usize, waiting: Waiting) {
        self.objects.change(waiting.key, |object| object.mark(Record::LATE));
        self.late.add(adapter, waiting);
    }

    /// That copy begins; of how many bytes, if it was to.
    pub(crate) fn resume(&mut self, adapter: usize, key: KeyId) -> Option<u64> {
        let waiting = self.late.take(adapter, key)?;
        if !self.late.has(key) {
            self.objects.change(key, |object| object.unmark(Record::LATE));
        }
        self.copying(key, waiting.bytes);
        Some(waiting.bytes)
    }

    /// Whether an object is to be copied later.
    pub(crate) fn is_late(&self, key: KeyId) -> bool {
        self.objects[key].has(Record::LATE)
    }

    /// What is to be copied later.
    pub(crate) fn late(&self) -> &Late {
        &self.late
    }
}
