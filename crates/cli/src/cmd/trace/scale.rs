//! `wavetank trace scale`.

use clap::Args;
use wavetank::{Result, ScaleArgs, scale_trace};

use super::files::{self, InFlags, OutFlags};
use crate::exit::Exit;

#[derive(Args)]
pub(super) struct ScaleFlags {
    /// Files of one trace, and then the file to write.
    #[arg(value_name = "IN... OUT", required = true, num_args = 2..)]
    files: Vec<String>,
    /// Let requests come so many times as fast, and pauses be as much shorter.
    #[arg(long, value_name = "FACTOR", conflicts_with = "span")]
    rate: Option<f64>,
    /// Let all requests come within so many seconds; the trace is read twice.
    #[arg(long, value_name = "SECONDS")]
    span: Option<f64>,
    /// Scale when sessions begin, but not the pauses within them.
    #[arg(long)]
    keep_pauses: bool,
    /// Have every request so many times at once; copies share nothing, their sessions end in ~2, ~3.
    #[arg(long, value_name = "N")]
    copies: Option<u64>,
    /// Replace every block by so many: prompts get longer and share as much of themselves as before.
    #[arg(long, value_name = "K", conflicts_with = "input_scale")]
    depth: Option<u32>,
    /// Multiply prompts by this; the part of them that is shared stays.
    #[arg(long, value_name = "FACTOR")]
    input_scale: Option<f64>,
    /// Multiply tokens to generate by this.
    #[arg(long, value_name = "FACTOR")]
    output_scale: Option<f64>,
    #[command(flatten)]
    input: InFlags,
    #[command(flatten)]
    output: OutFlags,
}

pub(super) fn run(flags: ScaleFlags) -> Result<Exit> {
    let args = ScaleArgs {
        rate: flags.rate,
        span_s: flags.span,
        keep_pauses: flags.keep_pauses,
        copies: flags.copies,
        depth: flags.depth,
        input_scale: flags.input_scale,
        output_scale: flags.output_scale,
    };
    let (inputs, file) = files::split(flags.files)?;
    let (input, output) = (flags.input.input(inputs), flags.output.output(file));
    files::write(|meter| scale_trace(&input, &output, &args, meter))
}
