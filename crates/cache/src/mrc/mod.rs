//! Miss-ratio curves: what share of a trace's blocks a cache of each capacity serves. No time, no I/O.
//!
//! A [`Study`] takes one [`Access`] after another: a prompt as the ids of its blocks, from the first to the
//! last, or one object alone. A request looks all its blocks up in the cache as it is, and a block is
//! served only if all earlier blocks of its prompt are ([`Rule::Prefix`]). Then the request gives its
//! blocks back from the last to the first, each of which is used or enters: the head of a prompt is the
//! most recently used of it, and its tail leaves first, as engines free them.
//!
//! - LRU: one pass for all capacities at once, exactly (`stack`, on the slots of a `timeline`). A stack
//!   that grows too large goes on with half of its blocks, which stand for all.
//! - Every other policy: one cache for each capacity (`miniature`), on a sample of the blocks (`cut`).
//!
//! Mattson, Gecsei, Slutz and Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal
//! 9(2), 1970; Waldspurger, Park, Garthwaite and Ahmad, "Efficient MRC construction with SHARDS", FAST
//! 2015; Waldspurger, Saemundsson, Ahmad and Park, "Cache modeling and optimization using miniature
//! simulations", USENIX ATC 2017.

mod curve;
mod cut;
mod knee;
mod miniature;
mod report;
mod simulation;
mod stack;
mod study;
mod tally;
#[cfg(test)]
mod tests;
mod timeline;
mod window;

use serde::{Deserialize, Serialize};

pub use curve::StackCurve;
pub use knee::Knee;
pub use report::{Bound, Curves, Enough, PolicyCurve, Report, Row, Totals};
pub use study::{Plan, Study};

/// A block of a prompt, or an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Blocks with equal ids have equal content; with [`Rule::Prefix`] if the blocks before them do too.
    pub id: u64,
    /// What it counts for (tokens, bytes), and what it takes with [`Sizes::Weighed`].
    pub weight: u64,
}

/// What one request asks for.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// From the first block of the prompt to the last; an object alone is a prompt of one.
    pub blocks: &'a [Block],
    /// Whose they are; only a policy with quotas asks.
    pub tenant: u32,
}

/// When a block that is there is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// If all earlier blocks of its prompt are there too. A block is known by its id and all ids before it.
    #[default]
    Prefix,
    /// Always. A block is known by its id alone, wherever it stands.
    Each,
}

/// What a block takes of the capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sizes {
    /// One place: capacities are numbers of blocks.
    #[default]
    Equal,
    /// Its weight: capacities are in the same unit.
    Weighed,
}

impl Sizes {
    fn of(self, weight: u64) -> u64 {
        match self {
            Self::Equal => 1,
            Self::Weighed => weight,
        }
    }
}

/// 64 well mixed bits of two words: multiply and fold (the core of wyhash, Wang Yi 2019).
fn mixed(left: u64, right: u64) -> u64 {
    let product = u128::from(left ^ 0x2d35_8dcc_aa6c_78a5) * u128::from(right ^ 0x8bb8_4b93_962e_acc9);
    (product as u64) ^ ((product >> 64) as u64)
}
