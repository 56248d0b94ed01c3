//! `run.json`: what served a measured run, and the plan that simulates it.
//!
//! The layout is that of the public LLMServingSim measurements of vLLM. Keys that are not listed say nothing
//! a simulation needs.

use std::fs;
use std::num::NonZeroU32;
use std::path::Path;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use wavetank::{Plan, ReplayMode, WorkloadPlan};
use wavetank_model::{Error, Result};
use wavetank_report::Sla;
use wavetank_sim::EngineConfig;
use wavetank_sim::timing::{Parameters, Pricing, TimingConfig};
use wavetank_trace::Fill;
use wavetank_trace::requests::SharedPrefix;

use super::schedule::Schedule;

/// The content of `run.json`.
#[derive(Debug, Deserialize)]
pub(super) struct Run {
    pub(super) model: String,
    pub(super) hardware: String,
    pub(super) vllm_version: String,
    engine: Engine,
    kv_cache: Option<KvCache>,
    #[serde(deserialize_with = "two_or_more")]
    pub(super) trace_block_size: u32,
    model_config: ModelConfig,
    /// A timing model to use instead of the run's own profile.
    timing: Option<TimingConfig>,
}

#[derive(Debug, Deserialize)]
struct Engine {
    tensor_parallel_size: NonZeroU32,
    data_parallel_size: NonZeroU32,
    #[serde(default)]
    enable_expert_parallel: bool,
    max_num_seqs: NonZeroU32,
    max_num_batched_tokens: NonZeroU32,
    max_model_len: Option<NonZeroU32>,
    #[serde(default)]
    seed: u64,
}

#[derive(Debug, Deserialize)]
struct KvCache {
    /// One of them is never used: vLLM pads with it.
    #[serde(deserialize_with = "two_or_more")]
    num_gpu_blocks: u32,
    #[serde(deserialize_with = "two_or_more")]
    block_size: u32,
    enable_prefix_caching: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct ModelConfig {
    hidden_size: NonZeroU32,
    num_hidden_layers: NonZeroU32,
    #[serde(alias = "num_local_experts")]
    num_experts: Option<NonZeroU32>,
    num_experts_per_tok: Option<NonZeroU32>,
}

fn two_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        number @ (0 | 1) => Err(D::Error::custom(format!("{number} where 2 or more are needed"))),
        number => Ok(number),
    }
}

impl Run {
    /// Reads `path`; mistakes are named with their line.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let hint = "a measured run is a directory with run.json, workload.jsonl, profile/ and measured.csv";
        let text = fs::read(path).map_err(|error| Error::io(path, error).hint(hint))?;
        serde_json::from_slice(&text).map_err(|error| {
            let message = error.to_string();
            let end = message.find(" at line ").unwrap_or(message.len());
            let place = format!("{}:{}", path.display(), error.line());
            Error::input(&message[..end]).at(place).hint(hint).source(error)
        })
    }

    /// The plan that simulates the run in `dir` under `schedule`.
    pub(super) fn plan(&self, dir: &Path, schedule: &Schedule) -> Result<Plan> {
        let place = dir.join("run.json").display().to_string();
        let plan = Plan {
            wavetank_version: env!("CARGO_PKG_VERSION").to_owned(),
            workload: WorkloadPlan::Trace {
                paths: vec![schedule.path.display().to_string()],
                format: schedule.format.to_owned(),
                trace_block_size: Some(self.trace_block_size),
                clamp_input: false,
                fill: Fill::default(),
                shared_prefix: SharedPrefix::default(),
            },
            arrival_speedup_ratio: 1.0,
            replay_mode: ReplayMode::Offline,
            simulation: wavetank_sim::Plan {
                engine: self.engine_config(dir, schedule).map_err(|error| error.within(place.clone()))?,
                seed: self.engine.seed,
                ..wavetank_sim::Plan::default()
            },
            sla: Sla::default(),
            warnings: Vec::new(),
        };
        plan.check().map_err(|error| in_file(error, &place))?;
        Ok(plan)
    }

    fn engine_config(&self, dir: &Path, schedule: &Schedule) -> Result<EngineConfig> {
        let cache = self.kv_cache.as_ref();
        let block_size = cache.map_or(self.trace_block_size, |cache| cache.block_size);
        let num_gpu_blocks = match cache {
            Some(cache) => cache.num_gpu_blocks - 1,
            None => schedule.blocks(block_size),
        };
        let (timing, ranks) = (timing_of(self, dir), self.engine.data_parallel_size.get());
        Ok(EngineConfig {
            num_gpu_blocks,
            block_size,
            max_num_seqs: Some(self.engine.max_num_seqs.get()),
            max_num_batched_tokens: Some(self.engine.max_num_batched_tokens.get()),
            max_model_len: self.engine.max_model_len.map(NonZeroU32::get),
            enable_prefix_caching: cache.and_then(|cache| cache.enable_prefix_caching).unwrap_or(true),
            data_parallel_ranks: ranks,
            async_scheduling: ranks > 1 || timing.pricing()? == Pricing::Fused,
            timing,
            ..EngineConfig::default()
        })
    }
}

