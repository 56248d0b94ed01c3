//! Laws of requests that are given up, over every engine.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use wavetank_model::{ServeEvent, Sink};

use super::*;
use crate::{PreemptionMode, SchedulePolicy, SglangConfig};

const TOKENS_PER_ID: u32 = 16;
const FOREVER: Horizon = Horizon { starts_before: Nanos::MAX, ends_by: Nanos::MAX };

#[derive(Clone, Debug)]
struct Shape {
    id: u32,
    /// From a small alphabet, so that prompts share prefixes.
    ids: Vec<u8>,
    /// Tokens missing from the last id.
    cut: u32,
    output: u32,
    is_doomed: bool,
}

impl Shape {
    fn job(&self) -> Job {
        let tokens = self.ids.len() as u32 * TOKENS_PER_ID - self.cut;
        let prompt = Prompt::from_ids(self.ids.iter().map(|&id| u64::from(id)), tokens, TOKENS_PER_ID);
        Job { id: RequestId(self.id), prompt, output_tokens: self.output }
    }
}

/// What happens to a worker at one time.
#[derive(Clone, Debug)]
struct Round {
    after_us: u32,
    jobs: Vec<Shape>,
    /// Who is given up, of all jobs so far.
    cancelled: Option<u8>,
}

fn shape() -> impl Strategy<Value = Shape> {
    let ids = proptest::collection::vec(0u8..3, 1..8);
    (ids, 0..TOKENS_PER_ID, 0u32..40, any::<bool>()).prop_map(|(ids, cut, output, is_doomed)| Shape {
        id: 0,
        ids,
        cut,
        output,
        is_doomed,
    })
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let jobs = proptest::collection::vec(shape(), 0..4);
    let round = (0u32..60_000, jobs, proptest::option::weighted(0.7, any::<u8>()));
    let round = round.prop_map(|(after_us, jobs, cancelled)| Round { after_us, jobs, cancelled });
    proptest::collection::vec(round, 1..16).prop_map(|mut rounds| {
        let jobs = rounds.iter_mut().flat_map(|round| &mut round.jobs);
        jobs.zip(0..).for_each(|(shape, id)| shape.id = id);
        rounds
    })
}

fn config() -> impl Strategy<Value = EngineConfig> {
    let sizes = (2u32..40, 8u32..60, 1u32..6, 1u32..90);
    let flags = (any::<[bool; 6]>(), 0..ALL.len());
    (sizes, flags).prop_map(
        |((block_size, blocks, seats, budget), ([cached, chunked, fifo, lpm, ahead, ranks], engine))| {
            EngineConfig {
                engine_type: ALL[engine].name.to_owned(),
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
                async_scheduling: ahead || ranks,
                data_parallel_ranks: 1 + u32::from(ranks),
                ..EngineConfig::default()
            }
        },
    )
}

fn built(config: &EngineConfig) -> Box<dyn Engine> {
    let timing = config.timing.build().unwrap();
    build(Seat { worker: WorkerId(0), config, timing: &timing }).unwrap()
}

/// Everything that was told, and of whom.
#[derive(Default)]
struct Told {
    lines: Vec<String>,
    tokens: BTreeMap<RequestId, Vec<Nanos>>,
    /// Prompt tokens found in the cache.
    reused: BTreeMap<RequestId, u32>,
    completed: BTreeSet<RequestId>,
    rejected: BTreeSet<RequestId>,
    cancelled: BTreeSet<RequestId>,
}

impl Told {
    fn has_ended(&self, request: RequestId) -> bool {
        self.completed.contains(&request) || self.rejected.contains(&request)
    }

    fn heard_of(&self, request: RequestId) {
        assert!(!self.cancelled.contains(&request), "{request:?} was given up: {:?}", self.lines.last());
    }

    fn signals(&mut self, signals: &[Signal]) {
        for signal in signals {
            self.lines.push(format!("{signal:?}"));
            let (Signal::Prefilled(request)
            | Signal::Held(request)
            | Signal::Ended(request)
            | Signal::Rejected(request)) = *signal;
            self.heard_of(request);
        }
    }
}

