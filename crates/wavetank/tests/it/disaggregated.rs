//! Disaggregated replay: acceptance cases D1 to D4 of spec/replay.md 11 and the (run) numbers of
//! spec/engine.md 15.15 and 17.1.

use wavetank::{LinkScope, Plan, ReplayArgs};
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

fn staged_sglang(prefill: &str, decode: &str) -> ReplayArgs {
    let sglang = |more: &str| format!(r#","engine_type":"sglang"{more}"#);
    staged(&sglang(prefill), &sglang(decode))
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
    assert!(attribution.transfer_ms.mean > 300.0);
    assert!(attribution.decode_step_ms.mean > 0.0);
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
    assert_eq!(records[0].rejection_reason.as_deref(), Some("prompt_exceeds_num_gpu_blocks"));
}

#[test]
fn pools_must_fit_together() {
    let refused = |args: ReplayArgs| {
        Plan::of(&ReplayArgs { trace_files: vec!["mooncake:t".into()], ..args }).unwrap_err().to_string()
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

#[test]
fn r1_two_rows_on_two_and_two() {
    let rows = [
        r#"{"timestamp":1000,"input_length":64,"output_length":2,"hash_ids":[101]}"#,
        r#"{"timestamp":1005,"input_length":64,"output_length":2,"hash_ids":[101]}"#,
    ];
    for args in [staged("", ""), staged_sglang("", "")] {
        let args = ReplayArgs { num_prefill_workers: Some(2), num_decode_workers: Some(2), ..args };
        assert_eq!(totals(&run_trace(&rows, args).0), (2, 128, 4));
    }
}

/// Runs eight of 500 tokens in and 400 out, 10 ms apart, and compares TTFT and end with the reference's.
fn matches_reference(args: ReplayArgs, count: u32, expected: &[(f64, f64)]) {
    let rows: Vec<String> = (0..count).map(|i| row(i * 10, 500, 400, 1000 * (i + 1))).collect();
    let (_, records) = run_trace(&rows, args);
    for (record, &(ttft, end)) in records.iter().zip(expected) {
        close(record.ttft_ms.unwrap(), ttft);
        close(record.terminal_time_ms, end);
    }
    assert_eq!(records.len(), expected.len());
}

/// Runs of AISimulate 0.13 in which a decode worker retracts while prompts wait for room there.
#[test]
fn sglang_retracts_as_the_reference() {
    // The same request is admitted and retracted 47 times, because its next token finds no page.
    matches_reference(
        staged_sglang("", r#","num_gpu_blocks":32"#),
        3,
        &[(41.590202, 12818.551721), (80.508235, 12882.149168), (70.508235, 18636.653442)],
    );
    matches_reference(
        staged_sglang("", r#","num_gpu_blocks":28"#),
        8,
        &[
            (43.004261, 13206.922825),
            (84.758711, 48673.539722),
            (74.758711, 22962.034749),
            (2669.108437, 26622.063299),
            (3124.347617, 36086.709526),
            (3581.219319, 39057.706866),
            (4039.547584, 48504.493176),
            (4499.156456, 51105.000573),
        ],
    );
}

#[test]
fn sglang_sends_as_the_reference() {
    let sends = |mode: &str| {
        let keys = r#","kv_bytes_per_token":131072,"kv_transfer_bandwidth":5.0,"kv_transfer_timing_mode""#;
        format!(r#"{keys}:"{mode}""#)
    };
    matches_reference(
        staged_sglang(&sends("full_prompt"), r#","num_gpu_blocks":28"#),
        8,
        &[
            (56.111461, 12990.386778),
            (97.865911, 50583.730955),
            (87.865911, 23467.961786),
            (2712.115732, 30069.736594),
            (3197.716542, 35935.152811),
            (3685.370944, 42536.927619),
            (4174.862519, 48551.256902),
            (4652.256325, 17602.545569),
        ],
    );
    // Only whole pages that are missing, so 500 tokens are 512.
    matches_reference(
        staged_sglang(&sends("destination_missing"), r#","num_gpu_blocks":40"#),
        8,
        &[
            (52.927088, 13259.959618),
            (102.169694, 13348.32073),
            (92.169694, 32973.56381),
            (116.114874, 31001.944518),
            (106.114874, 36898.968521),
            (25474.120437, 36942.019467),
            (11164.450604, 23676.169152),
            (13278.32073, 25524.120437),
        ],
    );
}

#[test]
fn idle_workers_and_endless_bandwidth_leave_prefill_and_one_step() {
    let rows: Vec<String> = (0..6).map(|i| row(i * 3, 400 + i * 100, 5, i * 20)).collect();
    for (args, engine) in [(staged("", ""), "vllm"), (staged_sglang("", ""), "sglang")] {
        let args = ReplayArgs { num_prefill_workers: Some(6), num_decode_workers: Some(6), ..args };
        let (_, records) = run_trace(&rows, args);
        for (record, line) in records.iter().zip(&rows) {
            // The request alone, on one worker that does all: its first token is the end of its prompt.
            let keys = format!(r#"{{"engine_type":"{engine}","block_size":64}}"#);
            let alone = ReplayArgs { extra_engine_args: Some(keys), ..ReplayArgs::default() };
            let prefill = run_trace(&[line], alone).1[0].ttft_ms.unwrap();
            let step = record.first_token_ms.unwrap() - record.destination_activated_ms.unwrap();
            close(record.ttft_ms.unwrap(), prefill + step);
            assert!(step > 0.0);
        }
    }
}

#[test]
fn transfers_on_one_link_take_as_long_as_their_bytes_together() {
    // Two prompts of 128 tokens at once, a million bytes per token: 128 ms each, alone, at 1 GB/s.
    let rows = [row(0, 128, 2, 0), row(0, 128, 2, 50)];
    let spans = |scope: Option<LinkScope>, prefill_workers: u32| {
        let args = ReplayArgs {
            num_prefill_workers: Some(prefill_workers),
            num_decode_workers: Some(2),
            kv_link_gbps: scope.map(|_| 1.0),
            kv_link_scope: scope,
            ..staged(r#","kv_bytes_per_token":1000000"#, "")
        };
        let (_, records) = run_trace(&rows, args);
        let span = |record: &Record| {
            record.destination_activated_ms.unwrap() - record.destination_reserved_ms.unwrap()
        };
        [span(&records[0]), span(&records[1])]
    };
    for (scope, prefill_workers, expected) in [
        (Some(LinkScope::Pool), 2, 256.0),
        (Some(LinkScope::PrefillWorker), 1, 256.0),
        (Some(LinkScope::PrefillWorker), 2, 128.0),
        (Some(LinkScope::DecodeWorker), 2, 128.0),
        (None, 1, 0.0),
    ] {
        for found in spans(scope, prefill_workers) {
            close(found, expected);
        }
    }
}

#[test]
fn a_model_name_gives_the_bytes_and_the_latency_counts_once() {
    let args = |latency| ReplayArgs {
        kv_link_gbps: Some(50.0),
        kv_link_latency_us: latency,
        ..staged(r#","model":"meta-llama/Llama-3.1-8B-Instruct""#, "")
    };
    let transfer =
        |latency| run_trace(&[row(0, 1000, 2, 0)], args(latency)).0.summary.attribution.transfer_ms.mean;
    close(transfer(None), 1000.0 * 131_072.0 / 50e6);
    close(transfer(Some(250.0)) - transfer(None), 0.25);
}

#[test]
fn a_small_prefill_cache_waits_for_its_transfers() {
    let rows: Vec<String> = (0..6).map(|i| row(i, 1000, 20, i * 10)).collect();
    for args in [
        staged(&format!(r#"{SLOW},"num_gpu_blocks":20"#), ""),
        staged_sglang(&format!(r#"{SLOW},"num_gpu_blocks":20"#), ""),
    ] {
        let (replayed, records) = run_trace(&rows, args);
        assert_eq!(totals(&replayed), (6, 6000, 120));
        // One prompt fits at a time, so each is computed when the one before has been sent.
        let held: Vec<f64> = records.iter().map(|record| record.source_held_ms.unwrap()).collect();
        assert!(held.windows(2).all(|pair| pair[1] - pair[0] > 1000.0), "{held:?}");
    }
}

#[test]
fn a_link_must_make_sense() {
    let refused = |args: ReplayArgs| {
        Plan::of(&ReplayArgs { trace_files: vec!["mooncake:t".into()], ..args }).unwrap_err().to_string()
    };
    let scope = Some(LinkScope::Pool);
    for (args, expected) in [
        (ReplayArgs { kv_link_gbps: Some(10.0), ..ReplayArgs::default() }, "belongs to disaggregated replay"),
        (ReplayArgs { kv_link_gbps: Some(10.0), ..staged("", "") }, "a link needs the bytes"),
        (ReplayArgs { kv_link_gbps: Some(0.0), ..staged(SLOW, "") }, "--kv-link-gbps: must be"),
        (ReplayArgs { kv_link_scope: scope, ..staged(SLOW, "") }, "needs --kv-link-gbps"),
        (ReplayArgs { kv_link_latency_us: Some(-1.0), ..staged(SLOW, "") }, "--kv-link-latency-us: must be"),
        (staged(r#","model":"gpt-9""#, ""), "unknown model"),
    ] {
        let message = refused(args);
        assert!(message.contains(expected), "{expected}: {message}");
    }
}
