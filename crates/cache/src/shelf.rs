//! Blocks at rest in a tier behind a worker: which are there, which come, which go next.
//!
//! Eight neighbouring blocks share one entry, and an entry leaves as a whole, least recently used first. One
//! that is being read or written stays. What was written at once is a part, and parts are told apart.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Found;
use wavetank_model::{BlockKey, TierObject};

use crate::change::{ChangeKind, ChangeLog};
use crate::{Links, Recency};

/// An entry that is busy; its number stays valid until it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyGroup(u32);

/// What comes of a write that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// There is room for these neighbouring slots, the first that were neither there nor on their way.
    Writes(BusyGroup, u8),
    /// All of it is there or on its way.
    Known,
    /// So many of its blocks find no room, because what is there is busy or too little.
    NoRoom(u32),
}

#[derive(Debug)]
struct Entry {
    key: u64,
    /// Blocks that can be read.
    there: u8,
    /// Blocks that are being written.
    coming: u8,
    /// The first block of each part.
    begins: u8,
    /// Whether it was given up and is still found.
    is_leaving: bool,
    /// Who reads it, and how often it is being written.
    users: u32,
    links: Links,
}

impl AsMut<Links> for Entry {
    fn as_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl Entry {
    fn blocks(&self) -> u32 {
        (self.there | self.coming).count_ones()
    }

    /// Whether there is nothing of it, and nothing comes.
    fn is_empty(&self) -> bool {
        self.users == 0 && self.there == 0
    }
}

/// As many are taken out of the index at a time: by themselves such steps wait for memory together.
const LEAVE_TOGETHER: usize = 32;

/// So many entries, with what they are found by, stay in a processor's second cache.
const FEW: usize = 4096;

/// Room for so many entries, or as many as the shelf can hold, is taken at once: growing step by step takes
/// as long as filling it. What is never used of it is never touched.
const ROOM_AT_ONCE: u64 = 50_000;

/// The blocks of one tier.
#[derive(Debug)]
pub struct Shelf {
    capacity: u64,
    used: u64,
    /// Blocks of busy entries.
    busy: u64,
    index: HashTable<u32>,
    entries: Vec<Entry>,
    vacant: Vec<u32>,
    /// Entries that were given up and are still in the index.
    leaving: Vec<u32>,
    idle: Recency,
    log: ChangeLog,
}

impl Shelf {
    /// An empty shelf for so many blocks.
    pub fn with_capacity(capacity: u64) -> Self {
        let at_once = capacity.min(ROOM_AT_ONCE) as usize;
        Self {
            capacity,
            used: 0,
            busy: 0,
            // Most entries have all their blocks.
            index: HashTable::with_capacity(at_once.min((capacity / 8) as usize)),
            entries: Vec::with_capacity(at_once),
            vacant: Vec::new(),
            leaving: Vec::new(),
            idle: Recency::default(),
            log: ChangeLog::default(),
        }
    }

    /// How many blocks it can hold.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// How many blocks are there or on their way.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// What changed.
    pub fn log(&mut self) -> &mut ChangeLog {
        &mut self.log
    }

    fn number(&self, group: u64) -> Option<u32> {
        self.index.find(group, |&number| self.entries[number as usize].key == group).copied()
    }

    /// Which blocks of a group can be read.
    pub fn there(&self, group: u64) -> u8 {
        self.number(group).map_or(0, |number| self.entries[number as usize].there)
    }

    /// Looks all of `objects` up and does nothing with it: what they are found by is then near the processor.
    /// Lookups by themselves wait for memory together, writes that come with each of them one by one. What is
    /// few is near anyway.
    pub fn warm(&self, objects: &[TierObject]) {
        if self.entries.len() < FEW || objects.len() < 2 {
            return;
        }
        let known = objects.iter().filter(|object| self.number(object.group).is_some()).count();
        std::hint::black_box(known);
    }

    /// The parts of a group that `slots`, which are there, belong to, whole.
    pub fn parts(&self, group: u64, slots: u8) -> impl Iterator<Item = TierObject> {
        let (there, begins) = self.number(group).map_or((0, 0), |number| {
            let entry = &self.entries[number as usize];
            (entry.there, entry.begins)
        });
        runs(there, begins)
            .filter(move |part| part & slots != 0)
            .map(move |slots| TierObject { group, slots })
    }

    /// Blocks of a group are being read; it is there.
    pub fn begin_read(&mut self, group: u64) -> BusyGroup {
        let number = self.number(group).expect("what is read is there");
        self.occupy(number);
        BusyGroup(number)
    }

