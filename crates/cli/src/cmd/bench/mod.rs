//! `wavetank bench`: real bytes through the tiers of a KV cache, under simulated LLM users; and what is done
//! with many such runs.

mod block_layer;
mod check;
mod flags;
mod merge;
mod run;
mod suite;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use wavetank::Result;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Flags {
    #[command(subcommand)]
    many: Option<Many>,
    #[command(flatten)]
    one: run::OneFlags,
}

/// What is done with many benchmarks.
#[derive(Subcommand)]
enum Many {
    /// Check a package that is to be submitted to MLPerf Storage.
    Check(check::CheckFlags),
    /// Make one report of those that the ranks of a benchmark wrote.
    Merge(merge::Flags),
    Suite(Box<suite::SuiteFlags>),
}

pub(crate) fn run(flags: Flags) -> Result<ExitCode> {
    match flags.many {
        None => run::run(flags.one),
        Some(Many::Check(flags)) => check::run(&flags),
        Some(Many::Merge(flags)) => merge::run(&flags),
        Some(Many::Suite(flags)) => suite::run(*flags),
    }
}