/// An error about a flag that nobody typed is one of the file that says the same.
fn in_file(error: Error, place: &str) -> Error {
    match error.place() {
        Some(flag) if flag.starts_with("--") => Error::input(error.to_string()).at(place),
        _ => error.within(place),
    }
}

/// The timing model that `run.json` names, or the run's own profile.
fn timing_of(run: &Run, dir: &Path) -> TimingConfig {
    let kernels = || TimingConfig { name: "kernels".to_owned(), parameters: kernel_parameters(run, dir) };
    run.timing.clone().unwrap_or_else(kernels)
}

/// What a timing model of kernel profiles needs to know.
fn kernel_parameters(run: &Run, dir: &Path) -> Parameters {
    let (engine, model) = (&run.engine, &run.model_config);
    let mut parameters = Map::new();
    let mut set = |key: &str, value: Value| parameters.insert(key.to_owned(), value);
    set("path", dir.join("profile").display().to_string().into());
    set("layers", model.num_hidden_layers.get().into());
    set("hidden", model.hidden_size.get().into());
    set("tp", engine.tensor_parallel_size.get().into());
    set("max_num_seqs", engine.max_num_seqs.get().into());
    if let (Some(experts), Some(per_token)) = (model.num_experts, model.num_experts_per_tok) {
        let ranks = u64::from(engine.tensor_parallel_size.get()) * u64::from(engine.data_parallel_size.get());
        set("experts", experts.get().into());
        set("experts_per_token", per_token.get().into());
        set("ranks", if engine.enable_expert_parallel { ranks } else { 1 }.into());
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a mistake in the file that is told as one on the command line.
    #[test]
    fn what_is_wrong_in_the_file_is_told_with_the_file() {
        let flag = Error::usage("at most 1024").at("--extra-engine-args");
        assert_eq!(in_file(flag, "d/run.json").to_string(), "d/run.json: --extra-engine-args: at most 1024");
        let table = Error::input("bad").at("d/profile/dense.csv:3");
        assert_eq!(in_file(table, "d/run.json").to_string(), "d/profile/dense.csv:3: bad");
        assert_eq!(in_file(Error::input("bad"), "d/run.json").to_string(), "d/run.json: bad");
    }

    #[test]
    fn a_profile_is_described_by_the_run() {
        let run: Run = serde_json::from_str(
            r#"{"model": "m", "hardware": "h", "vllm_version": "0.19.0", "trace_block_size": 16,
            "engine": {"tensor_parallel_size": 2, "data_parallel_size": 2, "enable_expert_parallel": true,
              "max_num_seqs": 128, "max_num_batched_tokens": 2048, "max_model_len": null},
            "kv_cache": null, "model_config": {"hidden_size": 2048, "num_hidden_layers": 48,
              "num_experts": 128, "num_experts_per_tok": 8}}"#,
        )
        .unwrap();
        let expected = serde_json::json!({"path": "d/profile", "layers": 48, "hidden": 2048, "tp": 2,
            "max_num_seqs": 128, "experts": 128, "experts_per_token": 8, "ranks": 4});
        assert_eq!(Value::Object(kernel_parameters(&run, Path::new("d"))), expected);
    }
}
