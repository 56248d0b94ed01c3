//! `trace slice`.

use wavetank_model::{Error, Result};
use wavetank_trace::Meter;
use wavetank_trace::shape::{Choice, Slice};

use super::target::Origin;
use super::{TraceInput, TraceOutput, TraceWritten};

/// Writes the sessions of a trace that `choice` keeps.
pub fn slice_trace(
    input: &TraceInput,
    output: &TraceOutput,
    choice: &Choice,
    meter: &Meter,
) -> Result<TraceWritten> {
    let refuse = |what: &str, flag: &str| Err(Error::usage(what).at(flag));
    if choice.seconds.is_empty() {
        return refuse("ends before it begins", "--from, --to");
    }
    if choice.requests.is_empty() {
        return refuse("is empty", "--requests");
    }
    if !(choice.sample > 0.0 && choice.sample <= 1.0) {
        return refuse("must be above 0, and 1 at most", "--sample");
    }
    if choice.sessions == 0 {
        return refuse("must be 1 at least", "--sessions");
    }
    let source = input.source()?;
    output.check_apart(&source)?;
    let has_dependencies = source.format.provides.dependencies;
    let mut slice = Slice::of(input.open(&source, meter)?, choice.clone(), has_dependencies);
    output.write(&mut slice, &Origin::of(&source), meter)
}
