//! A request: what is asked of the cache, by whom, and when.

use std::fmt;
use std::ops::Range;

use wavetank_model::{Class, Nanos};

/// What a request does with its own entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Writes it.
    Prefill,
    /// Reads it.
    Decode,
    /// Writes it, then reads it.
    PrefillDecode,
}

/// The name of an entry. Its text is the key in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// A turn of a user's conversation, both counted from 1.
    Turn {
        /// Whose.
        user: u32,
        /// Which of its conversations.
        conversation: u32,
        /// Which turn.
        turn: u32,
    },
    /// A user's request that belongs to no conversation, counted from 1.
    Single {
        /// Whose.
        user: u32,
        /// Which.
        number: u32,
    },
    /// A chunk of a document.
    Chunk {
        /// Which document.
        document: u32,
        /// Which of its chunks.
        chunk: u32,
    },
    /// A shared prompt, by its place in [`PROMPTS`](crate::PROMPTS).
    Prompt(u8),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Turn { user, conversation, turn } => {
                write!(f, "conv_user_{user:04}_{conversation:06}_turn_{turn}")
            }
            Self::Single { user, number } => write!(f, "user_{user:04}_req_{number:06}"),
            Self::Chunk { document, chunk } => write!(f, "rag_doc_{document:06}_chunk_{chunk}"),
            Self::Prompt(number) => f.write_str(crate::PROMPTS[usize::from(number)].key),
        }
    }
}

/// One request of a user.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Whose.
    pub user: u32,
    /// Which of its requests, from 1.
    pub number: u32,
    /// When it is asked, since the start of the run.
    pub at: Nanos,
    /// How urgent it is.
    pub class: Class,
    /// What it does with its own entry.
    pub phase: Phase,
    /// Its own entry.
    pub name: Name,
    /// Tokens of that entry.
    pub context_tokens: u32,
    /// Tokens to generate.
    pub generate_tokens: u32,
    /// The shared prompt it begins with.
    pub prompt: Option<u8>,
    /// Chunks of a document it reads.
    pub chunks: Option<(u32, Range<u32>)>,
}

impl Request {
    /// The entries of earlier turns, oldest first: what the conversation so far left in the cache.
    pub fn history(&self) -> impl Iterator<Item = Name> + use<> {
        let (user, conversation, turns) = match self.name {
            Name::Turn { user, conversation, turn } => (user, conversation, 1..turn),
            _ => (0, 0, 0..0),
        };
        turns.map(move |turn| Name::Turn { user, conversation, turn })
    }

    /// Its id in logs.
    pub fn id(&self) -> String {
        format!("req_user_{:04}_{:06}", self.user, self.number)
    }
}
