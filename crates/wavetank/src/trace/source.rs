//! Which request trace is meant, and how its rows are read.

use wavetank_model::Result;
use wavetank_trace::requests::{ReadOptions, Source};
use wavetank_trace::{Fill, Options, Prompts, Starts};

/// A request trace and the rules it is read by.
#[derive(Clone, Debug, Default)]
pub struct TraceArgs {
    /// Its files, each a path, `format:path`, or `-` for standard input.
    pub files: Vec<String>,
    /// What stands in for what it does not say.
    pub fill: Fill,
    /// Tokens that an id stands for; the format's own number when absent.
    pub trace_block_size: Option<u32>,
    /// Whether an input longer than its ids cover is cut instead of refused.
    pub clamp_input: bool,
}

impl TraceArgs {
    pub(super) fn source(&self) -> Result<Source> {
        Source::of(&self.files, None)
    }

    pub(super) fn prompts(&self, source: &Source) -> Result<Prompts> {
        let read = ReadOptions { tokens_per_id: self.trace_block_size, ..ReadOptions::default() };
        let (fill, clamp_input) = (self.fill, self.clamp_input);
        Prompts::open(source, &Options { read, fill, clamp_input, ..Options::of(Starts::Ignored) })
    }
}
