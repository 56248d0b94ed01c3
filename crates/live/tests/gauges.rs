//! Gauges against plain counts of the same events, for whatever plan, workload and requests given up.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use wavetank_live::gauges::{Finished, Gauges, Snapshot};
use wavetank_model::{
    Nanos, Opening, Priority, Prompt, Request, RequestId, Result, ServeEvent, SessionId, Sink, WorkerId,
    Workload,
};
use wavetank_sim::routers;
use wavetank_sim::{ConcurrencyUnit, DecodePool, EngineConfig, Link, Load, Plan, WorkerRole, engines};

/// Single turns, all there at once.
struct Turns(std::vec::IntoIter<Opening>);

impl Workload for Turns {
    fn open(&mut self) -> Result<Option<Opening>> {
        Ok(self.0.next())
    }

    fn follow_up(&mut self, _session: SessionId, _turn: u32) -> Result<Request> {
        unreachable!("a session has one turn")
    }

    fn has_follow_ups(&self) -> bool {
        false
    }

    fn requests(&self) -> u64 {
        self.0.len() as u64
    }
}

/// Ids of a prompt from a small alphabet, tokens missing from the last, output tokens, pause before it.
type Shape = (Vec<u8>, u32, u32, u64);

fn turns(shapes: &[Shape]) -> Turns {
    let mut at = Nanos::ZERO;
    let openings = shapes.iter().enumerate().map(|(session, (ids, cut, output_tokens, pause_ms))| {
        at += Nanos(pause_ms * 1_000_000);
        let request = Request {
            session: SessionId(session as u32),
            turn: 0,
            prompt: Prompt::from_ids(ids.iter().map(|id| u64::from(*id)), ids.len() as u32 * 16 - cut, 16),
            output_tokens: *output_tokens,
            priority: Priority::default(),
            think: None,
            labels: None,
        };
        Opening { at, request }
    });
    Turns(openings.collect::<Vec<_>>().into_iter())
}

fn shapes() -> impl Strategy<Value = Vec<Shape>> {
    let ids = proptest::collection::vec(0u8..3, 1..8);
    proptest::collection::vec((ids, 0u32..16, 0u32..40, 0u64..60), 1..24)
}

fn engine() -> impl Strategy<Value = EngineConfig> {
    let sizes = (2u32..40, 8u32..60, 1u32..6, 1u32..90);
    (sizes, any::<[bool; 3]>(), 0..engines::ALL.len()).prop_map(
        |((block_size, num_gpu_blocks, seats, budget), [cached, chunked, ahead], engine)| {
            let mut config = EngineConfig {
                engine_type: engines::ALL[engine].name.to_owned(),
                block_size,
                num_gpu_blocks,
                max_num_seqs: Some(seats),
                max_num_batched_tokens: Some(budget),
                enable_prefix_caching: cached,
                enable_chunked_prefill: chunked,
                async_scheduling: ahead,
                ..EngineConfig::default()
            };
            config.sglang.chunked_prefill_size = budget.next_multiple_of(block_size);
            config
        },
    )
}

fn plan() -> impl Strategy<Value = Plan> {
    let load = prop_oneof![
        Just(Load::Schedule),
        (1u32..9).prop_map(|n| Load::Closed { concurrency: n, unit: ConcurrencyUnit::Requests }),
    ];
    let decode = proptest::option::weighted(0.3, (engine(), 1u32..3));
    (engine(), 1u32..4, decode, load, 0..routers::ALL.len()).prop_map(
        |(mut engine, num_workers, decode, load, router)| {
            let decode = decode.map(|(other, num_workers)| {
                engine.worker_type = WorkerRole::Prefill;
                let (engine_type, block_size) = (engine.engine_type.clone(), engine.block_size);
                let (sglang, worker_type) = (engine.sglang.clone(), WorkerRole::Decode);
                let engine = EngineConfig { engine_type, block_size, sglang, worker_type, ..other };
                DecodePool { engine, num_workers, link: Link::default() }
            });
            Plan {
                engine,
                num_workers,
                decode,
                router_mode: routers::ALL[router].name.to_owned(),
                load,
                seed: 7,
                ..Plan::default()
            }
        },
    )
}

