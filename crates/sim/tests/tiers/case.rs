//! Plans with tiers and workloads for them.

use proptest::prelude::*;
use serde_json::json;
use wavetank_model::{Nanos, Opening, Priority, Prompt, Request, Result, SessionId, Workload};
use wavetank_sim::media::MediumConfig;
use wavetank_sim::{
    ConcurrencyUnit, DecodePool, EngineConfig, Link, Load, Plan, PreemptionMode, SchedulePolicy,
    SglangConfig, TierConfig, TierLoad, TierScope, TierUnit, TierWrite, Transfer, WorkerRole, engines,
};

pub(crate) const TOKENS_PER_ID: u32 = 16;
pub(crate) const BYTES_PER_TOKEN: u32 = 1000;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) start_ms: u32,
    /// From a small alphabet, so that prompts share prefixes.
    pub(crate) ids: Vec<u8>,
    /// Tokens missing from the last id.
    pub(crate) cut: u32,
    pub(crate) output: u32,
}

impl Row {
    pub(crate) fn prompt(&self) -> Prompt {
        let tokens = self.ids.len() as u32 * TOKENS_PER_ID - self.cut;
        Prompt::from_ids(self.ids.iter().map(|&id| u64::from(id)), tokens, TOKENS_PER_ID)
    }
}

/// Rows in order of their start, each a session of its own.
pub(crate) struct Rows {
    rows: std::vec::IntoIter<Row>,
    opened: u32,
    /// Says that completions matter, so that all workers are stepped together.
    coupled: bool,
}

impl Rows {
    pub(crate) fn of(rows: &[Row]) -> Self {
        let mut rows = rows.to_vec();
        rows.sort_by_key(|row| row.start_ms);
        Self { rows: rows.into_iter(), opened: 0, coupled: false }
    }

    pub(crate) fn coupled(rows: &[Row]) -> Self {
        Self { coupled: true, ..Self::of(rows) }
    }
}

impl Workload for Rows {
    fn open(&mut self) -> Result<Option<Opening>> {
        let Some(row) = self.rows.next() else { return Ok(None) };
        self.opened += 1;
        let request = Request {
            session: SessionId(self.opened - 1),
            turn: 0,
            prompt: row.prompt(),
            output_tokens: row.output,
            priority: Priority::default(),
            think: None,
            labels: None,
        };
        Ok(Some(Opening { at: Nanos(u64::from(row.start_ms) * 1_000_000), request }))
    }
    fn follow_up(&mut self, _session: SessionId, _turn: u32) -> Result<Request> {
        unreachable!("every session has one turn")
    }
    fn has_follow_ups(&self) -> bool {
        self.coupled
    }
    fn requests(&self) -> u64 {
        self.rows.len() as u64
    }
}

pub(crate) fn rows() -> impl Strategy<Value = Vec<Row>> {
    let ids = proptest::collection::vec(0u8..3, 1..8);
    let row = (0u32..400, ids, 0..TOKENS_PER_ID, 0u32..40).prop_map(|(start_ms, ids, cut, output)| Row {
        start_ms,
        ids,
        cut,
        output,
    });
    proptest::collection::vec(row, 1..30)
}

pub(crate) fn medium(name: &str, parameters: serde_json::Value) -> MediumConfig {
    MediumConfig { name: name.to_owned(), parameters: parameters.as_object().expect("it is one").clone() }
}

/// From faster than a pass to much slower.
fn any_medium() -> impl Strategy<Value = MediumConfig> {
    let latency = prop_oneof![Just(0.0), Just(100.0), Just(30_000.0)];
    let gbps = prop_oneof![Just(0.0005), Just(0.02), Just(1000.0)];
    (latency, gbps, any::<[bool; 3]>()).prop_map(
        |(latency_us, gbps, [constant, fifo, half])| match constant {
            true => medium("constant", json!({"latency_us": latency_us, "gbps": gbps})),
            false => {
                let order = if fifo { "fifo" } else { "share" };
                let duplex = if half { "half" } else { "full" };
                medium(
                    "queued",
                    json!({"latency_us": latency_us, "gbps": gbps, "order": order, "duplex": duplex}),
                )
            }
        },
    )
}

