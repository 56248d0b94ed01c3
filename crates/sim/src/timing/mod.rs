//! How long a pass takes: one file per timing model, one row each in [`ALL`].

mod fixed;
mod grid;
mod kernels;
mod npz;
mod polynomial;
mod roofline;

use std::rc::Rc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wavetank_model::{Error, Result, described, find};

use crate::provenance::Provenance;

pub use grid::{BuiltIn, Profile, profiles};
pub use kernels::{KernelContent, KernelProfile, kernel_profiles, kernel_survey};
pub use npz::npz_survey;

/// What one request computes in a pass beyond the token sampled last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// New tokens.
    pub tokens: u32,
    /// Tokens that were there before, found in the cache or computed.
    pub context: u32,
    /// How many of `tokens` belong to the prompt; the others are computed again after a preemption.
    pub prompt_tokens: u32,
    /// How many of `context` belong to the prompt.
    pub prompt_context: u32,
}

impl Chunk {
    /// A part of a prompt.
    pub fn of_prompt(tokens: u32, context: u32) -> Self {
        Self { tokens, context, prompt_tokens: tokens, prompt_context: context }
    }
}

/// The decode work of one pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecodeBatch {
    /// Requests that decode.
    pub requests: u32,
    /// Sum of their lengths, the token sampled last included.
    pub kv_tokens: u64,
    /// Tokens the worker's cache can hold.
    pub capacity_tokens: u64,
    /// Length of the longest of them; 0 where the model does not ask.
    pub longest: u32,
}

impl DecodeBatch {
    /// The batch after `passes` more tokens for each.
    pub fn after(self, passes: u32) -> Self {
        let kv_tokens = self.kv_tokens + u64::from(self.requests) * u64::from(passes);
        Self { kv_tokens, longest: self.longest + passes, ..self }
    }
}

/// The work of one pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass<'a> {
    /// Requests that compute a part of their prompt, or again what they lost.
    pub chunks: &'a [Chunk],
    /// Requests that decode.
    pub decode: DecodeBatch,
}

/// How long a pass takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PassTime {
    /// Its prompt part; the whole pass where a model prices prompts and decoding together.
    pub prompt_ms: f64,
    /// Its decode part.
    pub decode_ms: f64,
}

/// How a model prices a pass that has prompts and decodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pricing {
    /// As a prompt part and a decode part, by formula; what a decode worker computes again costs nothing.
    Parts,
    /// As one measured step.
    Fused,
}

/// A model of pass times. All times are finite and not negative.
pub trait Timing {
    /// The time of a pass with chunks.
    fn pass_ms(&self, pass: Pass<'_>) -> PassTime;

    /// Milliseconds of one step of data-parallel ranks that wait for each other.
    fn lockstep_ms(&self, ranks: &[Pass<'_>]) -> f64 {
        let alone = |&pass: &Pass<'_>| {
            let time = self.pass_ms(pass);
            time.prompt_ms + time.decode_ms
        };
        ranks.iter().map(alone).fold(0.0, f64::max)
    }

    /// Milliseconds of consecutive passes that only decode: pass `i` of the run is `first.after(i)`.
    fn decode_run_ms(&self, first: DecodeBatch, out: &mut [f64]);

    /// GPUs of a worker that takes this long.
    fn gpus(&self) -> u32 {
        1
    }

    /// Where the time it gave so far came from; `None` for a formula. Passes that were priced ahead and never
    /// run count too.
    fn provenance(&self) -> Option<Provenance> {
        None
    }
}

/// The prompt work of one pass as batch means, rounded down, as the reference's formulas take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PrefillBatch {
    requests: u32,
    /// Mean of prompt tokens known after the pass.
    mean_context: u32,
    /// Mean of prompt tokens known before it.
    mean_prefix: u32,
}

