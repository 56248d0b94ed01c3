//! Acceptance cases R10, P1 and P2 of spec/replay.md 11, and what scaling does to pools and routers.

use serde_json::{Value, json};
use wavetank::{Plan, ReplayArgs, Replayed};
use wavetank_report::Record;
use wavetank_sim::routers;

use crate::drive::{engine, run, run_trace, synthetic, totals};

/// Passes of a second: two for a prompt of four tokens, the second of which gives a token, then one for each.
const SLOW: &str = r#"{"timing":{"name":"fixed","prefill_ms":1000,"decode_ms":1000},"startup_time":0.2,
    "max_num_batched_tokens":2}"#;

fn scaled(name: &str, config: &Value, args: ReplayArgs) -> ReplayArgs {
    let (autoscale, autoscale_config) = (Some(name.to_owned()), Some(config.to_string()));
    ReplayArgs { autoscale, autoscale_config, ..args }
}

/// `(at_ms, from, to)` of each change of a pool.
fn changes(replayed: &Replayed, pool: &str) -> Vec<(f64, u64, u64)> {
    let events = replayed.report["scaling"]["events"].as_array().unwrap();
    let of_pool = events.iter().filter(|event| event["pool"] == pool);
    let number = |event: &Value, key: &str| event[key].as_u64().unwrap();
    of_pool
        .map(|event| (event["at_ms"].as_f64().unwrap(), number(event, "from"), number(event, "to")))
        .collect()
}

fn worker(replayed: &Replayed, number: usize) -> Value {
    replayed.report["scaling"]["workers"][number].clone()
}

fn number(replayed: &Replayed, key: &str) -> f64 {
    replayed.report[key].as_f64().unwrap()
}

#[test]
fn r10_a_worker_that_came_in_vain_is_paid_for() {
    let targets = json!({ "targets": [
        { "at_seconds": 0.1, "workers": 2 }, { "at_seconds": 0.2, "workers": 2 },
        { "at_seconds": 0.3, "workers": 1 }, { "at_seconds": 0.4, "workers": 1 },
    ] });
    let args = ReplayArgs { extra_engine_args: Some(SLOW.to_owned()), ..synthetic(4, 2, 1) };
    let (replayed, _) = run(&scaled("schedule", &targets, args));
    assert_eq!((number(&replayed, "duration_ms"), totals(&replayed).0), (3000.0, 1));
    assert_eq!(number(&replayed, "decode_worker_seconds"), 3.2);
    assert_eq!(number(&replayed, "prefill_worker_seconds"), 0.0);
    assert!((number(&replayed, "gpu_hours") - 3.2 / 3600.0).abs() < 1e-12);
    assert_eq!(changes(&replayed, "aggregated"), [(100.0, 1, 2), (300.0, 2, 1)]);
    assert_eq!(replayed.report["scaling"]["ticks"], 4);
    let came = worker(&replayed, 1);
    let times = ["joined_ms", "ready_ms", "draining_ms", "left_ms"].map(|key| came[key].as_f64());
    assert_eq!(times, [Some(100.0), Some(300.0), Some(300.0), Some(300.0)]);
}

/// Broken by: draining an active worker while another is still starting.
#[test]
fn who_is_still_starting_goes_first() {
    let targets = json!({ "targets": [
        { "at_seconds": 0.1, "workers": 3 }, { "at_seconds": 0.15, "workers": 2 },
        { "at_seconds": 0.2, "workers": 1 },
    ] });
    let args = ReplayArgs { extra_engine_args: Some(SLOW.to_owned()), ..synthetic(4, 2, 1) };
    let (replayed, _) = run(&scaled("schedule", &targets, args));
    let ended = |id| (worker(&replayed, id)["ready_ms"].as_f64(), worker(&replayed, id)["left_ms"].as_f64());
    assert_eq!((ended(0), ended(1), ended(2)), ((Some(0.0), None), (None, Some(200.0)), (None, Some(150.0))));
    assert!((number(&replayed, "decode_worker_seconds") - 3.15).abs() < 1e-9);
}