    /// A read is over.
    pub fn end_read(&mut self, BusyGroup(number): BusyGroup) {
        self.leave(number);
    }

    /// Blocks of a group are to be written: takes room for the first neighbours that are new, from what was
    /// used longest ago, which is appended to `evicted`. What lies behind them is asked for again.
    pub fn begin_write(&mut self, object: TierObject, evicted: &mut Vec<TierObject>) -> Begun {
        let TierObject { group, slots } = object;
        if self.leaving.len() >= LEAVE_TOGETHER {
            self.let_leave();
        }
        let Self { index, entries, .. } = self;
        let same = |&number: &u32| entries[number as usize].key == group;
        let found = index.entry(group, same, |&number| entries[number as usize].key);
        let (known, own) = match &found {
            Found::Vacant(_) => (0, 0),
            Found::Occupied(place) => {
                let entry = &entries[*place.get() as usize];
                // Its own blocks become busy by this.
                (entry.there | entry.coming, if entry.users == 0 { entry.blocks() } else { 0 })
            }
        };
        let missing = slots & !known;
        let Some(fresh) = runs(missing, 0).next() else { return Begun::Known };
        let needed = u64::from(fresh.count_ones());
        if self.busy + u64::from(own) + needed > self.capacity {
            return Begun::NoRoom(missing.count_ones());
        }
        let number = match found {
            Found::Occupied(place) => {
                let number = *place.get();
                self.occupy(number);
                number
            }
            Found::Vacant(place) => {
                let number = self.vacant.pop().unwrap_or(self.entries.len() as u32);
                place.insert(number);
                self.add(number, group);
                number
            }
        };
        self.entries[number as usize].coming |= fresh;
        self.busy += needed;
        while self.used + needed > self.capacity {
            evicted.push(self.evict());
        }
        self.used += needed;
        Begun::Writes(BusyGroup(number), fresh)
    }

    /// Blocks whose write began are there, as parts of their own.
    pub fn end_write(&mut self, BusyGroup(number): BusyGroup, slots: u8) {
        let entry = &mut self.entries[number as usize];
        entry.coming &= !slots;
        entry.there |= slots;
        // What follows it was there before, or came by itself.
        entry.begins |= slots & !(slots << 1);
        self.log.note_slots(entry.key, slots, ChangeKind::Stored);
        self.leave(number);
    }

    /// An entry gets one more user.
    fn occupy(&mut self, number: u32) {
        let entry = &mut self.entries[number as usize];
        let is_empty = entry.is_empty();
        entry.users += 1;
        if entry.users == 1 && !is_empty {
            self.busy += u64::from(entry.blocks());
            self.idle.remove(&mut self.entries, number);
        }
    }

    /// An entry has one user less; the last one makes it the most recently used.
    fn leave(&mut self, number: u32) {
        let entry = &mut self.entries[number as usize];
        entry.users -= 1;
        if entry.users == 0 {
            self.busy -= u64::from(entry.blocks());
            self.idle.push(&mut self.entries, number);
        }
    }

    /// Gives up the entry used longest ago.
    fn evict(&mut self) -> TierObject {
        let number = self.idle.oldest().expect("what is not busy is idle");
        self.idle.remove(&mut self.entries, number);
        let entry = &mut self.entries[number as usize];
        let (group, slots) = (entry.key, std::mem::take(&mut entry.there));
        entry.begins = 0;
        if !std::mem::replace(&mut entry.is_leaving, true) {
            self.leaving.push(number);
        }
        self.used -= u64::from(slots.count_ones());
        self.log.note_slots(group, slots, ChangeKind::Removed);
        TierObject { group, slots }
    }

    /// Takes what was given up out of the index, unless it was written again.
    fn let_leave(&mut self) {
        for number in self.leaving.drain(..) {
            let entry = &mut self.entries[number as usize];
            entry.is_leaving = false;
            if entry.is_empty() {
                if let Ok(place) = self.index.find_entry(entry.key, |&found| found == number) {
                    place.remove();
                }
                self.vacant.push(number);
            }
        }
    }

