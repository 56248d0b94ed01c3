//! `trace lint`.

use wavetank_model::{Error, Result};
use wavetank_trace::{Linted, Meter, lint};

use super::TraceInput;

/// Tells every problem of a trace; an error where it cannot be read at all.
pub fn lint_trace(input: &TraceInput, meter: &Meter, tell: &mut dyn FnMut(&Error)) -> Result<Linted> {
    lint(&input.source()?.metered(meter), &input.options(), meter, tell)
}
