//! Which request trace is meant, and how its rows are read.

use wavetank_model::Result;
use wavetank_trace::requests::Source;
use wavetank_trace::{Fill, Meter, Options, Prompts, Starts};

use super::reshape::TraceInput;

/// A request trace and the rules it is read by.
#[derive(Clone, Debug, Default)]
pub struct TraceArgs {
    /// What is read.
    pub input: TraceInput,
    /// What stands in for what it does not say.
    pub fill: Fill,
    /// Whether an input longer than its ids cover is cut instead of refused.
    pub clamp_input: bool,
    /// Shows how far it was read, and may stop it.
    pub meter: Meter,
}

impl TraceArgs {
    pub(super) fn source(&self) -> Result<Source> {
        self.input.source()
    }

    pub(super) fn prompts(&self, source: &Source) -> Result<Prompts> {
        let (read, source) = (self.input.options(), source.metered(&self.meter));
        let (fill, clamp_input) = (self.fill, self.clamp_input);
        Prompts::open(&source, &Options { read, fill, clamp_input, ..Options::of(Starts::Ignored) })
    }
}