impl Sink<ServeEvent<'_>> for Told {
    fn record(&mut self, event: &ServeEvent<'_>) {
        self.lines.push(format!("{event:?}"));
        match *event {
            ServeEvent::RequestQueued { request, .. }
            | ServeEvent::RequestPreempted { request, .. }
            | ServeEvent::PromptComputed { request, .. } => self.heard_of(request),
            ServeEvent::RequestAdmitted { request, reused_tokens, .. } => {
                self.heard_of(request);
                self.reused.insert(request, reused_tokens);
            }
            ServeEvent::TokensEmitted { start, steps, requests, .. } => {
                let mut at = start;
                for &step in steps {
                    at += step;
                    for &request in requests {
                        self.heard_of(request);
                        self.tokens.entry(request).or_default().push(at);
                    }
                }
            }
            ServeEvent::RequestCompleted { request, .. } => {
                self.heard_of(request);
                assert!(self.completed.insert(request));
            }
            ServeEvent::RequestRejected { request, .. } => {
                self.heard_of(request);
                assert!(self.rejected.insert(request));
            }
            _ => {}
        }
    }
}

/// Runs up to the horizon, through all signals.
fn advance(engine: &mut dyn Engine, horizon: Horizon, told: &mut Told) {
    let mut signals = Vec::new();
    engine.advance(horizon, told).unwrap();
    while engine.take_signals(&mut signals) {
        told.signals(&signals);
        signals.clear();
        engine.advance(horizon, told).unwrap();
    }
}

/// Goes to the first time from `now` on at which the worker is between passes.
fn next_boundary(engine: &mut dyn Engine, now: Nanos, told: &mut Told) -> Nanos {
    advance(engine, Horizon { starts_before: now, ends_by: Nanos::MAX }, told);
    now.max(engine.boundary())
}

fn after(now: Nanos, us: u32) -> Nanos {
    now + Nanos(u64::from(us) * 1000)
}

fn run_out(engine: &mut dyn Engine, told: &mut Told) {
    while engine.wake().is_some() {
        advance(engine, FOREVER, told);
    }
}

/// What is told when doomed jobs are given up before a pass has seen them.
fn told_of_the_others(config: &EngineConfig, rounds: &[Round]) -> Vec<String> {
    let (mut engine, mut told, mut now) = (built(config), Told::default(), Nanos::ZERO);
    let ranked = config.data_parallel_ranks > 1 && config.engine_type == "vllm";
    for Round { after_us, jobs, .. } in rounds {
        now = next_boundary(engine.as_mut(), after(now, *after_us), &mut told);
        let mut doomed = Vec::new();
        for shape in jobs {
            engine.submit(shape.job(), now);
            doomed.extend(shape.is_doomed.then_some(RequestId(shape.id)));
            // The rank of a request is chosen when it comes, by those that are there.
            if ranked {
                doomed.drain(..).for_each(|request| assert!(engine.cancel(request, now)));
            }
        }
        doomed.drain(..).for_each(|request| assert!(engine.cancel(request, now)));
    }
    run_out(engine.as_mut(), &mut told);
    told.lines
}

/// Enough that requests are given up in every state under every configuration.
const CASES: u32 = 1_000;

