//! Gauges as text for `/metrics`, with the names, kinds and labels of vLLM 0.30, so that whatever watches
//! vLLM can watch live workers; what vLLM has no name for has one of ours.

use wavetank_sim::EngineConfig;
use wavetank_telemetry::prometheus::{Names, Row, Sample, render, render_under};

use super::Gauges;
use super::counts::WorkerCounts;
use super::histogram::{Histogram, Histograms};
use super::state::{State, Worker};

/// What vLLM tells of the settings of a worker's cache.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    block_size: u32,
    num_gpu_blocks: u32,
    enable_prefix_caching: bool,
}

impl Settings {
    pub(super) fn of(engine: &EngineConfig) -> Self {
        let EngineConfig { block_size, num_gpu_blocks, enable_prefix_caching, .. } = *engine;
        Self { block_size, num_gpu_blocks, enable_prefix_caching }
    }

    fn row(&self) -> Row {
        // vLLM writes what Python does.
        let caching = if self.enable_prefix_caching { "True" } else { "False" };
        Row::gauge("cache_config_info", "Settings of the cache, as labels", 1.0)
            .label("block_size", self.block_size.to_string())
            .label("num_gpu_blocks", self.num_gpu_blocks.to_string())
            .label("enable_prefix_caching", caching)
    }
}

/// Name, what it says, and where it comes from.
type Named<T> = (&'static str, &'static str, T);
type Number = fn(&WorkerCounts) -> f64;
type Count = fn(&WorkerCounts) -> u64;
type Distribution = fn(&Histograms) -> &Histogram;

const NOW: &[Named<Number>] = &[
    ("num_requests_running", "Requests in the batch of the worker", |counts| counts.running as f64),
    ("num_requests_waiting", "Requests in the queue of the worker", |counts| counts.waiting as f64),
    ("kv_cache_usage_perc", "Part of the blocks of the cache that requests use, up to 1", |counts| {
        counts.blocks_in_use as f64 / counts.blocks.max(1) as f64
    }),
];

const SO_FAR: &[Named<Count>] = &[
    ("prefix_cache_queries", "Prompt tokens looked up in the cache", |counts| counts.queried_tokens),
    ("prefix_cache_hits", "Prompt tokens found in the cache", |counts| counts.hit_tokens),
    ("num_preemptions", "Running requests that lost their blocks", |counts| counts.preemptions),
    ("prompt_tokens", "Prompt tokens of answered requests", |counts| counts.prompt_tokens),
    ("generation_tokens", "Tokens answered", |counts| counts.generated_tokens),
];

const DISTRIBUTIONS: &[Named<Distribution>] = &[
    ("time_to_first_token_seconds", "From arrival to the first token", |all| &all.first_token),
    ("inter_token_latency_seconds", "From one token of a request to the next", |all| &all.token_gap),
    ("request_time_per_output_token_seconds", "Mean time between the tokens of a request", |all| {
        &all.time_per_token
    }),
    ("e2e_request_latency_seconds", "From arrival to the last token", |all| &all.whole),
    ("request_queue_time_seconds", "In the queue of the worker, until first admitted", |all| &all.queue),
    ("request_prefill_time_seconds", "From first admission to the first token", |all| &all.prefill),
    ("request_decode_time_seconds", "From the first token to the last", |all| &all.decode),
    ("request_inference_time_seconds", "From first admission to the last token", |all| &all.inference),
    ("request_prompt_tokens", "Prompt tokens of a request", |all| &all.prompt_tokens),
    ("request_generation_tokens", "Tokens answered to a request", |all| &all.generated_tokens),
];

impl Gauges {
    /// Everything as text of the type [`super::CONTENT_TYPE`].
    pub fn metrics(&self, model_name: &str) -> String {
        let (workers, router) = {
            let state = self.state();
            (state.workers.clone(), router(&state))
        };
        let mut rows = Vec::new();
        for (engine, (worker, settings)) in workers.iter().zip(self.settings.iter()).enumerate() {
            let engine = engine.to_string();
            let counted = rows_of(worker).map(|row| row.label("model_name", model_name));
            rows.extend(counted.chain([settings.row()]).map(|row| row.label("engine", &engine)));
        }
        render_under("vllm:", &rows) + &render(&router, Names::Ours)
    }
}

fn router(state: &State) -> [Row; 2] {
    let (waiting, cancelled) = (state.waiting_in_router as f64, state.cancelled_in_router);
    [
        Row::gauge("router_requests_waiting", "Requests that wait in the router", waiting),
        Row::counter("router_requests_cancelled", "Requests given up before they had a worker", cancelled),
    ]
}

fn rows_of(worker: &Worker) -> impl Iterator<Item = Row> {
    let Worker { counts, histograms } = worker;
    let now = NOW.iter().map(|(name, help, count)| Row::gauge(*name, *help, count(counts)));
    let so_far = SO_FAR.iter().map(|(name, help, count)| Row::counter(*name, *help, count(counts)));
    let ended = counts.finished.by_reason().into_iter().map(|(reason, count)| {
        Row::counter("request_success", "Requests that ended, by how", count).label("finished_reason", reason)
    });
    let distributions = DISTRIBUTIONS.iter().map(|(name, help, histogram)| {
        let Histogram { bounds, counts, sum } = histogram(histograms).clone();
        Row::histogram(*name, *help, Sample::Buckets { bounds: bounds.to_vec(), counts, sum })
    });
    now.chain(so_far).chain(ended).chain(distributions)
}
