//! Acceptance cases of the KV router, spec/replay.md 11 (K5 to K7 and the order of K4 are unit tests).

use wavetank::ReplayArgs;

use crate::drive::{engine, run, run_trace, synthetic};

const FAST: &str = r#"{"block_size":64,"speedup_ratio":1000}"#;

fn row(ms: f64, input: u32, output: u32, id: u32) -> String {
    format!(r#"{{"timestamp":{ms},"input_length":{input},"output_length":{output},"hash_ids":[{id}]}}"#)
}

fn routed(workers: u32, engine_json: &str, router: &str) -> ReplayArgs {
    ReplayArgs {
        num_workers: Some(workers),
        router_mode: Some("kv_router".to_owned()),
        router_config: Some(router.to_owned()),
        ..engine(engine_json)
    }
}

#[test]
fn k1_repeats_go_where_their_prefix_is() {
    let rows = [row(0.0, 64, 2, 1), row(0.0, 64, 2, 2), row(2.0, 64, 2, 2), row(4.0, 64, 2, 1)];
    let (_, records) = run_trace(&rows, routed(2, FAST, "{}"));
    let workers: Vec<_> = records.iter().map(|record| record.decode_worker_idx.unwrap()).collect();
    assert_ne!(workers[0], workers[1]);
    assert_eq!((workers[2], workers[3]), (workers[1], workers[0]));
    let overlaps: Vec<_> = records.iter().map(|r| r.decode_route_overlap_tokens.unwrap()).collect();
    assert_eq!(overlaps, [0, 0, 64, 64]);
}

/// Two prompts keep both workers busy: 64 tokens are more than four passes of 8.
const SMALL_PASSES: &str = r#"{"block_size":64,"max_num_batched_tokens":8}"#;

#[test]
fn k3_a_queued_request_goes_at_the_first_first_token() {
    let rows = [row(0.0, 64, 2, 1), row(0.0, 72, 2, 2), row(0.1, 64, 2, 3)];
    let (_, records) = run_trace(&rows, routed(2, SMALL_PASSES, "{}"));
    let first_token = |i: usize| records[i].first_token_ms.unwrap();
    let third = &records[2].routing_history[0];
    assert_eq!((&*third.outcome, third.queue_entered_at_ms), ("queued", Some(0.1)));
    assert_eq!(third.released_at_ms, first_token(0).min(first_token(1)));
    assert!((records[2].router_queue_ms.unwrap() - (third.released_at_ms - 0.1)).abs() < 1e-6);
    assert_eq!(records[0].routing_history[0].outcome, "immediate");
}

#[test]
fn k4_the_policy_decides_who_leaves_the_queue() {
    let rows = [row(0.0, 64, 2, 1), row(0.0, 72, 2, 2), row(0.1, 64, 2, 3), row(0.2, 64, 2, 4)];
    let released = |policy: &str| {
        let config = format!(r#"{{"router_queue_policy":"{policy}"}}"#);
        let (_, records) = run_trace(&rows, routed(2, SMALL_PASSES, &config));
        [2, 3].map(|i: usize| records[i].routing_history[0].released_at_ms)
    };
    let [first, second] = released("fcfs");
    assert!(first < second);
    let [first, second] = released("lcfs");
    assert!(second < first);
}

#[test]
fn the_engine_arguments_may_name_the_queue_policy() {
    let rows = [row(0.0, 64, 2, 1), row(0.0, 72, 2, 2), row(0.1, 64, 2, 3), row(0.2, 64, 2, 4)];
    let json = r#"{"block_size":64,"max_num_batched_tokens":8,"router_queue_policy":"lcfs"}"#;
    let (_, records) = run_trace(&rows, routed(2, json, r#"{"router_queue_policy":"fcfs"}"#));
    assert!(records[3].routing_history[0].released_at_ms < records[2].routing_history[0].released_at_ms);
}

#[test]
fn strict_priority_jumps_the_queue() {
    let urgent =
        r#"{"timestamp":0.2,"input_length":64,"output_length":2,"hash_ids":[4],"strict_priority":1}"#;
    let rows = [row(0.0, 64, 2, 1), row(0.0, 72, 2, 2), row(0.1, 64, 2, 3), urgent.to_owned()];
    let (_, records) = run_trace(&rows, routed(2, SMALL_PASSES, "{}"));
    assert!(records[3].routing_history[0].released_at_ms < records[2].routing_history[0].released_at_ms);
}

#[test]
fn k10_a_zero_threshold_queues_what_finds_no_idle_worker() {
    let args = ReplayArgs { replay_concurrency: Some(4), ..synthetic(64, 4, 4) };
    let args = ReplayArgs { extra_engine_args: Some("{}".to_owned()), ..args };
    let routed = routed(2, "{}", r#"{"router_queue_threshold":0}"#);
    let (_, records) = run(&ReplayArgs {
        num_workers: routed.num_workers,
        router_mode: routed.router_mode,
        router_config: routed.router_config,
        ..args
    });
    let queued: Vec<_> =
        records.iter().flat_map(|r| &r.routing_history).filter(|r| r.outcome == "queued").collect();
    assert_eq!(queued.len(), 2);
    for routing in queued {
        assert_eq!(routing.queue_entered_at_ms, Some(0.0));
        assert!(routing.released_at_ms > 0.0);
        assert_eq!(routing.queue_wait_ms, routing.released_at_ms);
    }
}

#[test]
fn the_parts_of_ttft_add_up() {
    let rows: Vec<String> = (0..40).map(|i| row(f64::from(i) * 3.0, 64 + i * 7, 20, i % 5)).collect();
    let (replayed, records) = run_trace(&rows, routed(2, SMALL_PASSES, "{}"));
    let waited: f64 = records.iter().map(|record| record.router_queue_ms.unwrap()).sum();
    assert!(waited > 0.0, "the case has a router queue");
    for record in &records {
        let before_admission = record.router_queue_ms.unwrap() + record.engine_queue_ms.unwrap();
        let admitted = record.first_admit_ms.unwrap() - record.arrival_time_ms;
        assert!((before_admission - admitted).abs() < 1e-6);
        assert!(record.prefill_ms <= record.ttft_ms.unwrap() - before_admission + 1e-6);
    }
    let parts: f64 = replayed.summary.attribution.ttft_parts().iter().map(|(_, part)| part.mean).sum();
    assert!((parts - replayed.summary.ttft_ms.mean).abs() < 1e-6 * parts);
    let shares = &replayed.summary.attribution.workers;
    assert_eq!(shares.iter().map(|share| share.requests).sum::<u64>(), 40);
    assert!(shares.iter().all(|share| share.busy_share(replayed.summary.attribution.span) <= 1.0));
}

#[test]
fn more_seeds_differ_and_each_repeats() {
    let rows: Vec<String> = (0..60).map(|i| row(f64::from(i) * 2.0, 64 * (1 + i % 7), 30, i % 9)).collect();
    let placed = |seed| {
        let args = ReplayArgs { seed: Some(seed), ..routed(4, "{}", "{}") };
        run_trace(&rows, args).1.iter().map(|record| record.decode_worker_idx).collect::<Vec<_>>()
    };
    assert_eq!(placed(1), placed(1));
    assert_ne!(placed(1), placed(2));
}
