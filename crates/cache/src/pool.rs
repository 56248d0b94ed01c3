//! The KV blocks of one worker: which are in use, which hold reusable content, which go next.
//!
//! The rules are those of vLLM V1 (spec/engine.md 6 and 15.8). A block without users keeps its content until
//! it is taken again, least recently released first; a request releases its last block first, so suffixes go
//! before prefixes. Equal content may exist in several blocks, because a request that started before the
//! content was complete computed its own copy; a lookup finds the oldest copy.

use wavetank_model::BlockKey;

use crate::change::{ChangeKind, ChangeLog, GivenUp};
use crate::group::{Cursor, GroupIndex, NONE, Place};
use crate::{Links, Recency};

/// A physical block, numbered from 0 up to the pool's capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockId(u32);

#[derive(Debug)]
struct Block {
    /// Where its content is registered, if it has any.
    place: Option<Place>,
    users: u32,
    newer_copy: u32,
    links: Links,
}

impl AsMut<Links> for Block {
    fn as_mut(&mut self) -> &mut Links {
        &mut self.links
    }
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
    /// The oldest copy of each content.
    index: GroupIndex,
    log: ChangeLog,
    given_up: GivenUp,
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
            index: GroupIndex::default(),
            log: ChangeLog::default(),
            given_up: GivenUp::default(),
        }
    }

    /// What was evicted.
    pub fn given_up(&mut self) -> &mut GivenUp {
        &mut self.given_up
    }

    /// What changed.
    pub fn log(&mut self) -> &mut ChangeLog {
        &mut self.log
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
        let mut cursor = Cursor::default();
        for key in keys {
            let Some(block) = self.index.find(key, &mut cursor) else { break };
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
    /// Empty blocks go first, then never used ones, then the least recently released.
    #[must_use]
    pub fn allocate(&mut self, count: u32, held: &mut Vec<BlockId>) -> bool {
        if count > self.available() {
            return false;
        }
        let before = held.len();
        let emptied = self.empty.len().saturating_sub(count as usize);
        held.extend(self.empty.drain(emptied..).map(BlockId));
        let unused = (self.capacity - self.blocks.len() as u32).min(count - (held.len() - before) as u32);
        for _ in 0..unused {
            held.push(BlockId(self.blocks.len() as u32));
            self.blocks.push(Block { place: None, users: 0, newer_copy: NONE, links: Links::default() });
        }
        let evicted = before + count as usize - held.len();
        self.reusable.take_oldest(&mut self.blocks, evicted as u32, |id| held.push(BlockId(id)));
        for &BlockId(id) in &held[before..] {
            if let Some(place) = self.blocks[id as usize].place {
                self.unpublish(id, place);
            }
            debug_assert_eq!(self.blocks[id as usize].users, 0);
            self.blocks[id as usize].users = 1;
        }
        self.in_use += count;
        true
    }

    /// Makes the contents of held blocks visible to lookups.
    pub fn publish(&mut self, held: &[BlockId], keys: impl Iterator<Item = BlockKey>) {
        let mut cursor = Cursor::default();
        for (&BlockId(id), key) in held.iter().zip(keys) {
            let place = self.index.place(key, &mut cursor);
            self.register(id, place, key);
        }
    }

    fn register(&mut self, id: u32, place: Place, key: BlockKey) {
        let block = &mut self.blocks[id as usize];
        debug_assert!(block.place.is_none() && block.users > 0, "a held block is published once");
        block.place = Some(place);
        block.newer_copy = NONE;
        let mut copy = self.index.at(place);
        if copy == NONE {
            self.index.set(place, id);
            self.log.note(key.group, key.slot, ChangeKind::Stored);
            return;
        }
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
            match block.place {
                None => self.empty.push(id),
                Some(_) => self.reusable.push(&mut self.blocks, id),
            }
        }
    }

    fn unpublish(&mut self, id: u32, place: Place) {
        let block = &mut self.blocks[id as usize];
        block.place = None;
        let newer = block.newer_copy;
        let mut copy = self.index.at(place);
        if copy != id {
            while self.blocks[copy as usize].newer_copy != id {
                copy = self.blocks[copy as usize].newer_copy;
            }
            self.blocks[copy as usize].newer_copy = newer;
            self.given_up.note(None);
            return;
        }
        let last = (newer == NONE).then(|| self.index.key(place));
        if let Some(BlockKey { group, slot }) = last {
            self.log.note(group, slot, ChangeKind::Removed);
        }
        self.given_up.note(last);
        self.index.set(place, newer);
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
            let content = |i: u8| BlockKey {
                group: 77 + u64::from(i / 4) * 1000 + u64::from(if i < 3 { family % 2 } else { family + 2 }),
                slot: u32::from(i % 4),
            };
            let number = |i: u8| content(i).group * 8 + u64::from(content(i).slot);
            pool.lookup((0..length).map(content), &mut hits);
            let found: Vec<u64> = (0..length)
                .map_while(|i| plain.copies.iter().find(|c| c.1 == number(i)).map(|c| c.0))
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
            pool.publish(&held[found.len()..], (found.len() as u8..length).map(content));
            for i in found.len() as u8..length {
                plain.unpublished -= 1;
                plain.next += 1;
                plain.copies.push((plain.next, number(i), 1));
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
        let key = || [BlockKey { group: 7, slot: 3 }].into_iter();
        pool.publish(&a, key());
        pool.publish(&b, key());
        pool.release(&mut a);
        pool.release(&mut b);
        let mut c = Vec::new();
        assert!(pool.allocate(2, &mut c), "the empty block and the oldest copy");
        pool.lookup(key(), &mut hits);
        assert_eq!((hits.len(), hits.in_use()), (1, 0), "the newer copy is still there");
        assert!(pool.allocate(1, &mut c));
        pool.lookup(key(), &mut hits);
        assert!(hits.is_empty());
        assert!(!pool.allocate(1, &mut c), "all three are in use");
    }
}