/// 32 requests at once on a cache that holds one or two of them, and one that comes later.
fn burst() -> Vec<String> {
    let row = |ms: u32, id: u32| {
        format!(r#"{{"timestamp":{ms},"input_length":128,"output_length":512,"hash_ids":[{id}]}}"#)
    };
    (0..32).map(|id| row(0, id)).chain([row(12_000, 99)]).collect()
}

#[test]
fn p1_load_goes_up_and_down() {
    let config = json!({
        "interval_seconds": 1, "window_seconds": 1, "cooldown_seconds": 0, "max_gpus": 3, "queue_up": 2,
        "queue_down": 1, "cache_up": 0.95, "cache_down": 0.7,
    });
    let args = engine(r#"{"block_size":64,"num_gpu_blocks":16,"speedup_ratio":50}"#);
    let (replayed, _) = run_trace(&burst(), scaled("load", &config, args));
    assert_eq!(totals(&replayed).0, 33);
    let steps: Vec<_> = changes(&replayed, "aggregated").iter().map(|&(_, from, to)| (from, to)).collect();
    assert_eq!(steps, [(1, 2), (2, 3), (3, 2), (2, 1)], "{}", replayed.report["scaling"]);
}

/// All but the plan and the wall clock.
fn content(replayed: &Replayed) -> String {
    let mut report = replayed.report.clone();
    let object = report.as_object_mut().unwrap();
    ["plan", "wall"].iter().for_each(|key| drop(object.remove(*key)));
    report.to_string()
}

#[test]
fn p2_a_policy_that_never_looks_changes_nothing() {
    let plain = ReplayArgs { num_workers: Some(2), ..engine(r#"{"speedup_ratio":50,"num_gpu_blocks":64}"#) };
    for router in routers::ALL {
        let args = ReplayArgs { router_mode: Some(router.name.to_owned()), ..plain.clone() };
        let (without, requests) = run_trace(&burst(), args.clone());
        let (with, same) = run_trace(&burst(), scaled("schedule", &json!({}), args));
        assert_eq!(content(&without), content(&with), "{}", router.name);
        assert_eq!(requests, same, "{}", router.name);
    }
}

/// Broken by: looks that disturb what they look at.
#[test]
fn a_policy_that_never_acts_changes_nothing_but_what_it_says() {
    let plain = ReplayArgs { num_workers: Some(2), ..engine(r#"{"speedup_ratio":50,"num_gpu_blocks":64}"#) };
    let config = json!({ "interval_seconds": 0.01, "min": 2, "max": 2 });
    for router in routers::ALL {
        let args = ReplayArgs { router_mode: Some(router.name.to_owned()), ..plain.clone() };
        let (without, requests) = run_trace(&burst(), args.clone());
        let (with, same) = run_trace(&burst(), scaled("load", &config, args));
        assert!(with.report["scaling"]["ticks"].as_u64().unwrap() > 100);
        assert_eq!(requests, same, "{}", router.name);
        for key in ["duration_ms", "mean_ttft_ms", "p99_itl_ms", "decode_worker_seconds", "gpu_hours"] {
            assert!((number(&with, key) - number(&without, key)).abs() < 1e-9, "{key}");
        }
    }
}

const PREFILL: &str = r#"{"worker_type":"prefill","timing":{"name":"fixed","prefill_ms":100,"decode_ms":10},
    "kv_bytes_per_token":1000,"kv_transfer_bandwidth":1}"#;
const DECODE: &str = r#"{"worker_type":"decode","timing":{"name":"fixed","prefill_ms":100,"decode_ms":10},
    "startup_time":0.5}"#;

fn pair() -> ReplayArgs {
    ReplayArgs {
        prefill_engine_args: Some(PREFILL.to_owned()),
        decode_engine_args: Some(DECODE.to_owned()),
        router_mode: Some("kv_router".to_owned()),
        router_config: Some(r#"{"router_queue_threshold":null}"#.to_owned()),
        ..ReplayArgs::default()
    }
}

/// Requests that ran on a worker, as prefill or decode worker.
fn ran_on(records: &[Record], worker: u32) -> (usize, usize) {
    let count = |of: fn(&Record) -> Option<u32>| records.iter().filter(|&r| of(r) == Some(worker)).count();
    (count(|record| record.prefill_worker_idx), count(|record| record.decode_worker_idx))
}

/// Broken by: a worker number that is taken for a seat, or a pool that is guessed from the number.
#[test]
fn both_pools_of_a_pair_change() {
    let targets = json!({ "targets": [
        { "at_seconds": 1, "prefill_workers": 2, "decode_workers": 3 },
        { "at_seconds": 4, "prefill_workers": 1, "decode_workers": 1 },
    ] });
    for engine in ["vllm", "sglang"] {
        let of = |args: &str| {
            Some(args.replacen('{', &format!("{{\"engine_type\":\"{engine}\",\"block_size\":16,"), 1))
        };
        let args = ReplayArgs {
            prefill_engine_args: of(PREFILL),
            decode_engine_args: of(DECODE),
            arrival_interval_ms: Some(60.0),
            ..ReplayArgs {
                input_tokens: Some(64),
                output_tokens: Some(40),
                request_count: Some(100),
                ..pair()
            }
        };
        let (replayed, records) = run(&scaled("schedule", &targets, args));
        assert_eq!(totals(&replayed), (100, 6400, 4000), "{engine}");
        // Workers 0 and 1 are a pair; 2 prefills; 3 and 4 decode after their start.
        let pools: Vec<_> =
            (0..5).map(|id| worker(&replayed, id)["pool"].as_str().unwrap().to_owned()).collect();
        assert_eq!(pools, ["prefill", "decode", "prefill", "decode", "decode"], "{engine}");
        assert_eq!(worker(&replayed, 3)["ready_ms"], 1500.0, "{engine}");
        for (id, prefills) in [(0, true), (1, false), (2, true), (3, false), (4, false)] {
            let (first, second) = ran_on(&records, id);
            let (own, other) = if prefills { (first, second) } else { (second, first) };
            assert!(own > 0 && other == 0, "{engine} {id}: {first} {second}");
        }
        for id in [2, 3, 4] {
            let (draining, left) =
                (worker(&replayed, id)["draining_ms"].clone(), worker(&replayed, id)["left_ms"].as_f64());
            assert_eq!(draining, 4000.0, "{engine} {id}");
            assert!(left.is_some_and(|left| left >= 4000.0), "{engine} {id}");
        }
        let seconds = |pool: &str| number(&replayed, &format!("{pool}_worker_seconds"));
        let presence = |pool: &str| {
            let workers = replayed.report["scaling"]["workers"].as_array().unwrap();
            let own = workers.iter().filter(|worker| worker["pool"] == pool);
            own.map(|worker| worker["worker_seconds"].as_f64().unwrap()).sum::<f64>()
        };
        for pool in ["prefill", "decode"] {
            assert!((seconds(pool) - presence(pool)).abs() < 1e-9, "{engine} {pool}");
        }
    }
}

/// Broken by: a joined worker that the router does not see, or one that left and still draws requests.
#[test]
fn kv_router_uses_who_joins_and_forgets_who_leaves() {
    let row = |ms: u32, id: u32| {
        format!(r#"{{"timestamp":{ms},"input_length":512,"output_length":4,"hash_ids":[{id}]}}"#)
    };
    // The same prefixes before, while and after a second worker is there.
    let rows: Vec<String> = (0..60).map(|i| row(i * 100, i % 4)).collect();
    let targets =
        json!({ "targets": [{ "at_seconds": 2, "workers": 2 }, { "at_seconds": 4, "workers": 1 }] });
    let args = ReplayArgs {
        router_mode: Some("kv_router".to_owned()),
        ..engine(r#"{"timing":{"name":"fixed","prefill_ms":150,"decode_ms":20}}"#)
    };
    let (replayed, records) = run_trace(&rows, scaled("schedule", &targets, args));
    assert_eq!(totals(&replayed).0, 60);
    let on_second = |from: f64, to: f64| {
        let within = records.iter().filter(|record| (from..to).contains(&record.arrival_time_ms));
        within.filter(|record| record.decode_worker_idx == Some(1)).count()
    };
    assert_eq!((on_second(0.0, 2000.0), on_second(4001.0, 6000.0)), (0, 0));
    assert!(on_second(2001.0, 4000.0) > 0);
    let late = records.iter().filter(|record| record.arrival_time_ms > 4000.0);
    assert!(late.clone().count() > 10 && late.clone().all(|record| record.decode_worker_idx == Some(0)));
}

/// Broken by: requests that wait in the router when a worker joins, and wait on.
#[test]
fn the_queue_moves_when_a_worker_joins() {
    let config = r#"{"router_queue_threshold":0.5}"#;
    let args = ReplayArgs {
        num_workers: Some(2),
        router_mode: Some("kv_router".to_owned()),
        router_config: Some(config.to_owned()),
        arrival_interval_ms: Some(0.0),
        extra_engine_args: Some(
            r#"{"max_num_batched_tokens":64,"timing":{"name":"fixed","prefill_ms":1000,"decode_ms":1000}}"#
                .to_owned(),
        ),
        ..synthetic(64, 1, 3)
    };
    let targets = json!({ "targets": [{ "at_seconds": 0.25, "workers": 3 }] });
    let (_, records) = run(&scaled("schedule", &targets, args));
    let released: Vec<_> = records.iter().map(|record| record.routing_history[0].released_at_ms).collect();
    assert_eq!(released, [0.0, 0.0, 250.0]);
    assert_eq!(records[2].decode_worker_idx, Some(2));
    assert_eq!(records[2].terminal_time_ms, 1250.0);
}

#[test]
fn the_end_of_simulated_time_ends_scaling_too() {
    let config = json!({ "interval_seconds": 1, "cooldown_seconds": 0, "window_seconds": 1, "queue_up": 0,
        "queue_down": 0 });
    let args = ReplayArgs { max_sim_time_seconds: Some(4.5), ..engine(SLOW) };
    let (replayed, _) = run_trace(&burst(), scaled("load", &config, args));
    assert_eq!(replayed.report["scaling"]["ticks"], 4);
    assert!(replayed.report["partial"].as_bool().unwrap());
    assert!(changes(&replayed, "aggregated").iter().all(|(at, ..)| *at <= 4500.0));
}

/// Broken by: a forecast that never asks for more, or never for less.
#[test]
fn sla_follows_the_rate() {
    // Ten requests a second for a minute, then one, then nothing but the last.
    let row = |ms: u32, id: u32| {
        format!(r#"{{"timestamp":{ms},"input_length":512,"output_length":20,"hash_ids":[{id}]}}"#)
    };
    let busy = (0..600).map(|i| row(i * 100, i));
    let quiet = (0..120).map(|i| row(60_000 + i * 1000, 1000 + i));
    let rows: Vec<String> = busy.chain(quiet).collect();
    let config = json!({ "interval_seconds": 5, "window_seconds": 20, "ttft_ms": 1000, "max": 8 });
    let args = engine(r#"{"timing":{"name":"fixed","prefill_ms":150,"decode_ms":10},"startup_time":2}"#);
    let (replayed, _) = run_trace(&rows, scaled("sla", &config, args));
    assert_eq!(totals(&replayed).0, 720);
    let changes = changes(&replayed, "aggregated");
    let most = changes.iter().map(|(_, _, to)| *to).max().unwrap();
    let (_, _, last) = *changes.last().unwrap();
    assert!((2..=8).contains(&most) && last == 1, "{changes:?}");
    let late = replayed.summary.ttft_ms.median;
    assert!(late < 1000.0, "{late}");
}

#[test]
fn a_plan_with_scaling_runs_again() {
    let config = json!({ "interval_seconds": 0.5, "cooldown_seconds": 0, "max": 3 });
    let args = engine(r#"{"block_size":64,"num_gpu_blocks":16,"speedup_ratio":50,"startup_time":0.1}"#);
    let (replayed, _) = run_trace(&burst(), scaled("load", &config, args));
    let plan: Plan = serde_json::from_value(replayed.report["plan"].clone()).unwrap();
    plan.check().unwrap();
    assert_eq!(serde_json::to_value(&plan).unwrap(), replayed.report["plan"]);
    assert_eq!(replayed.report["plan"]["simulation"]["engine"]["startup_time"], 100_000_000);
}
