//! Keys and layouts of a recording as numbers: each is held once, a call holds four bytes of it.

use std::collections::HashMap;

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Layout;

/// A key, numbered from 0 in the order of its first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub u32);

/// A layout, numbered from 0 in the order of its first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LayoutId(pub u32);

/// What keys of one model, rank, group and tenant share, numbered from 0 in the order of first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FamilyId(pub u32);

/// The identity of a stored object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectKey<'k> {
    /// The hash of the chunk and everything before it, of any length.
    pub chunk_hash: &'k [u8],
    /// What it has in common with others.
    pub family: KeyFamily<'k>,
}

/// What keys of one model, rank, group and tenant share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyFamily<'k> {
    /// The model.
    pub model_name: &'k str,
    /// World size, rank, local world size and local rank, a byte each.
    pub kv_rank: u64,
    /// The object group.
    pub object_group_id: u32,
    /// The tenant; empty is none.
    pub cache_salt: &'k str,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Family {
    model_name: Box<str>,
    kv_rank: u64,
    object_group_id: u32,
    cache_salt: Box<str>,
}

#[derive(Debug)]
struct Key {
    /// Where its hash ends in `hashes`; it begins where that of the key before ends.
    end: usize,
    family: FamilyId,
}

/// Every key and layout of a recording.
#[derive(Debug, Default)]
pub struct KeyTable {
    hashes: Vec<u8>,
    keys: Vec<Key>,
    index: HashTable<KeyId>,
    families: Vec<Family>,
    family_index: HashTable<FamilyId>,
    layouts: Vec<Layout>,
    layout_index: HashMap<Layout, LayoutId>,
}

impl KeyTable {
    /// The number of a key, given one if it has none.
    pub fn key_id(&mut self, key: ObjectKey<'_>) -> KeyId {
        let family = self.family_id(key.family);
        self.key_of(family, key.chunk_hash)
    }

    /// The same as [`Self::key_of`], faster if it is the one guessed: chunks of a prompt come in their
    /// order again.
    #[inline]
    pub fn key_near(&mut self, guess: KeyId, family: FamilyId, chunk_hash: &[u8]) -> KeyId {
        let is_it = (guess.0 as usize) < self.keys.len()
            && self.family_of(guess) == family
            && hash_of(&self.hashes, &self.keys, guess) == chunk_hash;
        if is_it { guess } else { self.key_of(family, chunk_hash) }
    }

    /// The number of the key of `family` with this hash.
    pub fn key_of(&mut self, family: FamilyId, chunk_hash: &[u8]) -> KeyId {
        let mixed = mix(family, chunk_hash);
        let Self { hashes, keys, index, .. } = self;
        let is_it =
            |id: &KeyId| keys[id.0 as usize].family == family && hash_of(hashes, keys, *id) == chunk_hash;
        if let Some(id) = index.find(mixed, is_it) {
            return *id;
        }
        let id = KeyId(u32::try_from(keys.len()).expect("a recording has fewer than 2^32 keys"));
        hashes.extend_from_slice(chunk_hash);
        keys.push(Key { end: hashes.len(), family });
        index.insert_unique(mixed, id, |id| mix(keys[id.0 as usize].family, hash_of(hashes, keys, *id)));
        id
    }

    /// The number of what keys share.
    pub fn family_id(&mut self, family: KeyFamily<'_>) -> FamilyId {
        let mixed = mix_family(family);
        let Self { families, family_index, .. } = self;
        if let Some(id) = family_index.find(mixed, |id| families[id.0 as usize].view() == family) {
            return *id;
        }
        let id = FamilyId(u32::try_from(families.len()).expect("a recording has fewer than 2^32 families"));
        families.push(Family {
            model_name: family.model_name.into(),
            kv_rank: family.kv_rank,
            object_group_id: family.object_group_id,
            cache_salt: family.cache_salt.into(),
        });
        family_index.insert_unique(mixed, id, |id| mix_family(families[id.0 as usize].view()));
        id
    }

    /// The number of a layout, given one if it has none.
    pub fn layout_id(&mut self, layout: Layout) -> LayoutId {
        let next =
            LayoutId(u32::try_from(self.layouts.len()).expect("a recording has fewer than 2^32 layouts"));
        *self.layout_index.entry(layout).or_insert_with_key(|layout| {
            self.layouts.push(layout.clone());
            next
        })
    }

    /// The key with this number.
    pub fn key(&self, id: KeyId) -> ObjectKey<'_> {
        let chunk_hash = hash_of(&self.hashes, &self.keys, id);
        ObjectKey { chunk_hash, family: self.family(self.family_of(id)) }
    }

    /// What the key shares with others.
    pub fn family_of(&self, id: KeyId) -> FamilyId {
        self.keys[id.0 as usize].family
    }

    /// What keys share.
    pub fn family(&self, id: FamilyId) -> KeyFamily<'_> {
        self.families[id.0 as usize].view()
    }

    /// The layout with this number.
    pub fn layout(&self, id: LayoutId) -> &Layout {
        &self.layouts[id.0 as usize]
    }

    /// Keys there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// What keys share, in the order of first use.
    pub fn families(&self) -> impl Iterator<Item = KeyFamily<'_>> {
        self.families.iter().map(Family::view)
    }

    /// Layouts in the order of first use.
    pub fn layouts(&self) -> &[Layout] {
        &self.layouts
    }
}

impl Family {
    fn view(&self) -> KeyFamily<'_> {
        let Self { model_name, kv_rank, object_group_id, cache_salt } = self;
        KeyFamily { model_name, kv_rank: *kv_rank, object_group_id: *object_group_id, cache_salt }
    }
}

fn hash_of<'h>(hashes: &'h [u8], keys: &[Key], id: KeyId) -> &'h [u8] {
    let at = id.0 as usize;
    let start = at.checked_sub(1).map_or(0, |before| keys[before].end);
    &hashes[start..keys[at].end]
}

fn mix(family: FamilyId, chunk_hash: &[u8]) -> u64 {
    xxh3_64_with_seed(chunk_hash, family.0.into())
}

fn mix_family(family: KeyFamily<'_>) -> u64 {
    let name = xxh3_64_with_seed(family.model_name.as_bytes(), family.kv_rank);
    xxh3_64_with_seed(family.cache_salt.as_bytes(), name ^ u64::from(family.object_group_id))
}

#[cfg(test)]
mod tests;
