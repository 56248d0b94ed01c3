//! `trace convert`.

use wavetank_model::Result;
use wavetank_trace::Meter;

use super::target::Origin;
use super::{TraceInput, TraceOutput, TraceWritten};

/// Writes a trace in another format, or another compression.
pub fn convert_trace(input: &TraceInput, output: &TraceOutput, meter: &Meter) -> Result<TraceWritten> {
    let source = input.source()?;
    output.check_apart(&source)?;
    let mut reader = input.open(&source, meter)?;
    output.write(reader.as_mut(), &Origin::of(&source), meter)
}
