//! Step times from a model's shape and an accelerator's rates, for when nothing was measured.
//!
//! A step takes the larger of its arithmetic and its memory traffic in the linear layers, the output layer
//! and attention, plus collectives, plus a fixed part. The efficiencies were fitted on AISimulate's grids of
//! Llama-3.1 8B and 70B on H200, not on other models or machines; METHODOLOGY.md has the errors.

mod config;

use std::path::Path;
use std::rc::Rc;

use serde::Deserialize;
use wavetank_model::{Accelerator, Architecture, Error, Result, accelerator, model};

use super::{Chunk, DecodeBatch, Entry, Pass, PassTime, Pricing, Timing, configure, decode_part_ms};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "roofline",
    about: "from a model's shape (model or config) and a GPU's rates; gpu, tp, weight_dtype, kv_dtype",
    pricing: Pricing::Fused,
    argument: Some("model"),
    reads: |parameters| parameters.contains_key("config").then_some("config"),
    build: |parameters| Ok(Rc::new(configure::<Config>(ENTRY.name, parameters)?.build()?)),
};

#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Dtype {
    #[default]
    Bf16,
    Fp8,
}

impl Dtype {
    fn bytes(self) -> f64 {
        match self {
            Self::Bf16 => 2.0,
            Self::Fp8 => 1.0,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Config {
    /// A row of the table of models.
    model: Option<String>,
    /// Path of a Hugging Face `config.json`.
    config: Option<String>,
    /// A row of the table of accelerators.
    gpu: String,
    tp: u32,
    weight_dtype: Dtype,
    kv_dtype: Dtype,
    /// What the host adds to every step (spec/vllm-timing.md 3.10).
    host_ms: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            model: None,
            config: None,
            gpu: String::new(),
            tp: 1,
            weight_dtype: Dtype::Bf16,
            kv_dtype: Dtype::Bf16,
            host_ms: 0.32,
        }
    }
}

/// Share of the peak rate of arithmetic, by weight type.
const COMPUTE_BF16: f64 = 0.745;
const COMPUTE_FP8: f64 = 0.48;
/// Share of the memory rate for weights.
const WEIGHTS: f64 = 0.90;
/// Share of the memory rate for KV, by its type.
const KV_BF16: f64 = 0.90;
const KV_FP8: f64 = 0.585;
/// Share of the bf16 rate in attention.
const ATTENTION: f64 = 0.66;
/// Share of the link's rate.
const LINK: f64 = 0.78;
/// Start of a collective.
const COLLECTIVE_S: f64 = 7e-6;
/// Launches of a layer.
const LAYER_S: f64 = 56e-6;
/// The rest of a step.
const STEP_S: f64 = 0.5e-3;

impl Config {
    fn build(self) -> Result<Roofline> {
        let wrong = |message: &str| Error::usage(format!("timing model \"roofline\": {message}"));
        let shape = match (&self.model, &self.config) {
            (Some(name), None) => model(name)?.clone(),
            (None, Some(path)) => config::read(Path::new(path))?,
            _ => return Err(wrong("give \"model\" (`wavetank list models`) or \"config\" (a config.json)")),
        };
        if self.gpu.is_empty() {
            return Err(wrong("give \"gpu\", a row of `wavetank list gpus`"));
        }
        if !(1..=1024).contains(&self.tp) {
            return Err(wrong("\"tp\" must be from 1 to 1024"));
        }
        if !(0.0..=1e6).contains(&self.host_ms) {
            return Err(wrong("\"host_ms\" must be from 0 to 1000000"));
        }
        Ok(self.rates(&shape, accelerator(&self.gpu)?))
    }

