//! Acceptance cases R2 to R9 of spec/replay.md 11, and the (run) numbers of spec/engine.md 15.

use std::sync::atomic::AtomicBool;

use wavetank::{Keep, Observer, Plan, ReplayArgs, replay};
use wavetank_report::Record;

use crate::drive::{engine, run, run_trace, synthetic, totals};

/// Engine F of the acceptance cases.
const F: &str = r#"{"block_size":64,"speedup_ratio":1000}"#;

const SESSIONS: [&str; 4] = [
    r#"{"session_id":"a","timestamp":0,"input_length":64,"output_length":2,"hash_ids":[1]}"#,
    r#"{"session_id":"b","timestamp":3,"input_length":64,"output_length":2,"hash_ids":[2]}"#,
    r#"{"session_id":"a","delay":10,"input_length":64,"output_length":2,"hash_ids":[3]}"#,
    r#"{"session_id":"b","delay":10,"input_length":64,"output_length":2,"hash_ids":[4]}"#,
];

#[test]
fn r2_sessions_keep_their_names() {
    for workers in [1, 3] {
        let (replayed, records) =
            run_trace(&SESSIONS, ReplayArgs { num_workers: Some(workers), ..engine(F) });
        assert_eq!(totals(&replayed), (4, 256, 8));
        let mut names: Vec<_> = records.iter().map(|r| (r.session_id.as_str(), r.turn_index)).collect();
        names.sort_unstable();
        assert_eq!(names, [("a", 0), ("a", 1), ("b", 0), ("b", 1)]);
    }
}

#[test]
fn r3_the_trace_block_is_not_the_engine_block() {
    let row = r#"{"timestamp":0,"input_length":128,"output_length":2,"hash_ids":[9]}"#;
    let (replayed, _) = run_trace(&[row], engine(F));
    assert_eq!(totals(&replayed), (1, 128, 2));
}

#[test]
fn r4_synthetic_sessions_and_closed_loop() {
    let (replayed, _) = run(&ReplayArgs { turns_per_session: Some(2), ..synthetic(100, 5, 3) });
    assert_eq!(replayed.summary.counts.completed, 6);
    let args = ReplayArgs { num_workers: Some(4), replay_concurrency: Some(4), ..synthetic(250, 25, 10) };
    let (replayed, _) = run(&args);
    assert_eq!(totals(&replayed), (10, 2500, 250));
}

