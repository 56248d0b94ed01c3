//! `wavetank completions`: scripts for shells, made from the table of flags.

use clap::Args;
use clap_complete::{Shell, generate};
use wavetank::Result;

use crate::exit::Exit;
use crate::output;

#[derive(Args)]
pub(crate) struct Flags {
    /// Whose script: for bash put it where bash-completion looks, as
    /// ~/.local/share/bash-completion/completions/wavetank.
    shell: Shell,
}

pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let mut script = Vec::new();
    generate(flags.shell, &mut crate::command(), "wavetank", &mut script);
    output::say(&String::from_utf8_lossy(&script))?;
    Ok(Exit::DONE)
}
