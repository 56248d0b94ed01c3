//! A prompt in compact form: one chained hash per trace block, never a vector of tokens.
//!
//! A trace names a prompt by ids, each standing for `tokens_per_id` tokens. What a cache needs is whether two
//! prompts agree up to the end of an engine block. They do exactly when their ids agree up to the id that
//! covers the block's last token, so one hash chained over the ids and the position of the block are the
//! block's identity, whatever the two block sizes are. Neighbouring blocks under one id differ in position
//! only: their keys share a group, so that a cache finds up to eight blocks with one look.

/// The identity of a full block: equal keys mean equal tokens from the start of the prompt to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockKey {
    /// A mixed hash, shared by blocks that agree in all but their position among eight.
    pub group: u64,
    /// The position, below [`BlockKey::PER_GROUP`].
    pub slot: u32,
}

impl BlockKey {
    /// How many blocks a group can hold.
    pub const PER_GROUP: u32 = 8;

    /// A bit that no other bit of a hash depends on: set for content that only one request can have.
    const PRIVATE: u64 = 1 << 40;

    fn at(parent: u64, block: u32) -> Self {
        let group = mix(parent, u64::from(block / Self::PER_GROUP)) & !Self::PRIVATE;
        Self { group, slot: block % Self::PER_GROUP }
    }

    fn private(self) -> Self {
        Self { group: self.group | Self::PRIVATE, ..self }
    }

    /// Whether `group` holds content that no other request can ask for.
    pub fn is_private(group: u64) -> bool {
        group & Self::PRIVATE != 0
    }
}

/// The prefix identities of one prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    chain: Box<[u64]>,
    tokens: u32,
    tokens_per_id: u32,
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
        Self { chain: chain.into_boxed_slice(), tokens, tokens_per_id }
    }

    /// A prompt that shares nothing with any prompt of another `seed`.
    pub fn unique(seed: u64, tokens: u32) -> Self {
        Self::from_ids([seed], tokens, tokens)
    }

    /// Whether it begins with all of `earlier`, as far as whole ids tell.
    pub fn extends(&self, earlier: &Self) -> bool {
        let whole = (earlier.tokens / earlier.tokens_per_id).max(1) as usize;
        self.tokens_per_id == earlier.tokens_per_id
            && self.tokens > earlier.tokens
            && self.chain.get(..whole) == earlier.chain.get(..whole)
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
        let end = first * block_size;
        let id = end / self.tokens_per_id;
        let id_end = (id + 1).saturating_mul(self.tokens_per_id);
        BlockKeys { prompt: self, block_size, block: first, end, id: id as usize, id_end, last: None }
    }

    /// The identity of the whole prompt, the parent of what a request generates after it.
    pub fn whole(&self) -> u64 {
        self.chain[self.chain.len() - 1]
    }

    /// The keys of all full blocks of a request with `tokens` known tokens, from block `first` on: the
    /// prompt's, then those that hold output of the request `owner`.
    pub fn content_keys(
        &self,
        owner: u64,
        tokens: u32,
        first: u32,
        block_size: u32,
    ) -> impl Iterator<Item = BlockKey> + Clone + '_ {
        let prompt_blocks = self.full_blocks(block_size);
        let output = first.max(prompt_blocks)..tokens / block_size;
        let private = output.map(move |block| self.output_key(owner, block));
        self.keys_from(first.min(prompt_blocks), block_size).chain(private)
    }

    /// The key of block `block` when it holds output of request `owner`: private content.
    fn output_key(&self, owner: u64, block: u32) -> BlockKey {
        BlockKey::at(mix(self.whole() ^ OUTPUT, owner), block).private()
    }
}

/// Iterator over the block keys of a prompt; most steps only count.
#[derive(Clone, Debug)]
pub struct BlockKeys<'a> {
    prompt: &'a Prompt,
    block_size: u32,
    block: u32,
    end: u32,
    id: usize,
    id_end: u32,
    last: Option<BlockKey>,
}

impl Iterator for BlockKeys<'_> {
    type Item = BlockKey;

    fn next(&mut self) -> Option<BlockKey> {
        let end = self.end + self.block_size;
        if end > self.prompt.tokens {
            return None;
        }
        let neighbour = self.last.filter(|last| last.slot + 1 < BlockKey::PER_GROUP && end <= self.id_end);
        while self.id_end < end {
            self.id += 1;
            self.id_end = self.id_end.saturating_add(self.prompt.tokens_per_id);
        }
        let key = match neighbour {
            Some(BlockKey { group, slot }) => BlockKey { group, slot: slot + 1 },
            None => BlockKey::at(self.prompt.chain[self.id], self.block),
        };
        (self.end, self.block, self.last) = (end, self.block + 1, Some(key));
        Some(key)
    }
}

const ROOT: u64 = 0x9e37_79b9_7f4a_7c15;
const OUTPUT: u64 = 0xd6e8_feb8_6659_fd93;

/// Multiply-and-fold of two words (the core of wyhash, Wang Yi 2019): 64 well mixed bits.
fn mix(left: u64, right: u64) -> u64 {
    let product = u128::from(left ^ 0xa076_1d64_78bd_642f) * u128::from(right ^ 0xe703_7ed1_a0b4_28db);
    (product as u64) ^ ((product >> 64) as u64)
}

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
}
