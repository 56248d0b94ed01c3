//! Which request trace is meant, and how it is read.

use std::path::Path;

use clap::Args;
use wavetank::{Fill, Meter, Result, TraceArgs};

use super::files::InFlags;
use crate::output;

#[derive(Args, Debug)]
pub(super) struct SourceFlags {
    /// The files of one trace, plain, .gz or .zst; FORMAT: names a row of `wavetank list formats`; - is
    /// standard input.
    #[arg(value_name = "[FORMAT:]FILE", required = true)]
    files: Vec<String>,
    /// What stands in for what the trace does not say: hash=unique, session or none for prompts without
    /// block ids, output=TOKENS for requests without an output length [default: hash=unique].
    #[arg(long, value_name = "RULES")]
    fill: Option<Fill>,
    #[command(flatten)]
    reading: InFlags,
    /// Cut inputs longer than their hash ids cover instead of refusing the trace.
    #[arg(long)]
    clamp_input: bool,
}

impl SourceFlags {
    /// What is read, watched by `meter`.
    pub(super) fn args(&self, meter: &Meter) -> TraceArgs {
        TraceArgs {
            input: self.reading.clone().input(self.files.clone()),
            fill: self.fill.unwrap_or_default(),
            clamp_input: self.clamp_input,
            meter: meter.clone(),
        }
    }

    /// Refuses output over the trace or over other output.
    pub(super) fn keep_apart(&self, outputs: &[(&str, &Path)]) -> Result<()> {
        let behind = |word: &'_ str| word.split_once(':').map_or("", |(_, path)| path).to_owned();
        let words: Vec<String> = self.files.iter().flat_map(|word| [word.clone(), behind(word)]).collect();
        for input in words.iter().map(Path::new).filter(|path| path.exists()) {
            let all: Vec<_> = std::iter::once(("the trace", input)).chain(outputs.iter().copied()).collect();
            output::keep_apart(&all)?;
        }
        output::keep_apart(outputs)
    }

    /// What the trace is called in pictures.
    pub(super) fn name(&self) -> String {
        let first = Path::new(&self.files[0]);
        first.file_name().unwrap_or(first.as_os_str()).to_string_lossy().into_owned()
    }
}
