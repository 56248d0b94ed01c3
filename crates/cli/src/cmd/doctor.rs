//! `wavetank doctor`: what this machine is like to run on.

use std::path::PathBuf;

use clap::Args;
use wavetank::Result;
use wavetank::doctor::{self, Verdict};

use crate::exit::Exit;
use crate::output;

#[derive(Args)]
pub(crate) struct Flags {
    /// Where entries would be stored: a file is written there, read and removed [default: the present
    /// directory].
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// JSON with the numbers by name instead of a table.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let directory = flags.directory.clone().unwrap_or_else(|| ".".into());
    let found = doctor::examine(&directory)?;
    let text = if flags.json { format!("{:#}\n", found.json()) } else { found.table() };
    output::say(&text)?;
    Ok(if found.verdict() == Verdict::Problem { Exit::FAILED } else { Exit::DONE })
}