    fn rates(&self, shape: &Architecture, gpu: &Accelerator) -> Roofline {
        let tp = f64::from(self.tp);
        let [layers, hidden] = [shape.layers, shape.hidden].map(f64::from);
        let flops = match self.weight_dtype {
            Dtype::Fp8 if gpu.fp8_flops > gpu.bf16_flops => gpu.fp8_flops * COMPUTE_FP8,
            _ => gpu.bf16_flops * COMPUTE_BF16,
        };
        let kv_share = if self.kv_dtype == Dtype::Fp8 { KV_FP8 } else { KV_BF16 };
        let memory = gpu.memory_rate * WEIGHTS;
        let weights = Weights::of(shape);
        // Compressed KV is whole on every GPU, and so is a head that cannot be split further.
        let kv_split = shape.latent.map_or(tp.min(f64::from(shape.kv_heads)), |_| 1.0);
        let head = shape.latent.map_or(2 * shape.head_dim, |l| l.nope_dim + l.rope_dim + l.value_dim);
        let output = f64::from(shape.vocab) * hidden / tp;
        let moved = 2.0 * (tp - 1.0) / tp * hidden * 2.0 / (gpu.link_rate * LINK);
        let collectives = if self.tp > 1 { 2.0 * layers } else { 0.0 };
        Roofline {
            tp: self.tp,
            compute_ms: 1e3 * 2.0 * weights.per_token / tp / flops,
            weight_ms: 1e3 * self.weight_dtype.bytes() / tp / memory,
            token_ms: 1e3
                * (layers * 2.0 * (hidden * 4.0 + weights.width / tp * 2.0) / memory + collectives * moved),
            output_compute_ms: 1e3 * 2.0 * output / (gpu.bf16_flops * COMPUTE_BF16),
            output_weight_ms: 1e3 * 2.0 * output / memory,
            pair_ms: 1e3 * 2.0 * layers * f64::from(shape.heads) * f64::from(head)
                / tp
                / (gpu.bf16_flops * ATTENTION),
            kv_ms: 1e3 * f64::from(shape.kv_numbers_per_token()) / kv_split * self.kv_dtype.bytes()
                / (gpu.memory_rate * kv_share),
            fixed_ms: 1e3 * (STEP_S + layers * LAYER_S + collectives * COLLECTIVE_S) + self.host_ms,
            weights,
        }
    }
}

/// Weights of the layers, by when they are read.
struct Weights {
    /// In every step.
    always: f64,
    /// All experts together.
    experts: f64,
    /// Share of the experts that one token misses.
    missed: f64,
    /// What one token is multiplied with.
    per_token: f64,
    /// Width inside the feed-forward part, over what a token sees.
    width: f64,
}

impl Weights {
    fn of(shape: &Architecture) -> Self {
        let layers = f64::from(shape.layers);
        let mlp = |width: u32| shape.mlp_parameters(width) as f64;
        let attention = layers * shape.attention_parameters() as f64;
        let Some(e) = shape.experts else {
            let always = attention + layers * mlp(shape.intermediate);
            let width = f64::from(shape.intermediate);
            return Self { always, experts: 0.0, missed: 0.0, per_token: always, width };
        };
        let mixed = layers - f64::from(e.dense_layers);
        let always = attention
            + f64::from(e.dense_layers) * mlp(shape.intermediate)
            + mixed * mlp(e.shared_intermediate);
        let expert = mixed * mlp(e.intermediate);
        Self {
            always,
            experts: f64::from(e.count) * expert,
            missed: 1.0 - f64::from(e.per_token) / f64::from(e.count),
            per_token: always + f64::from(e.per_token) * expert,
            width: f64::from(e.per_token * e.intermediate + e.shared_intermediate),
        }
    }

    /// Weights that `tokens` read: of the experts, those that a random choice is expected to reach.
    fn read_by(&self, tokens: f64) -> f64 {
        self.always + self.experts * (1.0 - self.missed.powf(tokens))
    }
}

struct Roofline {
    tp: u32,
    weights: Weights,
    /// Arithmetic of a token.
    compute_ms: f64,
    /// Reading one weight.
    weight_ms: f64,
    /// Activations and collectives of a token.
    token_ms: f64,
    output_compute_ms: f64,
    output_weight_ms: f64,
    /// Attention of a token to one other.
    pair_ms: f64,
    /// Reading the KV of a token.
    kv_ms: f64,
    fixed_ms: f64,
}

impl Roofline {
    /// A step without attention.
    fn plain_ms(&self, tokens: f64, requests: f64) -> f64 {
        let linear = (self.compute_ms * tokens).max(self.weight_ms * self.weights.read_by(tokens));
        let output = (self.output_compute_ms * requests).max(self.output_weight_ms);
        linear + output + self.token_ms * tokens + self.fixed_ms
    }

    fn prompt_attention_ms(&self, chunk: &Chunk) -> f64 {
        let (tokens, context) = (f64::from(chunk.tokens), f64::from(chunk.context));
        let pairs = tokens * context + tokens * tokens / 2.0;
        (self.pair_ms * pairs).max(self.kv_ms * (context + tokens))
    }

