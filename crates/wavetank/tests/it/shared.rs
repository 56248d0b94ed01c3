//! Checks against the public Mooncake trace, where the shared data lies beside the checkout.

use std::path::PathBuf;

use wavetank::ReplayArgs;

use crate::drive::run;

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
