//! A prompt in compact form: one chained hash per trace block, never a vector of tokens.
//!
//! A trace names a prompt by ids, each standing for `tokens_per_id` tokens. What a cache needs is whether two
//! prompts agree up to the end of an engine block. They do exactly when their ids agree up to the id that
//! covers the block's last token, so one hash chained over the ids and the position of the block are the
//! block's identity, whatever the two block sizes are. Neighbouring blocks under one id differ in position
//! only: their keys share a group, so that a cache finds up to eight blocks with one look.
//!
//! What a session says after its first prompt may be its own: its position is all there is to know of it,
//! and what a turn generates is found by the next one, which holds it. Where it is known what will be
//! generated, ids name that too.

mod keys;
mod objects;

pub use keys::BlockKeys;

use crate::block_key::{BlockKey, mix};

/// The prefix identities of one prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    chain: Box<[u64]>,
    tokens: u32,
    tokens_per_id: u32,
    /// What follows the tokens that ids name; empty where ids name all of them and output is private. Where
    /// ids name output too, one that begins behind it, and what is there is private.
    tails: Box<[Tail]>,
}

/// Content that only one session can have, up to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tail {
    /// The first token of it.
    from: u32,
    /// What its keys are made of, and all before it.
    parent: u64,
}

impl Prompt {
    /// Chains `ids`; ids beyond the ones that cover `tokens` are ignored.
    ///
    /// # Panics
    /// When `tokens` or `tokens_per_id` is zero or the ids do not cover the tokens: readers check that.
    pub fn from_ids(ids: impl IntoIterator<Item = u64>, tokens: u32, tokens_per_id: u32) -> Self {
        assert!(tokens > 0 && tokens_per_id > 0);
        let covering = tokens.div_ceil(tokens_per_id) as usize;
        let mut parent = ROOT;
        let mut chain = Vec::with_capacity(covering);
        for id in ids.into_iter().take(covering) {
            parent = mix(parent, id);
            chain.push(parent);
        }
        assert_eq!(chain.len(), covering, "{tokens} tokens need {covering} ids of {tokens_per_id}");
        Self { chain: chain.into_boxed_slice(), tokens, tokens_per_id, tails: Box::default() }
    }

    /// The same, of which only the first `tokens` are asked and the others are the answer, known before it is
    /// generated: its blocks are those of a longer prompt that begins with all of this.
    ///
    /// # Panics
    /// When nothing is asked, or not all of it is named by ids.
    #[must_use]
    pub fn answered_after(self, tokens: u32) -> Self {
        assert!((1..=self.tokens).contains(&tokens) && self.tails.is_empty());
        let end = Tail { from: self.tokens, parent: self.whole() };
        Self { tails: (tokens < self.tokens).then_some(end).into_iter().collect(), tokens, ..self }
    }

    /// The same, but what comes after its tokens, generated or said, is what only the holder of `seed` has.
    ///
    /// # Panics
    /// When it is known already.
    #[must_use]
    pub fn continued(self, seed: u64) -> Self {
        assert!(self.answered_until().is_none());
        let before = self.tails.last().map_or(self.whole(), |tail| tail.parent);
        let tail = Tail { from: self.tokens, parent: mix(before ^ OUTPUT, seed) };
        let shorter = self.tails.iter().copied().filter(|tail| tail.from < self.tokens);
        Self { tails: shorter.chain([tail]).collect(), ..self }
    }

    /// Whether what follows it is its session's own.
    pub fn is_continued(&self) -> bool {
        !self.tails.is_empty() && self.answered_until().is_none()
    }

    /// The end of its answer, if that is known.
    fn answered_until(&self) -> Option<u32> {
        self.tails.first().map(|tail| tail.from).filter(|&from| from > self.tokens)
    }

    /// The same with more tokens; it is continued, so that it is known what they are.
    #[must_use]
    pub fn lengthened(self, tokens: u32) -> Self {
        assert!(self.is_continued() && tokens >= self.tokens);
        Self { tokens, ..self }
    }

    /// Tokens of it that ids name.
    fn named_tokens(&self) -> u32 {
        self.tails.first().map_or(self.tokens, |tail| tail.from.min(self.tokens))
    }

    /// A prompt that shares nothing with any prompt of another `seed`.
    pub fn unique(seed: u64, tokens: u32) -> Self {
        Self::from_ids([seed], tokens, tokens)
    }

    /// Whether it begins with all of `earlier`, as far as whole ids tell.
    pub fn extends(&self, earlier: &Self) -> bool {
        let whole = (earlier.named_tokens() / earlier.tokens_per_id).max(1) as usize;
        let spoken = earlier.tails.partition_point(|tail| tail.from < earlier.tokens);
        self.tokens_per_id == earlier.tokens_per_id
            && self.tokens > earlier.tokens
            && self.chain.get(..whole) == earlier.chain.get(..whole)
            && self.tails.starts_with(&earlier.tails[..spoken])
    }

