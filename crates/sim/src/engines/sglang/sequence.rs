//! A request inside the engine.

use wavetank_cache::PageId;
use wavetank_model::{Prompt, RequestId};

use crate::engines::Job;

/// A request's tokens and pages.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) id: RequestId,
    pub(super) prompt: Prompt,
    /// Known tokens: the prompt and what was generated.
    pub(super) len: u32,
    /// Known tokens when it is finished.
    pub(super) limit: u32,
    /// Tokens computed while it is being prefilled; 0 for one that has not begun.
    pub(super) computed: u32,
    /// Its leading pages, in the tree.
    pub(super) held: Vec<PageId>,
    /// Its other pages.
    pub(super) private_pages: u32,
    /// Leading pages that were written to tiers, or came from there.
    pub(super) written_pages: u32,
    /// Whether it waits with pages that were loaded for it.
    pub(super) is_loaded: bool,
}

impl Sequence {
    pub(super) fn of(job: Job, max_model_len: Option<u32>) -> Self {
        let len = job.prompt.tokens();
        let limit = len.saturating_add(job.output_tokens).min(max_model_len.unwrap_or(u32::MAX));
        Self {
            id: job.id,
            prompt: job.prompt,
            len,
            limit,
            computed: 0,
            held: Vec::new(),
            private_pages: 0,
            written_pages: 0,
            is_loaded: false,
        }
    }

    pub(super) fn has_generated(&self) -> bool {
        self.len > self.prompt.tokens()
    }

    pub(super) fn generated(&self) -> u32 {
        self.len - self.prompt.tokens()
    }

    /// Output tokens asked for.
    pub(super) fn most_output(&self) -> u32 {
        self.limit.saturating_sub(self.prompt.tokens())
    }

    pub(super) fn is_finished(&self) -> bool {
        self.len >= self.limit
    }

    /// Pages it lacks for its first `tokens` tokens.
    pub(super) fn missing_pages(&self, tokens: u32, page: u32) -> u32 {
        tokens.div_ceil(page).saturating_sub(self.held.len() as u32 + self.private_pages)
    }
}