/// Tells gauges what happens, and that some requests were given up: each in the middle of its life, and with
/// what their engines still say of them. Counts the same plainly.
struct Meddler {
    gauges: Gauges,
    /// Events of a request after which it is given up.
    patience: HashMap<RequestId, u32>,
    prompts: HashMap<RequestId, u64>,
    in_flight: HashSet<RequestId>,
    started: HashSet<RequestId>,
    tokens: u64,
    prompt_tokens: u64,
    ended: Finished,
    given_up_in_router: u64,
    preempted: u64,
}

impl Meddler {
    fn new(plan: &Plan, patience: &[(u32, u32)]) -> Self {
        Self {
            gauges: Gauges::of(plan),
            patience: patience.iter().map(|&(request, events)| (RequestId(request), events)).collect(),
            prompts: HashMap::new(),
            in_flight: HashSet::new(),
            started: HashSet::new(),
            tokens: 0,
            prompt_tokens: 0,
            ended: Finished::default(),
            given_up_in_router: 0,
            preempted: 0,
        }
    }

    fn count(&mut self, event: &ServeEvent<'_>) {
        match *event {
            ServeEvent::RequestArrived { request, details, .. } => {
                self.in_flight.insert(request);
                self.prompts.insert(request, u64::from(details.prompt.tokens()));
            }
            ServeEvent::RequestPreempted { .. } => self.preempted += 1,
            ServeEvent::TokensEmitted { steps, requests, .. } => {
                for request in requests.iter().filter(|request| self.in_flight.contains(*request)) {
                    self.tokens += steps.len() as u64;
                    self.prompt_tokens +=
                        if self.started.insert(*request) { self.prompts[request] } else { 0 };
                }
            }
            ServeEvent::RequestCompleted { request, .. } if self.in_flight.remove(&request) => {
                self.ended.length += 1;
                self.prompt_tokens +=
                    if self.started.contains(&request) { 0 } else { self.prompts[&request] };
            }
            ServeEvent::RequestRejected { request, .. } if self.in_flight.remove(&request) => {
                self.ended.error += 1;
            }
            _ => {}
        }
    }

    /// Gives a request up if its time has come.
    fn meddle(&mut self, request: RequestId, worker: Option<WorkerId>) {
        let Some(left) = self.patience.get_mut(&request) else { return };
        *left = left.saturating_sub(1);
        if *left == 0 && self.in_flight.remove(&request) {
            match worker {
                Some(_) => self.ended.abort += 1,
                None => self.given_up_in_router += 1,
            }
            self.gauges.record(&ServeEvent::RequestCancelled { request, worker, at: Nanos::ZERO });
        }
    }

    fn check(&self) -> Snapshot {
        let now = self.gauges.snapshot();
        let placed = now.total(|worker| worker.sent + worker.waiting + worker.running);
        assert_eq!(placed + now.waiting_in_router, self.in_flight.len() as u64);
        assert_eq!(now.arrived, now.ended() + self.in_flight.len() as u64);
        now
    }
}

impl Sink<ServeEvent<'_>> for Meddler {
    fn record(&mut self, event: &ServeEvent<'_>) {
        self.gauges.record(event);
        self.count(event);
        match *event {
            ServeEvent::RequestArrived { request, .. } => self.meddle(request, None),
            ServeEvent::RequestRouted { request, worker, .. }
            | ServeEvent::RequestQueued { request, worker, .. }
            | ServeEvent::RequestAdmitted { request, worker, .. }
            | ServeEvent::RequestPreempted { request, worker, .. }
            | ServeEvent::PromptComputed { request, worker, .. } => self.meddle(request, Some(worker)),
            ServeEvent::TokensEmitted { worker, requests, .. } => {
                requests.iter().for_each(|request| self.meddle(*request, Some(worker)));
            }
            _ => {}
        }
        self.check();
    }
}

