//! Small random cases, and the same case as the simulator wants it.

use std::fmt;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::json;
use wavetank_model::{Nanos, Opening, Priority, Prompt, Request, Result, SessionId, Workload};
use wavetank_sim::timing::TimingConfig;
use wavetank_sim::{
    ConcurrencyUnit, EngineConfig, Load, Plan, PreemptionMode, SglangConfig, Transfer, WorkerRole,
};

/// A plan and a workload.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) workers: u32,
    pub(crate) engine: EngineCase,
    pub(crate) load: LoadCase,
    pub(crate) tokens_per_id: u32,
    pub(crate) sessions: Vec<SessionCase>,
}

#[derive(Clone, Debug)]
pub(crate) struct EngineCase {
    pub(crate) num_gpu_blocks: u32,
    pub(crate) block_size: u32,
    pub(crate) max_num_seqs: Option<u32>,
    pub(crate) max_num_batched_tokens: Option<u32>,
    pub(crate) max_model_len: Option<u32>,
    pub(crate) prefix_caching: bool,
    pub(crate) chunked_prefill: bool,
    pub(crate) speedup: f64,
    pub(crate) decode_speedup: f64,
    pub(crate) preemption: PreemptionMode,
    pub(crate) timing: TimingCase,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum TimingCase {
    Polynomial,
    Fixed { prefill_ms: f64, decode_ms: f64 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LoadCase {
    Schedule,
    Closed { concurrency: u32, unit: ConcurrencyUnit },
}

#[derive(Clone)]
pub(crate) struct SessionCase {
    pub(crate) start: u64,
    pub(crate) turns: Vec<TurnCase>,
}

/// A prompt is `shared` ids `stem` and then ids `tail`.
#[derive(Clone, Debug)]
pub(crate) struct TurnCase {
    pub(crate) stem: u64,
    pub(crate) shared: u32,
    pub(crate) tail: u64,
    pub(crate) prompt: u32,
    pub(crate) output: u32,
    pub(crate) think: u64,
}

/// One line for each session, so that a failing case can be read.
impl fmt::Debug for SessionCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns: {:?}", self.start, self.turns)
    }
}

impl TurnCase {
    fn id(&self, position: u32) -> u64 {
        if position < self.shared { self.stem } else { self.tail }
    }
}

impl Case {
    /// The prompt of a turn, token by token, and how many tokens are asked for.
    pub(crate) fn tokens(&self, session: usize, turn: usize) -> (Vec<u64>, usize) {
        let turn = &self.sessions[session].turns[turn];
        let tokens = (0..turn.prompt).map(|position| turn.id(position / self.tokens_per_id));
        (tokens.collect(), turn.output as usize)
    }

    pub(crate) fn plan(&self) -> Plan {
        let engine = &self.engine;
        let (name, parameters) = match engine.timing {
            TimingCase::Polynomial => ("polynomial", json!({})),
            TimingCase::Fixed { prefill_ms, decode_ms } => {
                ("fixed", json!({ "prefill_ms": prefill_ms, "decode_ms": decode_ms }))
            }
        };
        let parameters = parameters.as_object().expect("it is one").clone();
        let engine = EngineConfig {
            tiers: Vec::new(),
            engine_type: "vllm".to_owned(),
            num_gpu_blocks: engine.num_gpu_blocks,
            block_size: engine.block_size,
            max_num_seqs: engine.max_num_seqs,
            max_num_batched_tokens: engine.max_num_batched_tokens,
            max_model_len: engine.max_model_len,
            enable_prefix_caching: engine.prefix_caching,
            enable_chunked_prefill: engine.chunked_prefill,
            speedup_ratio: engine.speedup,
            decode_speedup_ratio: engine.decode_speedup,
            preemption_mode: engine.preemption,
            async_scheduling: false,
            data_parallel_ranks: 1,
            timing: TimingConfig { name: name.to_owned(), parameters },
            worker_type: WorkerRole::Aggregated,
            transfer: Transfer::default(),
            sglang: SglangConfig::default(),
            startup_time: Nanos::ZERO,
        };
        let load = match self.load {
            LoadCase::Schedule => Load::Schedule,
            LoadCase::Closed { concurrency, unit } => Load::Closed { concurrency, unit },
        };
        Plan { engine, num_workers: self.workers, load, ..Plan::default() }
    }

    pub(crate) fn workload(&self) -> InMemory<'_> {
        let mut order: Vec<_> = (0..self.sessions.len()).collect();
        if self.load == LoadCase::Schedule {
            order.sort_by_key(|&session| self.sessions[session].start);
        }
        InMemory { case: self, order: order.into_iter() }
    }

    fn request(&self, session: usize, turn: usize) -> Request {
        let turns = &self.sessions[session].turns;
        let asked = &turns[turn];
        let ids = (0..asked.prompt.div_ceil(self.tokens_per_id)).map(|position| asked.id(position));
        Request {
            session: SessionId(session as u32),
            turn: turn as u32,
            prompt: Prompt::from_ids(ids, asked.prompt, self.tokens_per_id),
            output_tokens: asked.output,
            priority: Priority::default(),
            think: (turn + 1 < turns.len()).then_some(Nanos(asked.think)),
            labels: None,
        }
    }
}

