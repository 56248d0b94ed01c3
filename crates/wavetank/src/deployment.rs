//! What runs on what: a model, its number types, its accelerators. The engine's own keys and the reference's
//! `aic_*` keys say the same things.

use serde_json::{Map, Value};
use wavetank_model::{Accelerator, Architecture, Error, Result, accelerator, model};

/// How wide the numbers of weights or KV are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dtype {
    Bf16,
    Fp8,
}

impl Dtype {
    /// The type called `name`, as engines and exporters write it.
    pub(crate) fn of(name: &str) -> Result<Self, String> {
        match name.to_lowercase().as_str() {
            "auto" | "bf16" | "bfloat16" | "float16" | "fp16" | "half" => Ok(Self::Bf16),
            fp8 if fp8.starts_with("fp8") => Ok(Self::Fp8),
            _ => Err(format!("unknown type \"{name}\"; known: bf16, fp8")),
        }
    }

    pub(crate) fn bytes(self) -> u32 {
        match self {
            Self::Bf16 => 2,
            Self::Fp8 => 1,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Fp8 => "fp8",
        }
    }
}

/// A model on accelerators.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deployment {
    pub(crate) model: &'static Architecture,
    pub(crate) gpu: &'static Accelerator,
    pub(crate) tp: u32,
    pub(crate) weights: Dtype,
    pub(crate) kv: Dtype,
}

/// Beside weights and KV vLLM keeps activations, graphs and its runtime: what is missing from the 2,588
/// blocks that vLLM 0.19 gave Llama-3.1-8B on an RTX 4090 at 0.9.
const RESERVED_BYTES: f64 = 1.1 * (1u64 << 30) as f64;

impl Deployment {
    /// What the keys of `object` say; an error names the one that is missing.
    pub(crate) fn of(object: &Map<String, Value>) -> Result<Self> {
        let text = |keys: [&str; 2]| keys.into_iter().find_map(|key| object.get(key).and_then(Value::as_str));
        let needed = |keys: [&str; 2]| {
            text(keys).ok_or_else(|| Error::usage(format!("\"{}\" (or \"{}\") is missing", keys[0], keys[1])))
        };
        let dtype =
            |keys: [&str; 2], other: &str| Dtype::of(text(keys).unwrap_or(other)).map_err(Error::usage);
        let name = needed(["model", "aic_model_path"])?;
        let quantised = if name.to_lowercase().contains("fp8") { "fp8" } else { "bf16" };
        let tp =
            ["tp", "aic_tp_size"].into_iter().find_map(|key| object.get(key)).map_or(Some(1), Value::as_u64);
        Ok(Self {
            model: model(name)?,
            gpu: accelerator(needed(["gpu", "aic_system"])?)?,
            tp: tp.and_then(|tp| u32::try_from(tp).ok()).filter(|&tp| tp > 0).unwrap_or(1),
            weights: dtype(["weight_dtype", "aic_gemm_dtype"], quantised)?,
            kv: dtype(["kv_dtype", "aic_kv_cache_dtype"], "bf16")?,
        })
    }

    /// Bytes of KV that each accelerator keeps for a token: heads are split as far as they go, compressed KV
    /// is whole.
    fn kv_bytes_per_token(&self) -> f64 {
        let split = self.model.latent.map_or(self.tp.min(self.model.kv_heads), |_| 1);
        f64::from(self.model.kv_numbers_per_token() * self.kv.bytes()) / f64::from(split)
    }

    /// KV blocks that fit beside the weights in `share` of the memory.
    pub(crate) fn num_gpu_blocks(&self, share: f64, block_size: u32) -> Result<u32> {
        let weights = self.model.parameters() as f64 * f64::from(self.weights.bytes()) / f64::from(self.tp);
        let left = self.gpu.memory_bytes * share - weights - RESERVED_BYTES;
        let blocks = left / (self.kv_bytes_per_token() * f64::from(block_size));
        if blocks >= 1.0 {
            return Ok(blocks.min(f64::from(u32::MAX)) as u32);
        }
        let gib = |bytes: f64| bytes / f64::from(1 << 30);
        Err(Error::usage(format!(
            "{} does not fit: its weights take {:.1} GiB of each {}, which has {:.1} GiB times {share}",
            self.model.name,
            gib(weights),
            self.gpu.name,
            gib(self.gpu.memory_bytes),
        ))
        .hint("use more GPUs (\"tp\"), fp8 weights, or a larger share of the memory"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Result<Deployment> {
        Deployment::of(serde_json::from_str::<Value>(json).unwrap().as_object().unwrap())
    }

    #[test]
    fn blocks_are_those_a_real_engine_found() {
        let blocks = of(r#"{"model": "meta-llama/Llama-3.1-8B", "gpu": "rtx4090"}"#)
            .unwrap()
            .num_gpu_blocks(0.9, 16)
            .unwrap();
        assert!((f64::from(blocks) / 2588.0 - 1.0).abs() < 0.01, "{blocks}");
    }

    #[test]
    fn both_ways_of_writing_are_read() {
        let ours =
            of(r#"{"model": "llama-3.1-70b", "gpu": "h200", "tp": 4, "weight_dtype": "fp8"}"#).unwrap();
        let theirs = of(r#"{"aic_model_path": "nvidia/Llama-3.1-70B-Instruct-FP8", "aic_system": "h200_sxm",
            "aic_tp_size": 4}"#)
        .unwrap();
        assert_eq!(ours.num_gpu_blocks(0.9, 64).unwrap(), theirs.num_gpu_blocks(0.9, 64).unwrap());
        assert_eq!(ours.kv_bytes_per_token(), 327_680.0 / 4.0);
    }

    #[test]
    fn what_is_missing_or_too_large_is_said() {
        assert!(of(r#"{"model": "llama-3.1-8b"}"#).unwrap_err().to_string().contains("\"gpu\""));
        assert!(of("{}").unwrap_err().to_string().contains("\"model\""));
        let large = of(r#"{"model": "llama-3.1-70b", "gpu": "h100"}"#).unwrap();
        assert!(large.num_gpu_blocks(0.9, 64).unwrap_err().to_string().contains("does not fit"));
    }
}
