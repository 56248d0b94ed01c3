//! Laws that hold for every plan and every workload.
//!
//! What breaks them, tried by hand: dropping a completion (`conservation`), counting a recomputed block as
//! reused (`tokens`), letting a lookup take the block of the last token (`reuse`), stamping a completion with
//! the start of its pass (`little`), advancing an uncoupled worker past its next arrival (`coupling`), and
//! letting the router of a single worker hold requests back (`one_worker`).

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use wavetank_model::{Nanos, Opening, Request, Result, ServeEvent, SessionId, Sink, Workload};
use wavetank_report::{Record, Records, Serving, Summary};
use wavetank_sim::routers;
use wavetank_sim::{
    ConcurrencyUnit, DecodePool, EngineConfig, Link, LinkScope, Load, Outcome, Plan, PreemptionMode,
    SchedulePolicy, SglangConfig, SharedLink, Transfer, TransferMode, WorkerRole, engines,
};
use wavetank_trace::requests::{ReadOptions, Source};
use wavetank_trace::{Input, Options, Starts};

const TOKENS_PER_ID: u32 = 16;

#[derive(Clone, Debug)]
pub(crate) struct RowShape {
    session: Option<u8>,
    start_ms: u32,
    pause_ms: u32,
    /// From a small alphabet, so that prompts share prefixes.
    ids: Vec<u8>,
    /// Tokens missing from the last id.
    cut: u32,
    output: u32,
}

pub(crate) fn row_shape() -> impl Strategy<Value = RowShape> {
    let times = (0u32..400, 0u32..60);
    let ids = proptest::collection::vec(0u8..3, 1..8);
    (proptest::option::of(0u8..4), times, ids, 0..TOKENS_PER_ID, 0u32..40).prop_map(
        |(session, (start_ms, pause_ms), ids, cut, output)| RowShape {
            session,
            start_ms,
            pause_ms,
            ids,
            cut,
            output,
        },
    )
}

