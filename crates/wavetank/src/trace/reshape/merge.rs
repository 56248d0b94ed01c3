//! `trace merge`.

use wavetank_model::{Error, Result};
use wavetank_trace::requests::{Blocks, Provides, Source};
use wavetank_trace::shape::{Merged, Part, Span};
use wavetank_trace::{Meter, Moment};

use super::target::Origin;
use super::{TraceInput, TraceOutput, TraceWritten};

/// How traces are merged, as typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeArgs {
    /// Whether equal ids are the same block in all of them.
    pub same_ids: bool,
    /// Whether every trace is moved to begin at zero.
    pub align: bool,
}

/// Writes several traces as one, by time.
pub fn merge_traces(
    inputs: &[TraceInput],
    output: &TraceOutput,
    args: MergeArgs,
    meter: &Meter,
) -> Result<TraceWritten> {
    if inputs.len() < 2 {
        return Err(
            Error::usage("one trace alone is not merged").hint("name two or more, and then the output")
        );
    }
    let sources = inputs.iter().map(TraceInput::source).collect::<Result<Vec<_>>>()?;
    sources.iter().try_for_each(|source| output.check_apart(source))?;
    let stdin = sources.iter().filter(|source| source.paths().iter().any(|path| path == "-")).count();
    if stdin > 1 {
        return Err(Error::usage("standard input is named twice").hint("it can be read once"));
    }
    let mut parts = Vec::new();
    for (input, source) in inputs.iter().zip(&sources) {
        let shift_ns = if args.align { shift(input, source, meter)? } else { 0 };
        parts.push(Part { reader: input.open(source, meter)?, shift_ns });
    }
    let mut merged = Merged::of(parts, args.same_ids)?;
    output.write(&mut merged, &origin(&sources)?, meter)
}

/// What makes the trace begin at zero.
fn shift(input: &TraceInput, source: &Source, meter: &Meter) -> Result<i64> {
    if source.is_once() {
        return Err(Error::usage("the trace would be read twice, and can be read once")
            .at("--align")
            .hint("write it to a file first"));
    }
    let span = Span::of(input.open(source, meter)?.as_mut())?;
    Ok(span.map_or(0, |Span { first: Moment { nanos }, .. }| nanos.saturating_neg()))
}

/// What any of them tells, the merged trace may tell; what prompts hold must be the same in all.
fn origin(sources: &[Source]) -> Result<Origin> {
    let first = Origin::of(&sources[0]);
    let mut provides: Provides = first.provides;
    for source in &sources[1..] {
        if source.format.provides.prompts != provides.prompts {
            return Err(Error::usage("one trace tells whole prompts, another what every turn adds")
                .at(source.name())
                .hint("merge traces of one kind"));
        }
        if provides.blocks == Blocks::Absent {
            provides.blocks = source.format.provides.blocks;
        }
    }
    Ok(Origin { provides, ..first })
}
