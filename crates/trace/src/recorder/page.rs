//! The thread that writes: notes to records, records to the file.

use wavetank_model::{Error, KeyTable, Recorded, Result};

use super::queue::Queue;
use super::{Kept, Scribe};
use crate::calls::lct::Recording;

/// A page has so many keys: a record holds its keys whole, so the table can be forgotten now and then, and
/// recording for days takes no more memory than for a minute.
const KEYS: usize = 1 << 16;

/// Where a scribe writes.
pub struct Page<'p> {
    /// Gives keys and layouts their numbers.
    pub keys: &'p mut KeyTable,
    recording: &'p mut Recording,
    failed: &'p mut Option<Error>,
}

impl Page<'_> {
    /// Adds a record.
    pub fn record(&mut self, recorded: &Recorded) {
        if self.failed.is_some() {
            return;
        }
        *self.failed = self.recording.write(recorded, self.keys).err();
    }
}

/// Writes until the queue is closed, or the file cannot be written.
pub(super) fn keep<N>(queue: &Queue<N>, recording: Recording, mut scribe: impl Scribe<N>) -> Result<Kept> {
    let mut keeper = Keeper { recording, keys: KeyTable::default(), overrun: 0 };
    scribe.begin(&mut keeper.keys);
    let mut notes = queue.spare();
    loop {
        let batch = queue.take(&mut notes);
        let count = notes.len() as u64;
        let before = keeper.recording.so_far().calls;
        if let Err(error) = keeper.write_batch(&mut notes, batch.lost, &mut scribe) {
            queue.give_up();
            let mut kept = keeper.broken(&error, before + count + batch.lost);
            queue.tell(kept.clone());
            kept.overrun += if batch.is_last { 0 } else { queue.wait_for_end() };
            return Ok(kept);
        }
        if count + batch.lost > 0 {
            queue.tell(keeper.so_far());
        }
        if batch.is_last {
            return keeper.end();
        }
    }
}

struct Keeper {
    recording: Recording,
    keys: KeyTable,
    overrun: u64,
}

impl Keeper {
    /// Writes what was taken at a time, says how many notes are missing after it, and has others read it.
    fn write_batch<N>(&mut self, notes: &mut Vec<N>, lost: u64, scribe: &mut impl Scribe<N>) -> Result<()> {
        if notes.is_empty() && lost == 0 {
            return Ok(());
        }
        self.write_notes(notes, scribe)?;
        let is_marked = lost > 0 && self.recording.gap(lost)?;
        self.recording.flush()?;
        self.overrun += if is_marked { lost } else { 0 };
        Ok(())
    }

    fn write_notes<N>(&mut self, notes: &mut Vec<N>, scribe: &mut impl Scribe<N>) -> Result<()> {
        let mut failed = None;
        for note in notes.drain(..) {
            if self.keys.len() >= KEYS {
                self.keys = KeyTable::default();
                scribe.begin(&mut self.keys);
            }
            let Self { recording, keys, .. } = self;
            scribe.write(note, &mut Page { keys, recording, failed: &mut failed });
            if let Some(error) = failed.take() {
                return Err(error);
            }
        }
        Ok(())
    }

    fn so_far(&self) -> Kept {
        Kept { written: self.recording.so_far(), overrun: self.overrun, failure: None }
    }

    fn end(self) -> Result<Kept> {
        let Self { recording, overrun, .. } = self;
        Ok(Kept { written: recording.finish()?, overrun, failure: None })
    }

    /// The file could not be written any more: what is in it stands, also of the batch that failed, and the
    /// rest of what `should` be in it by now is lost.
    fn broken(self, error: &Error, should: u64) -> Kept {
        let Self { recording, overrun, .. } = self;
        let (written, failure) = (recording.abandon(), Some(error.to_string()));
        let unwritten = should.saturating_sub(written.calls);
        Kept { written, overrun: overrun + unwritten, failure }
    }
}