    /// Length in tokens.
    pub fn tokens(&self) -> u32 {
        self.tokens
    }

    /// How many ids of the trace it is made of.
    pub fn ids(&self) -> usize {
        self.chain.len()
    }

    /// How many blocks of `block_size` tokens the prompt fills completely.
    pub fn full_blocks(&self, block_size: u32) -> u32 {
        self.tokens / block_size
    }

    /// The keys of the full blocks from block `first` on.
    pub fn keys_from(&self, first: u32, block_size: u32) -> BlockKeys<'_> {
        BlockKeys::of(self, first, block_size)
    }

    /// The identity of all that ids name, a known answer included.
    pub fn whole(&self) -> u64 {
        self.chain[self.chain.len() - 1]
    }

    /// The keys of all full blocks of a request with `tokens` known tokens, from block `first` on: the
    /// prompt's, then those that hold output of the request `owner`: its own alone, unless it is continued or
    /// known.
    pub fn content_keys(
        &self,
        owner: u64,
        tokens: u32,
        first: u32,
        block_size: u32,
    ) -> impl Iterator<Item = BlockKey> + Clone + '_ {
        let prompt_blocks = self.full_blocks(block_size);
        let output = first.max(prompt_blocks)..tokens / block_size;
        let generated = output.map(move |block| self.output_key(owner, block, block_size));
        self.keys_from(first.min(prompt_blocks), block_size).chain(generated)
    }

    /// The key of the full block `block` of a request, as [`Self::content_keys`] has it.
    pub fn content_key(&self, owner: u64, block: u32, block_size: u32) -> BlockKey {
        match block < self.full_blocks(block_size) {
            true => self.keys_from(block, block_size).next().expect("the prompt fills it"),
            false => self.output_key(owner, block, block_size),
        }
    }

    /// The key of block `block` when it holds output of request `owner`.
    fn output_key(&self, owner: u64, block: u32, block_size: u32) -> BlockKey {
        let private = || BlockKey::at(mix(self.whole() ^ OUTPUT, owner), block).private();
        if self.tails.is_empty() {
            return private();
        }
        let end = (block + 1) * block_size;
        match self.answered_until() {
            None => self.tail_key(block, end),
            Some(known) if end <= known => {
                BlockKey::at(self.chain[((end - 1) / self.tokens_per_id) as usize], block)
            }
            Some(_) => private(),
        }
    }

    /// The key of block `block`, which ends at token `end`, beyond what ids name.
    fn tail_key(&self, block: u32, end: u32) -> BlockKey {
        let tail = self.tails.iter().rev().find(|tail| tail.from < end);
        BlockKey::at(tail.expect("ids name no more").parent, block)
    }
}