impl PrefillBatch {
    /// The means of `chunks`; `None` if no prompt is computed.
    fn of(chunks: &[Chunk]) -> Option<Self> {
        let (mut requests, mut context, mut prefix) = (0u32, 0u64, 0u64);
        for chunk in chunks.iter().filter(|chunk| chunk.prompt_tokens > 0) {
            requests += 1;
            context += u64::from(chunk.prompt_context + chunk.prompt_tokens);
            prefix += u64::from(chunk.prompt_context);
        }
        let mean = |sum: u64| (sum / u64::from(requests)) as u32;
        (requests > 0).then(|| Self { requests, mean_context: mean(context), mean_prefix: mean(prefix) })
    }

    /// New tokens as the means give them.
    fn fresh_tokens(&self) -> u64 {
        u64::from(self.requests) * u64::from(self.mean_context - self.mean_prefix)
    }
}

/// The decode part of a pass, by a model that prices it apart.
fn decode_part_ms(model: &dyn Timing, decode: DecodeBatch) -> f64 {
    let mut ms = [0.0];
    if decode.requests > 0 {
        model.decode_run_ms(decode, &mut ms);
    }
    ms[0]
}

/// What a row's own configuration is read from.
pub type Parameters = Map<String, Value>;

/// A row of the table.
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// One line for `wavetank list`.
    pub about: &'static str,
    /// How it prices a pass.
    pub pricing: Pricing,
    /// The parameter that is meant by a value without a key; `None` if there is no such.
    pub argument: Option<&'static str>,
    /// The parameter that names the file or folder it reads; `None` where it reads none.
    pub reads: fn(&Parameters) -> Option<&'static str>,
    /// Builds the model from its parameters.
    pub build: fn(&Parameters) -> Result<Rc<dyn Timing>>,
}

described!(Entry);

/// Every timing model, alphabetical. `wavetank list timing` prints this table.
pub const ALL: &[Entry] =
    &[fixed::ENTRY, grid::ENTRY, kernels::ENTRY, npz::ENTRY, polynomial::ENTRY, roofline::ENTRY];

/// A row of [`ALL`] and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimingConfig {
    /// The row.
    pub name: String,
    /// What the row's own configuration takes.
    #[serde(flatten)]
    pub parameters: Parameters,
}

impl Default for TimingConfig {
    fn default() -> Self {
        Self { name: polynomial::ENTRY.name.to_owned(), parameters: Map::new() }
    }
}

impl TimingConfig {
    /// How the model prices a pass.
    pub fn pricing(&self) -> Result<Pricing> {
        Ok(find("timing model", ALL, &self.name)?.pricing)
    }

    /// The file or folder it reads, where it reads one.
    pub fn file(&self) -> Option<&str> {
        let row = find("timing model", ALL, &self.name).ok()?;
        self.parameters.get((row.reads)(&self.parameters)?)?.as_str()
    }

    /// The same, to be put elsewhere.
    pub fn file_mut(&mut self) -> Option<&mut String> {
        let row = find("timing model", ALL, &self.name).ok()?;
        let key = (row.reads)(&self.parameters)?;
        match self.parameters.get_mut(key)? {
            Value::String(path) => Some(path),
            _ => None,
        }
    }

    /// Builds the model.
    pub fn build(&self) -> Result<Rc<dyn Timing>> {
        (find("timing model", ALL, &self.name)?.build)(&self.parameters)
    }
}

/// The parameter that names a file, of a row that takes `path`, or `profile` as a built-in name or a file.
fn file_or_profile(parameters: &Parameters, is_built_in: impl Fn(&str) -> bool) -> Option<&'static str> {
    match parameters.get("profile").and_then(Value::as_str) {
        Some(name) => (!is_built_in(name)).then_some("profile"),
        None => Some("path"),
    }
}

