//! Requests that wait for others, and prompts that hold the answers before them: from file to report.
//! Acceptance cases L6 to L8 of spec/replay.md 11.

use wavetank::{ConcurrencyUnit, ReplayArgs, Replayed};
use wavetank_report::Record;

use crate::drive::{engine, run, run_trace, totals};

const F: &str = r#"{"block_size":64,"speedup_ratio":1000}"#;

/// A plan, two helpers at once, and who waits for both of them and a tool; named before they are.
const AGENTS: [&str; 5] = [
    concat!(
        r#"{"request_id":"end","wait_for":["left","right"],"delay":7,"tool_wait_ms":5,"timestamp":0,"#,
        r#""input_length":192,"output_length":3,"hash_ids":[1,4]}"#
    ),
    r#"{"request_id":"plan","timestamp":1000,"input_length":128,"output_length":4,"hash_ids":[1]}"#,
    concat!(
        r#"{"request_id":"left","wait_for":["plan"],"delay":5,"#,
        r#""input_length":64,"output_length":2,"hash_ids":[2]}"#
    ),
    r#"{"request_id":"right","wait_for":["plan"],"input_length":64,"output_length":40,"hash_ids":[3]}"#,
    r#"{"request_id":"alone","timestamp":1001,"input_length":64,"output_length":2,"hash_ids":[9]}"#,
];

fn of<'r>(records: &'r [Record], name: &str) -> &'r Record {
    records.iter().find(|record| record.request_id.as_deref() == Some(name)).expect("it ended")
}

/// When a request may come at the earliest, and does where nothing holds it back.
fn ready_ms(records: &[Record], name: &str) -> f64 {
    let end = |name: &str| of(records, name).terminal_time_ms;
    match name {
        "end" => end("left").max(end("right")) + 12.0,
        "left" => end("plan") + 5.0,
        "right" => end("plan"),
        _ => 0.0,
    }
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-5
}

