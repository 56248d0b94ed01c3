//! `wavetank trace convert`.

use clap::Args;
use wavetank::{Result, convert_trace};

use super::files::{self, InFlags, OutFlags};
use crate::exit::Exit;

#[derive(Args)]
pub(super) struct ConvertFlags {
    /// Files of one trace, and then the file to write; FORMAT:FILE names a format, - is a pipe, .gz
    /// and .zst are compressed.
    #[arg(value_name = "IN... OUT", required = true, num_args = 2..)]
    files: Vec<String>,
    #[command(flatten)]
    input: InFlags,
    #[command(flatten)]
    output: OutFlags,
}

pub(super) fn run(flags: ConvertFlags) -> Result<Exit> {
    let (inputs, file) = files::split(flags.files)?;
    let (input, output) = (flags.input.input(inputs), flags.output.output(file));
    files::write(|meter| convert_trace(&input, &output, meter))
}