/// A tier of so many blocks.
pub(crate) fn tier(blocks: u64, block_size: u32, medium: MediumConfig) -> TierConfig {
    TierConfig {
        name: "cpu".to_owned(),
        capacity_bytes: blocks * u64::from(block_size) * u64::from(BYTES_PER_TOKEN),
        medium,
        scope: TierScope::Worker,
        write: TierWrite::Through,
        load: TierLoad::Delay,
        unit: TierUnit::Batch,
    }
}

/// Up to three tiers, without their places.
pub(crate) fn tiers() -> impl Strategy<Value = Vec<(u64, MediumConfig, [bool; 4])>> {
    let blocks = prop_oneof![Just(0u64), 1u64..20, 20u64..400];
    proptest::collection::vec((blocks, any_medium(), any::<[bool; 4]>()), 1..4)
}

fn placed(drafts: Vec<(u64, MediumConfig, [bool; 4])>, block_size: u32) -> Vec<TierConfig> {
    let mut is_shared = false;
    let mut placed = Vec::new();
    for (number, (blocks, medium, [shared, evict, overlap, object])) in drafts.into_iter().enumerate() {
        // What is behind a shared tier is shared.
        is_shared |= shared;
        placed.push(TierConfig {
            name: format!("tier{number}"),
            scope: if is_shared { TierScope::Shared } else { TierScope::Worker },
            write: if evict { TierWrite::Evict } else { TierWrite::Through },
            load: if overlap && !is_shared { TierLoad::Overlap } else { TierLoad::Delay },
            unit: if object { TierUnit::Object } else { TierUnit::Batch },
            ..tier(blocks, block_size, medium)
        });
    }
    placed
}

/// Every tier is its worker's own.
pub(crate) fn private(plan: Plan) -> Plan {
    let tiers = plan.engine.tiers.into_iter();
    let tiers = tiers.map(|tier| TierConfig { scope: TierScope::Worker, ..tier }).collect();
    Plan { engine: EngineConfig { tiers, ..plan.engine }, ..plan }
}

fn engine() -> impl Strategy<Value = EngineConfig> {
    let sizes = (2u32..40, 8u32..60, 1u32..6, 1u32..90);
    let flags = (any::<[bool; 3]>(), 0..engines::ALL.len());
    (sizes, flags, tiers()).prop_map(
        |((block_size, blocks, seats, budget), ([chunked, fifo, lpm], engine), tiers)| EngineConfig {
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
            enable_chunked_prefill: chunked,
            preemption_mode: if fifo { PreemptionMode::Fifo } else { PreemptionMode::Lifo },
            transfer: transfer(),
            tiers: placed(tiers, block_size),
            ..EngineConfig::default()
        },
    )
}

/// What a token takes.
pub(crate) fn transfer() -> Transfer {
    Transfer { kv_bytes_per_token: BYTES_PER_TOKEN, ..Transfer::default() }
}

pub(crate) const ONE_AT_A_TIME: Load = Load::Closed { concurrency: 1, unit: ConcurrencyUnit::Requests };

pub(crate) fn plan_of(engine: EngineConfig, num_workers: u32, load: Load) -> Plan {
    Plan { engine, num_workers, load, ..Plan::default() }
}

pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    let load = prop_oneof![
        Just(Load::Schedule),
        (1u32..5).prop_map(|n| Load::Closed { concurrency: n, unit: ConcurrencyUnit::Requests }),
    ];
    let router = prop_oneof![Just("round_robin"), Just("kv_router"), Just("least_loaded")];
    let decode = proptest::option::weighted(0.25, 1u32..3);
    let cap = proptest::option::weighted(0.2, 0u64..2_000);
    (engine(), (1u32..4, decode), load, router, cap).prop_map(
        |(mut engine, (workers, decode), load, router, cap_ms)| {
            let decode = decode.map(|num_workers| {
                engine.worker_type = WorkerRole::Prefill;
                let worker_type = WorkerRole::Decode;
                let engine = EngineConfig { worker_type, tiers: Vec::new(), ..engine.clone() };
                DecodePool { engine, num_workers, link: Link::default() }
            });
            Plan {
                router_mode: router.to_owned(),
                max_sim_time: cap_ms.map(|ms| Nanos(ms * 1_000_000)),
                decode,
                ..plan_of(engine, workers, load)
            }
        },
    )
}
