//! Names of objects as numbers that are used again once nothing is known under them.

use hashbrown::HashTable;
use wavetank_model::KeyId;
use xxhash_rust::xxh3::xxh3_64;

use crate::grow::grow;

/// Parts of the index. Each grows by itself, so that growing never takes long.
const PARTS: usize = 256;

/// Nobody has this number: it stands for names that nothing is known under.
pub(super) const NOBODY: KeyId = KeyId(0);

/// Every name in use.
pub(super) struct Names {
    index: Vec<HashTable<KeyId>>,
    names: Vec<Option<Box<[u8]>>>,
    vacant: Vec<KeyId>,
    len: usize,
    bytes: u64,
}

impl Default for Names {
    fn default() -> Self {
        let index = (0..PARTS).map(|_| HashTable::new()).collect();
        Self { index, names: vec![None], vacant: Vec::new(), len: 0, bytes: 0 }
    }
}

impl Names {
    /// The number of `name`, if it has one.
    pub(super) fn find(&self, name: &[u8]) -> Option<KeyId> {
        let hash = xxh3_64(name);
        self.index[part(hash)].find(hash, |key| self.names[key.0 as usize].as_deref() == Some(name)).copied()
    }

    /// Gives `name`, which has none, a number.
    pub(super) fn give(&mut self, name: &[u8]) -> KeyId {
        let key = self.vacant.pop().unwrap_or_else(|| {
            let len = self.names.len() + 1;
            grow(&mut self.names, len);
            KeyId(u32::try_from(self.names.len() - 1).expect("memory ends before numbers do"))
        });
        self.names[key.0 as usize] = Some(name.into());
        let (hash, names) = (xxh3_64(name), &self.names);
        let rehash = |key: &KeyId| names[key.0 as usize].as_deref().map_or(0, xxh3_64);
        self.index[part(hash)].insert_unique(hash, key, rehash);
        self.len += 1;
        self.bytes += name.len() as u64;
        key
    }

    /// The name with this number.
    pub(super) fn of(&self, key: KeyId) -> Option<&[u8]> {
        self.names.get(key.0 as usize)?.as_deref()
    }

    /// Nothing is known under `key` any more; what it was called.
    pub(super) fn free(&mut self, key: KeyId) -> Option<Box<[u8]>> {
        let name = self.names.get_mut(key.0 as usize)?.take()?;
        let hash = xxh3_64(&name);
        if let Ok(entry) = self.index[part(hash)].find_entry(hash, |other| *other == key) {
            entry.remove();
        }
        self.vacant.push(key);
        self.len -= 1;
        self.bytes -= name.len() as u64;
        Some(name)
    }

    /// Names in use.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// What they take.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Numbers there are, in use or not.
    pub(super) fn numbers(&self) -> usize {
        self.names.len()
    }
}

/// The high bits: a table goes by the low ones.
fn part(hash: u64) -> usize {
    (hash >> 40) as usize % PARTS
}
