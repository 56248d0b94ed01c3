//! The caller decides again: it reads what it finds and stores what it does not, at the recorded times.

use wavetank_model::{Fate, KeyId, LayoutId, LockMode, Prefetch, Recorded, Result, StorageCall};

use super::Player;
use super::caller::Pending;
use super::expect::caller_of;

impl Player<'_> {
    /// What the caller does at a recorded call.
    pub(super) fn decide(&mut self, recorded: &Recorded) -> Result<()> {
        let thread = caller_of(recorded, self.by_thread);
        match &recorded.call {
            StorageCall::SubmitPrefetch(asked) => {
                self.read_all(thread)?;
                self.store_all(thread)?;
                self.ask(thread, asked)
            }
            StorageCall::FinishRead { .. } => self.read_all(thread),
            StorageCall::FinishWrite { .. } => self.store_all(thread),
            _ => Ok(()),
        }
    }

    fn ask(&mut self, thread: Option<u32>, asked: &Prefetch) -> Result<()> {
        self.fates.clear();
        self.prefetch(thread, asked)?;
        let is_hit = |fate: &Fate| matches!(fate, Fate::FirstTier | Fate::LowerTier);
        let mut pending = Pending::default();
        let mut fates = self.fates.iter();
        for row in &asked.rows {
            let cells = row.keys.iter().zip(fates.by_ref());
            let (hits, misses): (Vec<_>, Vec<_>) = cells.partition(|(_, fate)| is_hit(fate));
            let plain =
                |cells: Vec<(&KeyId, &Fate)>| cells.into_iter().map(|(key, _)| *key).collect::<Vec<_>>();
            // What is not held cannot be read.
            if asked.lock == LockMode::Lock {
                pending.reads.extend(plain(hits));
            }
            pending.writes.push((row.layout, plain(misses)));
        }
        pending.locks = asked.readers.max(1);
        self.callers.of(thread).pending = pending;
        Ok(())
    }

    /// Reads and gives back all that was found.
    fn read_all(&mut self, thread: Option<u32>) -> Result<()> {
        let pending = &mut self.callers.of(thread).pending;
        let (keys, locks) = (std::mem::take(&mut pending.reads), pending.locks);
        if keys.is_empty() {
            return Ok(());
        }
        self.fates.clear();
        self.enter(thread, &keys, None)?;
        self.exit(thread, &keys, None)?;
        self.release(thread, (&keys, locks), None)
    }

    /// Stores all that was not found, a batch for each layout.
    fn store_all(&mut self, thread: Option<u32>) -> Result<()> {
        let mut batches: Vec<(LayoutId, Vec<KeyId>)> = Vec::new();
        for (layout, keys) in std::mem::take(&mut self.callers.of(thread).pending.writes) {
            match batches.last_mut().filter(|(other, _)| *other == layout) {
                Some((_, all)) => all.extend(keys),
                None => batches.push((layout, keys)),
            }
        }
        for (layout, keys) in batches.into_iter().filter(|(_, keys)| !keys.is_empty()) {
            self.fates.clear();
            self.reserve(thread, (&keys, layout), None)?;
            let granted = keys.iter().zip(&self.fates).filter(|(_, fate)| **fate == Fate::Done);
            let granted: Vec<KeyId> = granted.map(|(key, _)| *key).collect();
            self.finish_write(thread, &granted)?;
        }
        Ok(())
    }
}
