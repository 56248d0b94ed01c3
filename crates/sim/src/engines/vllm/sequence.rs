//! A request inside the engine.

use wavetank_cache::BlockId;
use wavetank_model::{BlockKey, Prompt, RequestId, TierObject};

use crate::engines::Job;

/// A request's tokens and blocks. Known tokens are the prompt and what was generated.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) id: RequestId,
    pub(super) prompt: Prompt,
    /// Known tokens.
    pub(super) len: u32,
    /// Known tokens when it is finished.
    pub(super) limit: u32,
    /// Tokens that passes in flight will sample; with `len`, what may be computed.
    pub(super) pending: u32,
    /// Tokens whose KV is in `blocks`, or will be when the passes in flight are over.
    pub(super) computed: u32,
    /// Leading blocks whose content lookups can find.
    pub(super) published: u32,
    pub(super) blocks: Vec<BlockId>,
    /// Its prompt came from another worker and it has not run yet: its place among those.
    pub(super) reservation: Option<u64>,
}

impl Sequence {
    pub(super) fn of(job: Job, max_model_len: Option<u32>) -> Self {
        let len = job.prompt.tokens();
        let limit = len.saturating_add(job.output_tokens).min(max_model_len.unwrap_or(u32::MAX));
        let (blocks, reservation) = (Vec::new(), None);
        let (pending, computed, published) = (0, 0, 0);
        Self { id: job.id, prompt: job.prompt, len, limit, pending, computed, published, blocks, reservation }
    }

    /// Tokens that may be computed: the known ones and those in flight.
    pub(super) fn reach(&self) -> u32 {
        self.len + self.pending
    }

    pub(super) fn is_computed(&self) -> bool {
        self.computed >= self.reach()
    }

    /// Whether the passes in flight sample all it still needs.
    pub(super) fn is_provided_for(&self) -> bool {
        self.pending > 0 && self.reach() >= self.limit
    }

    /// The last token asked for needs no computation; a request that asks for none ends with its prompt.
    pub(super) fn is_finished(&self) -> bool {
        self.len >= self.limit && (self.has_generated() || self.is_computed())
    }

    pub(super) fn has_generated(&self) -> bool {
        self.len > self.prompt.tokens()
    }

    /// Whether the next pass computes exactly the token sampled last.
    pub(super) fn is_decoding(&self) -> bool {
        self.computed + 1 == self.reach() && self.has_generated()
    }

    /// Whether it waits with blocks that were loaded for it.
    pub(super) fn is_loaded(&self) -> bool {
        self.reservation.is_none() && !self.blocks.is_empty()
    }

    /// Prompt tokens that are still to be computed when `computed` are there.
    pub(super) fn prompt_left(&self, computed: u32) -> u32 {
        self.prompt.tokens().saturating_sub(computed)
    }

    /// The identities of its full blocks from `first` on.
    pub(super) fn keys(&self, first: u32, block_size: u32) -> impl Iterator<Item = BlockKey> + '_ {
        self.prompt.content_keys(u64::from(self.id.0), self.len, first, block_size)
    }

    /// The identity of one of its full blocks.
    pub(super) fn object(&self, block: u32, block_size: u32) -> TierObject {
        let BlockKey { group, slot } = self.prompt.content_key(u64::from(self.id.0), block, block_size);
        TierObject { group, slots: 1 << slot }
    }

    /// The identities of its full blocks `blocks`, by group.
    pub(super) fn objects(
        &self,
        blocks: std::ops::Range<u32>,
        block_size: u32,
    ) -> impl Iterator<Item = TierObject> + '_ {
        self.prompt.content_objects(u64::from(self.id.0), blocks, block_size)
    }
}
