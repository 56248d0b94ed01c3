//! System prompts that many users share: written once, then hit by everyone.

/// A shared prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Its key in the cache.
    pub key: &'static str,
    /// Its length in words, which count as tokens.
    pub words: u32,
}

/// The shared prompts there are, as long as those of the reference (5, 9 and 6 words).
pub const PROMPTS: [Prompt; 3] = [
    Prompt { key: "kv_system_0", words: 5 },
    Prompt { key: "kv_system_1", words: 9 },
    Prompt { key: "kv_system_2", words: 6 },
];
