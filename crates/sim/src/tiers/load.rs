//! What a request waits for.

use wavetank_model::{Nanos, RequestId, TierObject, WorkerId};

use crate::arena::Slot;

/// Blocks on their way from tiers to a worker, for one request.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) request: RequestId,
    /// Where the engine keeps the request.
    pub(crate) slot: Slot,
    /// Told apart from others of the same request.
    pub(crate) number: u64,
    pub(crate) asked: Nanos,
    /// Tokens found in each tier.
    pub(crate) tokens: Vec<u32>,
    /// Transfers and runs of them that have not ended.
    pub(crate) left: u32,
    /// The end of the last that has.
    pub(crate) at: Nanos,
}

impl Load {
    /// When it was all there, if it is.
    pub(crate) fn ended(&self) -> Option<Nanos> {
        (self.left == 0).then_some(self.at)
    }
}

/// A transfer, or run of transfers, of a load that has ended.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) worker: WorkerId,
    pub(crate) load: u64,
    pub(crate) at: Nanos,
    pub(crate) objects: Vec<TierObject>,
}
