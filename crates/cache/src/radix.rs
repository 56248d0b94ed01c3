//! A prefix tree of KV pages, as SGLang's radix cache (spec/engine.md 5, 15.11 and 16.2).
//!
//! A node is a run of pages without a branch. Recency belongs to nodes, locks to pages: a request locks the
//! pages it uses, and pages nobody uses leave one by one from the end of the node used longest ago.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wavetank_model::BlockKey;

use crate::change::{ChangeKind, ChangeLog, GivenUp};
use crate::group::{Cursor, GroupIndex, NONE, Place};

/// A page in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageId(u32);

#[derive(Debug)]
struct Page {
    place: Place,
    node: u32,
    /// Position within the prompts it belongs to.
    depth: u32,
    users: u32,
}

#[derive(Debug, Default)]
struct Node {
    parent: u32,
    children: u32,
    last_use: u64,
    /// Depth of its first page.
    depth: u32,
    /// First to last.
    pages: Vec<u32>,
}

/// The tree.
#[derive(Debug, Default)]
pub struct RadixTree {
    index: GroupIndex,
    pages: Vec<Page>,
    vacant_pages: Vec<u32>,
    nodes: Vec<Node>,
    vacant_nodes: Vec<u32>,
    /// Pages without users.
    idle: u32,
    clock: u64,
    /// Leaves whose last page had no user, by the time they were used; entries may be out of date.
    leaves: BinaryHeap<Reverse<(u64, u32)>>,
    log: ChangeLog,
    given_up: GivenUp,
}

impl RadixTree {
    /// What changed.
    pub fn log(&mut self) -> &mut ChangeLog {
        &mut self.log
    }

    /// What was evicted.
    pub fn given_up(&mut self) -> &mut GivenUp {
        &mut self.given_up
    }