/// The workload of a case.
pub(crate) struct InMemory<'c> {
    case: &'c Case,
    order: std::vec::IntoIter<usize>,
}

impl Workload for InMemory<'_> {
    fn open(&mut self) -> Result<Option<Opening>> {
        let opening = self.order.next().map(|session| Opening {
            at: Nanos(self.case.sessions[session].start),
            request: self.case.request(session, 0),
        });
        Ok(opening)
    }

    fn follow_up(&mut self, session: SessionId, turn: u32) -> Result<Request> {
        Ok(self.case.request(session.index(), turn as usize))
    }

    fn has_follow_ups(&self) -> bool {
        self.case.sessions.iter().any(|session| session.turns.len() > 1)
    }

    fn requests(&self) -> u64 {
        self.case.sessions.iter().map(|session| session.turns.len() as u64).sum()
    }
}

const MS: u64 = 1_000_000;
const MOST_REQUESTS: usize = 30;

/// Instants that often coincide, with each other and with ends of passes.
fn instant() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => Just(0),
        3 => (0..6u64).prop_map(|tens| tens * 10 * MS),
        2 => (0..200u64).prop_map(|ms| ms * MS),
        1 => (0..6u64).prop_map(|tens| tens * 10 * MS + 1),
        2 => 0..300 * MS,
    ]
}

fn turn() -> impl Strategy<Value = TurnCase> {
    let prompt = prop_oneof![5 => 1..=16u32, 4 => 1..=60u32, 1 => 1..=300u32];
    let output = prop_oneof![1 => 0..=1u32, 6 => 0..=20u32, 1 => 0..=120u32];
    let shared = prop_oneof![2 => 0..=4u32, 2 => 0..=30u32, 1 => Just(u32::MAX)];
    let content = (0..2u64, shared, 0..4u64);
    (content, prompt, output, instant()).prop_map(|((stem, shared, tail), prompt, output, think)| TurnCase {
        stem,
        shared,
        tail,
        prompt,
        output,
        think,
    })
}

/// Half of the workloads have single turns only.
fn sessions() -> impl Strategy<Value = Vec<SessionCase>> {
    let turns = vec(turn(), 1..=4);
    let session = (instant(), turns).prop_map(|(start, turns)| SessionCase { start, turns });
    (vec(session, 1..=MOST_REQUESTS), 0..=1usize).prop_map(|(mut sessions, many)| {
        let mut left = MOST_REQUESTS;
        for session in &mut sessions {
            session.turns.truncate(left.min(1 + 3 * many));
            left -= session.turns.len();
        }
        sessions.retain(|session| !session.turns.is_empty());
        sessions
    })
}

fn timing() -> impl Strategy<Value = TimingCase> {
    let ms = || prop_oneof![2 => Just(0.0), 3 => (1..=4u8).prop_map(|n| 5.0 * f64::from(n)), 1 => 0.0..30.0];
    prop_oneof![
        Just(TimingCase::Polynomial),
        (ms(), ms()).prop_map(|(prefill_ms, decode_ms)| TimingCase::Fixed { prefill_ms, decode_ms }),
    ]
}

fn engine() -> impl Strategy<Value = EngineCase> {
    let blocks = prop_oneof![3 => 4..=14u32, 2 => 4..=60u32];
    let sizes = (blocks, 2..=8u32, option::of(1..=6u32), option::of(1..=40u32));
    let limit = option::weighted(0.2, 2..=100u32);
    let ratio =
        || prop_oneof![4 => Just(1.0), 1 => Just(0.0), 1 => Just(2.0), 2 => 0.3..20.0, 1 => Just(1e9)];
    let speeds = (ratio(), ratio());
    let preemption = prop_oneof![Just(PreemptionMode::Lifo), Just(PreemptionMode::Fifo)];
    let switches = (prop::bool::weighted(0.8), prop::bool::weighted(0.7), preemption);
    (sizes, limit, speeds, switches, timing()).prop_map(
        |(
            (num_gpu_blocks, block_size, max_num_seqs, max_num_batched_tokens),
            limit,
            speeds,
            switches,
            timing,
        )| {
            EngineCase {
                num_gpu_blocks,
                block_size,
                max_num_seqs,
                max_num_batched_tokens,
                max_model_len: limit,
                prefix_caching: switches.0,
                chunked_prefill: switches.1,
                speedup: speeds.0,
                decode_speedup: speeds.1,
                preemption: switches.2,
                timing,
            }
        },
    )
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    let unit = prop_oneof![Just(ConcurrencyUnit::Requests), Just(ConcurrencyUnit::Sessions)];
    let closed = (1..=8u32, unit).prop_map(|(concurrency, unit)| LoadCase::Closed { concurrency, unit });
    let load = prop_oneof![Just(LoadCase::Schedule), closed];
    let tokens_per_id = prop_oneof![2 => 1..=12u32, 1 => 1..=64u32];
    (1..=3u32, engine(), load, tokens_per_id, sessions()).prop_map(
        |(workers, engine, load, tokens_per_id, sessions)| Case {
            workers,
            engine,
            load,
            tokens_per_id,
            sessions,
        },
    )
}
