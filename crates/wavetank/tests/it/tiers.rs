//! What a report says of tiers, held against what the simulation says of itself.

use serde_json::json;
use wavetank::{ReplayArgs, Replayed};

use crate::drive::{run, synthetic};

/// Sessions that share prefixes on workers whose caches hold two of them.
fn args(engine: &str, tiers: &[&str]) -> ReplayArgs {
    ReplayArgs {
        num_workers: Some(2),
        turns_per_session: Some(4),
        shared_prefix_ratio: Some(0.5),
        num_prefix_groups: Some(3),
        inter_turn_delay_ms: Some(300.0),
        arrival_interval_ms: Some(40.0),
        extra_engine_args: Some(format!(
            r#"{{"kv_bytes_per_token":131072,"block_size":16,"num_gpu_blocks":300,{engine}}}"#
        )),
        tiers: tiers.iter().map(|tier| json!(tier)).collect(),
        ..synthetic(1600, 40, 20)
    }
}

const CASES: [(&str, &[&str]); 4] = [
    (r#""engine_type":"vllm""#, &["cpu=1GiB:20GB/s", "disk=1TiB:100us+3GB/s"]),
    (r#""engine_type":"vllm""#, &["cpu=256MiB:20GB/s,write=evict", "disk=1TiB:100us+3GB/s,shared"]),
    (r#""engine_type":"vllm""#, &["pool=4GiB:50us+10GB/s,shared,write=through,unit=object"]),
    (r#""engine_type":"sglang""#, &["host=2GiB:queued:gbps=20+order=fifo"]),
];

fn tiered(case: usize) -> Replayed {
    let (engine, tiers) = CASES[case];
    run(&args(engine, tiers)).0
}

/// Broken by: tokens that come from two places or from nowhere.
#[test]
fn prompt_tokens_add_up() {
    for case in 0..CASES.len() {
        let replayed = tiered(case);
        let (summary, tiers) = (&replayed.summary, replayed.summary.tiers.as_ref().unwrap());
        assert_eq!(tiers.prompt_tokens(), summary.input_tokens, "{case}");
        let found = tiers.prompt_tokens() - tiers.computed_tokens;
        assert_eq!(found, summary.first_reused_tokens, "{case}");
        assert!(tiers.tiers.iter().any(|tier| tier.prompt_tokens > 0), "{case}: nothing was loaded");
        let ttft: f64 = summary.attribution.ttft_parts().iter().map(|(_, part)| part.mean).sum();
        assert!((ttft / summary.ttft_ms.mean - 1.0).abs() < 1e-3, "{case}: {ttft} {}", summary.ttft_ms.mean);
    }
}

/// Broken by: transfers that are not told of or told of twice, or busy time that counts otherwise.
#[test]
fn a_report_says_what_the_simulation_did() {
    for case in 0..CASES.len() {
        let replayed = tiered(case);
        let tiers = &replayed.summary.tiers.as_ref().unwrap().tiers;
        for (told, done) in tiers.iter().zip(&replayed.outcome.tiers) {
            assert_eq!(
                (told.bytes_read, told.bytes_written),
                (done.bytes_read, done.bytes_written),
                "{case}"
            );
            assert_eq!((told.busy, told.shape.copies), (done.busy, done.instances), "{case}");
            assert_eq!(told.load_wait_ms.count, told.loads, "{case}");
            assert!(told.hit_tokens.is_multiple_of(16) && told.requests <= told.loads, "{case}");
        }
    }
}

/// Broken by: loads that hold up admissions and are no part of the time to first token.
#[test]
fn a_load_that_delays_is_a_part_of_the_time_to_first_token() {
    let part = |case: usize| tiered(case).summary.attribution.tier_load_ms.mean;
    assert!(part(0) > 0.0);
    // HiCache's loads are beside compute.
    assert_eq!(part(3), 0.0);
}
