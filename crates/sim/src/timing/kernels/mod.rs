//! Measured kernels: per-layer tables summed over the layers, a link for the collectives the tables do not
//! hold, and what the host adds to a pass (spec/vllm-timing.md 3 and 4).
//!
//! `table` reads the files, `built_in` holds those of the program, `axis` and `attention` interpolate, this
//! file adds up.

mod attention;
mod axis;
mod built_in;
mod experts;
mod survey;
mod table;

use std::path::Path;
use std::rc::Rc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use wavetank_model::{Error, Result};

use super::{
    Chunk, DecodeBatch, Entry, Parameters, Pass, PassTime, Pricing, Timing, configure, file_or_profile,
};
use crate::provenance::{Ledger, Provenance};
use attention::{Attention, Reading};
use axis::lerp;
pub use built_in::{KernelContent, KernelProfile, kernel_profiles};
use experts::{ExpertRows, expert_rows, expert_us};
pub use survey::kernel_survey;
use table::Table;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "kernels",
    about: "measured kernels, of a built-in profile (`wavetank list profiles`) or a folder",
    pricing: Pricing::Fused,
    argument: Some("profile"),
    reads: |parameters| {
        let is_built_in = |name: &str| kernel_profiles().iter().any(|profile| profile.name == name);
        file_or_profile(parameters, is_built_in)
    },
    build: |parameters| Ok(Rc::new(Kernels::build(parameters)?)),
};

