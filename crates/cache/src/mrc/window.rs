//! Requests gathered until it is known what many of them have in common.

use super::cut::{ROOT, Trunk, alone, link};
use super::{Access, Block, Rule};

/// A block is of the trunk if one in so many of a window's requests has it …
const TRUNK_ONE_IN: usize = 100;
/// … and at least so many do: fewer are one conversation.
const TRUNK_LEAST: usize = 32;
/// It stays as long as a part of those do: to come and go costs accuracy.
const TRUNK_STAYS: usize = 4;
/// Requests of a window …
const MOST_REQUESTS: usize = 4096;
/// … unless they have more blocks than this.
const MOST_BLOCKS: usize = 1 << 20;

/// Requests, one after another.
#[derive(Debug, Default)]
pub(super) struct Window {
    blocks: Vec<Block>,
    /// Where each request ends, and whose it is.
    requests: Vec<(usize, u32)>,
}

impl Window {
    pub(super) fn push(&mut self, access: Access<'_>) {
        self.blocks.extend_from_slice(access.blocks);
        self.requests.push((self.blocks.len(), access.tenant));
    }

    /// Whether there are enough to learn from.
    pub(super) fn is_full(&self) -> bool {
        self.requests.len() >= MOST_REQUESTS || self.blocks.len() >= MOST_BLOCKS
    }

    pub(super) fn clear(&mut self) {
        self.blocks.clear();
        self.requests.clear();
    }

    /// What was gathered, in order.
    pub(super) fn accesses(&self) -> impl Iterator<Item = Access<'_>> {
        let begins = std::iter::once(0).chain(self.requests.iter().map(|request| request.0));
        let bounds = begins.zip(&self.requests);
        bounds.map(|(begin, &(end, tenant))| Access { blocks: &self.blocks[begin..end], tenant })
    }

    /// What a block weighs, on average.
    pub(super) fn mean_weight(&self) -> u64 {
        let sum: u64 = self.blocks.iter().map(|block| block.weight).sum();
        sum / (self.blocks.len() as u64).max(1)
    }

    /// The identities of blocks that many of the requests begin with, after `trunk` was it; or have, where
    /// each block is known for itself.
    pub(super) fn frequent(&self, rule: Rule, trunk: &Trunk) -> Vec<u64> {
        let many = (self.requests.len() / TRUNK_ONE_IN).max(TRUNK_LEAST);
        let is_frequent = |id, times| times >= if trunk.contains(id) { many / TRUNK_STAYS } else { many };
        match rule {
            Rule::Prefix => self.frequent_beginnings(is_frequent),
            Rule::Each => {
                let mut ids: Vec<u64> = self.blocks.iter().map(|block| alone(block.id)).collect();
                ids.sort_unstable();
                let frequent = ids.chunk_by(|a, b| a == b).filter(|same| is_frequent(same[0], same.len()));
                frequent.map(|same| same[0]).collect()
            }
        }
    }

    /// Follows prompts as long as many go the same way.
    fn frequent_beginnings(&self, is_frequent: impl Fn(u64, usize) -> bool) -> Vec<u64> {
        let prompts: Vec<&[Block]> = self.accesses().map(|access| access.blocks).collect();
        let mut frequent = Vec::new();
        let mut together = vec![(0, ROOT, prompts)];
        while let Some((depth, before, mut prompts)) = together.pop() {
            prompts.retain(|prompt| prompt.len() > depth);
            prompts.sort_by_key(|prompt| prompt[depth].id);
            for same in prompts.chunk_by(|a, b| a[depth].id == b[depth].id) {
                let id = link(before, same[0][depth].id);
                if is_frequent(id, same.len()) {
                    frequent.push(id);
                    together.push((depth + 1, id, same.to_vec()));
                }
            }
        }
        frequent
    }
}

#[cfg(test)]
mod tests {
    use super::super::cut::{Cut, Part};
    use super::*;

    fn turns(cut: &Cut, ids: &[u64]) -> Vec<Part> {
        let blocks: Vec<Block> = ids.iter().map(|&id| Block { id, weight: 1 }).collect();
        let mut parts = Vec::new();
        cut.parts(&blocks, &mut parts);
        parts
    }

    fn cut(rule: Rule) -> Cut {
        let mut window = Window::default();
        for request in 0..200u64 {
            // Everybody begins with 1, half go on with 2, which the others have later; then all differ.
            let ids = if request % 2 == 0 { [1, 2, 1000 + request] } else { [1, 1000 + request, 2] };
            let blocks = ids.map(|id| Block { id, weight: 1 });
            window.push(Access { blocks: &blocks, tenant: 0 });
        }
        let mut cut = Cut::of(rule, 1);
        assert!(cut.trunk.become_these(&window.frequent(rule, &cut.trunk)));
        cut
    }

    fn trunk(cut: &Cut, ids: &[u64]) -> Vec<bool> {
        turns(cut, ids).iter().map(|part| part.turn.is_trunk()).collect()
    }

    /// Broken by: counting ids wherever they stand, and by a trunk that goes on behind what is not of it.
    #[test]
    fn the_trunk_is_what_many_begin_with() {
        let prefix = cut(Rule::Prefix);
        assert_eq!(trunk(&prefix, &[1, 2, 3, 1]), [true, true, false, false]);
        assert_eq!(trunk(&prefix, &[2, 1]), [false, false]);
        assert_eq!(trunk(&prefix, &[1, 3, 2]), [true, false, false]);
        assert_eq!(trunk(&cut(Rule::Each), &[3, 2, 1]), [false, true, true]);
    }

    /// Broken by: a turn that depends on where the prompt ends, or that all conversations have in common.
    #[test]
    fn every_nth_block_of_a_conversation_is_drawn() {
        let cut = cut(Rule::Prefix);
        let come = |ids: &[u64]| -> Vec<bool> {
            turns(&cut, ids).iter().map(|part| part.turn.has_come(4)).collect()
        };
        let begins: Vec<usize> = (0..400u64)
            .map(|first| {
                let ids: Vec<u64> =
                    [1, 2].into_iter().chain(5000 + first * 40..5000 + first * 40 + 40).collect();
                let drawn = come(&ids);
                assert_eq!(come(&ids[..17]), drawn[..17]);
                let begin = drawn[2..].iter().position(|&drawn| drawn).expect("one in four");
                assert!(drawn[2..].iter().zip(0..).all(|(&drawn, at)| drawn == (at % 4 == begin)));
                begin
            })
            .collect();
        for begin in 0..4 {
            let times = begins.iter().filter(|&&other| other == begin).count();
            assert!((60..140).contains(&times), "{begin}: {times}");
        }
    }
}
