//! The parameters of a run as columns of a table.

use serde_json::{Value, json};

use super::plan::BenchPlan;

/// Name and value of what was set, under the product text's names where it has them.
pub fn run_parameters(plan: &BenchPlan) -> Vec<(String, Value)> {
    let run = &plan.run;
    let storage = run.storage();
    [
        ("Model", json!(plan.model.name)),
        ("Num Users", json!(run.users)),
        ("Duration (s)", json!(run.duration.as_seconds())),
        ("GPU Mem (GB)", json!(plan.gpu_mem_gb)),
        ("CPU Mem (GB)", json!(plan.cpu_mem_gb)),
        ("Num GPUs", json!(plan.num_gpus)),
        ("Bytes per Token", json!(run.bytes_per_token)),
        ("Warmup (s)", json!(run.warmup.as_seconds())),
        ("Generation Mode", json!(plan.generation_mode)),
        ("Performance Profile", json!(plan.profile)),
        ("Storage Backend", json!(storage.map(|tier| &tier.backend))),
        ("Storage Capacity (bytes)", json!(storage.and_then(|tier| tier.capacity_bytes))),
        ("Max Concurrent Allocs", json!(run.max_concurrent_allocs.unwrap_or(0))),
        ("Max Requests", json!(run.max_requests.unwrap_or(0))),
        ("RAG Documents", json!(run.habits.documents.count)),
        ("Autoscaling", json!(run.scaling.map(|scaling| scaling.mode))),
        ("IO Threads", json!(run.io_threads)),
        ("IO Depth", json!(run.io_depth)),
        ("Trials", json!(plan.trials.most)),
        ("Seed", json!(plan.seed())),
        ("wavetank Version", json!(plan.wavetank_version)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
