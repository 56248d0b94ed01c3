//! `wavetank trace synth`.

use clap::Args;
use wavetank::{Result, SynthArgs, synth_trace};

use super::files::{self, OutFlags};
use crate::exit::Exit;

const DISTRIBUTIONS: &str = "\
DIST is N, uniform:LOW,HIGH, normal:MEAN,SD, lognormal:MEAN,SD (of the lengths themselves),
exponential:MEAN, or empirical:FILE with a length on every line and, behind it, its weight.";

#[derive(Args)]
#[command(after_help = DISTRIBUTIONS)]
pub(super) struct SynthFlags {
    /// The file to write; - is standard output.
    #[arg(value_name = "OUT")]
    file: String,
    /// Requests, over all sessions.
    #[arg(long, value_name = "N")]
    requests: u64,
    /// How sessions arrive: constant, poisson, gamma, or burst, all at once [default: poisson].
    #[arg(long, value_name = "PROCESS")]
    arrivals: Option<String>,
    /// Mean sessions per second [default: 1].
    #[arg(long, alias = "sessions-per-second", value_name = "PER_SECOND")]
    rate: Option<f64>,
    /// The shape of gamma gaps: above 1 smoother than poisson, below it burstier [default: 1].
    #[arg(long, value_name = "K")]
    smoothness: Option<f64>,
    /// Turns of a session, a distribution [default: 1].
    #[arg(long, value_name = "DIST")]
    turns: Option<String>,
    /// Tokens that a turn asks [default: a long tail around 148].
    #[arg(long, value_name = "DIST")]
    input_dist: Option<String>,
    /// Tokens that are answered [default: a long tail around 148].
    #[arg(long, value_name = "DIST")]
    output_dist: Option<String>,
    /// Milliseconds between the end of a turn and the next [default: a long tail around 4915].
    #[arg(long, value_name = "DIST")]
    pause_dist: Option<String>,
    /// Prefixes that sessions share; each is used about twice as often as the next, 64 at
    /// most [default: 8].
    #[arg(long, value_name = "N")]
    shared_prefixes: Option<u32>,
    /// Tokens of a shared prefix, rounded up to whole blocks [default: one to six blocks].
    #[arg(long, value_name = "DIST")]
    prefix_dist: Option<String>,
    /// What a turn repeats: conversation, all that was said before, or prefix, the shared prefix
    /// alone [default: conversation].
    #[arg(long, value_name = "WHAT")]
    growth: Option<String>,
    /// End a session before a prompt that is longer [default: 1048576].
    #[arg(long, value_name = "TOKENS")]
    max_context: Option<u32>,
    /// Tokens that an id stands for [default: 512].
    #[arg(long, value_name = "TOKENS")]
    trace_block_size: Option<u32>,
    /// The seed [default: 42].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    output: OutFlags,
}

pub(super) fn run(flags: SynthFlags) -> Result<Exit> {
    let args = SynthArgs {
        requests: flags.requests,
        arrivals: flags.arrivals,
        rate: flags.rate,
        smoothness: flags.smoothness,
        turns: flags.turns,
        input_dist: flags.input_dist,
        output_dist: flags.output_dist,
        pause_dist: flags.pause_dist,
        shared_prefixes: flags.shared_prefixes,
        prefix_dist: flags.prefix_dist,
        growth: flags.growth,
        max_context: flags.max_context,
        trace_block_size: flags.trace_block_size,
        seed: flags.seed,
    };
    let output = flags.output.output(flags.file);
    files::write(|meter| synth_trace(&args, &output, meter))
}