    /// Pages in the tree.
    pub fn len(&self) -> u32 {
        (self.pages.len() - self.vacant_pages.len()) as u32
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Pages that could be evicted, now or after those below them.
    pub fn evictable(&self) -> u32 {
        self.idle
    }

    /// How many leading pages of `keys` are in the tree; changes nothing.
    pub fn peek(&self, keys: impl Iterator<Item = BlockKey>) -> u32 {
        let mut cursor = Cursor::default();
        keys.take_while(|&key| self.index.find(key, &mut cursor).is_some()).count() as u32
    }

    /// Uses the longest prefix of `keys` that is in the tree: its pages are locked and appended to `held`.
    pub fn lock_prefix(&mut self, keys: impl Iterator<Item = BlockKey>, held: &mut Vec<PageId>) {
        let before = held.len();
        self.walk(keys, held);
        for page in &held[before..] {
            self.lock(page.0);
        }
    }

    /// Uses the pages `held` already has and enters those that follow, whose keys are `keys`: those in the
    /// tree are taken from there, the others are new. All are locked and appended to `held`.
    pub fn insert(&mut self, keys: impl Iterator<Item = BlockKey>, held: &mut Vec<PageId>) {
        let mut node = self.use_again(held);
        let mut keys = keys.peekable();
        let mut cursor = Cursor::default();
        while let Some(page) = keys.peek().and_then(|&key| self.index.find(key, &mut cursor)) {
            keys.next();
            node = self.visit(page, node);
            self.lock(page);
            held.push(PageId(page));
        }
        if let Some(&PageId(last)) = held.last() {
            self.split_after(last);
        }
        let mut bottom = held.last().map_or(NONE, |&PageId(page)| self.pages[page as usize].node);
        let mut cursor = Cursor::default();
        for key in keys {
            let place = self.index.place(key, &mut cursor);
            bottom = self.append(bottom, place);
            self.log.note(key.group, key.slot, ChangeKind::Stored);
            let page = *self.nodes[bottom as usize].pages.last().expect("a page was appended");
            held.push(PageId(page));
        }
    }

    /// Marks the nodes of a path as used now, first to last. The last of them.
    fn use_again(&mut self, path: &[PageId]) -> u32 {
        let (mut position, mut node) = (0, NONE);
        while let Some(&PageId(page)) = path.get(position) {
            node = self.visit(page, node);
            let Page { depth, .. } = self.pages[page as usize];
            let Node { depth: first, pages, .. } = &self.nodes[node as usize];
            position += pages.len() - (depth - first) as usize;
        }
        node
    }

    /// Marks the node of `page` as used now, unless it is `node`. The node.
    fn visit(&mut self, page: u32, node: u32) -> u32 {
        let owner = self.pages[page as usize].node;
        if owner != node {
            self.clock += 1;
            self.nodes[owner as usize].last_use = self.clock;
        }
        owner
    }

    /// Gives up pages, last first.
    pub fn unlock(&mut self, held: &mut Vec<PageId>) {
        for PageId(page) in held.drain(..).rev() {
            let entry = &mut self.pages[page as usize];
            entry.users -= 1;
            if entry.users == 0 {
                self.idle += 1;
                let node = entry.node;
                if self.nodes[node as usize].pages.last() == Some(&page) {
                    self.offer(node);
                }
            }
        }
    }

    /// Evicts up to `count` idle pages. Returns how many it was.
    pub fn evict(&mut self, count: u32) -> u32 {
        let mut evicted = 0;
        while evicted < count {
            let Some(node) = self.oldest_leaf() else { break };
            while evicted < count && self.last_is_idle(node) {
                self.drop_last(node);
                evicted += 1;
            }
            if self.nodes[node as usize].pages.is_empty() {
                self.drop_node(node);
            } else {
                self.offer(node);
            }
        }
        evicted
    }

    /// Follows `keys` through the tree and marks every node it meets as used now. A walk that ends inside a
    /// node splits it there.
    fn walk(&mut self, keys: impl Iterator<Item = BlockKey>, path: &mut Vec<PageId>) {
        let (mut node, mut last, mut cursor) = (NONE, None, Cursor::default());
        for key in keys {
            let Some(page) = self.index.find(key, &mut cursor) else { break };
            node = self.visit(page, node);
            path.push(PageId(page));
            last = Some(page);
        }
        if let Some(page) = last {
            self.split_after(page);
        }
    }

    /// Makes `page` the last of its node: it and what stands before it become a node above the rest, which
    /// keeps its name, so that nodes below need not be told.
    fn split_after(&mut self, page: u32) {
        let Page { node: lower, depth, .. } = self.pages[page as usize];
        let node = &mut self.nodes[lower as usize];
        let cut = (depth - node.depth + 1) as usize;
        if cut == node.pages.len() {
            return;
        }
        let rest = node.pages.split_off(cut);
        let pages = std::mem::replace(&mut node.pages, rest);
        let (parent, last_use, first) = (node.parent, node.last_use, node.depth);
        node.depth = depth + 1;
        let upper = self.add_node(Node { parent, children: 1, last_use, depth: first, pages });
        self.nodes[lower as usize].parent = upper;
        for position in 0..cut {
            let moved = self.nodes[upper as usize].pages[position];
            self.pages[moved as usize].node = upper;
        }
    }

    /// Adds a page below `bottom`: to the node itself if it is a leaf, else as a new node. Returns its node.
    fn append(&mut self, bottom: u32, place: Place) -> u32 {
        let extends = bottom != NONE && self.nodes[bottom as usize].children == 0;
        let node = match extends {
            true => bottom,
            false => {
                self.clock += 1;
                let mut depth = 0;
                if let Some(above) = self.nodes.get_mut(bottom as usize) {
                    above.children += 1;
                    depth = above.depth + above.pages.len() as u32;
                }
                let (last_use, pages) = (self.clock, Vec::new());
                self.add_node(Node { parent: bottom, children: 0, last_use, depth, pages })
            }
        };
        let Node { depth, pages, .. } = &self.nodes[node as usize];
        let depth = depth + pages.len() as u32;
        let page = self.add_page(Page { place, node, depth, users: 1 });
        self.nodes[node as usize].pages.push(page);
        self.index.set(place, page);
        node
    }

    fn lock(&mut self, page: u32) {
        let entry = &mut self.pages[page as usize];
        self.idle -= u32::from(entry.users == 0);
        entry.users += 1;
    }

    fn last_is_idle(&self, node: u32) -> bool {
        self.nodes[node as usize].pages.last().is_some_and(|&page| self.pages[page as usize].users == 0)
    }

    fn is_evictable_leaf(&self, node: u32) -> bool {
        self.nodes[node as usize].children == 0 && self.last_is_idle(node)
    }

    /// Puts a node among the candidates for eviction, if it is one.
    fn offer(&mut self, node: u32) {
        if self.is_evictable_leaf(node) {
            self.leaves.push(Reverse((self.nodes[node as usize].last_use, node)));
        }
    }

    fn oldest_leaf(&mut self) -> Option<u32> {
        while let Some(Reverse((last_use, node))) = self.leaves.pop() {
            if !self.is_evictable_leaf(node) {
                continue;
            }
            if self.nodes[node as usize].last_use == last_use {
                return Some(node);
            }
            self.offer(node);
        }
        None
    }

    fn drop_last(&mut self, node: u32) {
        let Some(page) = self.nodes[node as usize].pages.pop() else { return };
        let place = self.pages[page as usize].place;
        let BlockKey { group, slot } = self.index.key(place);
        self.index.set(place, NONE);
        self.vacant_pages.push(page);
        self.idle -= 1;
        self.log.note(group, slot, ChangeKind::Removed);
        self.given_up.note(Some(BlockKey { group, slot }));
    }

    fn drop_node(&mut self, node: u32) {
        let parent = self.nodes[node as usize].parent;
        self.vacant_nodes.push(node);
        if parent != NONE {
            self.nodes[parent as usize].children -= 1;
            self.offer(parent);
        }
    }

    fn add_page(&mut self, page: Page) -> u32 {
        match self.vacant_pages.pop() {
            Some(number) => {
                self.pages[number as usize] = page;
                number
            }
            None => {
                self.pages.push(page);
                self.pages.len() as u32 - 1
            }
        }
    }

    fn add_node(&mut self, node: Node) -> u32 {
        match self.vacant_nodes.pop() {
            Some(number) => {
                self.nodes[number as usize] = node;
                number
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Page `depth` of a prompt whose ids are `ids`; a page is private to the prefix before it.
    fn keys(ids: &[u8]) -> Vec<BlockKey> {
        let mut group = 7;
        let chain = ids.iter().enumerate().map(|(depth, &id)| {
            group = group * 31 + u64::from(id) + 1;
            BlockKey { group, slot: depth as u32 % BlockKey::PER_GROUP }
        });
        chain.collect()
    }

    fn insert(tree: &mut RadixTree, ids: &[u8]) -> Vec<PageId> {
        let mut held = Vec::new();
        tree.lock_prefix(keys(ids).into_iter(), &mut held);
        let found = held.len();
        tree.insert(keys(ids).into_iter().skip(found), &mut held);
        held
    }

    fn cached(tree: &RadixTree, ids: &[u8]) -> u32 {
        tree.peek(keys(ids).into_iter())
    }

    #[test]
    fn the_oldest_leaf_goes_from_its_end() {
        let mut tree = RadixTree::default();
        for ids in [[1, 2, 3, 4], [1, 2, 5, 6]] {
            let mut held = insert(&mut tree, &ids);
            tree.unlock(&mut held);
        }
        assert_eq!((tree.len(), tree.evictable()), (6, 6));
        assert_eq!(tree.evict(1), 1);
        assert_eq!((cached(&tree, &[1, 2, 3, 4]), cached(&tree, &[1, 2, 5, 6])), (3, 4));
        assert_eq!(tree.evict(2), 2);
        assert_eq!((cached(&tree, &[1, 2, 3, 4]), cached(&tree, &[1, 2, 5, 6])), (2, 3));
        assert_eq!(tree.evict(9), 3, "the common beginning goes last");
        assert!(tree.is_empty());
    }

    #[test]
    fn a_partial_match_protects_the_whole_node_once() {
        // spec/engine.md 16.2 S4: a walk that ends inside a node refreshes all of it and splits it for good.
        let mut tree = RadixTree::default();
        for ids in [&[1u8, 2, 3, 4][..], &[9, 8]] {
            let mut held = insert(&mut tree, ids);
            tree.unlock(&mut held);
        }
        let mut held = Vec::new();
        tree.lock_prefix(keys(&[1, 2]).into_iter(), &mut held);
        tree.unlock(&mut held);
        assert_eq!(tree.evict(2), 2);
        assert_eq!((cached(&tree, &[9, 8]), cached(&tree, &[1, 2, 3, 4])), (0, 4));
        tree.lock_prefix(keys(&[1, 2]).into_iter(), &mut held);
        assert_eq!(tree.evict(9), 2, "the lower part was not used again");
        assert_eq!(cached(&tree, &[1, 2, 3, 4]), 2);
    }

    #[test]
    fn a_leaf_is_extended_and_keeps_one_age() {
        let mut tree = RadixTree::default();
        let mut first = insert(&mut tree, &[1, 2]);
        let mut longer = insert(&mut tree, &[1, 2, 3]);
        tree.unlock(&mut longer);
        assert_eq!(tree.evictable(), 1, "what only the longer one used");
        tree.unlock(&mut first);
        let mut other = insert(&mut tree, &[7]);
        tree.unlock(&mut other);
        assert_eq!(tree.evict(3), 3);
        assert_eq!((cached(&tree, &[1, 2, 3]), cached(&tree, &[7])), (0, 1));
    }

    proptest! {
        #[test]
        fn pages_are_never_lost(
            script in proptest::collection::vec((proptest::collection::vec(0u8..3, 1..9), 0u8..4), 0..80),
        ) {
            let mut tree = RadixTree::default();
            let mut live: Vec<(Vec<u8>, Vec<PageId>)> = Vec::new();
            for (ids, action) in script {
                match action {
                    0 if !live.is_empty() => {
                        let (_, mut held) = live.swap_remove(ids[0] as usize % live.len());
                        tree.unlock(&mut held);
                    }
                    1 => {
                        let (before, idle) = (tree.len(), tree.evictable());
                        let evicted = tree.evict(ids.len() as u32);
                        prop_assert_eq!(evicted, idle.min(ids.len() as u32));
                        prop_assert_eq!(tree.len(), before - evicted);
                    }
                    _ => {
                        let held = insert(&mut tree, &ids);
                        prop_assert_eq!(held.len(), ids.len());
                        live.push((ids, held));
                    }
                }
                let mut used = std::collections::BTreeSet::new();
                for (ids, _) in &live {
                    prop_assert_eq!(cached(&tree, ids) as usize, ids.len(), "locked pages stay");
                    used.extend((1..=ids.len()).map(|end| &ids[..end]));
                }
                prop_assert_eq!(tree.len() - tree.evictable(), used.len() as u32);
            }
        }
    }
}