const ROOT: u64 = 0x9e37_79b9_7f4a_7c15;
const OUTPUT: u64 = 0xd6e8_feb8_6659_fd93;

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(ids: &[u64], tokens: u32, per_id: u32, block: u32) -> Vec<BlockKey> {
        let prompt = Prompt::from_ids(ids.iter().copied(), tokens, per_id);
        let keys: Vec<_> = prompt.keys_from(0, block).collect();
        assert_eq!(keys.len(), prompt.full_blocks(block) as usize);
        for first in 0..keys.len() {
            assert!(prompt.keys_from(first as u32, block).eq(keys[first..].iter().copied()));
        }
        keys
    }

    #[test]
    fn l1_ids_are_cut_into_engine_blocks() {
        assert_eq!(keys(&[1, 2], 6, 4, 4).len(), 1);
        assert_eq!(keys(&[1, 2], 6, 4, 2).len(), 3);
    }

    #[test]
    fn l2_ids_that_differ_above_32_bits_stay_apart() {
        let k = 7;
        assert_ne!(keys(&[(1 << 32) + k], 4, 4, 4), keys(&[k], 4, 4, 4));
        assert_eq!(keys(&[k], 4, 4, 4), keys(&[k], 4, 4, 4));
    }

    #[test]
    fn a_shared_prefix_is_shared_to_the_engine_block() {
        // 10 tokens per id, blocks of 4: tokens 0..8 lie in id 1, block 2 (8..12) needs id 2 too.
        let (a, b) = (keys(&[1, 2], 20, 10, 4), keys(&[1, 3], 20, 10, 4));
        assert_eq!(a[..2], b[..2]);
        assert!(a[2..].iter().zip(&b[2..]).all(|(x, y)| x != y));
    }

    #[test]
    fn the_same_id_at_another_depth_is_another_block() {
        let all = keys(&[5, 5, 5], 12, 4, 4);
        assert!(all[0] != all[1] && all[1] != all[2]);
    }

    #[test]
    fn blocks_under_one_id_share_a_group() {
        let all = keys(&[1, 2], 128, 64, 4);
        assert_eq!(
            all.iter().map(|key| key.slot).collect::<Vec<_>>(),
            (0..32).map(|i| i % 8).collect::<Vec<_>>()
        );
        let groups: Vec<_> = all.chunk_by(|a, b| a.group == b.group).map(<[_]>::len).collect();
        assert_eq!(groups, [8, 8, 8, 8]);
    }

    #[test]
    fn an_engine_block_may_span_several_ids() {
        let (a, b) = (keys(&[1, 2, 3, 4], 16, 4, 8), keys(&[1, 2, 3, 9], 16, 4, 8));
        assert_eq!(a[0], b[0]);
        assert_ne!(a[1], b[1]);
    }

    const SIZES: [u32; 6] = [1, 3, 4, 16, 24, 64];

    /// Broken by: output keyed by the request that generated it, or by an id that begins before the output.
    #[test]
    fn the_next_turn_begins_with_what_was_generated() {
        for tokens in [1, 15, 16, 100, 128] {
            let first = Prompt::from_ids([7, 8, 9], tokens, 50).continued(1);
            let second = first.clone().lengthened(tokens + 37 + 5);
            let third = second.clone().lengthened(second.tokens() + 200);
            assert!(second.extends(&first) && third.extends(&second) && !second.extends(&third));
            for size in SIZES {
                for (before, output, after) in [(&first, 37, &second), (&second, 170, &third)] {
                    let known = before.tokens() + output;
                    let kept: Vec<_> = before.content_keys(5, known, 0, size).collect();
                    assert_eq!(kept.len() as u32, known / size);
                    assert!(kept.iter().all(|key| !BlockKey::is_private(key.group)));
                    assert!(after.keys_from(0, size).take(kept.len()).eq(kept), "{tokens} by {size}");
                }
            }
        }
    }

    /// Broken by: an answer keyed by the request that generates it, by an id that ends after it, or as found
    /// before it is there.
    #[test]
    fn a_known_answer_is_what_a_longer_prompt_holds() {
        let lengths = (1..50).flat_map(|tokens| (0..70).step_by(3).map(move |answer| (tokens, answer)));
        for (tokens, answer) in lengths {
            for (per_id, size) in SIZES.iter().flat_map(|&per_id| SIZES.map(|size| (per_id, size))) {
                let longer = Prompt::from_ids(100.., tokens + answer, per_id);
                let asked = longer.clone().answered_after(tokens);
                assert_eq!((asked.tokens(), asked.is_continued()), (tokens, false));
                for first in [0, 1, tokens / size, (tokens + answer) / size] {
                    let known = asked.content_keys(5, tokens + answer, first, size);
                    assert!(known.eq(longer.keys_from(first, size)), "{tokens} {answer} {per_id} {size}");
                }
                let alone = asked.keys_from(0, size);
                assert!(alone.eq(longer.keys_from(0, size).take((tokens / size) as usize)));
                let beyond = |owner| {
                    let keys = asked.content_keys(owner, tokens + answer + 70, 0, size);
                    keys.skip(((tokens + answer) / size) as usize)
                };
                assert!(beyond(5).all(|key| BlockKey::is_private(key.group)));
                assert!(beyond(5).zip(beyond(6)).all(|(one, other)| one != other));
            }
        }
    }

    /// Broken by: a tail that other sessions share, or that hides what ids name.
    #[test]
    fn what_was_generated_is_the_sessions_own() {
        let of = |seed, tokens| Prompt::from_ids([7, 8, 9], 100, 50).continued(seed).lengthened(tokens);
        let (one, other) = (of(1, 190), of(2, 190));
        assert!(one.extends(&of(1, 150)) && !one.extends(&of(2, 150)));
        let plain = Prompt::from_ids([7, 8, 9], 100, 50);
        for size in SIZES {
            let keys = |prompt: &Prompt| prompt.keys_from(0, size).collect::<Vec<_>>();
            let (one, other) = (keys(&one), keys(&other));
            let shared = (100 / size) as usize;
            assert_eq!(one[..shared], keys(&plain));
            assert_eq!(one[..shared], other[..shared]);
            assert!(one[shared..].iter().zip(&other[shared..]).all(|(one, other)| one != other));
        }
    }

    /// Broken by: what was generated before a turn was given up being found where something else was said.
    #[test]
    fn an_answer_that_was_not_given_is_not_found() {
        let first = Prompt::from_ids([7], 10, 16).continued(1);
        let second = first.clone().lengthened(30);
        let instead = second.clone().continued(2).lengthened(60);
        let generated: Vec<_> = second.content_keys(0, 60, 0, 4).collect();
        let said: Vec<_> = instead.keys_from(0, 4).collect();
        assert_eq!(said[..7], generated[..7]);
        assert!(said[7..].iter().zip(&generated[7..]).all(|(said, generated)| said != generated));
        let at_once = first.clone().continued(2).lengthened(60);
        assert_eq!(at_once.keys_from(2, 4).next().map(|key| key == generated[2]), Some(false));
        assert!(instead.extends(&second) && at_once.extends(&first) && !at_once.extends(&second));
    }
}