#[test]
fn r6_round_robin_in_order_of_arrival() {
    let row = |ms: u32, id: u32| {
        format!(r#"{{"timestamp":{ms},"input_length":10,"output_length":{},"hash_ids":[{id}]}}"#, 2 + id % 2)
    };
    let rows = [row(100, 0), row(100, 1), row(101, 2), row(101, 3)];
    let (replayed, records) = run_trace(&rows, ReplayArgs { num_workers: Some(2), ..engine(F) });
    let placed: Vec<_> = records.iter().map(|r| (r.arrival_time_ms, r.decode_worker_idx.unwrap())).collect();
    assert_eq!(placed, [(0.0, 0), (0.0, 1), (1.0, 0), (1.0, 1)]);
    assert_eq!(totals(&replayed), (4, 40, 10));
}

#[test]
fn r7_the_third_request_takes_the_first_free_place() {
    let rows: Vec<String> = [10, 20, 5]
        .iter()
        .enumerate()
        .map(|(id, output)| format!(r#"{{"input_length":64,"output_length":{output},"hash_ids":[{id}]}}"#))
        .collect();
    let args = ReplayArgs { replay_concurrency: Some(2), num_workers: Some(2), ..engine("{}") };
    let (_, records) = run_trace(&rows, args);
    assert_eq!(records[2].arrival_time_ms, records[0].last_token_ms.unwrap());
    assert_eq!(most_in_flight(&records), 2);
}

fn most_in_flight(records: &[Record]) -> usize {
    let at =
        |time: f64| records.iter().filter(|r| r.arrival_time_ms <= time && time < r.terminal_time_ms).count();
    records.iter().map(|record| at(record.arrival_time_ms)).max().unwrap()
}

#[test]
fn r7_the_unit_of_the_cap_decides_who_is_next() {
    // spec/replay.md 4: cap 1, sessions a {64, then 192 after 10 ms} and b {128}.
    let lines = [
        r#"{"session_id":"a","input_length":64,"output_length":2,"hash_ids":[1]}"#,
        r#"{"session_id":"a","delay":10,"input_length":192,"output_length":2,"hash_ids":[2]}"#,
        r#"{"session_id":"b","input_length":128,"output_length":2,"hash_ids":[3]}"#,
    ];
    let order = |unit| {
        let args = ReplayArgs { replay_concurrency: Some(1), concurrency_unit: unit, ..engine(F) };
        run_trace(&lines, args).1.iter().map(|record| record.input_length).collect::<Vec<_>>()
    };
    assert_eq!(order(None), [64, 128, 192]);
    assert_eq!(order(Some(wavetank::ConcurrencyUnit::Sessions)), [64, 192, 128]);
}

#[test]
fn r8_a_follow_up_waits_for_the_turn_and_the_pause() {
    for concurrency in [None, Some(1), Some(9)] {
        let args = ReplayArgs { replay_concurrency: concurrency, ..engine("{}") };
        let (_, records) = run_trace(&SESSIONS, args);
        for second in records.iter().filter(|record| record.turn_index == 1) {
            let first = records.iter().find(|r| r.session_id == second.session_id && r.turn_index == 0);
            assert!(second.arrival_time_ms >= first.unwrap().last_token_ms.unwrap() + 10.0);
        }
    }
}

#[test]
fn r9_a_time_cap_ends_the_run() {
    let rows: Vec<String> = (0..5)
        .map(|i| {
            format!(r#"{{"timestamp":{},"input_length":64,"output_length":2,"hash_ids":[{i}]}}"#, i * 1000)
        })
        .collect();
    let (replayed, _) = run_trace(&rows, ReplayArgs { max_sim_time_seconds: Some(2.5), ..engine("{}") });
    assert_eq!((replayed.summary.counts.arrived, replayed.summary.counts.completed), (3, 3));
    // The third needs 17.5 + 5.7 ms: at 2.02 s it has its first token, but has not ended.
    let (replayed, records) =
        run_trace(&rows, ReplayArgs { max_sim_time_seconds: Some(2.02), ..engine("{}") });
    assert_eq!((replayed.summary.counts.arrived, replayed.summary.counts.completed), (3, 2));
    assert_eq!((replayed.summary.counts.in_flight(), records.len()), (1, 2));
    assert!(replayed.warnings.iter().any(|warning| warning.contains("1 request in flight")));
}

#[test]
fn a_time_cap_is_the_same_cut_in_open_and_closed_loop() {
    let open = |seconds| ReplayArgs { max_sim_time_seconds: seconds, ..synthetic(100, 200, 1) };
    let tokens = |args: &ReplayArgs| {
        let plan = Plan::of(args).unwrap();
        let stop = AtomicBool::new(false);
        let mut watch = Tokens(0);
        replay(&plan, Observer { watch: &mut watch, stop: &stop, keep: Keep::default() }).unwrap();
        watch.0
    };
    let whole = tokens(&open(None));
    let cut = tokens(&open(Some(0.5)));
    assert_eq!(whole, 200);
    assert!(cut > 50 && cut < 100, "{cut}");
    assert_eq!(tokens(&ReplayArgs { replay_concurrency: Some(1), ..open(Some(0.5)) }), cut);
}

/// Counts tokens as they are emitted.
struct Tokens(usize);

impl wavetank::Watch for Tokens {
    fn expect(&mut self, _requests: u64) {}
}

impl wavetank_model::Sink<wavetank_model::ServeEvent<'_>> for Tokens {
    fn record(&mut self, event: &wavetank_model::ServeEvent<'_>) {
        if let wavetank_model::ServeEvent::TokensEmitted { steps, requests, .. } = event {
            self.0 += steps.len() * requests.len();
        }
    }
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
}

#[test]
fn the_first_token_comes_out_of_the_prompt_pass() {
    let (_, records) = run(&synthetic(100, 3, 1));
    close(records[0].ttft_ms.unwrap(), 18.023_974);
    close(records[0].last_token_ms.unwrap(), 29.514_430);
}

#[test]
fn a_full_hit_computes_the_last_block_again() {
    let lines = [0, 1000]
        .map(|ms| format!(r#"{{"timestamp":{ms},"input_length":128,"output_length":2,"hash_ids":[1]}}"#));
    let (replayed, records) = run_trace(&lines, engine("{}"));
    close(records[1].ttft_ms.unwrap(), 17.474_885);
    close(replayed.summary.reused_ratio(), 0.25);
}

#[test]
fn max_model_len_rejects_prompts_and_cuts_outputs() {
    let args = |input, output| ReplayArgs {
        extra_engine_args: Some(r#"{"max_model_len":128}"#.to_owned()),
        ..synthetic(input, output, 1)
    };
    let (replayed, records) = run(&args(100, 50));
    assert_eq!((totals(&replayed).2, records[0].output_length), (28, 28));
    let (replayed, records) = run(&args(128, 1));
    assert_eq!(replayed.summary.counts.completed, 0);
    assert_eq!(records[0].rejection_reason.as_deref(), Some("prompt_reaches_max_model_len"));
    assert!(replayed.warnings[0].contains("1 request rejected"), "{:?}", replayed.warnings);
}

#[test]
fn what_can_never_run_is_rejected_with_its_reason() {
    let reason = |json: &str, input, output| {
        let (replayed, records) =
            run(&ReplayArgs { extra_engine_args: Some(json.to_owned()), ..synthetic(input, output, 2) });
        assert_eq!(replayed.summary.counts.rejected_total(), 2);
        records[0].rejection_reason.clone().unwrap()
    };
    assert_eq!(reason(r#"{"num_gpu_blocks":8}"#, 1000, 1), "prompt_exceeds_num_gpu_blocks");
    assert_eq!(reason(r#"{"num_gpu_blocks":8}"#, 400, 500), "outgrew_num_gpu_blocks");
    let unchunked = r#"{"enable_chunked_prefill":false,"max_num_batched_tokens":100}"#;
    assert_eq!(reason(unchunked, 101, 1), "prompt_exceeds_max_num_batched_tokens");
}

#[test]
fn zero_output_tokens_complete_with_the_prompt() {
    let row = r#"{"timestamp":0,"input_length":100,"output_length":0,"hash_ids":[1]}"#;
    let (replayed, records) = run_trace(&[row], engine("{}"));
    assert_eq!(totals(&replayed), (1, 100, 0));
    assert_eq!((records[0].ttft_ms, records[0].e2e_latency_ms), (None, None));
    close(records[0].terminal_time_ms, 18.023_974);
}

#[test]
fn speed_ups_divide_after_rounding() {
    // spec/engine.md 11b with the first token from the prompt pass: prefill / 2, decode / 8.
    let json = r#"{"speedup_ratio":2,"decode_speedup_ratio":4}"#;
    let (_, records) = run(&ReplayArgs { extra_engine_args: Some(json.to_owned()), ..synthetic(100, 3, 1) });
    close(records[0].ttft_ms.unwrap(), 18.023_974 / 2.0);
    close(records[0].last_token_ms.unwrap(), 18.023_974 / 2.0 + (29.514_430 - 18.023_974) / 8.0);
    let unscaled =
        |json: &str| run(&ReplayArgs { extra_engine_args: Some(json.to_owned()), ..synthetic(100, 3, 1) }).1;
    assert_eq!(unscaled(r#"{"speedup_ratio":0}"#), unscaled("{}"));
}

#[test]
fn sglang_computes_prompts_before_it_decodes() {
    let json = r#"{"engine_type":"sglang","block_size":64}"#;
    let lines = [0, 1000]
        .map(|ms| format!(r#"{{"timestamp":{ms},"input_length":128,"output_length":2,"hash_ids":[1]}}"#));
    let (replayed, records) = run_trace(&lines, engine(json));
    // spec/engine.md 15.11: the last page is computed again, and the first token comes out of the prefill.
    close(records[1].ttft_ms.unwrap(), 17.474_885);
    close(replayed.summary.reused_ratio(), 0.25);
    // A prompt that arrives while another request decodes stalls it for the whole prefill.
    let rows = [(0, 64, 50), (30, 5000, 1)].map(|(ms, input, output)| {
        let ids: Vec<u32> = (ms..ms + 10).collect();
        format!(r#"{{"timestamp":{ms},"input_length":{input},"output_length":{output},"hash_ids":{ids:?}}}"#)
    });
    let (replayed, _) = run_trace(&rows, engine(json));
    assert!(replayed.summary.itl_ms.max > 102.0, "{}", replayed.summary.itl_ms.max);
}

#[test]
fn sglang_rejects_what_can_never_run_and_goes_on() {
    let json = r#"{"engine_type":"sglang","block_size":16,"num_gpu_blocks":64}"#;
    let rows = [(2000, 1), (64, 4), (500, 2000)].map(|(input, output)| {
        format!(r#"{{"timestamp":0,"input_length":{input},"output_length":{output},"hash_ids":[1,2,3,4]}}"#)
    });
    let (replayed, records) = run_trace(&rows, engine(json));
    assert_eq!(replayed.summary.counts.completed, 1, "{:?}", replayed.warnings);
    let reasons: Vec<_> = records.iter().map(|record| record.rejection_reason.as_deref()).collect();
    assert_eq!(
        reasons,
        [Some("prompt_exceeds_num_gpu_blocks"), None, Some("output_reserve_exceeds_num_gpu_blocks")]
    );
}

#[test]
fn sglang_retracts_and_recovers() {
    let json = r#"{"engine_type":"sglang","block_size":16,"num_gpu_blocks":60,
        "sglang":{"schedule_conservativeness":0.1}}"#;
    let args = ReplayArgs { extra_engine_args: Some(json.to_owned()), ..synthetic(100, 300, 8) };
    let (replayed, records) = run(&args);
    assert_eq!(totals(&replayed), (8, 800, 2400));
    assert!(replayed.summary.counts.preemptions > 0, "the case has retractions");
    assert!(records.iter().any(|record| record.readmission_count > 0));
}

#[test]
fn sglang_page_size_is_the_block_size() {
    let plan = |json: &str| {
        wavetank::Plan::of(&ReplayArgs { trace_files: vec!["mooncake:t".into()], ..engine(json) })
    };
    let block_size = |json: &str| plan(json).unwrap().simulation.engine.block_size;
    assert_eq!(block_size(r#"{"engine_type":"sglang"}"#), 1);
    assert_eq!(block_size(r#"{"engine_type":"sglang","sglang":{"page_size":2}}"#), 2);
    assert_eq!(block_size(r#"{"engine_type":"sglang","block_size":2,"sglang":{"page_size":2}}"#), 2);
    for (json, expected) in [
        (r#"{"engine_type":"sglang","block_size":4,"sglang":{"page_size":2}}"#, "\"block_size\" is 4"),
        (
            r#"{"engine_type":"sglang","block_size":64,"sglang":{"chunked_prefill_size":100}}"#,
            "not a multiple",
        ),
        (r#"{"engine_type":"sglang","sglang":{"pagesize":2}}"#, "unknown key \"pagesize\""),
        (r#"{"engine_type":"sglang","sglang":{"schedule_policy":"lru"}}"#, "known: fcfs, fifo, lpm"),
        (r#"{"block_size":1}"#, "must be 2 or more"),
    ] {
        let message = plan(json).unwrap_err().to_string();
        assert!(message.contains(expected), "{json}: {message}");
    }
}

#[test]
fn sglang_keeps_its_books_when_the_last_page_is_taken() {
    // The second prompt fills the cache, so that its only token finds no page: nothing is cached for free.
    let json = r#"{"engine_type":"sglang","num_gpu_blocks":100}"#;
    let row = |ms: u32, input: u32, output: u32, ids: &[u32]| {
        format!(r#"{{"timestamp":{ms},"input_length":{input},"output_length":{output},"hash_ids":{ids:?}}}"#)
    };
    let mut rows = vec![row(0, 90, 1, &[0, 1, 2, 3, 4, 5, 6, 7, 8])];
    rows.push(row(10_000, 100, 1, &[0, 1, 2, 3, 4, 5, 6, 7, 50, 51]));
    for round in 0..2 {
        for prompt in 0..50u32 {
            let first = 100 + prompt * 6;
            let ids: Vec<u32> = (first..first + 6).collect();
            rows.push(row(20_000 + (round * 50 + prompt) * 10_000, 60, 2, &ids));
        }
    }
    let args = ReplayArgs { trace_block_size: Some(10), ..engine(json) };
    let (replayed, records) = run_trace(&rows, args);
    let later: u32 = records[2..].iter().map(|record| record.reused_input_tokens).sum();
    assert_eq!(
        (replayed.summary.counts.arrived, later),
        (102, 0),
        "fifty prompts do not fit into 100 tokens"
    );
}

#[test]
fn sglang_does_not_starve_the_running_for_half_a_prompt() {
    let json = r#"{"engine_type":"sglang","block_size":64,"num_gpu_blocks":100,
        "sglang":{"chunked_prefill_size":512}}"#;
    let rows = [(0, 2000, 1500), (1, 4600, 10)].map(|(ms, input, output)| {
        let ids: Vec<u32> = (ms * 100..ms * 100 + 10).collect();
        format!(r#"{{"timestamp":{ms},"input_length":{input},"output_length":{output},"hash_ids":{ids:?}}}"#)
    });
    let (replayed, _) = run_trace(&rows, engine(json));
    assert_eq!(totals(&replayed), (2, 6600, 1510), "{:?}", replayed.warnings);
}

#[test]
fn workers_without_work_and_runs_without_an_end_are_described_soberly() {
    let (replayed, _) = run(&ReplayArgs { num_workers: Some(8), ..synthetic(500, 10, 3) });
    let attribution = &replayed.summary.attribution;
    assert_eq!(attribution.workers.len(), 8);
    assert_eq!(attribution.extremes().map(|(_, least)| attribution.workers[least].requests), Some(0));
    let cut = ReplayArgs { max_sim_time_seconds: Some(0.5), ..synthetic(5000, 100, 20) };
    let (replayed, _) = run(&cut);
    let attribution = &replayed.summary.attribution;
    assert!(attribution.workers[0].busy_share(attribution.span) <= 1.0);
    assert_eq!(replayed.report["partial"], serde_json::json!(true));
}
