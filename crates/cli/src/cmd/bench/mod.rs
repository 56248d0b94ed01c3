//! `wavetank bench`: real bytes through the tiers of a KV cache, under simulated LLM users; and what is done
//! with many such runs.

mod block_layer;
mod check;
mod flags;
mod merge;
mod residual;
mod run;
mod suite;

use clap::{Args, Parser, Subcommand};
use wavetank::{BenchArgs, Error, Result};

use crate::exit::Exit;

pub use run::bench_inputs;

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
    /// Hold a simulated benchmark against real runs of the same plan.
    Residual(residual::Flags),
    Suite(Box<suite::SuiteFlags>),
}

pub(crate) fn run(flags: Flags) -> Result<Exit> {
    match flags.many {
        None => run::run(flags.one),
        Some(Many::Check(flags)) => check::run(&flags),
        Some(Many::Merge(flags)) => merge::run(&flags),
        Some(Many::Residual(flags)) => residual::run(&flags),
        Some(Many::Suite(flags)) => suite::run(*flags),
    }
}

/// The flags that make the plan of a benchmark, alone.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct PlanFlags {
    #[command(flatten)]
    what: flags::BenchFlags,
}

/// What a benchmark is planned from, of the flags in `words`.
pub fn bench_args(words: &[String]) -> Result<BenchArgs> {
    let flags = PlanFlags::try_parse_from(words).map_err(|error| {
        // The usage that follows is of a command, which nobody typed.
        let text = error.render().to_string();
        let said = text.split("\n\nUsage:").next().unwrap_or_default().trim_start_matches("error: ");
        let (message, tip) = said.split_once("\n\n  tip: ").unwrap_or((said, ""));
        let error = Error::usage(message.trim_end());
        if tip.is_empty() { error } else { error.hint(tip.trim_end()) }
    })?;
    Ok(flags.what.into())
}
