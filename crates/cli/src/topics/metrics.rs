//! `wavetank help metrics`.

use super::{Topic, columns};

pub(super) const ENTRY: Topic =
    Topic { name: "metrics", about: "what the rows of a replay and of a storage benchmark mean", text };

/// Keys of a replay's report; most have nine statistics, as `p99_ttft_ms`.
const SERVING: &[(&str, &str)] = &[
    ("ttft_ms", "time to first token: arrival at the router to the end of the prompt's last pass"),
    ("ttst_ms", "time to second token: the gap between the first two tokens"),
    ("itl_ms", "inter token latency: every gap between consecutive tokens of every request"),
    ("tpot_ms", "time per output token of a request: the mean of its gaps"),
    ("e2e_latency_ms", "request latency: arrival to last token"),
    ("output_token_throughput_per_user", "the inverse of every gap, in tokens per second"),
    ("output_throughput_tok_s", "output tokens of completed requests, per second of the run"),
    ("prefix_cache_reused_ratio", "prompt tokens found in a cache, of all of completed requests"),
    ("goodput_*", "requests that keep --sla-ttft-ms, --sla-itl-ms and --sla-e2e-ms"),
    ("attribution", "where TTFT goes: queues of router and engine, prefill, the way to decode, the rest"),
];

fn text() -> String {
    format!(
        "\
Metrics

Of a replay, as its report calls them; those in ms have nine statistics each, as p99_ttft_ms:

{}
The statistics are mean, min, max, median, p75, p90, p95, p99 and std. Requests that were rejected, cut or
preempted are under \"counts\", with the reason.

Of a storage benchmark: METHODOLOGY.md (\"The storage benchmark\") says what counts and where a number is not
the reference's. Of a server: GET /metrics (docs/serve.md). Of live workers: vLLM's names (docs/mock.md).
",
        columns(SERVING.iter().copied())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a key that reports do not have.
    #[test]
    fn keys_are_those_of_a_report() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/snapshots/it__golden__conversation.snap");
        let report = std::fs::read_to_string(path).unwrap();
        for (key, _) in SERVING.iter().filter(|(key, _)| !key.ends_with('*')) {
            assert!(report.contains(&format!("{key}\"")), "{key}");
        }
    }
}
