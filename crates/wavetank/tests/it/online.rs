//! Live replays: the online half of acceptance case R1, and that the wall clock tells what the model does.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use wavetank::{Keep, Observer, Plan, ReplayArgs, Replayed, Unwatched, replay};

use crate::drive::{engine, run, run_trace, synthetic, totals};

fn online(args: ReplayArgs) -> ReplayArgs {
    ReplayArgs { replay_mode: Some("online".to_owned()), ..args }
}

fn routed(workers: u32, router: &str, args: ReplayArgs) -> ReplayArgs {
    ReplayArgs { num_workers: Some(workers), router_mode: Some(router.to_owned()), ..args }
}

/// Broken by: a worker that ends before its requests, or a token that is not heard of.
#[test]
fn r1_two_rows_on_live_workers() {
    let row =
        |ms: u32| format!(r#"{{"timestamp":{ms},"input_length":64,"output_length":2,"hash_ids":[101]}}"#);
    for name in ["vllm", "sglang"] {
        let f = format!(r#"{{"engine_type":"{name}","block_size":64,"speedup_ratio":1000}}"#);
        for (workers, router) in [(1, "round_robin"), (4, "round_robin"), (2, "kv_router"), (4, "kv_router")]
        {
            let args = online(routed(workers, router, engine(&f)));
            let (replayed, records) = run_trace(&[row(1000), row(1005)], args);
            assert_eq!(totals(&replayed), (2, 128, 4), "{name} {router} {workers}");
            assert_eq!(records.len(), 2);
            assert_eq!(replayed.outcome.total().blocks_in_use, 0);
        }
    }
}

/// Mean TTFT, ITL and request latency.
fn means(replayed: &Replayed) -> [f64; 3] {
    ["mean_ttft_ms", "mean_itl_ms", "mean_e2e_latency_ms"].map(|key| replayed.report[key].as_f64().unwrap())
}

/// Broken by: passes that wait for each other's late wake-ups, so that errors add up, or tokens that are seen
/// before they are there. `cargo xtask bench online` has the real bound; this machine may be busy.
#[test]
fn a_live_run_takes_the_time_of_the_model() {
    for (workers, router) in [(1, "round_robin"), (4, "kv_router")] {
        let load = ReplayArgs { arrival_interval_ms: Some(40.0), ..synthetic(300, 40, 12) };
        let load = routed(workers, router, load);
        let (offline, _) = run(&ReplayArgs { router_mode: None, ..load.clone() });
        let (live, _) = run(&online(load));
        assert_eq!(totals(&live), totals(&offline));
        for (live, modelled) in means(&live).into_iter().zip(means(&offline)) {
            assert!(live > modelled * 0.9 && live < modelled * 2.0, "{live} ms instead of {modelled} ms");
        }
        let note = &live.report["live"];
        assert!(note["timer_error_ms"]["count"].as_u64().unwrap() >= 40, "{note}");
        assert!(note["dispatch_lag_ms"]["max"].as_f64().unwrap() > 0.0, "{note}");
        assert!(note["mean_modelled_pass_ms"].as_f64().unwrap() > 5.0, "{note}");
    }
}

/// Broken by: a pass that is scheduled while another runs and is told with that one: its prompt would be
/// computed in the time of a decode pass, and wait for its token.
#[test]
fn what_is_scheduled_ahead_is_told_with_its_own_pass() {
    let load = ReplayArgs { arrival_interval_ms: Some(60.0), ..synthetic(2000, 30, 8) };
    let args = ReplayArgs { extra_engine_args: Some(r#"{"async_scheduling":true}"#.to_owned()), ..load };
    let prefill = |args: &ReplayArgs| {
        let (replayed, _) = run(args);
        replayed.report["attribution"]["ttft"]["prefill_ms"]["mean"].as_f64().unwrap()
    };
    let (modelled, live) = (prefill(&args), prefill(&online(args)));
    assert!(live > modelled * 0.7 && live < modelled * 2.0, "{live} ms instead of {modelled} ms");
}

/// Broken by: a cap that is exceeded, a turn sent before the one it follows, or a lag where nothing is due.
#[test]
fn a_closed_loop_of_sessions_is_live_too() {
    let load = ReplayArgs {
        turns_per_session: Some(3),
        replay_concurrency: Some(2),
        inter_turn_delay_ms: Some(1.0),
        ..synthetic(128, 4, 5)
    };
    let f = r#"{"speedup_ratio":100}"#;
    let args = ReplayArgs { extra_engine_args: Some(f.to_owned()), ..online(load) };
    let (replayed, records) = run(&args);
    assert_eq!(totals(&replayed).0, 15);
    assert_eq!(replayed.report["live"]["dispatch_lag_ms"], Value::Null);
    for record in &records {
        let (start, end) = (record.arrival_time_ms, record.terminal_time_ms);
        let open = |r: &&wavetank_report::Record| r.arrival_time_ms <= start && r.terminal_time_ms > start;
        assert!(records.iter().filter(open).count() <= 2, "more than two at {start}");
        let follows = |r: &&wavetank_report::Record| {
            r.session_id == record.session_id && r.turn_index == record.turn_index + 1
        };
        if let Some(next) = records.iter().find(follows) {
            assert!(next.arrival_time_ms >= end + 1.0);
        }
    }
}

/// Broken by: a run that cannot be interrupted while its workers sleep.
#[test]
fn a_live_run_can_be_stopped_in_the_middle_of_a_pass() {
    let load = synthetic(8192, 2000, 3);
    let plan = Plan::of(&online(load)).unwrap();
    let stop = AtomicBool::new(false);
    let replayed = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(300));
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        replay(&plan, Observer { watch: &mut Unwatched, stop: &stop, keep: Keep::default() }).unwrap()
    });
    assert!(replayed.outcome.interrupted);
    assert_eq!(replayed.report["partial"], true);
    assert_eq!(replayed.summary.counts.completed, 0);
}

#[test]
fn what_cannot_be_live_is_refused() {
    let disaggregated = ReplayArgs {
        prefill_engine_args: Some(r#"{"worker_type":"prefill"}"#.to_owned()),
        decode_engine_args: Some(r#"{"worker_type":"decode"}"#.to_owned()),
        num_prefill_workers: Some(1),
        num_decode_workers: Some(1),
        router_mode: Some("kv_router".to_owned()),
        ..synthetic(8, 8, 1)
    };
    let capped = ReplayArgs { max_sim_time_seconds: Some(1.0), ..synthetic(8, 8, 1) };
    let many = ReplayArgs { num_workers: Some(5000), ..synthetic(8, 8, 1) };
    for (args, word) in [(disaggregated, "aggregated"), (capped, "wall clock"), (many, "at most 1024")] {
        let error = Plan::of(&online(args)).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}
