//! From what the user typed for a storage benchmark to its plan.
//!
//! `args` is what was typed, `config` the YAML file, `model` the models; `draft` and the files it names put
//! them together and collect everything that is wrong; [`BenchPlan`] is the result, the same for a benchmark
//! that is run again.

mod args;
mod check;
mod config;
mod draft;
mod feed;
mod findings;
mod idle;
mod machine;
mod model;
mod place;
mod plan;
#[cfg(test)]
mod testing;
mod tiers;

pub use args::{BenchArgs, GenerationMode, GpuTier, Profile, ReadPolicy, Tokenizer, choice};
pub(crate) use model::bench_abouts;
pub use model::{AttentionType, Dtype, ModelPlan, bench_models, memory_table};
pub use plan::{BenchPlan, DatasetPlan, Thresholds};
