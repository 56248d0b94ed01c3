//! Texts as tokens: how many there are, and which blocks of them are the same.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use wavetank_model::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

/// How texts become lengths, and how many are taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Texts {
    /// How tokens are counted.
    pub tokens: TokenCount,
    /// The first so many usable conversations; all when not given.
    pub max_conversations: Option<u64>,
    /// The most tokens of what a turn asks; more are cut.
    pub context_tokens_max: u32,
    /// The most tokens of what a turn answers; more are cut.
    pub generate_tokens_max: u32,
}

impl Default for Texts {
    fn default() -> Self {
        let (context_tokens_max, generate_tokens_max) = (16_384, 2_048);
        Self {
            tokens: TokenCount::Tokenizer,
            max_conversations: None,
            context_tokens_max,
            generate_tokens_max,
        }
    }
}

impl Texts {
    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |key: &str, hint: &str| Err(Error::usage(format!("\"{key}\" is wrong")).hint(hint));
        if matches!(self.tokens, TokenCount::Characters(n) if !n.is_finite() || n <= 0.0) {
            return wrong("tokens", "characters per token must be above 0");
        }
        if self.max_conversations == Some(0) {
            return wrong("max_conversations", "must be 1 or more");
        }
        if self.context_tokens_max == 0 || self.generate_tokens_max == 0 {
            return wrong("context_tokens_max or generate_tokens_max", "both must be 1 or more");
        }
        Ok(())
    }
}

/// How tokens are counted; a text has at least one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenCount {
    /// By OpenAI's cl100k_base.
    Tokenizer,
    /// So many characters are a token; 4 is usual.
    Characters(f64),
}

impl fmt::Display for TokenCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tokenizer => f.write_str("tiktoken cl100k_base"),
            Self::Characters(per_token) => write!(f, "characters / {per_token}"),
        }
    }
}

/// Stands in for a tokenizer that gives up: its pattern cannot go back over a million spaces.
pub(crate) const USUAL: TokenCount = TokenCount::Characters(4.0);

impl TokenCount {
    /// The tokens of `text`, equal for equal texts; `None` when the tokenizer gives up on it.
    pub(crate) fn of(self, text: &str) -> Option<Vec<u32>> {
        let mut tokens = match self {
            Self::Tokenizer => tiktoken_rs::cl100k_base_singleton().encode(text, &HashSet::new()).ok()?.0,
            Self::Characters(per_token) => pieces(text, per_token),
        };
        if tokens.is_empty() {
            tokens.push(EMPTY);
        }
        Some(tokens)
    }
}

/// The token of a text without any.
const EMPTY: u32 = u32::MAX;

/// One token for every `per_token` characters; what is left over at the end is no token.
fn pieces(text: &str, per_token: f64) -> Vec<u32> {
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).skip(1).chain([text.len()]).collect();
    let characters = if text.is_empty() { 0 } else { ends.len() };
    let count = (characters as f64 / per_token) as usize;
    let end = |token: usize| match (token as f64 * per_token) as usize {
        0 => 0,
        characters => ends[characters.min(ends.len()) - 1],
    };
    (0..count).map(|token| xxh3_64(&text.as_bytes()[end(token)..end(token + 1)]) as u32).collect()
}

/// Tokens that one id made of texts stands for.
pub(crate) const TOKENS_PER_ID: u32 = 16;

/// Appends the ids of blocks of `tokens` that are not there yet. The last block may be short: whoever has the
/// rest of the text gives it with all that follows, so that equal ids mean equal tokens as far as both go.
pub(crate) fn block_ids(tokens: &[u32], ids: &mut Vec<u64>) {
    let known = ids.len() * TOKENS_PER_ID as usize;
    let blocks = tokens.get(known..).unwrap_or_default().chunks(TOKENS_PER_ID as usize);
    ids.extend(blocks.map(|block| {
        let mut bytes = [0; 4 * TOKENS_PER_ID as usize];
        for (place, token) in bytes.chunks_exact_mut(4).zip(block) {
            place.copy_from_slice(&token.to_le_bytes());
        }
        xxh3_64(&bytes[..4 * block.len()])
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_those_of_cl100k() {
        let count = |text: &str| TokenCount::Tokenizer.of(text).map(|tokens| tokens.len());
        assert_eq!(count("tiktoken is great!"), Some(6));
        assert_eq!(count("<|endoftext|>"), Some(7), "special tokens are text");
        assert_eq!(count(""), Some(1));
        for (text, tokens) in [("", 1), ("abc", 1), ("abcdefg", 1), ("äöüßäöüß", 2), ("abcdefghijklm", 3)]
        {
            assert_eq!(TokenCount::Characters(4.0).of(text).unwrap().len(), tokens, "{text}");
        }
        assert_eq!(TokenCount::Characters(0.5).of("ab").unwrap().len(), 4);
    }

    #[test]
    fn equal_beginnings_have_equal_ids() {
        let (a, b) = (vec![1; 40], [vec![1; 32], vec![2; 30]].concat());
        let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
        block_ids(&a, &mut of_a);
        block_ids(&b, &mut of_b);
        assert_eq!((of_a.len(), of_b.len()), (3, 4));
        assert_eq!(of_a[..2], of_b[..2]);
        assert_ne!(of_a[2], of_b[2]);
    }
}