    /// A new entry at `number`, with one user and nothing in it.
    fn add(&mut self, number: u32, key: u64) {
        let links = Links::default();
        let entry = Entry { key, there: 0, coming: 0, begins: 0, is_leaving: false, users: 1, links };
        match self.entries.get_mut(number as usize) {
            Some(vacated) => *vacated = entry,
            None => self.entries.push(entry),
        }
    }
}

/// Neighbouring keys of one group together.
pub fn objects(keys: impl Iterator<Item = BlockKey>) -> impl Iterator<Item = TierObject> {
    let mut keys = keys.peekable();
    std::iter::from_fn(move || {
        let BlockKey { group, slot } = keys.next()?;
        let mut slots = 1u8 << slot;
        while let Some(key) = keys.next_if(|key| key.group == group) {
            slots |= 1 << key.slot;
        }
        Some(TierObject { group, slots })
    })
}

/// How many of the lowest of `slots` are in `there`, as a mask.
pub fn leading(there: u8, slots: u8) -> u8 {
    let missing = slots & !there;
    slots & (missing.wrapping_sub(1) & !missing)
}

/// The slots in `slots` as runs without a gap, cut also where one of `begins` is.
fn runs(slots: u8, begins: u8) -> impl Iterator<Item = u8> {
    let mut left = slots;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let first = left.trailing_zeros();
        let behind = u16::from(!left | begins) & (0xfffe << first);
        let end = behind.trailing_zeros().min(8);
        let run = left & ((1u16 << end) - 1) as u8;
        left &= !run;
        Some(run)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same rules, written as plainly as possible: entries in order of their last use.
    #[derive(Default)]
    struct Plain {
        entries: Vec<PlainEntry>,
        capacity: usize,
    }

    #[derive(Clone, Default)]
    struct PlainEntry {
        group: u64,
        /// A part's number by slot, and whether it is there.
        slots: [Option<(u32, bool)>; 8],
        users: u32,
    }

    impl PlainEntry {
        fn blocks(&self) -> usize {
            self.slots.iter().flatten().count()
        }
        fn mask(&self, which: impl Fn((u32, bool)) -> bool) -> u8 {
            let bit = |slot: usize| u8::from(self.slots[slot].is_some_and(&which)) << slot;
            (0..8).map(bit).sum()
        }
    }

    impl Plain {
        fn find(&mut self, group: u64) -> Option<&mut PlainEntry> {
            self.entries.iter_mut().find(|entry| entry.group == group)
        }
        fn use_now(&mut self, group: u64) {
            let at = self.entries.iter().position(|entry| entry.group == group).unwrap();
            let entry = self.entries.remove(at);
            self.entries.push(entry);
        }
        fn used(&self) -> usize {
            self.entries.iter().map(PlainEntry::blocks).sum()
        }
        /// What would be written, and what goes for it.
        fn write(&mut self, object: TierObject, part: u32) -> (Result<u8, u32>, Vec<TierObject>) {
            let known = self.find(object.group).map_or(0, |entry| entry.mask(|_| true));
            let missing = object.slots & !known;
            let next = |slot: &usize| missing & 1 << slot != 0;
            let first = (0..8).find(next).unwrap_or(8);
            let fresh = (first..8).take_while(next).fold(0u8, |run, slot| run | 1 << slot);
            let stays = |entry: &&PlainEntry| entry.users > 0 || entry.group == object.group;
            let busy: usize = self.entries.iter().filter(stays).map(PlainEntry::blocks).sum();
            if busy + fresh.count_ones() as usize > self.capacity {
                return (Err(missing.count_ones()), Vec::new());
            }
            let mut gone = Vec::new();
            while fresh != 0 && self.used() + fresh.count_ones() as usize > self.capacity {
                let is_victim = |entry: &PlainEntry| entry.users == 0 && entry.group != object.group;
                let entry = self.entries.remove(self.entries.iter().position(is_victim).unwrap());
                gone.push(TierObject { group: entry.group, slots: entry.mask(|_| true) });
            }
            if fresh != 0 && self.find(object.group).is_none() {
                self.entries.push(PlainEntry { group: object.group, ..PlainEntry::default() });
            }
            if let Some(entry) = self.find(object.group).filter(|_| fresh != 0) {
                entry.users += 1;
                for slot in (0..8).filter(|slot| fresh & 1 << slot != 0) {
                    entry.slots[slot] = Some((part, false));
                }
            }
            (Ok(fresh), gone)
        }
    }

    fn parts_agree(shelf: &Shelf, entry: &PlainEntry) -> Result<(), TestCaseError> {
        let there = entry.mask(|(_, there)| there);
        prop_assert_eq!(shelf.there(entry.group), there);
        let seen: Vec<_> = shelf.parts(entry.group, 0xff).map(|object| object.slots).collect();
        prop_assert_eq!(seen.iter().fold(0, |all, slots| all | slots), there);
        for (slot, at) in entry.slots.iter().enumerate() {
            let Some((part, true)) = *at else { continue };
            // Its part: neighbours without a gap that were written with it.
            let same = |slot: &usize| entry.slots[*slot] == Some((part, true));
            let first = (0..slot).rev().take_while(same).last().unwrap_or(slot);
            let last = (slot + 1..8).take_while(same).last().unwrap_or(slot);
            let expected = (first..=last).fold(0u8, |mask, slot| mask | 1 << slot);
            let found: Vec<_> = shelf.parts(entry.group, 1 << slot).map(|object| object.slots).collect();
            prop_assert_eq!(found, [expected]);
        }
        Ok(())
    }

    #[derive(Clone, Debug)]
    enum Step {
        Write(u8, u8),
        Read(u8),
        End(u8),
    }

    /// Some groups are used again and again, and there are enough that many leave at a time.
    const GROUPS: u8 = 3 * LEAVE_TOGETHER as u8;

    fn step() -> impl Strategy<Value = Step> {
        let group = || prop_oneof![0..9u8, 0..GROUPS];
        prop_oneof![
            (group(), 1u8..=255).prop_map(|(group, slots)| Step::Write(group, slots)),
            group().prop_map(Step::Read),
            any::<u8>().prop_map(Step::End),
        ]
    }

    /// Broken by: an entry that is evicted while it is busy, blocks counted twice, recency of the beginning
    /// instead of the end of a use, parts that grow together, an entry that leaves after it came again.
    fn check(capacity: u8, steps: &[Step]) -> Result<(), TestCaseError> {
        let mut shelf = Shelf::with_capacity(capacity.into());
        let mut plain = Plain { capacity: capacity.into(), ..Plain::default() };
        let mut open: Vec<(BusyGroup, u64, Option<u8>)> = Vec::new();
        for (number, step) in (0..).zip(steps) {
            match *step {
                Step::Write(group, slots) => {
                    let object = TierObject { group: group.into(), slots };
                    let mut evicted = Vec::new();
                    let begun = shelf.begin_write(object, &mut evicted);
                    let (expected, gone) = plain.write(object, number);
                    prop_assert_eq!(evicted, gone);
                    match begun {
                        Begun::Known => prop_assert_eq!(expected.unwrap_or(0), 0),
                        Begun::NoRoom(blocks) => prop_assert_eq!(expected, Err(blocks)),
                        Begun::Writes(entry, slots) => {
                            prop_assert_eq!(expected, Ok(slots));
                            open.push((entry, object.group, Some(slots)));
                        }
                    }
                }
                Step::Read(group) if shelf.there(group.into()) != 0 => {
                    plain.find(group.into()).unwrap().users += 1;
                    open.push((shelf.begin_read(group.into()), group.into(), None));
                }
                Step::End(which) if !open.is_empty() => {
                    let (entry, group, written) = open.remove(which as usize % open.len());
                    match written {
                        Some(slots) => shelf.end_write(entry, slots),
                        None => shelf.end_read(entry),
                    }
                    let there = plain.find(group).unwrap();
                    there.users -= 1;
                    for slot in (0..8).filter(|slot| written.unwrap_or(0) & 1 << slot != 0) {
                        there.slots[slot] = there.slots[slot].map(|(part, _)| (part, true));
                    }
                    if there.users == 0 {
                        plain.use_now(group);
                    }
                }
                Step::Read(_) | Step::End(_) => {}
            }
            prop_assert_eq!(shelf.used() as usize, plain.used());
            prop_assert!(shelf.used() <= shelf.capacity());
            for group in 0..u64::from(GROUPS) {
                let empty = PlainEntry { group, ..PlainEntry::default() };
                parts_agree(&shelf, plain.find(group).unwrap_or(&mut empty.clone()))?;
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn agrees_with_the_plain_rules(
            capacity in 0u8..40,
            steps in proptest::collection::vec(step(), 0..300),
        ) {
            check(capacity, &steps)?;
        }
    }

    #[test]
    fn runs_end_at_gaps_and_where_a_part_begins() {
        let all = |slots, begins| runs(slots, begins).collect::<Vec<_>>();
        assert_eq!(all(0b1111_1111, 0), [0b1111_1111]);
        assert_eq!(all(0b1101_1011, 0), [0b0000_0011, 0b0001_1000, 0b1100_0000]);
        assert_eq!(all(0b1111_1111, 0b0001_0001), [0b0000_1111, 0b1111_0000]);
        assert_eq!(all(0b1000_0000, 0b1000_0000), [0b1000_0000]);
    }
}
