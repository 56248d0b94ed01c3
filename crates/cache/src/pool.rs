//! The KV blocks of one worker: which are in use, which hold reusable content, which go next.
//!
//! The rules are those of vLLM V1 (spec/engine.md 6 and 15.8). A block without users keeps its content until
//! it is taken again, least recently released first; a request releases its last block first, so suffixes go
//! before prefixes. Equal content may exist in several blocks, because a request that started before the
//! content was complete computed its own copy; a lookup finds the oldest copy.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use wavetank_model::BlockKey;

use crate::{Links, Recency};

/// A physical block, numbered from 0 up to the pool's capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockId(u32);

/// "No block" and, as a key, "no content": real keys are mixed hashes, zero with probability 2^-64.
const NONE: u32 = u32::MAX;
const UNKEYED: BlockKey = BlockKey(0);

#[derive(Debug)]
struct Block {
    key: BlockKey,
    users: u32,
    newer_copy: u32,
    links: Links,
}

impl AsMut<Links> for Block {
    fn as_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

#[derive(Debug)]
struct Resident {
    key: BlockKey,
    oldest_copy: u32,
}

/// What a lookup found, for a decision before anything is taken.
#[derive(Debug, Default)]
pub struct Hits {
    blocks: Vec<BlockId>,
    in_use: u32,
}

impl Hits {
    /// Length of the cached prefix, in blocks.
    pub fn len(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// How many of them some request holds now; the others take room when they are revived.
    pub fn in_use(&self) -> u32 {
        self.in_use
    }

    /// Forgets the last lookup.
    pub fn clear(&mut self) {
        self.blocks.clear();
        self.in_use = 0;
    }
}

/// The blocks of one worker. Slots are made when first used, so a large pool costs nothing to create.
#[derive(Debug)]
pub struct BlockPool {
    capacity: u32,
    in_use: u32,
    blocks: Vec<Block>,
    empty: Vec<u32>,
    reusable: Recency,
    residents: HashTable<Resident>,
}

impl BlockPool {
    /// A pool of `capacity` empty blocks.
    pub fn with_capacity(capacity: u32) -> Self {
        Self {
            capacity,
            in_use: 0,
            blocks: Vec::new(),
            empty: Vec::new(),
            reusable: Recency::default(),
            residents: HashTable::new(),
        }
    }

    /// How many blocks there are.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// How many blocks some request holds.
    pub fn in_use(&self) -> u32 {
        self.in_use
    }

    /// How many blocks could be taken now, reusable ones included.
    pub fn available(&self) -> u32 {
        self.capacity - self.in_use
    }

    /// Finds the longest cached prefix of `keys`; takes nothing.
    pub fn lookup(&self, keys: impl Iterator<Item = BlockKey>, hits: &mut Hits) {
        hits.clear();
        for key in keys {
            let Some(resident) = self.residents.find(key.0, |r| r.key == key) else { break };
            let block = resident.oldest_copy;
            hits.in_use += u32::from(self.blocks[block as usize].users > 0);
            hits.blocks.push(BlockId(block));
        }
    }

    /// Takes the blocks a lookup found, in the same state of the pool, and appends them to `held`.
    pub fn take_hits(&mut self, hits: &Hits, held: &mut Vec<BlockId>) {
        for &BlockId(id) in &hits.blocks {
            let block = &mut self.blocks[id as usize];
            block.users += 1;
            if block.users == 1 {
                self.reusable.remove(&mut self.blocks, id);
                self.in_use += 1;
            }
        }
        held.extend_from_slice(&hits.blocks);
    }

    /// Takes `count` blocks for new content and appends them to `held`; all or, when they do not fit, none.
    #[must_use]
    pub fn allocate(&mut self, count: u32, held: &mut Vec<BlockId>) -> bool {
        if count > self.available() {
            return false;
        }
        for _ in 0..count {
            let id = self.vacate();
            let block = &mut self.blocks[id as usize];
            debug_assert!(block.users == 0 && block.key == UNKEYED);
            block.users = 1;
            held.push(BlockId(id));
        }
        self.in_use += count;
        true
    }

    /// Makes the content of a held block visible to lookups.
    pub fn publish(&mut self, BlockId(id): BlockId, key: BlockKey) {
        debug_assert!(key != UNKEYED && self.blocks[id as usize].users > 0);
        debug_assert!(self.blocks[id as usize].key == UNKEYED, "a block is published once");
        self.blocks[id as usize].key = key;
        self.blocks[id as usize].newer_copy = NONE;
        let entry = self.residents.entry(key.0, |r| r.key == key, |r| r.key.0);
        let first = match entry {
            Entry::Vacant(vacant) => {
                vacant.insert(Resident { key, oldest_copy: id });
                return;
            }
            Entry::Occupied(occupied) => occupied.get().oldest_copy,
        };
        let mut copy = first;
        while self.blocks[copy as usize].newer_copy != NONE {
            copy = self.blocks[copy as usize].newer_copy;
        }
        self.blocks[copy as usize].newer_copy = id;
    }

    /// Gives back what a request held, last block first. Published content stays findable until evicted.
    pub fn release(&mut self, held: &mut Vec<BlockId>) {
        for BlockId(id) in held.drain(..).rev() {
            let block = &mut self.blocks[id as usize];
            block.users -= 1;
            if block.users > 0 {
                continue;
            }
            self.in_use -= 1;
            match block.key {
                UNKEYED => self.empty.push(id),
                _ => self.reusable.push(&mut self.blocks, id),
            }
        }
    }

