//! Traces of requests in, traces out: converted, checked, scrubbed, cut, scaled, merged, generated.

mod anonymize;
mod convert;
mod lint;
mod merge;
mod scale;
mod slice;
mod synth;
mod target;

pub use anonymize::anonymize_trace;
pub use convert::convert_trace;
pub use lint::lint_trace;
pub use merge::{MergeArgs, merge_traces};
pub use scale::{ScaleArgs, scale_trace};
pub use slice::slice_trace;
pub use synth::{SynthArgs, synth_trace};
pub use target::{TraceOutput, TraceWritten};

use std::fs;

use wavetank_model::{Error, Result};
use wavetank_trace::Meter;
use wavetank_trace::requests::{ReadOptions, Reader, Source};

/// A trace to read, as typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceInput {
    /// Paths, `format:path`, or `-` for standard input; several are one trace.
    pub files: Vec<String>,
    /// The format of all of them, unless it stands before a path or is seen.
    pub format: Option<String>,
    /// How many tokens an id stands for, where the format does not say.
    pub trace_block_size: Option<u32>,
}

impl TraceInput {
    pub(super) fn source(&self) -> Result<Source> {
        if self.trace_block_size == Some(0) {
            return Err(Error::usage("an id stands for at least one token").at("--trace-block-size"));
        }
        Source::of(&self.files, self.format.as_deref())
    }

    pub(super) fn options(&self) -> ReadOptions {
        ReadOptions { tokens_per_id: self.trace_block_size, ..ReadOptions::default() }
    }

    /// Whether it can be read once only: standard input, or a pipe with a name.
    pub fn is_once(&self) -> bool {
        let is_pipe = |path: &str| {
            path == "-" || fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
        };
        // A format may stand before a path.
        let bare = |word: &str| word.split_once(':').is_some_and(|(_, path)| is_pipe(path));
        self.files.iter().any(|word| is_pipe(word) || bare(word))
    }

    /// Its requests, one by one.
    pub fn read(&self) -> Result<Box<dyn Reader>> {
        self.source()?.open(&self.options())
    }

    fn open(&self, source: &Source, meter: &Meter) -> Result<Box<dyn Reader>> {
        source.metered(meter).open(&self.options())
    }
}
