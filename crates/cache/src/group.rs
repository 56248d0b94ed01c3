//! An index from block keys to slots of an arena: one entry per group of eight neighbouring keys, so that one
//! look finds them all.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use wavetank_model::BlockKey;

/// "Nothing there".
pub(crate) const NONE: u32 = u32::MAX;
const PER_GROUP: usize = BlockKey::PER_GROUP as usize;

#[derive(Debug)]
struct Group {
    key: u64,
    filled: u32,
    values: [u32; PER_GROUP],
}

/// A place in the index; it stays valid while something is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

impl Place {
    fn at(group: u32, slot: u32) -> Self {
        Self(group * BlockKey::PER_GROUP + slot)
    }

    fn group(self) -> u32 {
        self.0 / BlockKey::PER_GROUP
    }

    fn slot(self) -> usize {
        (self.0 % BlockKey::PER_GROUP) as usize
    }
}

/// Where the last look ended, to spare the next one if it is in the same group.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor(Option<(u64, u32)>);

/// Values by block key.
#[derive(Debug, Default)]
pub(crate) struct GroupIndex {
    numbers: HashTable<u32>,
    groups: Vec<Group>,
    vacant: Vec<u32>,
}

impl GroupIndex {
    /// The value under `key`.
    #[inline]
    pub(crate) fn find(&self, key: BlockKey, cursor: &mut Cursor) -> Option<u32> {
        let number = match cursor.0 {
            Some((group, number)) if group == key.group => number,
            _ => {
                let same = |&number: &u32| self.groups[number as usize].key == key.group;
                let number = *self.numbers.find(key.group, same)?;
                *cursor = Cursor(Some((key.group, number)));
                number
            }
        };
        Some(self.groups[number as usize].values[key.slot as usize]).filter(|&value| value != NONE)
    }

    /// The place of `key`, whose group is made if it is not there; something must be set there at once.
    #[inline]
    pub(crate) fn place(&mut self, key: BlockKey, cursor: &mut Cursor) -> Place {
        let number = match cursor.0 {
            Some((group, number)) if group == key.group => number,
            _ => {
                let number = self.group(key.group);
                *cursor = Cursor(Some((key.group, number)));
                number
            }
        };
        Place::at(number, key.slot)
    }

    fn group(&mut self, key: u64) -> u32 {
        let Self { numbers, groups, vacant } = self;
        let same = |&number: &u32| groups[number as usize].key == key;
        let entry = match numbers.entry(key, same, |&number| groups[number as usize].key) {
            Entry::Occupied(occupied) => return *occupied.get(),
            Entry::Vacant(entry) => entry,
        };
        let number = vacant.pop().unwrap_or(groups.len() as u32);
        entry.insert(number);
        let group = Group { key, filled: 0, values: [NONE; PER_GROUP] };
        match groups.get_mut(number as usize) {
            Some(place) => *place = group,
            None => groups.push(group),
        }
        number
    }

    /// What is at `place`, or `NONE`.
    #[inline]
    pub(crate) fn at(&self, place: Place) -> u32 {
        self.groups[place.group() as usize].values[place.slot()]
    }

    /// The key of `place`.
    pub(crate) fn key(&self, place: Place) -> BlockKey {
        BlockKey { group: self.groups[place.group() as usize].key, slot: place.slot() as u32 }
    }

    /// Puts `value` at `place`; `NONE` takes out what is there, and the group with its last value.
    #[inline]
    pub(crate) fn set(&mut self, place: Place, value: u32) {
        let group = &mut self.groups[place.group() as usize];
        let before = std::mem::replace(&mut group.values[place.slot()], value);
        group.filled = group.filled + u32::from(before == NONE) - u32::from(value == NONE);
        if group.filled == 0 {
            self.forget(place.group());
        }
    }

    #[inline(never)]
    fn forget(&mut self, number: u32) {
        let key = self.groups[number as usize].key;
        if let Ok(entry) = self.numbers.find_entry(key, |&found| found == number) {
            entry.remove();
        }
        self.vacant.push(number);
    }
}
