//! Prefetching: what of a grid of objects can be served, locked for its readers and brought into memory.

use wavetank_model::{Fate, FetchPolicy, KeyId, LockMode, Prefetch};

use crate::engine::Engine;
use crate::fold::{Window, needed, servable};
use crate::plan::LoadPolicy;

/// A hit is never locked more often at once.
const MOST_READERS: u32 = 128;

/// Where a cell is: nowhere, in memory, or behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nowhere,
    Memory,
    Adapter(u8),
    /// It was found behind, and there is no room for it.
    NoRoom,
}

impl Found {
    fn is_there(self) -> bool {
        matches!(self, Self::Memory | Self::Adapter(_))
    }
}

impl Engine {
    /// Prefetches a grid; all of it happens at this moment. `fates` gets what became of each cell, row by
    /// row.
    pub fn prefetch(&mut self, asked: &Prefetch, fates: &mut Vec<Fate>) {
        let windows: Vec<Window> = asked
            .rows
            .iter()
            .map(|row| u32::try_from(row.window).ok().filter(|window| *window > 0))
            .collect();
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        found.extend(asked.rows.iter().flat_map(|row| &row.keys).map(|&key| self.look(key, asked.skip_l2)));
        loop {
            choose(asked, &windows, &mut found);
            if self.make_room(asked, &mut found) {
                break;
            }
        }
        self.serve(asked, &found, fates);
        self.found = found;
    }

    fn look(&self, key: KeyId, skip_l2: bool) -> Found {
        if self.l1.is_resident(key) {
            return Found::Memory;
        }
        let behind = self.adapters.iter().position(|adapter| !skip_l2 && adapter.has(key));
        behind.map_or(Found::Nowhere, |at| Found::Adapter(at as u8))
    }

    /// Whether memory has room for what comes from behind. A row gets all of its room or nothing, and what
    /// then cannot come is given up.
    fn make_room(&self, asked: &Prefetch, found: &mut [Found]) -> bool {
        let (mut taken, mut fits) = (0, true);
        for (row, cells) in asked.rows.iter().zip(found.chunks_mut(asked.columns().max(1))) {
            let coming = row.keys.iter().zip(cells.iter()).filter_map(|(&key, cell)| self.coming(key, *cell));
            let bytes: u64 = coming.sum();
            if self.l1.has_room(taken + bytes) {
                taken += bytes;
                continue;
            }
            fits = false;
            cells
                .iter_mut()
                .filter(|cell| matches!(cell, Found::Adapter(_)))
                .for_each(|cell| *cell = Found::NoRoom);
        }
        fits
    }

    /// What a cell takes of memory that it does not take yet.
    fn coming(&self, key: KeyId, cell: Found) -> Option<u64> {
        let Found::Adapter(at) = cell else { return None };
        Some(self.l1.aligned(self.adapters[usize::from(at)].bytes_of(key)))
    }

    /// Loads, locks and touches what is left.
    fn serve(&mut self, asked: &Prefetch, found: &[Found], fates: &mut Vec<Fate>) {
        let (now, locks) = (self.now, asked.lock == LockMode::Lock);
        let temporary = locks && self.plan.load_policy == LoadPolicy::Default;
        let readers = asked.readers.clamp(1, MOST_READERS);
        for (row, cells) in asked.rows.iter().zip(found.chunks(asked.columns().max(1))) {
            // Within a row the last chunk is the first to become known to the policy.
            for (&key, cell) in row.keys.iter().zip(cells).rev() {
                if let Found::Adapter(at) = *cell
                    && !self.l1.is_resident(key)
                {
                    let bytes = self.adapters[usize::from(at)].bytes_of(key);
                    self.l1.load(key, bytes, temporary);
                }
            }
            for (&key, cell) in row.keys.iter().zip(cells) {
                if locks && cell.is_there() {
                    self.l1.hold(key, readers, now);
                }
                fates.push(match cell {
                    Found::Nowhere => Fate::Absent,
                    Found::NoRoom => Fate::NoMemory,
                    Found::Memory => Fate::FirstTier,
                    Found::Adapter(_) => Fate::LowerTier,
                });
            }
        }
        let cells = || asked.rows.iter().flat_map(|row| &row.keys).zip(found);
        for (number, adapter) in (0..).zip(&mut self.adapters) {
            let loaded = cells().filter(|(_, cell)| **cell == Found::Adapter(number));
            adapter.loaded(&loaded.map(|(&key, _)| key).collect::<Vec<_>>());
        }
        let hits = asked.rows.iter().flat_map(|row| &row.keys).zip(found).filter(|(_, cell)| cell.is_there());
        let mut hits: Vec<KeyId> = hits.map(|(&key, _)| key).collect();
        hits.reverse();
        hits.into_iter().for_each(|key| self.l1.touch(key));
    }
}

/// Gives up what is found and of no use.
fn choose(asked: &Prefetch, windows: &[Window], found: &mut [Found]) {
    let columns = asked.columns();
    let there = |row: usize, column: usize| found[row * columns + column].is_there();
    let length = match asked.policy {
        FetchPolicy::Prefix => servable(windows, columns, there),
        FetchPolicy::Full if windows.iter().any(Option::is_some) => 0,
        FetchPolicy::Full => columns,
    };
    for (row, cells) in found.chunks_mut(columns.max(1)).enumerate() {
        let kept = match asked.policy {
            FetchPolicy::Prefix => needed(windows[row], length),
            FetchPolicy::Full => 0..length,
        };
        for (column, cell) in cells.iter_mut().enumerate() {
            if cell.is_there() && !kept.contains(&column) {
                *cell = Found::Nowhere;
            }
        }
    }
}