/// Where the tables are.
#[derive(Clone, Copy)]
enum Source<'a> {
    BuiltIn(&'a KernelProfile),
    Folder(&'a Path),
}

impl<'a> Source<'a> {
    /// The built-in profile or the folder that the parameters name.
    fn of(parameters: &'a Parameters) -> Result<Self> {
        let text = |key: &str| parameters.get(key).and_then(Value::as_str);
        match (text("profile"), text("path")) {
            (Some(name), None) => match kernel_profiles().iter().find(|profile| profile.name == name) {
                Some(profile) => Ok(Self::BuiltIn(profile)),
                None if name.contains(['/', '\\']) || Path::new(name).is_dir() => {
                    Ok(Self::Folder(Path::new(name)))
                }
                None => Err(Error::usage(format!("timing model \"kernels\": unknown profile \"{name}\""))
                    .hint(format!("known: {}; a folder is named by its path", built_in::names()))),
            },
            (None, Some(path)) => Ok(Self::Folder(Path::new(path))),
            _ => Err(Error::usage("timing model \"kernels\": give \"profile\" or \"path\"")
                .hint(format!("built-in profiles: {}", built_in::names()))),
        }
    }

    fn has(self, name: &str) -> bool {
        match self {
            Self::BuiltIn(profile) => profile.has(name),
            Self::Folder(folder) => matches!(Table::find(folder, name), Ok(Some(_)) | Err(_)),
        }
    }

    fn table(self, name: &str) -> Result<Table> {
        match self {
            Self::BuiltIn(profile) => profile.table(name),
            Self::Folder(folder) => Table::read(folder, name),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    /// A built-in profile, or the folder of the tables; [`Source`] reads it.
    #[serde(default, rename = "profile")]
    _profile: IgnoredAny,
    /// The folder of the tables.
    #[serde(default, rename = "path")]
    _path: IgnoredAny,
    layers: u32,
    hidden: u32,
    #[serde(default = "one")]
    tp: u32,
    /// Passes of up to twice as many tokens, and up to 512, are captured as graphs and padded.
    max_num_seqs: u32,
    #[serde(default)]
    experts: u32,
    #[serde(default)]
    experts_per_token: u32,
    /// Ranks over which the experts are spread.
    #[serde(default = "one")]
    ranks: u32,
    #[serde(default)]
    host: Host,
    #[serde(default)]
    link: Link,
}

fn one() -> u32 {
    1
}

/// What the host adds. Fitted once for vLLM 0.19 on two runs; METHODOLOGY.md has the evidence.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Host {
    /// Every pass.
    pass_us: f64,
    /// Passes too large for a captured graph.
    eager_us: f64,
}

impl Default for Host {
    fn default() -> Self {
        Self { pass_us: 350.0, eager_us: 4000.0 }
    }
}

/// An all-reduce between the GPUs of a node: the quicker of two protocols, one that starts at once and sends
/// twice the bytes, one that takes longer to start. The numbers are of two RTX PRO 6000 on PCIe.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Link {
    quick_start_us: f64,
    start_us: f64,
    gigabytes_per_second: f64,
}

impl Default for Link {
    fn default() -> Self {
        Self { quick_start_us: 3.5, start_us: 25.0, gigabytes_per_second: 16.1 }
    }
}

impl Link {
    fn all_reduce_us(&self, bytes: f64) -> f64 {
        let carry = bytes / (self.gigabytes_per_second * 1e3);
        (self.quick_start_us + 2.0 * carry).min(self.start_us + carry)
    }
}

/// Layers that a pass runs once; the others run once per layer, `layernorm` twice.
const ONCE: [&str; 2] = ["embedding", "final_layernorm"];
/// Contexts and prompts of `skew` rows that count.
const SKEW_LIMITS: (f64, f64) = (4000.0, 2048.0);

/// Times along an axis.
type Points = Vec<(u32, f64)>;

struct Kernels {
    config: Config,
    /// By padded tokens: dense layers, in microseconds, all of them.
    dense_us: Vec<f64>,
    /// By sequences.
    sequence_us: Vec<f64>,
    attention: Attention,
    /// By decode batch: how far the longest context decides, where it is not split over the device.
    skew: Vec<(u32, f64)>,
    /// By tokens and experts in use.
    experts: ExpertRows,
    ledger: Ledger,
}

impl Kernels {
    /// The model of `parameters`; those of a built-in profile hold where they say nothing.
    fn build(parameters: &Parameters) -> Result<Self> {
        let source = Source::of(parameters)?;
        let mut given = parameters.clone();
        if let Source::BuiltIn(profile) = source {
            given = profile.content.parameters.clone();
            given.extend(parameters.clone());
        }
        let config = configure(ENTRY.name, &given).map_err(|error| {
            error.hint(
                "a folder of tables also takes layers=, hidden= and max_num_seqs=; tp=, experts=, ranks=",
            )
        })?;
        Self::read(config, source)
    }

    fn read(config: Config, source: Source<'_>) -> Result<Self> {
        let sound = config.layers > 0 && config.hidden > 0 && config.tp > 0 && config.ranks > 0;
        if !sound || config.max_num_seqs == 0 {
            return Err(Error::usage(
                "timing model \"kernels\": layers, hidden, tp, ranks and max_num_seqs must be 1 or more",
            ));
        }
        let experts = match config.experts {
            0 => Vec::new(),
            _ => expert_rows(&source.table("moe")?)?,
        };
        Ok(Self {
            dense_us: dense_us(&source.table("dense")?, config.layers)?,
            sequence_us: sequence_us(&source.table("per_sequence")?)?,
            attention: Attention::read(&source.table("attention")?)?,
            skew: skew(&source.table("skew")?)?,
            experts,
            ledger: Ledger::default(),
            config,
        })
    }

    fn graph_limit(&self) -> u32 {
        (2 * self.config.max_num_seqs).min(512)
    }

    /// Tokens of the captured graph that a pass of `tokens` runs in.
    fn padded(&self, tokens: u32) -> u32 {
        match tokens {
            0..=2 => tokens.max(1),
            3..=4 => 4,
            _ if tokens > self.graph_limit() => tokens,
            5..=256 => tokens.next_multiple_of(8).min(self.graph_limit()),
            _ => tokens.next_multiple_of(16).min(self.graph_limit()),
        }
    }

    /// Everything of a rank's pass but attention, experts and what ranks share.
    fn dense_part_us(&self, padded: u32, sequences: u32) -> f64 {
        let last = self.dense_us.len() - 1;
        let beyond = f64::from(padded) / last as f64;
        let dense = self.dense_us[(padded as usize).min(last)] * beyond.max(1.0);
        let heads = self.sequence_us[(sequences as usize).min(self.sequence_us.len() - 1)];
        dense + heads + self.collectives_us(padded)
    }

    /// The exchange between the GPUs of a rank.
    fn collectives_us(&self, padded: u32) -> f64 {
        match self.config.tp {
            1 => 0.0,
            _ => f64::from(2 * self.config.layers + 1) * self.config.link.all_reduce_us(self.bytes(padded)),
        }
    }

    /// Notes `passes` passes of `total_us`, whose attention reads the tables as `reading` says.
    fn note(&self, passes: usize, total_us: f64, tokens: u32, reading: Reading) {
        let padded = self.padded(tokens);
        let fitted_us = self.host_us(tokens) + self.collectives_us(padded);
        let beyond = reading.beyond || padded as usize >= self.dense_us.len();
        let error_ms = f64::from(self.config.layers) * reading.error_us / 1e3;
        let entry = Provenance::of_tables(total_us / 1e3, fitted_us / 1e3, error_ms, beyond);
        self.ledger.enter(entry.times(passes));
    }

    /// How sure the attention of a pass is.
    fn reading(&self, pass: &Pass<'_>) -> Reading {
        let (tokens, context) = together(pass.chunks);
        let batch = f64::from(pass.decode.requests);
        let mean = if batch > 0.0 { pass.decode.kv_tokens as f64 / batch } else { 0.0 };
        match tokens + batch > 0.0 {
            true => self.attention.reading(tokens, context, batch, mean),
            false => Reading::default(),
        }
    }

    /// Bytes of the activations of `tokens`.
    fn bytes(&self, tokens: u32) -> f64 {
        f64::from(tokens) * f64::from(self.config.hidden) * 2.0
    }

    fn host_us(&self, tokens: u32) -> f64 {
        let eager = if tokens > self.graph_limit() { self.config.host.eager_us } else { 0.0 };
        self.config.host.pass_us + eager
    }

    /// One layer's experts for the tokens of all ranks, and the exchange between them.
    fn experts_us(&self, tokens: u32) -> f64 {
        if self.experts.is_empty() {
            return 0.0;
        }
        let Config { experts, experts_per_token, ranks, .. } = self.config;
        let (count, ranks_f) = (f64::from(experts), f64::from(ranks));
        let idle = (1.0 - f64::from(experts_per_token) / count).powi(tokens as i32);
        let busy = count / ranks_f * (1.0 - idle);
        let exchange = if ranks > 1 { self.config.link.all_reduce_us(self.bytes(tokens)) } else { 0.0 };
        expert_us(&self.experts, f64::from(tokens) / ranks_f, busy) + exchange
    }

    fn attention_us(&self, chunks: &[Chunk], decode: DecodeBatch) -> f64 {
        let (tokens, context) = together(chunks);
        let batch = f64::from(decode.requests);
        if tokens == 0.0 {
            return if decode.requests == 0 { 0.0 } else { self.decode_us(decode) };
        }
        let mean = if decode.requests == 0 { 0.0 } else { decode.kv_tokens as f64 / batch };
        self.attention.step_us(tokens, context, batch, mean)
    }

    fn decode_us(&self, decode: DecodeBatch) -> f64 {
        let mut out = [0.0];
        self.decode_attention(decode, &mut out);
        out[0]
    }

    /// Attention of consecutive passes that only decode.
    fn decode_attention(&self, first: DecodeBatch, out: &mut [f64]) {
        let mut row = Vec::new();
        let lengths = self.attention.decode_row(f64::from(first.requests), &mut row);
        let skew = self.skew_of(first.requests);
        let at = |length: f64| {
            let (j, g) = lengths.locate(length);
            lerp(row[j], row[j + 1], g)
        };
        for (pass, us) in out.iter_mut().enumerate() {
            let batch = first.after(pass as u32);
            let mean = at(batch.kv_tokens as f64 / f64::from(batch.requests));
            *us = mean + skew * (at(f64::from(batch.longest)) - mean);
        }
    }

    fn skew_of(&self, batch: u32) -> f64 {
        let next = self.skew.partition_point(|&(at, _)| at < batch);
        self.skew.get(next).or(self.skew.last()).map_or(0.0, |&(_, part)| part)
    }

    /// A pass of one rank without what ranks share.
    fn local_us(&self, pass: &Pass<'_>, padded: u32) -> f64 {
        let sequences = pass.chunks.len() as u32 + pass.decode.requests;
        let attention = match sequences {
            0 => self.attention.decode_us(1.0, 16.0),
            _ => self.attention_us(pass.chunks, pass.decode),
        };
        self.dense_part_us(padded, sequences.max(1)) + f64::from(self.config.layers) * attention
    }
}

/// Several chunks as one: their tokens, and the context that gives one chunk of them the same work.
fn together(chunks: &[Chunk]) -> (f64, f64) {
    let (mut tokens, mut work) = (0.0, 0.0);
    for chunk in chunks {
        let new = f64::from(chunk.tokens);
        tokens += new;
        work += new * (f64::from(chunk.context) + new / 2.0);
    }
    if tokens == 0.0 { (0.0, 0.0) } else { (tokens, work / tokens - tokens / 2.0) }
}

/// Tokens of a pass; a rank without work runs one.
fn tokens_of(pass: &Pass<'_>) -> u32 {
    let prompts: u32 = pass.chunks.iter().map(|chunk| chunk.tokens).sum();
    (prompts + pass.decode.requests).max(1)
}

impl Timing for Kernels {
    fn pass_ms(&self, pass: Pass<'_>) -> PassTime {
        PassTime { prompt_ms: self.lockstep_ms(&[pass]), decode_ms: 0.0 }
    }

    fn lockstep_ms(&self, ranks: &[Pass<'_>]) -> f64 {
        let most = ranks.iter().map(tokens_of).max().unwrap_or(1);
        let captured = most <= self.graph_limit();
        let padded = |pass: &Pass<'_>| if captured { self.padded(most) } else { tokens_of(pass) };
        let slowest = ranks.iter().map(|pass| self.local_us(pass, padded(pass))).fold(0.0, f64::max);
        let tokens = ranks.iter().map(padded).sum();
        let shared = f64::from(self.config.layers) * self.experts_us(tokens);
        let total_us = slowest + shared + self.host_us(most);
        if let Some(longest) = ranks.iter().max_by_key(|pass| tokens_of(pass)) {
            self.note(1, total_us, most, self.reading(longest));
        }
        total_us / 1e3
    }

    fn decode_run_ms(&self, first: DecodeBatch, out: &mut [f64]) {
        let tokens = first.requests.max(1);
        let padded = self.padded(tokens);
        let layers = f64::from(self.config.layers);
        let rest =
            self.dense_part_us(padded, tokens) + layers * self.experts_us(padded) + self.host_us(tokens);
        self.decode_attention(first, out);
        for ms in out.iter_mut() {
            *ms = (rest + layers * *ms) / 1e3;
        }
        let middle = out.len() / 2;
        let pass = Pass { chunks: &[], decode: first.after(middle as u32) };
        self.note(out.len(), out[middle] * 1e3, tokens, self.reading(&pass));
    }

    fn gpus(&self) -> u32 {
        // Ranks that share experts are all GPUs; otherwise those of the one rank.
        self.config.tp.max(self.config.ranks)
    }

    fn provenance(&self) -> Option<Provenance> {
        Some(self.ledger.total())
    }
}

/// Quicker or slower than this, all dense layers of the largest pass are in another unit.
const LARGEST_PASS_US: std::ops::RangeInclusive<f64> = 200.0..=60e6;

/// The dense layers by tokens: matrix products go in steps, so the first measured point from above.
fn dense_us(table: &Table, layers: u32) -> Result<Vec<f64>> {
    let by_layer = table.by_layer("tokens")?;
    let most = by_layer.values().filter_map(|points| points.last()).map(|&(at, _)| at).max().unwrap_or(0);
    let mut sums = vec![0.0; most as usize + 1];
    for (name, points) in &by_layer {
        let times = match name.as_str() {
            once if ONCE.contains(&once) => 1.0,
            "layernorm" => 2.0 * f64::from(layers),
            _ => f64::from(layers),
        };
        if points.last().is_none_or(|&(at, _)| at != most) {
            return Err(table.error(format!("\"{name}\" ends before {most} tokens")));
        }
        let mut next = 0;
        for (tokens, sum) in sums.iter_mut().enumerate() {
            while (points[next].0 as usize) < tokens {
                next += 1;
            }
            *sum += times * points[next].1;
        }
    }
    let largest = sums[sums.len() - 1];
    if !LARGEST_PASS_US.contains(&largest) {
        return Err(table
            .error(format!("a pass of {most} tokens takes {largest:.1} us without attention"))
            .hint("times are microseconds of one layer"));
    }
    Ok(sums)
}

/// What depends on the number of sequences, by that number.
fn sequence_us(table: &Table) -> Result<Vec<f64>> {
    let by_layer = table.by_layer("sequences")?;
    let most = by_layer.values().filter_map(|points| points.last()).map(|&(at, _)| at).max().unwrap_or(0);
    let mut sums = vec![0.0; most as usize + 1];
    for points in by_layer.values() {
        for (sequences, sum) in sums.iter_mut().enumerate() {
            let at = sequences as f64;
            let next = points.partition_point(|&(point, _)| f64::from(point) < at).min(points.len() - 1);
            let (low, high) = (points[next.saturating_sub(1)], points[next]);
            let width = f64::from(high.0 - low.0).max(1.0);
            *sum += lerp(low.1, high.1, ((at - f64::from(low.0)) / width).clamp(0.0, 1.0));
        }
    }
    Ok(sums)
}

/// By decode batch, how much of the way from the mean to the longest context its time goes.
fn skew(table: &Table) -> Result<Vec<(u32, f64)>> {
    let mut sums = std::collections::BTreeMap::new();
    for row in table.rows() {
        let counts = row.number("kv_mean")? < SKEW_LIMITS.0 && row.number("kp")? <= SKEW_LIMITS.1;
        if row.text("regime")? != "pure" || !counts {
            continue;
        }
        let [mean, longest, skewed] =
            ["t_mean_us", "t_max_us", "t_skew_us"].map(|column| row.time_us(column));
        let (above, whole) = sums.entry(row.count("n")?).or_insert((0.0, 0.0));
        let mean = mean?;
        *above += skewed? - mean;
        *whole += longest? - mean;
    }
    let part = |(batch, (above, whole)): (u32, (f64, f64))| {
        (batch, if whole > 0.0 { (above / whole).clamp(0.0, 1.0) } else { 0.0 })
    };
    Ok(sums.into_iter().map(part).collect())
}

#[cfg(test)]
pub(super) use tests::example;

#[cfg(test)]
mod tests;