/// Broken by: a request that starts with the first of those it waits for, at its own time, or without the
/// pause or the tool's time.
#[test]
fn l8_requests_start_when_what_they_wait_for_has_ended() {
    for (workers, router, engine_args) in [
        (1, "round_robin", F),
        (2, "kv_router", F),
        (3, "round_robin", r#"{"engine_type":"sglang","block_size":64,"speedup_ratio":1000}"#),
    ] {
        let router_mode = Some(router.to_owned());
        let args = ReplayArgs { num_workers: Some(workers), router_mode, ..engine(engine_args) };
        let (replayed, records) = run_trace(&AGENTS, args);
        assert_eq!(totals(&replayed), (5, 512, 51));
        for name in ["end", "left", "right"] {
            let (at, ready) = (of(&records, name).arrival_time_ms, ready_ms(&records, name));
            assert!(close(at, ready), "{name} at {at}, ready at {ready}");
        }
        assert!(close(of(&records, "plan").arrival_time_ms, 0.0));
        assert!(close(of(&records, "alone").arrival_time_ms, 1.0));
    }
}

/// Broken by: a cap that requests which waited for others do not keep.
#[test]
fn closed_loops_keep_the_order_of_a_graph() {
    for unit in [ConcurrencyUnit::Requests, ConcurrencyUnit::Sessions] {
        for cap in [1, 2] {
            let args =
                ReplayArgs { replay_concurrency: Some(cap), concurrency_unit: Some(unit), ..engine(F) };
            let (replayed, records) = run_trace(&AGENTS, args);
            assert_eq!(totals(&replayed), (5, 512, 51));
            for name in ["end", "left", "right"] {
                assert!(of(&records, name).arrival_time_ms + 1e-6 >= ready_ms(&records, name), "{name}");
            }
            let at = |time: f64| {
                let flies = |r: &&Record| r.arrival_time_ms <= time && time < r.terminal_time_ms;
                records.iter().filter(flies).count()
            };
            assert!(records.iter().all(|record| at(record.arrival_time_ms) <= cap as usize));
        }
    }
}

/// Broken by: who waits for a request that is given up waiting forever.
#[test]
fn a_request_that_is_given_up_lets_others_go() {
    let large = r#"{"request_id":"large","timestamp":0,"output_length":2,"hash_ids":[1,2]}"#;
    let after =
        r#"{"request_id":"b","wait_for":["large"],"input_length":64,"output_length":2,"hash_ids":[9]}"#;
    let small = r#"{"block_size":64,"num_gpu_blocks":8,"speedup_ratio":1000}"#;
    let (replayed, records) = run_trace(&[large, after], engine(small));
    assert_eq!(totals(&replayed), (1, 64, 2));
    assert_eq!(replayed.summary.counts.arrived, 2);
    assert_eq!(of(&records, "b").arrival_time_ms, of(&records, "large").terminal_time_ms);
}

fn delta(rows: &[String], engine_args: &str) -> (Replayed, Vec<Record>) {
    let format = Some("mooncake-delta".to_owned());
    run_trace(rows, ReplayArgs { trace_format: format, trace_block_size: Some(64), ..engine(engine_args) })
}

fn turn(session: &str, time: &str, input: u32, output: u32, ids: &str) -> String {
    let lengths = format!(r#""input_length":{input},"output_length":{output}"#);
    format!(r#"{{"session_id":"{session}","{time}":0,{lengths},"hash_ids":[{ids}]}}"#)
}

/// Broken by: answers that the next turn cannot find, or that other sessions find.
#[test]
fn a_second_turn_reuses_the_answer_to_the_first() {
    // 100 + 60 tokens are known after the first turn: 10 blocks of 16, but the last token was never computed.
    let rows = [turn("a", "timestamp", 100, 60, "1,2"), turn("a", "delay", 40, 8, "3")];
    let other = [turn("b", "delay", 40, 8, "3"), turn("b", "timestamp", 100, 60, "1,2")];
    for (kind, reused) in [("vllm", 144), ("sglang", 160)] {
        let args = format!(r#"{{"engine_type":"{kind}","block_size":16,"speedup_ratio":1000}}"#);
        let (replayed, records) = delta(&rows, &args);
        assert_eq!(totals(&replayed), (2, 100 + 200, 68), "{kind}");
        let second = records.iter().find(|record| record.turn_index == 1).unwrap();
        assert_eq!((second.input_length, second.reused_input_tokens), (200, reused), "{kind}");
        let both = [&rows[0], &other[1], &rows[1], &other[0]].map(String::clone);
        let (_, records) = delta(&both, &args);
        let seconds = records.iter().filter(|record| record.turn_index == 1);
        assert!(seconds.clone().count() == 2 && seconds.into_iter().all(|r| r.reused_input_tokens == reused));
    }
}

/// Broken by: an answer that was never given standing in the prompt after it.
#[test]
fn after_a_turn_that_was_given_up_there_is_no_answer() {
    // The second turn has 100 + 4 + 300 tokens, more than the cache; then 404 + 2 without its answer of 50.
    let rows = [
        turn("a", "timestamp", 100, 4, "1,2"),
        turn("a", "delay", 300, 50, "3,4,5,6,7"),
        turn("a", "delay", 2, 1, "8"),
    ];
    let (replayed, records) = delta(&rows, r#"{"block_size":16,"num_gpu_blocks":16,"speedup_ratio":1000}"#);
    assert_eq!((replayed.summary.counts.completed, replayed.summary.counts.arrived), (1, 3));
    let lengths: Vec<_> = records.iter().map(|record| record.input_length).collect();
    assert_eq!(lengths, [100, 404, 406]);
}

/// Broken by: prompts that do not grow, or sharing that the flags do not reach.
#[test]
fn l6_l7_agents_by_their_lengths() {
    let session = |input: u32, turns: u32, lengths: &str, latency: &str| {
        let answers =
            format!(r#""assistant_response_length":[{lengths}],"final_assistant_response_length":2"#);
        let tools = format!(r#""tool_call_output_length":[{lengths}],"tool_call_latency":[{latency}]"#);
        format!(r#"{{"num_turns":{turns},"input_prompt_length":{input},{answers},{tools}}}"#)
    };
    let rows = [session(64, 2, "2,2", "0.5,1.25"), session(64, 1, "2", "0.25")];
    let closed = || ReplayArgs { replay_concurrency: Some(1), trace_block_size: Some(16), ..engine(F) };
    let (replayed, records) = run_trace(&rows, closed());
    assert_eq!(totals(&replayed), (5, 336, 10));
    let turns: Vec<&Record> = records.iter().filter(|record| record.session_id == "session_1").collect();
    for (before, pause_ms) in [(0, 500.0), (1, 1250.0)] {
        assert!(turns[before + 1].arrival_time_ms + 1e-6 >= turns[before].terminal_time_ms + pause_ms);
    }
    let reused = |ratio, groups| {
        let (trace_shared_prefix_ratio, trace_num_prefix_groups) = (Some(ratio), Some(groups));
        let small = r#"{"block_size":16,"speedup_ratio":1000}"#;
        let args = ReplayArgs { trace_shared_prefix_ratio, trace_num_prefix_groups, ..closed() };
        let args = ReplayArgs { extra_engine_args: Some(small.to_owned()), ..args };
        let (_, records) = run_trace(&rows, args);
        records.iter().find(|r| r.session_id == "session_2").map(|r| r.reused_input_tokens).unwrap()
    };
    assert_eq!([reused(0.0, 0), reused(0.5, 2), reused(0.5, 1)], [0, 0, 32]);
}

/// The same plan again, from a tape, says the same: graphs and answers are on it.
#[test]
fn graphs_are_the_same_from_a_tape() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agents.jsonl");
    std::fs::write(&path, AGENTS.join("\n")).unwrap();
    let args = ReplayArgs { trace_files: vec![path.display().to_string()], ..engine(F) };
    let (direct, _) = run(&args);
    let plan = wavetank::Plan::of(&args).unwrap();
    let tape = wavetank::Tapes::read(&plan).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let keep = wavetank::Keep { records: false, pictures: true };
    let observer = wavetank::Observer { watch: &mut wavetank::Unwatched, stop: &stop, keep };
    let again = wavetank::replay_tape(&plan, &tape, tape.first(1), observer).unwrap();
    let without_wall = |mut report: serde_json::Value| {
        report.as_object_mut().unwrap().remove("wall");
        report
    };
    assert_eq!(without_wall(again.report), without_wall(direct.report));
}