/// What a reader of the format finds; every rule of it is asserted.
fn read(text: &str) -> BTreeMap<String, f64> {
    let (mut kinds, mut samples, mut family) = (BTreeMap::new(), BTreeMap::new(), "");
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            family = help.split_once(' ').expect("a help says something").0;
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a kind has a name");
            assert_eq!(name, family);
            assert!(kinds.insert(name, kind).is_none(), "{name} is there twice");
        } else {
            let (sample, value) = line.rsplit_once(' ').expect("a sample has a value");
            let name = sample.split('{').next().expect("there is always a first");
            let suffixes: &[&str] = match kinds[family] {
                "histogram" => &["_bucket", "_sum", "_count"],
                "counter" if !family.ends_with("_total") => panic!("{family} counts what?"),
                _ => &[""],
            };
            assert!(suffixes.iter().any(|suffix| format!("{family}{suffix}") == name), "{line}");
            let before =
                samples.insert(sample.to_owned(), value.parse::<f64>().expect("a value is a number"));
            assert!(before.is_none(), "{sample} is there twice");
        }
    }
    samples
}

/// The sum over workers of a sample whose labels contain `label`.
fn sum(samples: &BTreeMap<String, f64>, name: &str, label: &str) -> u64 {
    let named = samples.iter().filter(|(sample, _)| sample.split('{').next() == Some(name));
    named.filter(|(sample, _)| sample.contains(label)).map(|(_, value)| *value as u64).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, failure_persistence: None, ..ProptestConfig::default() })]

    /// Broken by: a request that is not taken from where it was, tokens of runs counted as of one pass, a
    /// second admission that is looked up again, blocks that stay in use where nobody is.
    #[test]
    fn everything_is_counted_once(
        plan in plan(),
        shapes in shapes(),
        patience in proptest::collection::vec((0u32..24, 1u32..12), 0..6),
    ) {
        let mut meddler = Meddler::new(&plan, &patience);
        wavetank_sim::run(&plan, &mut turns(&shapes), &mut meddler, &AtomicBool::new(false)).unwrap();
        let end = meddler.check();
        let requests = shapes.len() as u64;
        prop_assert_eq!((end.arrived, end.ended()), (requests, requests));
        for worker in &end.workers {
            let left = [worker.sent, worker.waiting, worker.running, worker.blocks_in_use];
            prop_assert_eq!(left, [0; 4]);
            prop_assert!(worker.hit_tokens <= worker.queried_tokens);
        }
        prop_assert_eq!(end.total(|worker| worker.generated_tokens), meddler.tokens);
        prop_assert_eq!(end.total(|worker| worker.prompt_tokens), meddler.prompt_tokens);
        prop_assert_eq!(end.total(|worker| worker.preemptions), meddler.preempted);
        prop_assert_eq!(end.cancelled_in_router, meddler.given_up_in_router);
        let first_tokens = meddler.started.len() as u64;
        prop_assert_eq!(end.first_token.count, first_tokens);
        prop_assert_eq!(end.token_gap.count, meddler.tokens - first_tokens);
        prop_assert!(end.total(|worker| worker.queried_tokens) <= meddler.prompts.values().sum());

        let text = meddler.gauges.metrics("a \"model\"");
        let samples = read(&text);
        for (reason, count) in meddler.ended.by_reason() {
            let label = format!("finished_reason=\"{reason}\"");
            prop_assert_eq!(sum(&samples, "vllm:request_success_total", &label), count, "{}", reason);
        }
        let completed = meddler.ended.length;
        for name in ["e2e_request_latency_seconds", "request_prompt_tokens", "request_generation_tokens"] {
            prop_assert_eq!(sum(&samples, &format!("vllm:{name}_count"), ""), completed, "{}", name);
            let all = sum(&samples, &format!("vllm:{name}_bucket"), "le=\"+Inf\"");
            prop_assert_eq!(all, completed, "{}", name);
        }
        prop_assert_eq!(sum(&samples, "vllm:generation_tokens_total", ""), meddler.tokens);
    }
}

const LABELS: &str = "{model_name=\"m\",engine=\"0\"}";

fn ms(ms: u64) -> Nanos {
    Nanos(ms * 1_000_000)
}

