//! The `wavetank` command as a library: flags in, one verb, an exit code out. The binary runs it, and the
//! Python package.
//!
//! Exit codes are the table in `exit`.
#![forbid(unsafe_code)]

mod cmd;
mod exit;
mod interrupt;
mod limits;
mod live;
mod output;
mod progress;
mod suite_live;
mod topics;
mod watch;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use exit::Exit;

pub use cmd::bench::{bench_args, bench_inputs};
pub use cmd::sweep::{check_outputs as check_sweep_outputs, write_outputs as write_sweep_outputs};
pub use output::{spare, try_out};

/// The version, and the commit it was built from where that is known.
const VERSION: &str = env!("WAVETANK_VERSION");

/// A wave tank for LLM serving: recorded or synthetic traffic in, latency, throughput, cache reuse and the
/// bottleneck out.
#[derive(Parser)]
#[command(name = "wavetank", version = VERSION, propagate_version = true, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Replay a request trace or a synthetic load through simulated engines.
    Replay(Box<cmd::replay::Flags>),
    /// Move real KV entries through GPU memory, RAM and storage under simulated LLM users.
    Bench(Box<cmd::bench::Flags>),
    /// Compare two reports, and fail where one got worse.
    Compare(cmd::compare::Flags),
    /// Draw reports: one page that opens without a network, plots, and the points behind them.
    Report(cmd::report::Flags),
    /// Play a model server: live simulated engines behind an OpenAI-compatible HTTP endpoint.
    Mock(Box<cmd::mock::Flags>),
    /// Serve KV entries to Redis clients and over HTTP, from memory and what is behind it.
    Serve(Box<cmd::serve::Flags>),
    /// Replay many plans at once: a grid, a list or a search, with the best of them shown.
    Sweep(cmd::sweep::Flags),
    /// Look into traces, check, convert and reshape them, and play recorded storage calls again.
    Trace(cmd::trace::Flags),
    /// Replay a measured run and say how far the simulation is from it.
    Validate(cmd::validate::Flags),
    /// Measure a device, simulate serving with it, play the simulated I/O on it, and say how far apart they
    /// are.
    Loop(Box<cmd::device_loop::Flags>),
    /// Measure a device (`profile tier`), and look at measured tables before they are trusted.
    Profile(cmd::profile::Flags),
    /// List formats, engines, routers, queue policies, timing models and their arguments.
    List(cmd::list::Flags),
    /// Look at this machine and a directory: what would be slow, wrong or impossible here, and what to do.
    Doctor(cmd::doctor::Flags),
    /// Write man pages.
    Man(cmd::man::Flags),
    /// Print a script that completes commands and flags in a shell.
    Completions(cmd::completions::Flags),
    /// Explain a topic, or show the help of a command.
    Help(cmd::help::Flags),
}

/// Every verb and flag, with the topics of its help.
fn command() -> clap::Command {
    cmd::help::with_topics(Cli::command())
}

/// Runs the command with these words, the first of which is its own name, and gives its exit code.
pub fn run(words: impl IntoIterator<Item = OsString>) -> u8 {
    interrupt::outlive_terminal();
    let words = cmd::help::in_order(words.into_iter().collect());
    let matches = command().try_get_matches_from(words);
    let parsed = matches
        .and_then(|matches| Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command())));
    let exit = match parsed {
        Ok(cli) => obey(cli.verb),
        Err(usage) => {
            // Whoever does not want to hear it closed the stream.
            let _ = usage.print();
            return u8::try_from(usage.exit_code()).unwrap_or(Exit::REFUSED.code());
        }
    };
    exit.code()
}

fn obey(verb: Verb) -> Exit {
    let result = match verb {
        Verb::Replay(flags) => cmd::replay::run(*flags),
        Verb::Bench(flags) => cmd::bench::run(*flags),
        Verb::Compare(flags) => cmd::compare::run(&flags),
        Verb::Report(flags) => cmd::report::run(&flags),
        Verb::Mock(flags) => cmd::mock::run(*flags),
        Verb::Serve(flags) => cmd::serve::run(*flags),
        Verb::Sweep(flags) => cmd::sweep::run(flags),
        Verb::Trace(flags) => cmd::trace::run(flags),
        Verb::Validate(flags) => cmd::validate::run(&flags),
        Verb::Loop(flags) => cmd::device_loop::run(*flags),
        Verb::Profile(flags) => cmd::profile::run(&flags),
        Verb::List(flags) => cmd::list::run(&flags),
        Verb::Doctor(flags) => cmd::doctor::run(&flags),
        Verb::Man(flags) => cmd::man::run(&flags),
        Verb::Completions(flags) => cmd::completions::run(&flags),
        Verb::Help(flags) => cmd::help::run(&flags),
    };
    result.unwrap_or_else(|error| {
        output::complain(&format!("error: {error}"));
        Exit::REFUSED
    })
}
