//! Weights in order of last use: how much was used since something was.
//!
//! Whoever is used moves to the next slot of a growing line. Slots stand in groups whose sums are kept in a
//! tree (Fenwick, "A new data structure for cumulative frequency tables", Software: Practice and Experience
//! 24(3), 1994), so that a look adds up a part of one group and a few sums. Blocks that are used together
//! lie side by side, and changes of one group are booked at once.

/// Slots whose sum is kept.
const GROUP: usize = 64;

/// A line of slots.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// What is in each slot; nothing is zero.
    weights: Vec<u64>,
    /// Sums over groups; place `n` (from 1) covers as many groups as its lowest bit says.
    tree: Vec<u64>,
    total: u64,
    next: usize,
}

impl Timeline {
    /// A line of at least `room` slots, filled with `weights` from the oldest on.
    pub(super) fn filled(weights: impl Iterator<Item = u64>, room: usize) -> Self {
        let mut line: Vec<u64> = Vec::with_capacity(room.next_multiple_of(GROUP));
        line.extend(weights);
        let next = line.len();
        line.resize(room.max(next).next_multiple_of(GROUP), 0);
        let mut tree = vec![0; line.len() / GROUP + 1];
        for group in 1..tree.len() {
            tree[group] = sum(&line[(group - 1) * GROUP..group * GROUP]).wrapping_add(tree[group]);
            let above = group + lowest_bit(group);
            if above < tree.len() {
                tree[above] = tree[above].wrapping_add(tree[group]);
            }
        }
        let total = sum(&line);
        Self { weights: line, tree, total, next }
    }

    /// How many slots are left.
    pub(super) fn room(&self) -> usize {
        self.weights.len() - self.next
    }

    /// How many slots there are.
    pub(super) fn slots(&self) -> usize {
        self.weights.len()
    }

    /// What `slot` holds.
    pub(super) fn weight(&self, slot: usize) -> u64 {
        self.weights[slot]
    }

    /// What `slot` and all later ones hold.
    pub(super) fn since(&self, slot: usize) -> u64 {
        let group = slot / GROUP;
        let mut before = sum(&self.weights[group * GROUP..slot]);
        let mut at = group;
        while at > 0 {
            before = before.wrapping_add(self.tree[at]);
            at -= lowest_bit(at);
        }
        self.total.wrapping_sub(before)
    }

    /// The same, given what it is for another slot: neighbours are found without the tree.
    pub(super) fn since_from(&self, slot: usize, (known_slot, known): (usize, u64)) -> u64 {
        match known_slot.checked_sub(slot) {
            Some(apart) if apart <= GROUP => known.wrapping_add(sum(&self.weights[slot..known_slot])),
            _ => self.since(slot),
        }
    }

    /// Begins changes.
    pub(super) fn edit(&mut self) -> Edit<'_> {
        Edit { line: self, left: Change::default(), came: Change::default() }
    }

    fn book(&mut self, change: Change) {
        if change.weight == 0 {
            return;
        }
        let mut at = change.group + 1;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add(change.weight);
            at += lowest_bit(at);
        }
        self.total = self.total.wrapping_add(change.weight);
    }
}

/// Modulo 2^64, as everything here: what comes and goes cancels out.
fn sum(weights: &[u64]) -> u64 {
    weights.iter().fold(0, |sum, &weight| sum.wrapping_add(weight))
}

fn lowest_bit(number: usize) -> usize {
    number & number.wrapping_neg()
}

/// What came to a group or left it, modulo 2^64.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    group: usize,
    weight: u64,
}

/// Changes under way; sums are right when it is dropped.
pub(super) struct Edit<'a> {
    line: &'a mut Timeline,
    left: Change,
    came: Change,
}

impl Edit<'_> {
    /// Empties `slot`.
    pub(super) fn clear(&mut self, slot: usize) {
        let group = slot / GROUP;
        if self.left.group != group {
            self.line.book(self.left);
            self.left = Change { group, weight: 0 };
        }
        let weight = std::mem::take(&mut self.line.weights[slot]);
        self.left.weight = self.left.weight.wrapping_sub(weight);
    }

    /// Puts `weight` into the next slot.
    ///
    /// # Panics
    /// When there is none.
    pub(super) fn push(&mut self, weight: u64) -> usize {
        let slot = self.line.next;
        let group = slot / GROUP;
        if self.came.group != group {
            self.line.book(self.came);
            self.came = Change { group, weight: 0 };
        }
        self.line.weights[slot] = weight;
        self.line.next = slot + 1;
        self.came.weight = self.came.weight.wrapping_add(weight);
        slot
    }
}

impl Drop for Edit<'_> {
    fn drop(&mut self) {
        self.line.book(self.left);
        self.line.book(self.came);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Broken by a change that is booked in the next group, by one that is dropped when the group
        /// changes, and by a tree that is not filled from below.
        #[test]
        fn sums_are_those_of_a_plain_list(
            filled in prop::collection::vec(0u64..9, 0..300),
            script in prop::collection::vec((prop::option::of(0usize..600), 0u64..9), 0..500),
        ) {
            let mut line = Timeline::filled(filled.iter().copied(), filled.len() + 500);
            let mut plain = filled;
            for changes in script.chunks(7) {
                let mut edit = line.edit();
                for &(cleared, pushed) in changes {
                    if let Some(slot) = cleared.filter(|&slot| slot < plain.len()) {
                        edit.clear(slot);
                        plain[slot] = 0;
                    }
                    prop_assert_eq!(edit.push(pushed), plain.len());
                    plain.push(pushed);
                }
                drop(edit);
                for slot in (0..plain.len()).step_by(5) {
                    let since = line.since(slot);
                    prop_assert_eq!(since, plain[slot..].iter().sum::<u64>());
                    let older = slot.saturating_sub(3);
                    prop_assert_eq!(line.since_from(older, (slot, since)), line.since(older));
                    prop_assert_eq!(line.since_from(slot, (older, line.since(older))), since);
                }
            }
            prop_assert!(line.room() + plain.len() >= 500);
        }
    }
}