fn proptest_config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(CASES), failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(proptest_config())]

    /// Broken by: a request that keeps its blocks, a place in the batch or in a pass in flight, its tokens in
    /// the sum, a signal, or the head of a queue that stalled because of it.
    #[test]
    fn who_is_given_up_leaves_nothing_behind(config in config(), rounds in rounds()) {
        let (mut engine, mut told, mut now) = (built(&config), Told::default(), Nanos::ZERO);
        let mut jobs = Vec::new();
        for Round { after_us, jobs: shapes, cancelled } in rounds {
            now = after(now, after_us);
            advance(engine.as_mut(), Horizon { starts_before: now, ends_by: Nanos::MAX }, &mut told);
            for shape in shapes {
                jobs.push(shape.job());
                engine.submit(shape.job(), now);
            }
            now = now.max(engine.boundary());
            let position = cancelled.map(|pick| usize::from(pick) % jobs.len().max(1));
            if let Some(Job { id, .. }) = position.and_then(|position| jobs.get(position)) {
                let is_there = !told.has_ended(*id) && !told.cancelled.contains(id);
                prop_assert_eq!(engine.cancel(*id, now), is_there);
                prop_assert!(!engine.cancel(*id, now));
                if is_there {
                    told.cancelled.insert(*id);
                }
            }
        }
        prop_assert!(!engine.cancel(RequestId(u32::MAX), now));
        run_out(engine.as_mut(), &mut told);
        prop_assert_eq!(engine.work().blocks_in_use, 0);
        for Job { id, output_tokens, .. } in &jobs {
            prop_assert!(told.has_ended(*id) || told.cancelled.contains(id), "{:?} is left", id);
            if told.completed.contains(id) {
                prop_assert_eq!(told.tokens.get(id).map_or(0, Vec::len), *output_tokens as usize);
            }
        }
        // Whatever is left behind shows in the next request: in what it is charged, or in its room.
        let next = Job { id: RequestId(9999), prompt: Prompt::unique(99, 30), output_tokens: 20 };
        let (mut fresh, mut alone) = (built(&config), Told::default());
        let start = now.max(engine.boundary());
        for (engine, told) in [(&mut engine, &mut told), (&mut fresh, &mut alone)] {
            engine.submit(next.clone(), start);
            run_out(engine.as_mut(), told);
        }
        prop_assert_eq!(told.tokens.get(&next.id), alone.tokens.get(&next.id));
    }

    /// Broken by: telling of a request that is not there any more, or counting it where the next are sent.
    #[test]
    fn who_is_given_up_before_a_pass_was_never_there(config in config(), rounds in rounds()) {
        let mut without = rounds.clone();
        without.iter_mut().for_each(|round| round.jobs.retain(|shape| !shape.is_doomed));
        prop_assert_eq!(told_of_the_others(&config, &rounds), told_of_the_others(&config, &without));
    }
}

/// Broken by: giving back what was computed as if it were empty.
#[test]
fn what_was_computed_stays_findable() {
    for entry in ALL {
        let config = EngineConfig { engine_type: entry.name.to_owned(), ..EngineConfig::default() };
        let (mut engine, mut told) = (built(&config), Told::default());
        let job = |id| Job { id: RequestId(id), prompt: Prompt::unique(5, 640), output_tokens: 100 };
        engine.submit(job(0), Nanos::ZERO);
        let now = next_boundary(engine.as_mut(), Nanos(1), &mut told);
        assert!(engine.cancel(RequestId(0), now));
        engine.submit(job(1), now);
        run_out(engine.as_mut(), &mut told);
        assert_eq!(told.reused[&RequestId(1)], 576, "{}", entry.name);
    }
}

/// Broken by: an answer that is known and kept as private.
#[test]
fn a_known_answer_is_found_by_who_asks_further() {
    for entry in ALL {
        let config =
            EngineConfig { engine_type: entry.name.to_owned(), block_size: 16, ..EngineConfig::default() };
        let (mut engine, mut told) = (built(&config), Told::default());
        let prompt = |tokens| Prompt::from_ids(0.., tokens, 16);
        let asked = Job { id: RequestId(0), prompt: prompt(192).answered_after(100), output_tokens: 92 };
        let further = Job { id: RequestId(1), prompt: prompt(300), output_tokens: 5 };
        for job in [asked, further] {
            let now = engine.boundary();
            engine.submit(job, now);
            run_out(engine.as_mut(), &mut told);
        }
        // SGLang keeps the page of the token sampled last, which nothing has computed; vLLM does not.
        let reused = if entry.name == "sglang" { 192 } else { 176 };
        assert_eq!(told.reused[&RequestId(1)], reused, "{}", entry.name);
    }
}