/// One worker that has answered the first of three tokens.
fn answering() -> Gauges {
    let (num_gpu_blocks, block_size, max_model_len) = (100, 16, Some(1500));
    let plan = Plan {
        engine: EngineConfig { num_gpu_blocks, block_size, max_model_len, ..EngineConfig::default() },
        seed: 1,
        ..Plan::default()
    };
    let mut gauges = Gauges::of(&plan);
    let details =
        turns(&[(vec![0, 1, 2], 8, 3, 0)]).open().expect("it is valid").expect("it is there").request;
    let (request, worker, steps) = (RequestId(0), WorkerId(0), [ms(450)]);
    for event in [
        ServeEvent::RequestArrived { request, at: ms(0), details: &details },
        ServeEvent::RequestRouted { request, worker, at: ms(0), queued_since: None, overlap_tokens: 0 },
        ServeEvent::RequestQueued { request, worker, at: ms(100) },
        ServeEvent::RequestAdmitted { request, worker, at: ms(500), reused_tokens: 16 },
        ServeEvent::TokensEmitted { worker, start: ms(500), steps: &steps, requests: &[request] },
        ServeEvent::PassesRan { worker, start: ms(500), end: ms(950), blocks_in_use: 3 },
    ] {
        gauges.record(&event);
    }
    gauges
}

/// Broken by: a name or label that dashboards of vLLM do not know.
#[test]
fn vllm_would_call_it_so() {
    let samples = read(&answering().metrics("m"));
    for (name, value) in [
        ("num_requests_running", 1.0),
        ("num_requests_waiting", 0.0),
        ("kv_cache_usage_perc", 0.03),
        ("prefix_cache_queries_total", 40.0),
        ("prefix_cache_hits_total", 16.0),
        ("prompt_tokens_total", 40.0),
        ("generation_tokens_total", 1.0),
        ("num_preemptions_total", 0.0),
        ("time_to_first_token_seconds_count", 1.0),
    ] {
        assert_eq!(samples.get(&format!("vllm:{name}{LABELS}")), Some(&value), "{name} of {samples:#?}");
    }
    let info = "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"100\",\
                enable_prefix_caching=\"True\",engine=\"0\"}";
    assert_eq!(samples.get(info), Some(&1.0));
    assert_eq!(samples.get("wavetank_router_requests_waiting"), Some(&0.0));
}

/// Broken by: a time measured from or to another moment, and buckets that vLLM does not have.
#[test]
fn vllm_would_measure_it_so() {
    let (mut gauges, request, worker) = (answering(), RequestId(0), WorkerId(0));
    let steps = [ms(20), ms(30)];
    gauges.record(&ServeEvent::TokensEmitted { worker, start: ms(950), steps: &steps, requests: &[request] });
    gauges.record(&ServeEvent::RequestCompleted { request, worker, at: ms(1000) });
    let samples = read(&gauges.metrics("m"));
    let bucket = |name: &str, le: &str| {
        let sample = format!("vllm:{name}_bucket{{model_name=\"m\",engine=\"0\",le=\"{le}\"}}");
        samples.get(&sample).copied()
    };
    for (name, below, within, value) in [
        ("time_to_first_token_seconds", "0.75", "1.0", 0.95),
        ("request_time_per_output_token_seconds", "0.01", "0.025", 0.025),
        ("e2e_request_latency_seconds", "0.8", "1.0", 1.0),
        ("request_queue_time_seconds", "0.3", "0.5", 0.4),
        ("request_prefill_time_seconds", "0.3", "0.5", 0.45),
        ("request_prompt_tokens", "20.0", "50.0", 40.0),
        ("request_generation_tokens", "2.0", "5.0", 3.0),
    ] {
        assert_eq!((bucket(name, below), bucket(name, within)), (Some(0.0), Some(1.0)), "{name}");
        assert_eq!(samples.get(&format!("vllm:{name}_sum{LABELS}")), Some(&value), "{name}");
    }
    assert_eq!(bucket("request_decode_time_seconds", "0.3"), Some(1.0));
    let gaps = ["0.01", "0.025", "0.05"].map(|le| bucket("inter_token_latency_seconds", le));
    assert_eq!(gaps, [Some(0.0), Some(1.0), Some(2.0)]);
    let lengths = ["1000.0", "2000.0"].map(|le| bucket("request_prompt_tokens", le));
    assert_eq!(lengths, [Some(1.0), None]);
    assert_eq!(samples.get(&format!("vllm:kv_cache_usage_perc{LABELS}")), Some(&0.0));
    assert_eq!(sum(&samples, "vllm:request_success_total", "finished_reason=\"length\""), 1);
}