    fn decode_attention_ms(&self, kv_tokens: f64) -> f64 {
        self.pair_ms.max(self.kv_ms) * kv_tokens
    }
}

impl Timing for Roofline {
    fn gpus(&self) -> u32 {
        self.tp
    }

    fn pass_ms(&self, pass: Pass<'_>) -> PassTime {
        let (mut tokens, mut parts, mut attention_ms) = (0u64, 0u32, 0.0);
        for chunk in pass.chunks.iter().filter(|chunk| chunk.tokens > 0) {
            tokens += u64::from(chunk.tokens);
            parts += 1;
            attention_ms += self.prompt_attention_ms(chunk);
        }
        if parts == 0 {
            return PassTime { prompt_ms: 0.0, decode_ms: decode_part_ms(self, pass.decode) };
        }
        let decodes = f64::from(pass.decode.requests);
        if pass.decode.requests > 0 {
            attention_ms += self.decode_attention_ms(pass.decode.kv_tokens as f64);
        }
        let plain_ms = self.plain_ms(tokens as f64 + decodes, f64::from(parts) + decodes);
        PassTime { prompt_ms: plain_ms + attention_ms, decode_ms: 0.0 }
    }

    fn decode_run_ms(&self, first: DecodeBatch, out: &mut [f64]) {
        let requests = f64::from(first.requests);
        let plain_ms = self.plain_ms(requests, requests);
        for (pass, ms) in out.iter_mut().enumerate() {
            let kv_tokens = first.kv_tokens as f64 + requests * f64::from(pass as u32);
            *ms = plain_ms + self.decode_attention_ms(kv_tokens);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(json: &str) -> Roofline {
        serde_json::from_str::<Config>(json).unwrap().build().unwrap()
    }

    fn decode(model: &Roofline, requests: u32, length: u32) -> f64 {
        let kv_tokens = u64::from(requests) * u64::from(length);
        decode_part_ms(model, DecodeBatch { requests, kv_tokens, capacity_tokens: 1 << 24, longest: length })
    }

    fn prefill(model: &Roofline, tokens: u32) -> f64 {
        let chunks = &[Chunk::of_prompt(tokens, 0)];
        model.pass_ms(Pass { chunks, decode: DecodeBatch::default() }).prompt_ms
    }

    /// Cells of AISimulate's grids, within the errors of the fit.
    #[test]
    fn fitted_machines_are_met() {
        let bf16 = built(r#"{"model": "llama-3.1-8b", "gpu": "h200", "host_ms": 0}"#);
        let fp8 = built(
            r#"{"model": "llama-3.1-70b", "gpu": "h200", "tp": 4, "weight_dtype": "fp8", "kv_dtype": "fp8",
            "host_ms": 0}"#,
        );
        for (found, measured) in [
            (decode(&bf16, 64, 1024), 7.567),
            (decode(&bf16, 64, 4096), 13.612),
            (prefill(&bf16, 2048), 43.40),
            (prefill(&bf16, 8192), 198.87),
            (decode(&fp8, 64, 1024), 11.409),
            (decode(&fp8, 64, 4096), 14.184),
            (prefill(&fp8, 2048), 97.08),
            (prefill(&fp8, 8192), 379.83),
        ] {
            assert!((found / measured - 1.0_f64).abs() < 0.17, "{found} {measured}");
        }
    }

    #[test]
    fn mixtures_read_more_experts_with_more_tokens() {
        let model = built(r#"{"model": "Mixtral-8x7B-v0.1", "gpu": "h100", "tp": 2}"#);
        let few = decode(&model, 1, 100);
        assert!(decode(&model, 8, 100) > 1.5 * few, "{few}");
    }

    #[test]
    fn missing_facts_are_named() {
        let message = |json: &str| {
            let config = serde_json::from_str::<Config>(json).unwrap();
            config.build().err().expect(json).to_string()
        };
        assert!(message("{}").contains("give \"model\""));
        assert!(message(r#"{"model": "llama-3.1-8b"}"#).contains("wavetank list gpus"));
        assert!(message(r#"{"model": "llama-3.1-8b", "gpu": "h900"}"#).contains("h200_sxm"));
        assert!(message(r#"{"model": "llama-3.1-8b", "gpu": "h200", "tp": 0}"#).contains("\"tp\""));
    }
}
