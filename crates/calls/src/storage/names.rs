//! Names of objects as numbers that are used again once nothing is known under them.

use hashbrown::HashTable;
use wavetank_model::KeyId;
use xxhash_rust::xxh3::xxh3_64;

/// Every name in use.
#[derive(Default)]
pub(super) struct Names {
    index: HashTable<KeyId>,
    names: Vec<Box<[u8]>>,
    vacant: Vec<KeyId>,
}

impl Names {
    /// The number of `name`, if it has one.
    pub(super) fn find(&self, name: &[u8]) -> Option<KeyId> {
        self.index.find(xxh3_64(name), |key| *self.names[key.0 as usize] == *name).copied()
    }

    /// The number of `name`, given one if it has none.
    pub(super) fn give(&mut self, name: &[u8]) -> KeyId {
        if let Some(key) = self.find(name) {
            return key;
        }
        let key = self.vacant.pop().unwrap_or_else(|| {
            self.names.push(Box::default());
            KeyId(u32::try_from(self.names.len() - 1).expect("memory ends before names do"))
        });
        self.names[key.0 as usize] = name.into();
        let names = &self.names;
        self.index.insert_unique(xxh3_64(name), key, |key| xxh3_64(&names[key.0 as usize]));
        key
    }

    /// Nothing is known under `key` any more.
    pub(super) fn free(&mut self, key: KeyId) {
        let name = std::mem::take(&mut self.names[key.0 as usize]);
        if let Ok(entry) = self.index.find_entry(xxh3_64(&name), |other| *other == key) {
            entry.remove();
            self.vacant.push(key);
        }
    }

    /// Names in use.
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }
}
