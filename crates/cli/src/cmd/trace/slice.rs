//! `wavetank trace slice`.

use std::ops::Range;

use clap::Args;
use wavetank::{Choice, Fill, Result, TraceOutput, slice_trace};

use super::files::{self, InFlags};
use crate::exit::Exit;

#[derive(Args)]
pub(super) struct SliceFlags {
    /// Files of one trace, and then the file to write.
    #[arg(value_name = "IN... OUT", required = true, num_args = 2..)]
    files: Vec<String>,
    /// Keep sessions that begin so many seconds after the first request, or later.
    #[arg(long, value_name = "SECONDS")]
    from: Option<f64>,
    /// Keep sessions that begin before so many seconds after the first request.
    #[arg(long, value_name = "SECONDS")]
    to: Option<f64>,
    /// Keep sessions whose first request has a number from A, counted from 0, to before B.
    #[arg(long, value_name = "A..B", value_parser = range)]
    requests: Option<Range<u64>>,
    /// Keep the first so many sessions; a request of none is one of its own.
    #[arg(long, value_name = "N")]
    sessions: Option<u64>,
    /// Keep this part of the sessions, drawn.
    #[arg(long, value_name = "0..1")]
    sample: Option<f64>,
    /// The seed of the draw [default: 42].
    #[arg(long, value_name = "N", requires = "sample")]
    seed: Option<u64>,
    #[command(flatten)]
    input: InFlags,
    /// The format that is written [default: what stands before the path, the format whose name is in
    /// that of the file, or the one that was read].
    #[arg(long, value_name = "NAME")]
    to_format: Option<String>,
    /// What stands in for what the trace does not say and the format needs: hash=unique|session|none,
    /// output=TOKENS, or both with a comma between them.
    #[arg(long, value_name = "RULES")]
    fill: Option<Fill>,
}

pub(super) fn run(flags: SliceFlags) -> Result<Exit> {
    let all = Choice::default();
    let seconds = flags.from.unwrap_or(all.seconds.start)..flags.to.unwrap_or(all.seconds.end);
    let choice = Choice {
        seconds,
        requests: flags.requests.unwrap_or(all.requests),
        sessions: flags.sessions.unwrap_or(all.sessions),
        sample: flags.sample.unwrap_or(all.sample),
        seed: flags.seed.unwrap_or(all.seed),
    };
    let (inputs, file) = files::split(flags.files)?;
    let input = flags.input.input(inputs);
    let output = TraceOutput { file, to: flags.to_format, fill: flags.fill.unwrap_or_default() };
    files::write(|meter| slice_trace(&input, &output, &choice, meter))
}

/// `A..B`, either of which may be left out.
fn range(text: &str) -> std::result::Result<Range<u64>, String> {
    let wrong = || "a range, as 0..1000".to_owned();
    let (first, end) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str, usual: u64| match text {
        "" => Ok(usual),
        text => text.parse().map_err(|_| wrong()),
    };
    Ok(number(first, 0)?..number(end, u64::MAX)?)
}
