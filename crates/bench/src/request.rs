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
    /// A turn of a recorded conversation, all counted from 0.
    Recorded {
        /// Which conversation of the recording.
        session: u32,
        /// Which turn.
        turn: u32,
        /// In which pass, where a later pass is another conversation; otherwise 0.
        cycle: u32,
    },
    /// An entry that was there before the first request, for those who only read.
    Prepared(u32),
    /// An entry that only fills the drive.
    Ballast(u32),
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
            Self::Recorded { session, turn, cycle: 0 } => write!(f, "conv_{session:06}_turn_{}", turn + 1),
            Self::Recorded { session, turn, cycle } => {
                write!(f, "conv_{session:06}_pass_{cycle}_turn_{}", turn + 1)
            }
            Self::Prepared(number) => write!(f, "prepop_{number}"),
            Self::Ballast(number) => write!(f, "precond_{number}"),
        }
    }
}

/// A shared prompt that a request begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedPrompt {
    /// Its place in [`PROMPTS`](crate::PROMPTS).
    pub number: u8,
    /// How many tokens it takes.
    pub tokens: u32,
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
    pub prompt: Option<SharedPrompt>,
    /// Chunks of a document it reads.
    pub chunks: Option<(u32, Range<u32>)>,
    /// Where it is in a recording.
    pub place: Option<Place>,
}

/// A turn of a recording that is being played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Which conversation.
    pub session: u32,
    /// Which of its turns, from 0.
    pub turn: u32,
    /// In which pass.
    pub cycle: u64,
}

impl Request {
    /// The entries of earlier turns, oldest first: what the conversation so far left in the cache.
    pub fn history(&self) -> impl Iterator<Item = Name> + use<> {
        let own = self.name;
        let turns = match own {
            Name::Turn { turn, .. } => 1..turn,
            Name::Recorded { turn, .. } => 0..turn,
            _ => 0..0,
        };
        turns.map(move |turn| match own {
            Name::Turn { user, conversation, .. } => Name::Turn { user, conversation, turn },
            Name::Recorded { session, cycle, .. } => Name::Recorded { session, turn, cycle },
            other => other,
        })
    }
}
