//! Disaggregated replay: acceptance cases D1 to D4 of spec/replay.md 11 and the (run) numbers of
//! spec/engine.md 15.15 and 17.1.

use wavetank::{Plan, ReplayArgs};
use wavetank_report::Record;

use crate::drive::{run_trace, totals};

fn staged(prefill: &str, decode: &str) -> ReplayArgs {
    let engine =
        |role: &str, more: &str| Some(format!(r#"{{"block_size":64,"worker_type":"{role}"{more}}}"#));
    ReplayArgs {
        prefill_engine_args: engine("prefill", prefill),
        decode_engine_args: engine("decode", decode),
        router_mode: Some("kv_router".to_owned()),
        ..ReplayArgs::default()
    }
}

fn row(ms: u32, input: u32, output: u32, id: u32) -> String {
    let ids: Vec<u32> = (id..id + input.div_ceil(512)).collect();
    format!(r#"{{"timestamp":{ms},"input_length":{input},"output_length":{output},"hash_ids":{ids:?}}}"#)
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
}

/// 1 GB/s and a million bytes per token: a token takes a millisecond.
const SLOW: &str = r#","kv_bytes_per_token":1000000,"kv_transfer_bandwidth":1.0"#;

#[test]
fn d1_output_counts_once() {
    let rows: Vec<String> = (0..20).map(|i| row(i * 5, 200 + i * 30, 1 + i, i * 10)).collect();
    for (prefill, decode) in [(1, 1), (2, 2), (3, 1)] {
        let args = ReplayArgs {
            num_prefill_workers: Some(prefill),
            num_decode_workers: Some(decode),
            ..staged("", "")
        };
        let (replayed, records) = run_trace(&rows, args);
        assert_eq!(totals(&replayed), (20, 9700, 210));
        assert!(records.iter().all(|record| record.output_length == record.requested_output_length));
        assert!(records.iter().all(|record| record.prefill_worker_idx.unwrap() < prefill));
        assert!(records.iter().all(|record| record.decode_worker_idx.unwrap() >= prefill));
    }
}

#[test]
fn ttft_is_prefill_plus_one_step() {
    let (_, records) = run_trace(&[row(0, 1000, 3, 0)], staged("", ""));
    // spec/engine.md 15.15: 32.1059 + 5.7915 ms, the step on the prompt's length.
    close(records[0].ttft_ms.unwrap(), 37.897_344);
    close(records[0].prefill_ms, 32.105_859);
}

#[test]
fn d2_the_transfer_takes_its_time() {
    let ttft = |more: &str| run_trace(&[row(0, 128, 2, 0)], staged(more, "")).1[0].clone();
    let (slow, quick) = (ttft(SLOW), ttft(""));
    let handoff = |record: &Record| record.destination_activated_ms.unwrap() - record.source_held_ms.unwrap();
    close(handoff(&slow), 128.0);
    close(handoff(&quick), 0.0);
    close(slow.ttft_ms.unwrap() - quick.ttft_ms.unwrap(), 128.0);
}

#[test]
fn d3_what_the_decode_worker_has_is_not_sent() {
    let mode = r#","kv_transfer_timing_mode":"destination_missing""#;
    let rows = [row(0, 64, 2, 7), row(5000, 128, 2, 7)];
    let span = |more: &str| {
        let record = &run_trace(&rows, staged(&format!("{SLOW}{more}"), "")).1[1];
        record.destination_activated_ms.unwrap() - record.destination_reserved_ms.unwrap()
    };
    close(span(mode), 64.0);
    close(span(""), 128.0);
}

#[test]
fn d4_what_only_the_prefill_worker_has_is_sent() {
    let mode = format!(r#"{SLOW},"kv_transfer_timing_mode":"destination_missing""#);
    let rows = [row(0, 128, 2, 7), row(5000, 128, 2, 7)];
    // Without prefix caching on the decode side nothing is found there, although the prefill worker reuses.
    let args = staged(&mode, r#","enable_prefix_caching":false"#);
    let record = &run_trace(&rows, args).1[1];
    assert_eq!(record.reused_input_tokens, 64);
    close(record.destination_activated_ms.unwrap() - record.destination_reserved_ms.unwrap(), 128.0);
}

#[test]
fn the_parts_of_ttft_add_up() {
    let rows: Vec<String> = (0..60).map(|i| row(i * 20, 300 + i * 50, 30, i * 20)).collect();
    let (replayed, _) = run_trace(&rows, staged(SLOW, ""));
    let attribution = &replayed.summary.attribution;
    let sum: f64 = attribution.ttft_parts().iter().map(|(_, part)| part.mean).sum();
    assert!((sum - replayed.summary.ttft_ms.mean).abs() < 1e-6 * sum);
    assert!(attribution.handoff_ms.mean > 300.0);
}

#[test]
fn a_small_decode_cache_preempts_and_goes_on() {
    let rows: Vec<String> = (0..30).map(|i| row(i * 10, 500, 400, i * 20)).collect();
    let (replayed, _) = run_trace(&rows, staged("", r#","num_gpu_blocks":60"#));
    assert_eq!(totals(&replayed), (30, 15_000, 12_000));
    assert!(replayed.summary.counts.preemptions > 0, "the case preempts");
}

#[test]
fn no_output_is_handed_off_and_ends_there() {
    let (replayed, records) = run_trace(&[row(0, 100, 0, 0), row(1, 100, 2, 5)], staged("", ""));
    assert_eq!(totals(&replayed), (2, 200, 2));
    close(records[0].terminal_time_ms, records[0].destination_activated_ms.unwrap());
}

#[test]
fn a_prompt_that_no_decode_worker_can_hold_is_rejected() {
    let rows = [row(0, 5000, 2, 0), row(1, 100, 2, 50)];
    let (replayed, records) = run_trace(&rows, staged("", r#","num_gpu_blocks":10"#));
    assert_eq!(replayed.summary.counts.completed, 1);
    assert_eq!(records[0].rejection_reason, Some("prompt_exceeds_num_gpu_blocks"));
}

#[test]
fn pools_must_fit_together() {
    let refused = |args: ReplayArgs| {
        Plan::of(&ReplayArgs { trace_files: vec!["t".into()], ..args }).unwrap_err().to_string()
    };
    let base = || staged("", "");
    let cases = [
        (ReplayArgs { router_mode: None, ..base() }, "disaggregated replay needs kv_router"),
        (ReplayArgs { num_workers: Some(2), ..base() }, "--num-workers: belongs to aggregated replay"),
        (ReplayArgs { decode_engine_args: None, ..base() }, "come as a pair"),
        (ReplayArgs { decode_engine_args: base().prefill_engine_args, ..base() }, "must be \"decode\""),
        (ReplayArgs { prefill_engine_args: base().decode_engine_args, ..base() }, "must be \"prefill\""),
        (staged(r#","num_gpu_blocks":0"#, ""), "must be at least 1"),
        (ReplayArgs { num_decode_workers: Some(0), ..base() }, "--num-decode-workers"),
        (
            ReplayArgs {
                decode_engine_args: Some(r#"{"block_size":32,"worker_type":"decode"}"#.into()),
                ..base()
            },
            "\"block_size\" is 32, that of the prefill workers 64",
        ),
        (
            ReplayArgs {
                prefill_engine_args: Some(r#"{"engine_type":"sglang","worker_type":"prefill"}"#.into()),
                ..base()
            },
            "\"engine_type\" must be that",
        ),
    ];
    for (args, expected) in cases {
        let message = refused(args);
        assert!(message.contains(expected), "{expected}: {message}");
    }
}
