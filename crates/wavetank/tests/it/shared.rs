//! Checks against the public Mooncake trace, where the shared data lies beside the checkout.

use std::io::Read;
use std::path::PathBuf;

use wavetank::ReplayArgs;

use crate::drive::{run, run_trace};

fn conversation() -> Option<String> {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let trace = data.join("traces/mooncake_conversation.jsonl.gz");
    trace.exists().then(|| trace.display().to_string())
}

#[test]
fn a_cache_without_end_reaches_the_reuse_bound() {
    let Some(trace) = conversation() else { return };
    let args = ReplayArgs {
        trace_files: vec![trace],
        replay_concurrency: Some(1),
        extra_engine_args: Some(r#"{"num_gpu_blocks":10000000,"block_size":64}"#.to_owned()),
        ..ReplayArgs::default()
    };
    let summary = run(&args).0.summary;
    // data/README.md: 144,793,823 input and 4,122,048 output tokens, of which 0.37359 can be reused.
    assert_eq!((summary.input_tokens, summary.output_tokens), (144_793_823, 4_122_048));
    assert_eq!(summary.counts.completed, 12_031);
    assert!((summary.first_reused_ratio() - 0.37359).abs() < 5e-6, "{}", summary.first_reused_ratio());
}

#[test]
fn most_passes_are_advanced_in_runs() {
    let Some(trace) = conversation() else { return };
    let args = ReplayArgs { trace_files: vec![trace], num_workers: Some(8), ..ReplayArgs::default() };
    let work = run(&args).0.outcome.total();
    let share = work.advanced_passes as f64 / (work.advanced_passes + work.stepped_passes) as f64;
    assert!(share >= 0.8, "{share}");
}

#[test]
fn disaggregated_sglang_matches_the_reference_on_a_thousand_requests() {
    let Some(trace) = conversation() else { return };
    let mut text = String::new();
    let file = std::fs::File::open(trace).unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let rows: Vec<&str> = text.lines().take(1000).collect();
    let engine = |role: &str, more: &str| {
        Some(format!(r#"{{"engine_type":"sglang","block_size":64,"worker_type":"{role}"{more}}}"#))
    };
    let sent = r#","kv_bytes_per_token":131072,"kv_transfer_bandwidth":50.0"#;
    // AISimulate 0.13, one prefill and one decode worker: mean TTFT and mean E2E.
    for (prefill, decode, concurrency, expected) in [
        ("", "", None, (2647.643476, 9694.464923)),
        (sent, "", None, (2687.494134, 9739.756645)),
        ("", "", Some(16), (999.803592, 6295.474142)),
        ("", r#","num_gpu_blocks":2048"#, None, (624011.267716, 658791.869433)),
    ] {
        let args = ReplayArgs {
            prefill_engine_args: engine("prefill", prefill),
            decode_engine_args: engine("decode", decode),
            router_mode: Some("kv_router".to_owned()),
            replay_concurrency: concurrency,
            ..ReplayArgs::default()
        };
        let summary = run_trace(&rows, args).0.summary;
        let (ttft, e2e) = (summary.ttft_ms.mean, summary.e2e_ms.mean);
        assert!(
            (ttft / expected.0 - 1.0).abs() < 1e-8 && (e2e / expected.1 - 1.0).abs() < 1e-8,
            "{ttft} {e2e}"
        );
    }
}
