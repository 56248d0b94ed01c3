//! `wavetank trace merge`.

use clap::Args;
use wavetank::{MergeArgs, Result, TraceInput, merge_traces};

use super::files::{self, InFlags, OutFlags};
use crate::exit::Exit;

#[derive(Args)]
pub(super) struct MergeFlags {
    /// Traces, each of its own format, and then the file to write.
    #[arg(value_name = "IN... OUT", required = true, num_args = 3..)]
    files: Vec<String>,
    /// Equal ids are the same block in all traces [default: ids of different traces are kept apart].
    #[arg(long)]
    same_ids: bool,
    /// Move every trace to begin at zero; each is read twice.
    #[arg(long)]
    align: bool,
    #[command(flatten)]
    input: InFlags,
    #[command(flatten)]
    output: OutFlags,
}

pub(super) fn run(flags: MergeFlags) -> Result<Exit> {
    let (files, file) = files::split(flags.files)?;
    let all = flags.input.input(files);
    let one = |file: &String| TraceInput { files: vec![file.clone()], ..all.clone() };
    let inputs: Vec<TraceInput> = all.files.iter().map(one).collect();
    let (output, args) =
        (flags.output.output(file), MergeArgs { same_ids: flags.same_ids, align: flags.align });
    files::write(|meter| merge_traces(&inputs, &output, args, meter))
}
