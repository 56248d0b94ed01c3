//! What happens between simulated workers and the tiers behind them.

use crate::{Nanos, Operation, RequestId, WorkerId};

/// One fact about KV behind the GPU's memory.
#[derive(Clone, Copy, Debug)]
pub enum TierEvent<'a> {
    /// KV was read from a tier or written to it: in one transfer, or in several of the same length that began
    /// and ended together.
    Moved {
        /// Whose.
        worker: WorkerId,
        /// Which tier, from the fastest.
        tier: u8,
        /// Which way.
        operation: Operation,
        /// For whom it was read; `None` where no request waits for it.
        request: Option<RequestId>,
        /// How many.
        transfers: u32,
        /// What moved.
        objects: &'a [TierObject],
        /// How much, all together.
        bytes: u64,
        /// When it was asked for.
        began: Nanos,
        /// When all of it was there.
        ended: Nanos,
    },
    /// A request has what was found for it.
    Loaded {
        /// Whose.
        request: RequestId,
        /// Where.
        worker: WorkerId,
        /// Tokens found in each tier.
        tokens: &'a [u32],
        /// When it was asked for.
        asked: Nanos,
        /// When it was there.
        at: Nanos,
    },
    /// A tier gave up blocks to make room for others.
    Evicted {
        /// Whose, or who filled it where it is shared.
        worker: WorkerId,
        /// Which tier.
        tier: u8,
        /// How many.
        blocks: u32,
        /// When.
        at: Nanos,
    },
    /// Blocks were not written, because there was no room for them that could be made.
    Dropped {
        /// Whose.
        worker: WorkerId,
        /// Which tier.
        tier: u8,
        /// How many.
        blocks: u32,
        /// When.
        at: Nanos,
    },
}

/// Neighbouring blocks that a tier keeps together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TierObject {
    /// The group of their keys.
    pub group: u64,
    /// A bit per slot of the group.
    pub slots: u8,
}