/// Rows as a trace; later rows of a session have a pause instead of a start.
pub(crate) fn trace(shapes: &[RowShape]) -> String {
    let mut begun = HashSet::new();
    let mut sorted = shapes.to_vec();
    sorted.sort_by_key(|shape| shape.start_ms);
    let mut text = String::new();
    for RowShape { session, start_ms: start, pause_ms: pause, ids, cut, output } in sorted {
        let tokens = ids.len() as u32 * TOKENS_PER_ID - cut;
        let when = match session {
            Some(id) if !begun.insert(id) => format!(r#""session_id":"s{id}","delay":{pause}"#),
            Some(id) => format!(r#""session_id":"s{id}","timestamp":{start}"#),
            None => format!(r#""timestamp":{start}"#),
        };
        text += &format!(
            "{{{when},\"input_length\":{tokens},\"output_length\":{output},\"hash_ids\":{ids:?}}}\n"
        );
    }
    text
}

fn single_turns(shapes: Vec<RowShape>) -> Vec<RowShape> {
    shapes.into_iter().map(|shape| RowShape { session: None, ..shape }).collect()
}

fn engine() -> impl Strategy<Value = EngineConfig> {
    let sizes = (2u32..40, 8u32..60, 1u32..6, 1u32..90);
    let flags = (any::<[bool; 5]>(), 0..engines::ALL.len());
    (sizes, flags).prop_map(
        |((block_size, blocks, seats, budget), ([cached, chunked, fifo, lpm, ahead], engine))| EngineConfig {
            engine_type: engines::ALL[engine].name.to_owned(),
            sglang: SglangConfig {
                schedule_policy: if lpm { SchedulePolicy::Lpm } else { SchedulePolicy::Fcfs },
                chunked_prefill_size: budget.next_multiple_of(block_size),
                ..SglangConfig::default()
            },
            block_size,
            num_gpu_blocks: blocks,
            max_num_seqs: Some(seats),
            max_num_batched_tokens: Some(budget),
            enable_prefix_caching: cached,
            enable_chunked_prefill: chunked,
            preemption_mode: if fifo { PreemptionMode::Fifo } else { PreemptionMode::Lifo },
            async_scheduling: ahead,
            ..EngineConfig::default()
        },
    )
}

fn load() -> impl Strategy<Value = Load> {
    prop_oneof![
        Just(Load::Schedule),
        (1u32..5).prop_map(|n| Load::Closed { concurrency: n, unit: ConcurrencyUnit::Requests }),
        (1u32..5).prop_map(|n| Load::Closed { concurrency: n, unit: ConcurrencyUnit::Sessions }),
    ]
}

/// Decode workers of any size, and what prompts come over.
fn decode_pool() -> impl Strategy<Value = (EngineConfig, u32, Transfer, Link)> {
    let missing = any::<bool>();
    let transfer = (prop_oneof![Just(0u32), Just(100_000)], 0u32..3, missing).prop_map(
        |(kv_bytes_per_token, bandwidth, missing)| Transfer {
            kv_bytes_per_token,
            kv_transfer_bandwidth: f64::from(bandwidth),
            kv_transfer_timing_mode: match missing {
                true => TransferMode::DestinationMissing,
                false => TransferMode::FullPrompt,
            },
        },
    );
    let scope =
        prop_oneof![Just(LinkScope::PrefillWorker), Just(LinkScope::DecodeWorker), Just(LinkScope::Pool)];
    let shared = scope.prop_map(|scope| SharedLink { gigabytes_per_second: 0.5, scope });
    let link = (proptest::option::of(shared), 0u64..3)
        .prop_map(|(shared, ms)| Link { shared, latency: Nanos(ms * 1_000_000) });
    (engine(), 1u32..3, transfer, link)
}

pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    let router = 0..routers::ALL.len();
    let pools = (engine(), 1u32..4, proptest::option::weighted(0.5, decode_pool()));
    (pools, load(), proptest::option::weighted(0.3, 0u64..2_000), router).prop_map(
        |((mut engine, num_workers, decode), load, cap_ms, router)| {
            let decode = decode.map(|(other, num_workers, transfer, link)| {
                (engine.worker_type, engine.transfer) = (WorkerRole::Prefill, transfer);
                let other = EngineConfig {
                    engine_type: engine.engine_type.clone(),
                    block_size: engine.block_size,
                    sglang: engine.sglang.clone(),
                    worker_type: WorkerRole::Decode,
                    ..other
                };
                DecodePool { engine: other, num_workers, link }
            });
            Plan {
                engine,
                num_workers,
                decode,
                router_mode: routers::ALL[router].name.to_owned(),
                load,
                max_sim_time: cap_ms.map(|ms| Nanos(ms * 1_000_000)),
                ..Plan::default()
            }
        },
    )
}

/// One request at a time on a cache that never fills.
fn endless(engine: &str) -> Plan {
    let engine = EngineConfig {
        engine_type: engine.to_owned(),
        block_size: 8,
        num_gpu_blocks: 100_000,
        ..EngineConfig::default()
    };
    let load = Load::Closed { concurrency: 1, unit: ConcurrencyUnit::Requests };
    Plan { engine, load, ..Plan::default() }
}

/// Everything the laws look at.
#[derive(Default)]
struct Watched {
    serving: Serving,
    records: Records,
    /// Change of the number in the system, by time.
    changes: BTreeMap<Nanos, i64>,
}

impl Sink<ServeEvent<'_>> for Watched {
    fn record(&mut self, event: &ServeEvent<'_>) {
        self.serving.record(event);
        self.records.record(event);
        match *event {
            ServeEvent::RequestArrived { at, .. } => *self.changes.entry(at).or_default() += 1,
            ServeEvent::RequestCompleted { at, .. }
            | ServeEvent::RequestRejected { at, .. }
            | ServeEvent::RequestCancelled { at, .. } => {
                *self.changes.entry(at).or_default() -= 1;
            }
            _ => {}
        }
    }
}

pub(crate) fn workload(plan: &Plan, text: &str) -> Box<dyn Workload> {
    let starts = match plan.load {
        Load::Schedule => Starts::Scheduled { speedup: 1.0 },
        Load::Closed { .. } => Starts::Ignored,
    };
    let read = ReadOptions { tokens_per_id: Some(TOKENS_PER_ID), ..ReadOptions::default() };
    let source = Source::with("mooncake", vec![Input::Bytes(Arc::from(text.as_bytes()))]).unwrap();
    wavetank_trace::open(&source, &Options { read, ..Options::of(starts) }).unwrap().workload
}

fn run(plan: &Plan, workload: &mut dyn Workload) -> (Watched, Outcome) {
    let mut watched = Watched::default();
    let outcome = wavetank_sim::run(plan, workload, &mut watched, &AtomicBool::new(false)).unwrap();
    (watched, outcome)
}

fn summarise(plan: &Plan, text: &str) -> (Summary, Outcome) {
    let (watched, outcome) = run(plan, workload(plan, text).as_mut());
    (watched.serving.summary(), outcome)
}

/// Prompt tokens that a cache without end would find, one request after the other in the order given.
fn bound(plan: &Plan, text: &str) -> u64 {
    let block_size = plan.engine.block_size;
    let mut workload = workload(plan, text);
    let (mut seen, mut reusable) = (HashSet::new(), 0);
    while let Some(Opening { request, .. }) = workload.open().unwrap() {
        let keys: Vec<_> = request.prompt.keys_from(0, block_size).collect();
        let most = ((request.prompt.tokens() - 1) / block_size) as usize;
        let found = keys.iter().take(most).take_while(|key| seen.contains(*key)).count();
        reusable += found as u64 * u64::from(block_size);
        seen.extend(keys);
    }
    reusable
}

fn time_in_system_ms(record: &Record) -> f64 {
    let to_the_end = record.terminal_time_ms - record.arrival_time_ms;
    match &*record.terminal_status {
        "completed" => record.e2e_latency_ms.unwrap_or(to_the_end),
        _ => to_the_end,
    }
}

/// Says that completions matter, so that the event loop steps all workers together.
struct Coupled(Box<dyn Workload>);

impl Workload for Coupled {
    fn open(&mut self) -> Result<Option<Opening>> {
        self.0.open()
    }
    fn follow_up(&mut self, session: SessionId, turn: u32) -> Result<Request> {
        self.0.follow_up(session, turn)
    }
    fn has_follow_ups(&self) -> bool {
        true
    }
    fn requests(&self) -> u64 {
        self.0.requests()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn conservation(plan in plan(), shapes in proptest::collection::vec(row_shape(), 1..30)) {
        let text = trace(&shapes);
        let (watched, outcome) = run(&plan, workload(&plan, &text).as_mut());
        let records: Vec<_> = watched.records.sorted().collect();
        let summary = watched.serving.summary();
        let ended = summary.counts.completed + summary.counts.rejected_total();
        prop_assert_eq!(records.len() as u64, ended);
        prop_assert!(ended <= summary.counts.arrived);
        if plan.max_sim_time.is_none() {
            prop_assert_eq!(summary.counts.arrived, shapes.len() as u64);
            prop_assert_eq!(ended, summary.counts.arrived);
            // Nothing is held for anyone who is gone: not a block, a reservation or a prompt on its way.
            prop_assert_eq!(outcome.total().blocks_in_use, 0);
        }
        for record in records.iter().filter(|record| record.terminal_status == "completed") {
            prop_assert_eq!(record.output_length, record.requested_output_length);
        }
    }

    #[test]
    fn tokens(plan in plan(), shapes in proptest::collection::vec(row_shape(), 1..30)) {
        let text = trace(&shapes);
        let (summary, outcome) = summarise(&Plan { max_sim_time: None, ..plan }, &text);
        let computed = outcome.total().prompt_tokens;
        if summary.counts.rejected_total() == 0 {
            prop_assert!(summary.first_reused_tokens + computed >= summary.input_tokens);
            if summary.counts.preemptions == 0 {
                prop_assert_eq!(summary.first_reused_tokens + computed, summary.input_tokens);
            }
        }
    }

    #[test]
    fn reuse(plan in plan(), shapes in proptest::collection::vec(row_shape(), 1..30)) {
        let text = trace(&single_turns(shapes));
        let (summary, _) = summarise(&plan, &text);
        prop_assert!(summary.first_reused_tokens <= bound(&plan, &text));
        for engine in engines::ALL {
            let one_at_a_time = endless(engine.name);
            let (summary, _) = summarise(&one_at_a_time, &text);
            prop_assert_eq!(summary.first_reused_tokens, bound(&one_at_a_time, &text), "{}", engine.name);
            prop_assert_eq!(summary.reused_tokens, summary.first_reused_tokens, "{}", engine.name);
        }
    }

    #[test]
    fn little(plan in plan(), shapes in proptest::collection::vec(row_shape(), 1..30)) {
        let plan = Plan { max_sim_time: None, ..plan };
        let (watched, _) = run(&plan, workload(&plan, &trace(&shapes)).as_mut());
        // The number in the system over time, from arrivals and ends ...
        let (mut present, mut last, mut area_ms) = (0i64, Nanos::ZERO, 0.0);
        for (&at, &change) in &watched.changes {
            area_ms += (at - last).as_ms() * present as f64;
            present += change;
            last = at;
            prop_assert!(present >= 0);
        }
        prop_assert_eq!(present, 0);
        // ... is the sum of the times in it, which for a completed request is the latency of its tokens.
        let sum_ms: f64 = watched.records.sorted().map(|record| time_in_system_ms(&record)).sum();
        prop_assert!((area_ms - sum_ms).abs() < 1e-6 * area_ms.max(1.0), "{} {}", area_ms, sum_ms);
    }

    #[test]
    fn one_worker(plan in plan(), shapes in proptest::collection::vec(row_shape(), 1..30)) {
        let text = trace(&shapes);
        let results = routers::ALL.iter().map(|router| {
            let decode = plan.decode.clone().map(|pool| DecodePool { num_workers: 1, ..pool });
            let router_mode = router.name.to_owned();
            let plan = Plan { num_workers: 1, decode, router_mode, ..plan.clone() };
            let (watched, _) = run(&plan, workload(&plan, &text).as_mut());
            // What a router believed is its own business; what happened is not.
            let beliefs_aside = |record: Record| Record {
                decode_route_overlap_tokens: None,
                routing_history: Vec::new(),
                ..record
            };
            watched.records.sorted().map(beliefs_aside).collect::<Vec<_>>()
        });
        let results: Vec<_> = results.collect();
        prop_assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn coupling(plan in plan(), shapes in proptest::collection::vec(row_shape(), 1..30)) {
        let plan = Plan { load: Load::Schedule, router_mode: "round_robin".to_owned(), ..plan };
        let text = trace(&single_turns(shapes));
        let (alone, _) = run(&plan, workload(&plan, &text).as_mut());
        let (together, _) = run(&plan, &mut Coupled(workload(&plan, &text)));
        let sorted = |watched: Watched| watched.records.sorted().collect::<Vec<_>>();
        prop_assert_eq!(sorted(alone), sorted(together));
    }
}
