//! `vllm bench throughput --output-json` (vllm/benchmarks/throughput.py): all requests at once, no server.

use wavetank_model::Result;

use super::{Entry, Object, Repeat, required};

pub(super) const ENTRY: Entry = Entry {
    name: "vllm-throughput",
    about: "vllm bench throughput --output-json",
    artifact: None,
    recognises: |result| KEYS.iter().all(|key| result.contains_key(*key)),
    read,
};

const KEYS: [&str; 5] =
    ["elapsed_time", "num_requests", "total_num_tokens", "requests_per_second", "tokens_per_second"];

fn read(result: &Object) -> Result<Repeat> {
    let mut run = Repeat::default();
    let [seconds, requests, tokens, request_rate, token_rate] = KEYS;
    run.set("duration_ms", required(result, seconds)? * 1e3);
    for (theirs, ours) in [
        (requests, "num_requests"),
        (requests, "completed_requests"),
        (tokens, "processed_tokens"),
        (request_rate, "request_throughput_rps"),
        (token_rate, "total_throughput_tok_s"),
        (token_rate, "total_tokens_per_sec"),
    ] {
        run.set(ours, required(result, theirs)?);
    }
    Ok(run)
}
