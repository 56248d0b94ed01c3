//! Which blocks are looked at when not all are.
//!
//! Whether a block is served depends on the blocks before it, so neither a sample of single blocks tells
//! (it does not know the others), nor one of whole conversations (it does, but few conversations are much
//! of a trace, and with one of them left out all it does is). So every conversation is looked at, and of it
//! every n-th block, which stands for n: it takes their place and counts for them. Where counting begins is
//! drawn by the hash of the conversation's first block, so that every block has the same chance. A cache
//! whose blocks left is noticed if one of them is looked at; what is not seen is a gap of fewer than n
//! blocks between two that are there. LRU leaves none: whoever used a block used those before it, and gave
//! them back after it.
//!
//! A conversation begins behind the trunk: the blocks that a hundredth of the requests or more begin with
//! (a shared system prompt, an object that is asked for all the time), learned from the requests
//! themselves, window by window. What is asked for that often is counted apart.
//!
//! Where each block is served for itself, each is drawn by its own hash.

use std::collections::BTreeSet;

use hashbrown::HashTable;

use super::{Block, Rule, mixed};

/// What first blocks are linked to.
pub(super) const ROOT: u64 = 0x4b33_a62e_d433_d4a3;

/// A block as caches know it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Its identity, mixed.
    pub(super) id: u64,
    /// What it counts for.
    pub(super) weight: u64,
    /// When it is looked at.
    pub(super) turn: Turn,
}

/// A block's place among those that are looked at in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn(u32);

impl Turn {
    /// The greatest number of blocks that one can stand for.
    pub(super) const MOST: u64 = 1 << 30;

    /// Set for blocks of the trunk.
    const TRUNK: u32 = 1 << 31;

    fn of(bits: u64) -> Self {
        Self((bits % Self::MOST) as u32)
    }

    fn of_trunk(number: u32) -> Self {
        Self(number | Self::TRUNK)
    }

    /// Whether its block is of the trunk.
    pub(super) fn is_trunk(self) -> bool {
        self.0 & Self::TRUNK != 0
    }

    /// Whether one in `one_in` includes it. Those of a larger number are among those of a smaller one.
    pub(super) fn has_come(self, one_in: u64) -> bool {
        u64::from(self.0) & (one_in - 1) == 0
    }
}

/// Blocks that many requests have, by their identities.
#[derive(Debug, Default)]
pub(super) struct Trunk {
    /// Each with a number, as small as may be: one in so many numbers is one in so many of the trunk.
    ids: HashTable<(u64, u32)>,
}

impl Trunk {
    pub(super) fn contains(&self, id: u64) -> bool {
        self.turn(id).is_some()
    }

    fn turn(&self, id: u64) -> Option<Turn> {
        self.ids.find(id, |row| row.0 == id).map(|row| Turn::of_trunk(row.1))
    }

    /// Blocks that stay keep their numbers. Says whether any came or left.
    pub(super) fn become_these(&mut self, ids: &[u64]) -> bool {
        let stay = ids.iter().filter(|&&id| self.contains(id)).count();
        if stay == ids.len() && stay == self.ids.len() {
            return false;
        }
        let before = std::mem::take(&mut self.ids);
        let number = |id| before.find(id, |row| row.0 == id).map(|row| row.1);
        let kept: BTreeSet<u32> = ids.iter().filter_map(|&id| number(id)).collect();
        let mut free = (0..).filter(|number| !kept.contains(number));
        for &id in ids {
            let number = number(id).or_else(|| free.next()).expect("numbers are endless");
            self.ids.insert_unique(id, (id, number), |row| row.0);
        }
        true
    }
}

/// How prompts become parts.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) rule: Rule,
    pub(super) trunk: Trunk,
    pub(super) seed: u64,
}

impl Cut {
    /// With no trunk yet.
    pub(super) fn of(rule: Rule, seed: u64) -> Self {
        Self { rule, trunk: Trunk::default(), seed }
    }

    /// The parts of a prompt, in order.
    pub(super) fn parts(&self, blocks: &[Block], parts: &mut Vec<Part>) {
        parts.clear();
        parts.reserve(blocks.len());
        match self.rule {
            Rule::Prefix => self.chain(blocks, parts),
            Rule::Each => parts.extend(blocks.iter().map(|block| {
                let id = alone(block.id);
                let turn = self.trunk.turn(id).unwrap_or_else(|| Turn::of(mixed(id, self.seed)));
                Part { id, weight: block.weight, turn }
            })),
        }
    }

    fn chain(&self, blocks: &[Block], parts: &mut Vec<Part>) {
        let mut ids = chained(blocks).zip(blocks).peekable();
        let mut begin = 0;
        while let Some(&(id, block)) = ids.peek() {
            let Some(turn) = self.trunk.turn(id) else {
                begin = mixed(id, self.seed) % Turn::MOST;
                break;
            };
            parts.push(Part { id, weight: block.weight, turn });
            ids.next();
        }
        parts.extend((begin..).zip(ids).map(|(bits, (id, block))| Part {
            id,
            weight: block.weight,
            turn: Turn::of(bits),
        }));
    }
}

/// The identity of a block behind another one.
pub(super) fn link(before: u64, id: u64) -> u64 {
    mixed(before, id)
}

/// The identity of a block wherever it stands.
pub(super) fn alone(id: u64) -> u64 {
    mixed(ROOT, id)
}

/// Identities that stand for all blocks before them too.
fn chained(blocks: &[Block]) -> impl Iterator<Item = u64> {
    blocks.iter().scan(ROOT, |before, block| {
        *before = link(*before, block.id);
        Some(*before)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: numbers that only grow. Of a trunk of one block, one in many is that block.
    #[test]
    fn a_trunk_that_changes_has_small_numbers() {
        let mut trunk = Trunk::default();
        let turn = |trunk: &Trunk, id| trunk.turn(id).map(|turn| turn.0 & !Turn::TRUNK);
        assert!(trunk.become_these(&[10, 20, 30]));
        assert!(!trunk.become_these(&[30, 10, 20]));
        assert!(trunk.become_these(&[40, 20, 50]));
        assert_eq!([10, 20, 30, 40, 50].map(|id| turn(&trunk, id)), [None, Some(1), None, Some(0), Some(2)]);
        assert!(trunk.become_these(&[60]) && trunk.turn(60).is_some_and(|turn| turn.has_come(1 << 16)));
    }
}
