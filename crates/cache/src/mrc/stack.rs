//! LRU for every capacity in one pass: the stack of blocks in order of last use.
//!
//! A cache of capacity C holds the blocks from the top of the stack whose weights add up to at most C, so a
//! block is there if its own weight and those of all blocks above it do: its distance. An object larger
//! than the capacity goes through the cache and empties it; an object's weight is taken to stay what it is.
//!
//! Rows of blocks that came together are neighbours. Where all blocks are looked at and have one block
//! before them, each is the only way to the next, and only the first is found by its identity.

use std::collections::BTreeMap;

use hashbrown::HashTable;

use super::cut::{Part, Trunk, Turn};
use super::tally::{Count, Strata, Tally};
use super::timeline::Timeline;
use super::{Rule, Sizes};

/// "No slot": not in the stack yet. "No row" likewise.
const NONE: u32 = u32::MAX;

/// Slots of the first line.
const FIRST_ROOM: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct Row {
    id: u64,
    slot: u32,
    turn: Turn,
}

/// What a stack is made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) rule: Rule,
    pub(super) sizes: Sizes,
    /// One block in so many is looked at …
    pub(super) one_in: u64,
    /// … and half as many whenever there are more than these.
    pub(super) most_blocks: usize,
}

/// A stack of blocks.
#[derive(Debug)]
pub(super) struct Stack {
    settings: Settings,
    rows: Vec<Row>,
    /// Rows that are found by identity, which is a hash already.
    heads: HashTable<u32>,
    line: Timeline,
    found: Found,
    numbers: Vec<u32>,
    drawn: Vec<Part>,
}

/// What a stack has counted.
#[derive(Debug)]
pub(super) struct Found {
    /// Blocks of the trunk, by distance.
    pub(super) trunk: Tally,
    /// The others, with what they stand for.
    pub(super) rest: Tally,
    /// All blocks that were looked up, with what they stand for.
    pub(super) seen: Strata,
    /// One block in so many was looked at, at the end.
    pub(super) one_in: u64,
    /// How many different blocks there were, or about so many.
    pub(super) distinct: u64,
    /// What they take together.
    pub(super) footprint: u64,
}

/// The trunk always is.
pub(super) fn is_looked_at(turn: Turn, one_in: u64) -> bool {
    turn.is_trunk() || turn.has_come(one_in)
}

/// How many blocks one of them stands for: one of the trunk for itself.
pub(super) fn stands_for(turn: Turn, one_in: u64) -> u64 {
    if turn.is_trunk() { 1 } else { one_in }
}

impl Stack {
    pub(super) fn of(settings: Settings) -> Self {
        let is_dense = settings.sizes == Sizes::Equal && settings.one_in == 1;
        let tally = || if is_dense { Tally::Dense(Vec::new()) } else { Tally::Sparse(BTreeMap::new()) };
        let found = Found {
            trunk: tally(),
            rest: tally(),
            seen: Strata::default(),
            one_in: settings.one_in,
            distinct: 0,
            footprint: 0,
        };
        Self {
            settings,
            rows: Vec::new(),
            heads: HashTable::new(),
            line: Timeline::filled(std::iter::empty(), FIRST_ROOM),
            found,
            numbers: Vec::new(),
            drawn: Vec::new(),
        }
    }

    /// Looks a prompt up, then puts it on top, its first block uppermost.
    pub(super) fn access(&mut self, parts: &[Part]) {
        let one_in = self.found.one_in;
        if one_in == 1 {
            self.access_drawn(parts);
        } else {
            let mut drawn = std::mem::take(&mut self.drawn);
            drawn.clear();
            drawn.extend(parts.iter().filter(|part| is_looked_at(part.turn, one_in)));
            self.access_drawn(&drawn);
            self.drawn = drawn;
        }
        while self.rows.len() > self.settings.most_blocks && self.found.one_in < Turn::MOST {
            self.thin();
        }
    }

    /// What was counted.
    pub(super) fn finish(mut self) -> Found {
        let one_in = self.found.one_in;
        self.found.distinct = self.rows.iter().map(|row| stands_for(row.turn, one_in)).sum();
        self.found.footprint = self.line.since(0);
        self.found
    }

    fn access_drawn(&mut self, parts: &[Part]) {
        let mut numbers = std::mem::take(&mut self.numbers);
        self.find(parts, &mut numbers);
        self.count(parts, &numbers);
        self.lift(parts, &numbers);
        self.numbers = numbers;
    }

    /// The rows of a prompt's blocks, made if they are not there.
    fn find(&mut self, parts: &[Part], numbers: &mut Vec<u32>) {
        numbers.clear();
        let mut last = NONE;
        for part in parts {
            let next = last.wrapping_add(1);
            let follows = self.rows.get(next as usize).is_some_and(|row| row.id == part.id);
            last = if follows { next } else { self.row_of(part, last) };
            numbers.push(last);
        }
    }

