//! `trace synth`.

use wavetank_model::{Error, Result};
use wavetank_trace::Meter;
use wavetank_trace::requests;
use wavetank_trace::synth::arrival::Process;
use wavetank_trace::synth::conversation::{Arrivals, Conversations, Growth, MOST_PREFIXES};
use wavetank_trace::synth::lengths::Lengths;

use super::target::Origin;
use super::{TraceOutput, TraceWritten};

/// What is generated, as typed; what is not said is as in the examples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SynthArgs {
    /// Requests, over all sessions.
    pub requests: u64,
    /// `constant`, `poisson`, `gamma` or `burst`.
    pub arrivals: Option<String>,
    /// Mean sessions per second.
    pub rate: Option<f64>,
    /// The shape of gamma gaps.
    pub smoothness: Option<f64>,
    /// Turns of a session: a distribution, as all that follow.
    pub turns: Option<String>,
    /// Tokens that a turn asks.
    pub input_dist: Option<String>,
    /// Tokens that are answered.
    pub output_dist: Option<String>,
    /// Milliseconds between turns.
    pub pause_dist: Option<String>,
    /// How many prefixes sessions share.
    pub shared_prefixes: Option<u32>,
    /// Tokens of a prefix.
    pub prefix_dist: Option<String>,
    /// `conversation` or `prefix`.
    pub growth: Option<String>,
    /// The longest prompt.
    pub max_context: Option<u32>,
    /// Tokens per id.
    pub trace_block_size: Option<u32>,
    /// The seed.
    pub seed: Option<u64>,
}

/// Writes a trace of generated conversations.
pub fn synth_trace(args: &SynthArgs, output: &TraceOutput, meter: &Meter) -> Result<TraceWritten> {
    let format = requests::find("mooncake")?;
    let origin = Origin { provides: format.provides, format };
    output.write(&mut args.conversations()?.rows(), &origin, meter)
}

impl SynthArgs {
    fn conversations(&self) -> Result<Conversations> {
        let usual = Conversations::example();
        let drawn = |given: &Option<String>, flag: &str, usual: Lengths| {
            given.as_deref().map_or(Ok(usual), |text| Lengths::parse(text, flag))
        };
        let at_least_one = |number: u64, flag: &str| match number {
            0 => Err(Error::usage("must be 1 at least").at(flag)),
            number => Ok(number),
        };
        let prefix = self.prefix_dist.as_deref();
        Ok(Conversations {
            requests: at_least_one(self.requests, "--requests")?,
            arrivals: Arrivals::Process(self.process()?),
            turns: drawn(&self.turns, "--turns", Lengths::fixed(1))?,
            input: drawn(&self.input_dist, "--input-dist", usual.input.clone())?,
            output: drawn(&self.output_dist, "--output-dist", usual.output.clone())?,
            pause_ms: drawn(&self.pause_dist, "--pause-dist", usual.pause_ms.clone())?,
            shared_prefixes: self.prefixes(usual.shared_prefixes)?,
            prefix_tokens: prefix.map(|text| Lengths::parse(text, "--prefix-dist")).transpose()?,
            growth: self.growth()?,
            most_context: at_least_one(self.max_context.unwrap_or(1 << 20).into(), "--max-context")? as u32,
            tokens_per_id: at_least_one(
                self.trace_block_size.unwrap_or(usual.tokens_per_id).into(),
                "--trace-block-size",
            )? as u32,
            seed: self.seed.unwrap_or(usual.seed),
        })
    }

    fn prefixes(&self, usual: u32) -> Result<u32> {
        let count = self.shared_prefixes.unwrap_or(usual);
        let told = || {
            Error::usage(format!("must be {MOST_PREFIXES} at most"))
                .at("--shared-prefixes")
                .hint("each is used half as often as the one before: no session would use the next")
        };
        if count <= MOST_PREFIXES { Ok(count) } else { Err(told()) }
    }

    fn process(&self) -> Result<Process> {
        let positive = |number: Option<f64>, flag: &str| match number.unwrap_or(1.0) {
            number if number > 0.0 && number.is_finite() => Ok(number),
            _ => Err(Error::usage("must be a number above 0").at(flag)),
        };
        let per_second = positive(self.rate, "--rate")?;
        let smoothness = positive(self.smoothness, "--smoothness")?;
        let name = self.arrivals.as_deref().unwrap_or("poisson");
        if self.smoothness.is_some() && name != "gamma" {
            return Err(Error::usage("has no effect without --arrivals gamma").at("--smoothness"));
        }
        match name {
            "constant" => Ok(Process::Constant { interval_ms: 1000.0 / per_second }),
            "poisson" => Ok(Process::Poisson { per_second }),
            "gamma" => Ok(Process::Gamma { per_second, smoothness }),
            "burst" if self.rate.is_none() => Ok(Process::Constant { interval_ms: 0.0 }),
            "burst" => Err(Error::usage("a burst comes at once").at("--rate").hint("leave one of the two")),
            other => Err(Error::usage(format!("\"{other}\" is no process of arrivals"))
                .at("--arrivals")
                .hint("constant, poisson, gamma, or burst")),
        }
    }

    fn growth(&self) -> Result<Growth> {
        match self.growth.as_deref() {
            None | Some("conversation") => Ok(Growth::Conversation),
            Some("prefix") => Ok(Growth::Prefix),
            Some(other) => Err(Error::usage(format!("\"{other}\" is not what a turn can repeat"))
                .at("--growth")
                .hint("conversation: all that was said before; prefix: the shared prefix alone")),
        }
    }
}