/// Reads the parameters of the row `name` into its own configuration type.
fn configure<'de, T: Deserialize<'de>>(name: &str, parameters: &Parameters) -> Result<T> {
    T::deserialize(Value::Object(parameters.clone()))
        .map_err(|error| Error::usage(format!("timing model \"{name}\": {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parameters for rows that cannot do without.
    fn example(entry: &Entry) -> Parameters {
        let text = match entry.name {
            "fixed" => r#"{"prefill_ms": 20.0, "decode_ms": 5.0}"#,
            "grid" => r#"{"profile": "llama31-8b-h200-tp1-bf16"}"#,
            "kernels" => return kernels::example(),
            "npz" => concat!(r#"{"path": ""#, env!("CARGO_MANIFEST_DIR"), r#"/tests/profile.npz"}"#),
            "roofline" => r#"{"model": "llama-3.1-8b", "gpu": "h200"}"#,
            _ => "{}",
        };
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn every_model_keeps_the_contract() {
        for entry in ALL {
            let model = (entry.build)(&example(entry)).unwrap();
            let mut run = [0.0; 7];
            for requests in [1, 3, 256] {
                let first = DecodeBatch { requests, kv_tokens: 1000, capacity_tokens: 1 << 20, longest: 900 };
                model.decode_run_ms(first, &mut run);
                for (i, &ms) in run.iter().enumerate() {
                    let mut one = [f64::NAN];
                    model.decode_run_ms(first.after(i as u32), &mut one);
                    assert!(ms.is_finite() && ms >= 0.0, "{}", entry.name);
                    assert_eq!(one[0], ms, "{}: a run is the sum of its passes", entry.name);
                }
                let chunks = vec![Chunk::of_prompt(400, 100); requests as usize];
                for decode in [DecodeBatch::default(), first] {
                    let time = model.pass_ms(Pass { chunks: &chunks, decode });
                    let total = time.prompt_ms + time.decode_ms;
                    assert!(total.is_finite() && total >= 0.0, "{}", entry.name);
                    let longer =
                        model.pass_ms(Pass { chunks: &[chunks.clone(), chunks.clone()].concat(), decode });
                    assert!(
                        longer.prompt_ms + longer.decode_ms >= total,
                        "{}: more work, less time",
                        entry.name
                    );
                }
            }
        }
    }

    /// Broken by: a row that says nothing of a file it reads, or takes the name of a profile for one.
    #[test]
    fn what_is_read_is_known() {
        let file = |name: &str, text: &str| {
            let mut config =
                TimingConfig { name: name.to_owned(), parameters: serde_json::from_str(text).unwrap() };
            if let Some(file) = config.file_mut() {
                *file = format!("elsewhere/{file}");
                let error = config.build().err().expect("there is no such file").to_string();
                assert!(error.starts_with(config.file().unwrap()), "{error}");
            }
            config.file().map(str::to_owned)
        };
        for (name, text, expected) in [
            ("grid", r#"{"path": "a.csv"}"#, Some("elsewhere/a.csv")),
            ("grid", r#"{"profile": "b.csv", "host_ms": 1}"#, Some("elsewhere/b.csv")),
            (
                "kernels",
                r#"{"profile": "c/d", "layers": 1, "hidden": 1, "max_num_seqs": 64}"#,
                Some("elsewhere/c/d"),
            ),
            ("npz", r#"{"path": "e"}"#, Some("elsewhere/e")),
            ("roofline", r#"{"config": "f", "gpu": "h200"}"#, Some("elsewhere/f")),
        ] {
            assert_eq!(file(name, text).as_deref(), expected, "{name}");
        }
        for entry in ALL {
            let parameters = example(entry);
            let is_file = parameters.get("path").is_some();
            let config = TimingConfig { name: entry.name.to_owned(), parameters };
            assert_eq!(config.file().is_some(), is_file, "{}", entry.name);
        }
    }

    #[test]
    fn unknown_parameters_are_refused() {
        for entry in ALL {
            let mut parameters = example(entry);
            parameters.insert("no_such_key".to_owned(), Value::from(1));
            let error = (entry.build)(&parameters).err().expect("refused").to_string();
            assert!(error.contains("no_such_key") && error.contains(entry.name), "{error}");
        }
    }
}