    /// The row of a block that is not the one after `last`, the row of the block before it.
    fn row_of(&mut self, part: &Part, last: u32) -> u32 {
        let fresh = self.rows.len() as u32;
        // A new block behind the newest one needs no way to it but that.
        let is_behind = last != NONE && last + 1 == fresh && self.is_new(last);
        if is_behind && self.has_ways() {
            self.rows.push(Row { id: part.id, slot: NONE, turn: part.turn });
            return fresh;
        }
        let Self { heads, rows, .. } = self;
        let same = |&number: &u32| rows[number as usize].id == part.id;
        let hash = |&number: &u32| rows[number as usize].id;
        let number = *heads.entry(part.id, same, hash).or_insert(fresh).get();
        if number == fresh {
            rows.push(Row { id: part.id, slot: NONE, turn: part.turn });
        }
        number
    }

    /// Whether the row before it is the only way to a block: whoever asks for the one asks for the other.
    fn has_ways(&self) -> bool {
        self.settings.rule == Rule::Prefix && self.found.one_in == 1
    }

    fn is_new(&self, number: u32) -> bool {
        self.rows[number as usize].slot == NONE
    }

    /// Counts the blocks that some cache serves.
    fn count(&mut self, parts: &[Part], numbers: &[u32]) {
        let one_in = self.found.one_in;
        let (mut known, mut greatest, mut is_whole) = ((0, self.line.since(0)), 0, true);
        for (part, &number) in parts.iter().zip(numbers) {
            let times = stands_for(part.turn, one_in);
            self.found.seen.add(part, times);
            let Row { slot, turn, .. } = self.rows[number as usize];
            is_whole &= slot != NONE;
            if slot == NONE || (!is_whole && self.settings.rule == Rule::Prefix) {
                continue;
            }
            let distance = self.line.since_from(slot as usize, known);
            known = (slot as usize, distance);
            greatest = if self.settings.rule == Rule::Prefix { distance.max(greatest) } else { distance };
            // What lies above is seen by those that stand for it; the block itself is there.
            let others = self.settings.sizes.of(part.weight).saturating_mul(stands_for(turn, one_in) - 1);
            let tally = if part.turn.is_trunk() { &mut self.found.trunk } else { &mut self.found.rest };
            tally.add(greatest.saturating_sub(others), Count::of(part.weight, times));
        }
    }

    /// Puts the blocks on top, the first last.
    fn lift(&mut self, parts: &[Part], numbers: &[u32]) {
        if self.line.room() < parts.len() {
            self.relay(parts.len(), 1);
        }
        let one_in = self.found.one_in;
        let mut edit = self.line.edit();
        for (part, &number) in parts.iter().zip(numbers).rev() {
            let row = &mut self.rows[number as usize];
            if row.slot != NONE {
                edit.clear(row.slot as usize);
            }
            let size = self.settings.sizes.of(part.weight);
            row.turn = part.turn;
            row.slot = edit.push(size.saturating_mul(stands_for(part.turn, one_in))) as u32;
        }
    }

    /// Moves the stack to a line that is half full, with `room` slots more, on which what was drawn weighs
    /// `times` as much.
    fn relay(&mut self, room: usize, times: u64) {
        let order = self.in_order();
        let weight = |&number: &u32| {
            let row = self.rows[number as usize];
            self.line.weight(row.slot as usize).saturating_mul(stands_for(row.turn, times))
        };
        let line = Timeline::filled(order.iter().map(weight), (2 * order.len()).max(FIRST_ROOM) + room);
        assert!(line.slots() < NONE as usize, "a stack has fewer than 2^31 blocks");
        self.line = line;
        for (slot, &number) in (0..).zip(&order) {
            self.rows[number as usize].slot = slot;
        }
    }

    /// Rows of the stack, from the lowest to the top.
    fn in_order(&self) -> Vec<u32> {
        let mut order = vec![NONE; self.line.slots()];
        for (number, row) in (0..).zip(&self.rows) {
            if row.slot != NONE {
                order[row.slot as usize] = number;
            }
        }
        order.retain(|&number| number != NONE);
        order
    }

    /// Goes on with half as many blocks, each of which stands for twice as many.
    fn thin(&mut self) {
        self.found.one_in *= 2;
        let one_in = self.found.one_in;
        self.keep(|row| is_looked_at(row.turn, one_in));
        self.relay(0, 2);
        for tally in [&mut self.found.trunk, &mut self.found.rest] {
            let counts = std::mem::replace(tally, Tally::Dense(Vec::new()));
            *tally = counts.sparse();
        }
    }

    /// The trunk has changed: what has left it is looked at in turn from now on, or not at all, and is
    /// forgotten. Where all blocks are looked at nothing changes.
    pub(super) fn follow(&mut self, trunk: &Trunk) {
        if self.found.one_in > 1 {
            self.keep(|row| !row.turn.is_trunk() || trunk.contains(row.id));
        }
    }

    /// Drops the other rows. Those that are left are found by identity: ways led over dropped ones.
    fn keep(&mut self, stays: impl Fn(&Row) -> bool) {
        let mut edit = self.line.edit();
        self.rows.retain(|row| {
            let stays = stays(row);
            if !stays {
                edit.clear(row.slot as usize);
            }
            stays
        });
        drop(edit);
        self.heads.clear();
        let rows = &self.rows;
        for (number, row) in (0..).zip(rows) {
            self.heads.insert_unique(row.id, number, |&number| rows[number as usize].id);
        }
    }
}
