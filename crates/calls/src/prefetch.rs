//! Prefetching: what of a grid of objects can be served, locked for its readers and brought into memory.

use std::collections::HashSet;

use wavetank_model::{Fate, FetchPolicy, KeyId, LockMode, Nanos, Prefetch};

use crate::engine::Engine;
use crate::fold::{Window, needed, servable};
use crate::l2::Adapter;
use crate::note::Happened;
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
    /// It was found behind and could not be loaded.
    Failed,
}

impl Found {
    fn is_there(self) -> bool {
        matches!(self, Self::Memory | Self::Adapter(_))
    }

    fn adapter(self) -> Option<usize> {
        match self {
            Self::Adapter(at) => Some(at.into()),
            _ => None,
        }
    }

    fn fate(self) -> Fate {
        match self {
            Self::Nowhere => Fate::Absent,
            Self::Memory => Fate::FirstTier,
            Self::Adapter(_) => Fate::LowerTier,
            Self::NoRoom => Fate::NoMemory,
            Self::Failed => Fate::Failed,
        }
    }
}

/// What comes from behind: what a device failed to read, whether the rest is locked, and for how many.
type Arriving<'a> = (&'a HashSet<KeyId>, bool, u32);

/// A prefetch under way: where its cells come from, row by row.
pub struct Fetching {
    found: Vec<Found>,
    /// Objects that were taken out before it began.
    removals: u64,
}

impl Fetching {
    /// What has to be loaded, by the tier behind that has it; `asked` is what was asked for.
    pub fn loads<'a>(&'a self, asked: &'a Prefetch) -> impl Iterator<Item = (usize, KeyId)> + 'a {
        cells(asked).zip(&self.found).filter_map(|(key, cell)| Some((cell.adapter()?, key)))
    }
}

impl Engine {
    /// Prefetches a grid; all of it happens at this moment. `fates` gets what became of each cell, row by
    /// row.
    pub fn prefetch(&mut self, asked: &Prefetch, fates: &mut Vec<Fate>) {
        let fetching = self.begin_prefetch(asked, fates);
        self.end(asked, fetching, &[]);
    }

    /// Decides what of a grid is served, holds what is in memory and takes room for what has to be loaded.
    /// `fates` gets what will become of each cell.
    pub(crate) fn begin_prefetch(&mut self, asked: &Prefetch, fates: &mut Vec<Fate>) -> Fetching {
        let windows = windows(asked);
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        found.extend(cells(asked).map(|key| self.look(key, asked.skip_l2)));
        choose(asked, (&windows, Choice::First), &mut found);
        while !self.make_room(asked, &mut found) {
            choose(asked, (&windows, Choice::Again), &mut found);
        }
        self.take(asked, &found);
        fates.extend(found.iter().map(|cell| cell.fate()));
        Fetching { found, removals: self.removals }
    }

    /// Ends a prefetch: what was loaded is there, what `failed` is not, and what is then of no use is given
    /// back. `fates` gets what became of each cell.
    pub(crate) fn end_prefetch(
        &mut self,
        asked: &Prefetch,
        fetching: Fetching,
        failed: &[KeyId],
        fates: &mut Vec<Fate>,
    ) {
        self.end(asked, fetching, failed);
        fates.extend(self.found.iter().map(|cell| cell.fate()));
    }

