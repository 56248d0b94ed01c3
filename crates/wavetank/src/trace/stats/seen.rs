//! Which blocks a trace has asked for: all of them, or those with a hash in a part of the range that is
//! halved whenever there are too many. Every block kept has been kept since its first reference, so that
//! what is said of those kept is true, and what they stand for is known.
//!
//! Wegman's adaptive sampling: Flajolet, "On adaptive sampling", Computing 43, 1990.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use wavetank_model::mix;
use wavetank_trace::PromptBlock;

/// What fits a table of 2^21 places.
pub(super) const MOST: usize = 7 << 18;

/// Different blocks, each known by its id and all ids before it.
pub(super) struct Seen {
    most: usize,
    /// One block in 2^this is kept.
    halvings: u32,
    /// Tokens of each block kept, when it was first asked for.
    kept: HashMap<u64, u32, BuildHasherDefault<Mixed>>,
    /// All that was asked for.
    references: u64,
}

/// What is known of different blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) references: u64,
    /// One block in so many was looked at.
    pub(super) one_in: u64,
    pub(super) unique: u64,
    pub(super) unique_error: f64,
    /// Tokens of all blocks when they were first asked for.
    pub(super) new_tokens: u64,
    pub(super) new_tokens_error: f64,
}

impl Seen {
    pub(super) fn at_most(most: usize) -> Self {
        Self { most, halvings: 0, kept: HashMap::default(), references: 0 }
    }

    /// A prompt; tells how many of its tokens nobody asked for before, about so many from a sample.
    pub(super) fn see(&mut self, blocks: &[PromptBlock]) -> u64 {
        let (mut chain, mut tokens) = (0, 0);
        for block in blocks {
            chain = mix(chain, block.id);
            self.references += 1;
            if self.is_kept(chain) && !self.kept.contains_key(&chain) {
                tokens += u64::from(block.tokens) << self.halvings;
                self.keep(chain, block.tokens);
            }
        }
        tokens
    }

    fn keep(&mut self, block: u64, tokens: u32) {
        self.kept.insert(block, tokens);
        while self.kept.len() > self.most {
            self.halvings += 1;
            let halvings = self.halvings;
            self.kept.retain(|block, _| is_within(*block, halvings));
        }
    }

    fn is_kept(&self, block: u64) -> bool {
        is_within(block, self.halvings)
    }

    pub(super) fn found(&self) -> Found {
        let one_in = 1 << self.halvings;
        let (mut sum, mut squares) = (0, 0.0);
        for tokens in self.kept.values() {
            sum += u64::from(*tokens);
            squares += f64::from(*tokens).powi(2);
        }
        let unique = self.kept.len() as u64 * one_in;
        // Each block is in the sample by itself, with the same chance: the sum's variance is that of
        // Horvitz and Thompson.
        let error = |squares: f64| (squares * (one_in - 1) as f64 * one_in as f64).sqrt();
        Found {
            references: self.references,
            one_in,
            unique: unique.min(self.references),
            unique_error: error(self.kept.len() as f64),
            new_tokens: sum * one_in,
            new_tokens_error: error(squares),
        }
    }
}

/// Bits of the hash that tables of any size in question do not use.
fn is_within(block: u64, halvings: u32) -> bool {
    (block >> 24).trailing_zeros() >= halvings
}

/// Numbers that are mixed already.
#[derive(Default)]
pub(super) struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = mix(self.0, u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prompts of eight blocks: a third of them have been there before.
    fn found(most: usize) -> (Found, u64) {
        let (mut seen, mut new_tokens) = (Seen::at_most(most), 0);
        for prompt in 0..30_000u64 {
            let owner = if prompt % 3 == 0 { prompt / 2 } else { prompt };
            let block = |at: u64| PromptBlock { id: owner * 8 + at, tokens: if at == 7 { 100 } else { 512 } };
            new_tokens += seen.see(&(0..8).map(block).collect::<Vec<_>>());
        }
        (seen.found(), new_tokens)
    }

    /// Broken by: a block that is forgotten and then taken for a new one, a sample that stands for too many
    /// or too few, a table that grows beyond its limit, or an error that says less than it is.
    #[test]
    fn a_sample_says_about_what_all_blocks_say() {
        let (all, new_tokens) = found(MOST);
        assert_eq!((all.one_in, all.unique_error, all.references), (1, 0.0, 240_000));
        assert_eq!(all.new_tokens, new_tokens);
        for most in [2_000, 20_000] {
            let (some, over_time) = found(most);
            assert!(some.one_in > 1 && some.unique / some.one_in <= most as u64, "{some:?}");
            let off = |some: u64, all: u64| (some as f64 - all as f64).abs();
            assert!(off(some.unique, all.unique) < 0.05 * all.unique as f64, "{some:?} {all:?}");
            assert!(off(some.unique, all.unique) < 4.0 * some.unique_error, "{some:?} {all:?}");
            assert!(off(some.new_tokens, all.new_tokens) < 4.0 * some.new_tokens_error, "{some:?} {all:?}");
            assert!(off(over_time, new_tokens) < 0.05 * new_tokens as f64, "{over_time} {new_tokens}");
        }
    }

    /// Broken by: blocks that are known by their id alone.
    #[test]
    fn a_block_is_known_by_what_is_before_it() {
        let mut seen = Seen::at_most(MOST);
        let blocks = |ids: [u64; 2]| ids.map(|id| PromptBlock { id, tokens: 16 });
        assert_eq!(seen.see(&blocks([1, 2])), 32);
        assert_eq!(seen.see(&blocks([1, 3])), 16);
        assert_eq!(seen.see(&blocks([2, 3])), 32);
        assert_eq!((seen.found().unique, seen.found().references), (5, 6));
    }
}
