//! `trace anonymize`.

use wavetank_model::Result;
use wavetank_trace::Meter;
use wavetank_trace::shape::{Anonymous, Scrub, Secret, Span};

use super::target::Origin;
use super::{TraceInput, TraceOutput, TraceWritten};

/// Writes a trace that may be shown: names and ids re-mapped under `key`, times from zero.
pub fn anonymize_trace(
    input: &TraceInput,
    output: &TraceOutput,
    (key, scrub): (&[u8], Scrub),
    meter: &Meter,
) -> Result<TraceWritten> {
    let secret = Secret::of(key)?;
    let source = input.source()?;
    output.check_apart(&source)?;
    // Times begin at zero: the earliest is known beforehand where the trace can be read twice.
    let origin = match source.is_once() {
        true => None,
        false => Span::of(input.open(&source, meter)?.as_mut())?.map(|span| span.first),
    };
    let mut anonymous = Anonymous::of(input.open(&source, meter)?, secret, scrub, origin);
    output.write(&mut anonymous, &Origin::of(&source), meter)
}
