//! The caller decides again: it reads what it finds and stores what it does not, at the recorded times. What
//! it wrote without looking it up is written as recorded.

use wavetank_model::{Fate, KeyId, LayoutId, LockMode, Prefetch, Recorded, Result, StorageCall};

use super::caller::{Pending, Reserved};
use super::expect::caller_of;
use super::{Player, Recording};

/// By key, what an object holds: a reservation knows it best, a prefetch may.
pub(super) fn layouts(recording: &Recording<'_>) -> Vec<Option<LayoutId>> {
    let mut layouts = vec![None; recording.keys];
    let is_known = |layout: &LayoutId| recording.layout_bytes[layout.0 as usize] > 0;
    let mut learn = |keys: &[KeyId], layout: LayoutId| {
        for key in keys {
            let known = &mut layouts[key.0 as usize];
            *known = known.or(Some(layout).filter(is_known));
        }
    };
    for recorded in recording.calls {
        if let StorageCall::ReserveWrite { keys, layout, .. } = &recorded.call {
            learn(keys, *layout);
        }
    }
    for recorded in recording.calls {
        if let StorageCall::SubmitPrefetch(asked) = &recorded.call {
            asked.rows.iter().for_each(|row| learn(&row.keys, row.layout));
        }
    }
    layouts
}

impl Player<'_> {
    /// What the caller does at a recorded call.
    pub(super) fn decide(&mut self, recorded: &Recorded) -> Result<()> {
        let thread = caller_of(recorded, self.by_thread);
        match &recorded.call {
            StorageCall::SubmitPrefetch(asked) => {
                self.read_all(thread)?;
                self.store_all(thread)?;
                self.finish_reserved(thread, |_| true)?;
                self.ask(thread, asked)
            }
            StorageCall::ReadEnter { keys } => {
                let pending = &self.callers.of(thread).pending;
                let others = keys.iter().filter(|key| !pending.has_asked(**key)).count();
                self.tally.reads_left += others as u64;
                Ok(())
            }
            StorageCall::FinishRead { .. } => self.read_all(thread),
            StorageCall::ReserveWrite { keys, layout, .. } => self.reserve_others(thread, keys, *layout),
            StorageCall::FinishWrite { keys } => {
                self.store_all(thread)?;
                self.finish_reserved(thread, |reserved| reserved.keys.iter().any(|key| keys.contains(key)))
            }
            _ => Ok(()),
        }
    }

    fn ask(&mut self, thread: Option<u32>, asked: &Prefetch) -> Result<()> {
        self.fates.clear();
        self.prefetch(thread, asked)?;
        let is_hit = |fate: &Fate| matches!(fate, Fate::FirstTier | Fate::LowerTier);
        let keys = || asked.rows.iter().flat_map(|row| &row.keys).copied();
        let cells = keys().zip(&self.fates);
        let (hits, misses): (Vec<_>, Vec<_>) = cells.partition(|(_, fate)| is_hit(fate));
        let plain = |cells: Vec<(KeyId, &Fate)>| cells.into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        let (reads, writes, mut asked_for) = (plain(hits), plain(misses), keys().collect::<Vec<_>>());
        asked_for.sort_unstable();
        let mut found = reads.clone();
        found.sort_unstable();
        // What is not held cannot be read.
        let reads = if asked.lock == LockMode::Lock { reads } else { Vec::new() };
        let pending = &mut self.callers.of(thread).pending;
        let reserved = std::mem::take(&mut pending.reserved);
        *pending = Pending { reads, locks: asked.readers.max(1), writes, asked: asked_for, found, reserved };
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
        for key in std::mem::take(&mut self.callers.of(thread).pending.writes) {
            let Some(layout) = self.layouts[key.0 as usize] else {
                self.tally.unsized_misses += 1;
                continue;
            };
            match batches.last_mut().filter(|(other, _)| *other == layout) {
                Some((_, all)) => all.push(key),
                None => batches.push((layout, vec![key])),
            }
        }
        for (layout, keys) in batches {
            let granted = self.reserve_granted(thread, &keys, layout)?;
            self.finish_write(thread, &granted)?;
        }
        Ok(())
    }

    /// Reserves what the caller had not looked for; what it had is stored, or was found.
    fn reserve_others(&mut self, thread: Option<u32>, keys: &[KeyId], layout: LayoutId) -> Result<()> {
        let pending = &self.callers.of(thread).pending;
        let found = keys.iter().filter(|key| pending.found.binary_search(key).is_ok()).count();
        let others: Vec<KeyId> = keys.iter().copied().filter(|key| !pending.has_asked(*key)).collect();
        self.tally.writes_left += found as u64;
        if others.is_empty() {
            return Ok(());
        }
        let granted = self.reserve_granted(thread, &others, layout)?;
        self.callers.of(thread).pending.reserved.push(Reserved { keys: others, granted });
        Ok(())
    }

    fn reserve_granted(
        &mut self,
        thread: Option<u32>,
        keys: &[KeyId],
        layout: LayoutId,
    ) -> Result<Vec<KeyId>> {
        self.fates.clear();
        self.reserve(thread, (keys, layout), None)?;
        let granted = keys.iter().zip(&self.fates).filter(|(_, fate)| **fate == Fate::Done);
        Ok(granted.map(|(key, _)| *key).collect())
    }

    /// Ends the writes of reservations that `is_over` picks.
    fn finish_reserved(&mut self, thread: Option<u32>, is_over: impl Fn(&Reserved) -> bool) -> Result<()> {
        let reserved = &mut self.callers.of(thread).pending.reserved;
        let (over, rest): (Vec<_>, Vec<_>) = std::mem::take(reserved).into_iter().partition(is_over);
        *reserved = rest;
        for Reserved { granted, .. } in over.into_iter().filter(|reserved| !reserved.granted.is_empty()) {
            self.finish_write(thread, &granted)?;
        }
        Ok(())
    }
}