    /// A block without content: a never used one, a released empty one, or the least recently released.
    fn vacate(&mut self) -> u32 {
        if let Some(id) = self.empty.pop() {
            return id;
        }
        if (self.blocks.len() as u32) < self.capacity {
            self.blocks.push(Block { key: UNKEYED, users: 0, newer_copy: NONE, links: Links::default() });
            return self.blocks.len() as u32 - 1;
        }
        let id = self.reusable.pop_oldest(&mut self.blocks).expect("available() counted it");
        self.unpublish(id);
        id
    }

    fn unpublish(&mut self, id: u32) {
        let key = self.blocks[id as usize].key;
        let newer = self.blocks[id as usize].newer_copy;
        self.blocks[id as usize].key = UNKEYED;
        let Ok(mut entry) = self.residents.find_entry(key.0, |r| r.key == key) else {
            unreachable!("a published block is resident")
        };
        let mut copy = entry.get().oldest_copy;
        if copy != id {
            while self.blocks[copy as usize].newer_copy != id {
                copy = self.blocks[copy as usize].newer_copy;
            }
            self.blocks[copy as usize].newer_copy = newer;
        } else if newer == NONE {
            entry.remove();
        } else {
            entry.get_mut().oldest_copy = newer;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same rules, written as slowly and plainly as possible.
    #[derive(Default)]
    struct Plain {
        /// (content, users) in order of publication; released ones also stand in `order`.
        copies: Vec<(u64, u64, u32)>,
        order: Vec<u64>,
        unpublished: u32,
        next: u64,
    }

    impl Plain {
        fn in_use(&self) -> u32 {
            self.unpublished + self.copies.iter().filter(|c| c.2 > 0).count() as u32
        }
        fn evict_to(&mut self, capacity: u32) {
            while self.unpublished + self.copies.len() as u32 > capacity {
                let victim = self.order.remove(0);
                self.copies.retain(|c| c.0 != victim);
            }
        }
    }

    fn check(capacity: u32, script: &[(u8, u8, bool)]) {
        let mut pool = BlockPool::with_capacity(capacity);
        let mut plain = Plain::default();
        let mut hits = Hits::default();
        let mut live: Vec<(Vec<BlockId>, Vec<u64>)> = Vec::new();
        for &(family, length, release) in script {
            if release && !live.is_empty() {
                let (mut held, copies) = live.remove(family as usize % live.len());
                pool.release(&mut held);
                for id in copies.into_iter().rev() {
                    let copy = plain.copies.iter_mut().find(|c| c.0 == id).unwrap();
                    copy.2 -= 1;
                    if copy.2 == 0 {
                        plain.order.push(id);
                    }
                }
                continue;
            }
            // Contents of one family share a prefix of 3 blocks with the even or odd families.
            let content = |i: u8| {
                BlockKey(1 + u64::from(i) * 1000 + u64::from(if i < 3 { family % 2 } else { family }))
            };
            pool.lookup((0..length).map(content), &mut hits);
            let found: Vec<u64> = (0..length)
                .map_while(|i| plain.copies.iter().find(|c| c.1 == content(i).0).map(|c| c.0))
                .collect();
            assert_eq!(hits.len() as usize, found.len());
            let busy = |id: &u64| plain.copies.iter().any(|c| c.0 == *id && c.2 > 0);
            assert_eq!(hits.in_use() as usize, found.iter().filter(|id| busy(id)).count());
            let missing = u32::from(length) - hits.len();
            let room = plain.in_use() + missing + (hits.len() - hits.in_use()) <= capacity;
            let (mut held, mut copies) = (Vec::new(), found.clone());
            if !room {
                continue;
            }
            pool.take_hits(&hits, &mut held);
            assert!(pool.allocate(missing, &mut held));
            for id in &found {
                plain.copies.iter_mut().find(|c| c.0 == *id).unwrap().2 += 1;
                plain.order.retain(|o| o != id);
            }
            plain.unpublished += missing;
            plain.evict_to(capacity);
            for i in found.len() as u8..length {
                pool.publish(held[i as usize], content(i));
                plain.unpublished -= 1;
                plain.next += 1;
                plain.copies.push((plain.next, content(i).0, 1));
                copies.push(plain.next);
            }
            assert_eq!(pool.in_use(), plain.in_use());
            live.push((held, copies));
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_plain_rules(
            capacity in 1u32..40,
            script in proptest::collection::vec((0u8..6, 1u8..9, any::<bool>()), 0..120),
        ) {
            check(capacity, &script);
        }
    }

    #[test]
    fn copies_of_one_content_leave_one_by_one() {
        let mut pool = BlockPool::with_capacity(3);
        let (mut a, mut b, mut hits) = (Vec::new(), Vec::new(), Hits::default());
        assert!(pool.allocate(1, &mut a) && pool.allocate(1, &mut b));
        pool.publish(a[0], BlockKey(7));
        pool.publish(b[0], BlockKey(7));
        pool.release(&mut a);
        pool.release(&mut b);
        let mut c = Vec::new();
        assert!(pool.allocate(2, &mut c), "the empty block and the oldest copy");
        pool.lookup([BlockKey(7)].into_iter(), &mut hits);
        assert_eq!((hits.len(), hits.in_use()), (1, 0), "the newer copy is still there");
        assert!(pool.allocate(1, &mut c));
        pool.lookup([BlockKey(7)].into_iter(), &mut hits);
        assert!(hits.is_empty());
        assert!(!pool.allocate(1, &mut c), "all three are in use");
    }
}
