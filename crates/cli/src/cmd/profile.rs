//! `wavetank profile`: measured tables, looked at before they are trusted, and tiers to measure.

mod tier;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use wavetank::{Result, profile};

use crate::exit::Exit;
use crate::output;

#[derive(Args)]
pub(crate) struct Flags {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand)]
enum Kind {
    /// Timing tables: points, leave-one-out errors, what is extrapolated and what was repaired.
    Timing(TimingFlags),
    /// Measure a backend of the store: latency and bandwidth by operation, size and queue depth.
    Tier(Box<tier::TierFlags>),
}

#[derive(Args)]
struct TimingFlags {
    /// A profile, a CSV of passes, exported parts, an .npz file, a folder of
    /// kernels, or a name of `wavetank list profiles`.
    #[arg(value_name = "FILE|DIR|NAME")]
    tables: String,
    /// Write a profile for `--timing grid:FILE`.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    match &flags.kind {
        Kind::Timing(flags) => timing(flags),
        Kind::Tier(flags) => tier::run(flags),
    }
}

fn timing(flags: &TimingFlags) -> Result<Exit> {
    let measured = profile::measured(&flags.tables)?;
    if let Some(path) = &flags.output {
        output::keep_apart(&[("the tables", Path::new(&flags.tables)), ("--output", path)])?;
        let text = measured.text().map_err(|error| error.at("--output"))?;
        output::write(path, |out| out.write_all(text.as_bytes()))?;
    }
    output::say(&measured.table())?;
    Ok(Exit::DONE)
}
