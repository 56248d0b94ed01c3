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

use super::{Chunk, DecodeBatch, Entry, Parameters, Pass, PassTime, Pricing, Timing, configure};
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
        Self::read(configure(ENTRY.name, &given)?, source)
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
        let tables_ms = (total_us - fitted_us) / 1e3;
        let beyond = reading.beyond || padded as usize >= self.dense_us.len();
        let (interpolated_ms, extrapolated_ms) = if beyond { (0.0, tables_ms) } else { (tables_ms, 0.0) };
        let error_ms = f64::from(self.config.layers) * reading.error_us / 1e3;
        let (total_ms, fitted_ms) = (total_us / 1e3, fitted_us / 1e3);
        let entry = Provenance {
            total_ms,
            interpolated_ms,
            extrapolated_ms,
            fitted_ms,
            error_ms,
            ..Provenance::default()
        };
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
        self.config.tp * self.config.ranks.max(1)
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
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;

    /// A profile whose times can be worked out by hand: a token costs 2 us in every layer, a sequence 3 us;
    /// attention costs 1 us per thousand of (new tokens x context before and among them) and per thousand of
    /// decoded KV tokens.
    fn tables() -> [(&'static str, String); 4] {
        let mut attention = "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n".to_owned();
        let (chunks, contexts, batches, lengths) =
            ([0, 16, 1024], [0, 16, 2048], [0, 1, 256], [16, 1024, 8192]);
        for chunk in chunks {
            for context in contexts {
                for batch in batches {
                    for length in lengths {
                        let prefill = f64::from(chunk) * f64::from(context);
                        let time = 1.0 + (prefill + f64::from(batch) * f64::from(length)) / 1000.0;
                        let sound = (chunk > 0 || context == 0) && chunk + batch > 0;
                        if sound && (batch > 0 || length == 16) {
                            let length = if batch > 0 { length } else { 0 };
                            attention += &format!("{chunk},{context},{batch},{length},{time}\n");
                        }
                    }
                }
            }
        }
        let dense: String = [1, 8, 64, 512, 2048]
            .iter()
            .map(|tokens| format!("qkv_proj,{tokens},{}\n", f64::from(*tokens) * 2.0))
            .collect();
        [
            ("attention", attention),
            ("dense", format!("layer,tokens,time_us\n{dense}")),
            ("per_sequence", "layer,sequences,time_us\nsampler,1,3\nsampler,256,768\n".to_owned()),
            (
                "skew",
                "regime,n,kp,kv_mean,t_mean_us,t_max_us,t_skew_us\npure,256,0,100,10,20,10\n".to_owned(),
            ),
        ]
    }

    /// Writes the tables, `changed` in place of the table of its name; the folder.
    fn folder(changed: Option<(&str, &str)>) -> PathBuf {
        let folder = tempfile::tempdir().unwrap().keep();
        for (name, text) in tables() {
            let text = changed.filter(|change| change.0 == name).map_or(text, |change| change.1.to_owned());
            fs::write(folder.join(format!("{name}.csv")), text).unwrap();
        }
        folder
    }

    fn parameters(folder: &Path) -> Parameters {
        let value =
            json!({"path": folder.display().to_string(), "layers": 2, "hidden": 64, "max_num_seqs": 64});
        value.as_object().unwrap().clone()
    }

    pub(in super::super) fn example() -> Parameters {
        parameters(&folder(None))
    }

    fn build(changed: Option<(&str, &str)>) -> Result<Kernels> {
        Kernels::build(&parameters(&folder(changed)))
    }

    #[test]
    fn a_pass_is_the_sum_of_its_kernels() {
        let kernels = build(None).unwrap();
        let decode = DecodeBatch { requests: 8, kv_tokens: 8000, capacity_tokens: 0, longest: 1000 };
        let mut ms = [0.0];
        kernels.decode_run_ms(decode, &mut ms);
        // Two layers of 8 tokens and of attention, 8 sequences, the host.
        let expected = 2.0 * 16.0 + 2.0 * (1.0 + 8.0) + 24.0 + 350.0;
        assert!((ms[0] * 1e3 - expected).abs() < 1e-6, "{} {expected}", ms[0] * 1e3);
        let chunks = &[Chunk::of_prompt(1000, 0)];
        let prefill = kernels.pass_ms(Pass { chunks, decode: DecodeBatch::default() }).prompt_ms;
        // Rounded up to 2048 tokens, too many for a captured graph.
        let expected = 2.0 * 4096.0 + 2.0 * 1.0 + 3.0 + 4350.0;
        assert!((prefill * 1e3 - expected).abs() < 1e-6, "{} {expected}", prefill * 1e3);
    }

    #[test]
    fn captured_graphs_are_padded() {
        let kernels = build(None).unwrap();
        let padded = [1, 2, 3, 5, 9, 17, 128, 129].map(|tokens| kernels.padded(tokens));
        assert_eq!(padded, [1, 2, 4, 8, 16, 24, 128, 129]);
    }

    #[test]
    fn bad_profiles_are_refused_with_the_line() {
        let dense = "layer,tokens,time_us\nqkv_proj,1,2\n";
        let message = |change: (&str, &str)| build(Some(change)).err().expect(change.1).to_string();
        for (table, rows, expected) in [
            ("dense", "qkv_proj,8,-1\n", "dense.csv:3: \"time_us\" is -1"),
            ("dense", "qkv_proj,1,5\n", "dense.csv:3: \"tokens\" does not rise"),
            ("dense", "qkv_proj,8\n", "dense.csv:3: 2 cells, the header has 3"),
            ("dense", "qkv_proj,8,fast\n", "dense.csv:3: \"time_us\" must be a number"),
            ("dense", "qkv_proj,8,9e9\n", "microseconds"),
            ("dense", "qkv_proj,8.5,1\n", "must be a whole number"),
        ] {
            let found = message((table, &format!("{dense}{rows}")));
            assert!(found.contains(expected), "{expected}: {found}");
        }
        assert!(message(("dense", "layer,time_us\nqkv_proj,2\n")).contains("\"tokens\" is missing"));
        assert!(message(("skew", "")).contains("has no rows"));
        let quick = "layer,tokens,time_us\nqkv_proj,1,0.01\nqkv_proj,2048,4\n";
        assert!(message(("dense", quick)).contains("a pass of 2048 tokens takes 8.0 us without attention"));
        let holed: String = tables()[0]
            .1
            .lines()
            .filter(|line| !line.starts_with("16,16,1,16"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert!(
            message(("attention", &holed)).contains("there is no row for prefill_chunk 16, kv_prefill 16")
        );
        let missing = folder(None);
        fs::remove_file(missing.join("skew.csv")).unwrap();
        let error = Kernels::build(&parameters(&missing)).err().unwrap();
        assert!(error.to_string().contains("skew.csv or skew.csv.gz is missing"), "{error}");
    }

    /// Breaks when `cargo xtask profiles` drops a row that the model reads, or a parameter is not used.
    #[test]
    fn built_in_profiles_price_passes_like_their_folders() {
        let runs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/vllm-runs");
        if !runs.is_dir() {
            return;
        }
        for profile in kernel_profiles() {
            let named = Parameters::from_iter([("profile".to_owned(), Value::from(profile.name))]);
            let folder = runs.join(profile.name).join("profile").display().to_string();
            let mut full = profile.content.parameters.clone();
            full.insert("path".to_owned(), folder.into());
            let [small, whole] = [named, full].map(|parameters| Kernels::build(&parameters).unwrap());
            for tokens in [0, 1, 16, 100, 700, 2048, 5000] {
                for requests in [0, 1, 5, 64, 200] {
                    for length in [20, 600, 3000, 20_000] {
                        let kv_tokens = u64::from(requests) * u64::from(length);
                        let decode =
                            DecodeBatch { requests, kv_tokens, capacity_tokens: 0, longest: 2 * length };
                        let chunks = [Chunk::of_prompt(tokens, length / 3)];
                        let chunks = if tokens > 0 { &chunks[..] } else { &[] };
                        let [got, expected] = [&small, &whole]
                            .map(|kernels| kernels.pass_ms(Pass { chunks, decode }).prompt_ms);
                        let off = (got / expected - 1.0).abs();
                        assert!(off < 1e-3, "{}: {tokens} {requests} {length}: {off}", profile.name);
                    }
                }
            }
        }
    }

    #[test]
    fn given_parameters_override_those_of_a_built_in_profile() {
        let build = |text: &str| Kernels::build(&serde_json::from_str(text).unwrap());
        let plain = build(r#"{"profile": "rtxpro6000-qwen3-32b-tp2"}"#).unwrap().config;
        assert_eq!((plain.layers, plain.tp, plain.max_num_seqs), (64, 2, 128));
        let given =
            build(r#"{"profile": "rtxpro6000-qwen3-32b-tp2", "tp": 1, "host": {"pass_us": 9}}"#).unwrap();
        assert_eq!((given.config.layers, given.config.tp, given.config.host.pass_us), (64, 1, 9.0));
        for (text, expected) in [
            (r#"{"profile": "rtx1"}"#, "unknown profile \"rtx1\""),
            (r#"{"profile": "rtx4090-llama-3.1-8b", "path": "d"}"#, "give \"profile\" or \"path\""),
            (r#"{"layers": 3}"#, "give \"profile\" or \"path\""),
            (r#"{"profile": "rtx4090-llama-3.1-8b", "experts": 8}"#, "no table \"moe\""),
        ] {
            let message = build(text).err().expect(text).to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
