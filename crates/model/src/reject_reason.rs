//! Why a request cannot be served.

/// Why a request was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RejectReason {
    /// The prompt reaches `max_model_len`.
    PromptReachesModelLimit,
    /// The prompt needs more blocks than the worker has.
    PromptExceedsCache,
    /// The prompt is longer than a pass and chunked prefill is off.
    PromptExceedsPass,
    /// Prompt and output together outgrew the worker's blocks.
    OutgrewCache,
    /// The prompt fits, but not with the room that must be reserved for its output.
    ReserveExceedsCache,
}

impl RejectReason {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::PromptReachesModelLimit => "prompt_reaches_max_model_len",
            Self::PromptExceedsCache => "prompt_exceeds_num_gpu_blocks",
            Self::PromptExceedsPass => "prompt_exceeds_max_num_batched_tokens",
            Self::OutgrewCache => "outgrew_num_gpu_blocks",
            Self::ReserveExceedsCache => "output_reserve_exceeds_num_gpu_blocks",
        }
    }
}