    /// How long the loads of the prefetch that ended last take: a tier's one after the other, tiers side by
    /// side.
    pub(crate) fn load_time(&self, asked: &Prefetch) -> Nanos {
        let takes = |(number, adapter): (usize, &Adapter)| {
            let rate = self.plan.adapters[number].bytes_per_second?;
            let loads = cells(asked).zip(&self.found).filter(|(_, cell)| cell.adapter() == Some(number));
            let bytes: u64 = loads.map(|(key, _)| adapter.bytes_of(key)).sum();
            Some(Nanos::from_seconds(bytes as f64 / rate))
        };
        self.adapters.iter().enumerate().filter_map(takes).max().unwrap_or(Nanos::ZERO)
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
            let bytes: u64 = coming.map(|bytes| self.l1.aligned(bytes)).sum();
            // What needs none fits even where a recording has put more in than there is room for.
            if bytes == 0 || self.l1.has_room(taken + bytes) {
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

    /// Bytes that a cell brings from behind.
    fn coming(&self, key: KeyId, cell: Found) -> Option<u64> {
        let Found::Adapter(at) = cell else { return None };
        Some(self.adapters[usize::from(at)].bytes_of(key))
    }

    /// Holds what is there and takes room for what is not. What is held comes first: a tenant at its quota
    /// gives up its own for what comes, and that must not be what this prefetch found.
    fn take(&mut self, asked: &Prefetch, found: &[Found]) {
        let readers = readers(asked);
        let waits = found.iter().any(|cell| cell.adapter().is_some());
        for (key, _) in cells(asked).zip(found).filter(|(_, cell)| **cell == Found::Memory) {
            self.l1.hold(key, readers, self.now);
            if waits {
                self.l1.begin_wait(key);
            }
        }
        for (row, cells) in asked.rows.iter().zip(found.chunks(asked.columns().max(1))) {
            // Within a row the last chunk is the first to become known to the policy.
            for (&key, cell) in row.keys.iter().zip(cells).rev() {
                let Found::Adapter(at) = *cell else { continue };
                let adapter = &mut self.adapters[usize::from(at)];
                adapter.pin(key);
                let noted = (&self.labels, &mut self.notes);
                self.l1.expect(key, adapter.bytes_of(key), self.now, noted);
                self.count_left();
                self.notes.add(self.now, || Happened::Loading(at, key));
            }
        }
    }

    /// Makes what was loaded resident, gives back what is of no use, touches the rest.
    fn end(&mut self, asked: &Prefetch, fetching: Fetching, failed: &[KeyId]) {
        let Fetching { mut found, removals } = fetching;
        let failed: &HashSet<KeyId> = &failed.iter().copied().collect();
        let gone = self.give_up_removed(asked, &mut found, removals);
        let (readers, locks) = (readers(asked), asked.lock == LockMode::Lock);
        let mut loads = std::mem::take(&mut self.loads);
        for adapter in 0..self.adapters.len() {
            loads.clear();
            let coming = cells(asked).zip(&found).filter(|(_, cell)| cell.adapter() == Some(adapter));
            loads.extend(coming.map(|(key, _)| key));
            if !loads.is_empty() {
                self.arrive(&loads, adapter, (failed, locks, readers));
            }
        }
        self.loads = loads;
        if gone || !failed.is_empty() {
            self.give_up(asked, &mut found, failed);
        }
        for (key, _) in backwards(asked, &found).filter(|(_, cell)| cell.is_there()) {
            self.l1.touch(key);
        }
        if !locks {
            for (key, _) in backwards(asked, &found).filter(|(_, cell)| cell.is_there()) {
                let _ = self.release(key, readers);
            }
        }
        self.found = found;
    }

    /// What was removed while something was loaded does not come, whatever the device read, and is held no
    /// more; whether there is any.
    fn give_up_removed(&mut self, asked: &Prefetch, found: &mut [Found], removals: u64) -> bool {
        if found.iter().all(|cell| cell.adapter().is_none()) {
            return false;
        }
        let mut gone = false;
        for (key, cell) in cells(asked).zip(found.iter_mut()) {
            let is_gone = match *cell {
                Found::Memory => self.l1.end_wait(key, removals),
                Found::Adapter(_) => self.l1.is_outdated(key, removals),
                Found::Nowhere | Found::NoRoom | Found::Failed => false,
            };
            if let Some(adapter) = cell.adapter().filter(|_| is_gone) {
                self.adapters[adapter].unpin(key);
                self.l1.expect_no_more(key);
                self.notes.add(self.now, || Happened::Unloaded(adapter as u8, key));
            }
            if is_gone {
                *cell = Found::Nowhere;
                gone = true;
            }
        }
        gone
    }

    fn arrive(&mut self, loads: &[KeyId], adapter: usize, (failed, locks, readers): Arriving<'_>) {
        let temporary = locks && self.plan.load_policy == LoadPolicy::Default;
        for &key in loads {
            self.adapters[adapter].unpin(key);
            if failed.contains(&key) {
                self.l1.expect_no_more(key);
                self.notes.add(self.now, || Happened::Unloaded(adapter as u8, key));
                self.give_up_behind(adapter, key);
                continue;
            }
            let (from, is_there) = (adapter as u8, self.l1.is_resident(key));
            self.notes.add(self.now, || {
                if is_there { Happened::Unloaded(from, key) } else { Happened::Loaded(from, key) }
            });
            self.l1.arrive(key, temporary);
            self.l1.hold(key, readers, self.now);
        }
        if failed.is_empty() {
            return self.loaded(adapter, loads, 0);
        }
        let came: Vec<KeyId> = loads.iter().copied().filter(|key| !failed.contains(key)).collect();
        self.loaded(adapter, &came, (loads.len() - came.len()) as u64);
    }

    /// An object that a device could not read is not there any more: it can be stored again.
    fn give_up_behind(&mut self, adapter: usize, key: KeyId) {
        if !self.adapters[adapter].is_pinned(key) && self.adapters[adapter].forget(key) {
            self.notes.add(self.now, || Happened::Deleted(adapter as u8, key));
        }
    }

    /// Some cells did not come: what is held and then of no use is given back.
    fn give_up(&mut self, asked: &Prefetch, found: &mut [Found], failed: &HashSet<KeyId>) {
        for (key, cell) in cells(asked).zip(found.iter_mut()) {
            if matches!(cell, Found::Adapter(_)) && failed.contains(&key) {
                *cell = Found::Failed;
            }
        }
        let held: Vec<bool> = found.iter().map(|cell| cell.is_there()).collect();
        choose(asked, (&windows(asked), Choice::Again), found);
        for ((key, cell), held) in cells(asked).zip(found.iter()).zip(held) {
            if held && !cell.is_there() {
                let _ = self.release(key, readers(asked));
            }
        }
    }
}

/// Every key, row by row.
fn cells(asked: &Prefetch) -> impl Iterator<Item = KeyId> + '_ {
    asked.rows.iter().flat_map(|row| &row.keys).copied()
}

/// Every key with its cell, from the last to the first.
fn backwards<'a>(asked: &'a Prefetch, found: &'a [Found]) -> impl Iterator<Item = (KeyId, Found)> + 'a {
    let rows = asked.rows.iter().zip(found.chunks(asked.columns().max(1))).rev();
    rows.flat_map(|(row, cells)| row.keys.iter().copied().zip(cells.iter().copied()).rev())
}

fn windows(asked: &Prefetch) -> Vec<Window> {
    let window = |row: &wavetank_model::Row| u32::try_from(row.window).ok().filter(|window| *window > 0);
    asked.rows.iter().map(window).collect()
}

/// Locks of each object found.
fn readers(asked: &Prefetch) -> u32 {
    asked.readers.clamp(1, MOST_READERS)
}

/// Why it is decided what is of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// It was looked for.
    First,
    /// Some of what was found does not come.
    Again,
}

/// Gives up what is found and of no use. Who asks for all that is there gets it though a row lacks it; but
/// once something does not come, only the chunks that every row has.
fn choose(asked: &Prefetch, (windows, choice): (&[Window], Choice), found: &mut [Found]) {
    let columns = asked.columns();
    if asked.policy == FetchPolicy::Full && choice == Choice::Again {
        return keep_whole_columns(columns, found);
    }
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

fn keep_whole_columns(columns: usize, found: &mut [Found]) {
    for column in 0..columns {
        let is_whole = found.iter().skip(column).step_by(columns).all(|cell| cell.is_there());
        let cells = found.iter_mut().skip(column).step_by(columns);
        for cell in cells.filter(|cell| !is_whole && cell.is_there()) {
            *cell = Found::Nowhere;
        }
    }
}
