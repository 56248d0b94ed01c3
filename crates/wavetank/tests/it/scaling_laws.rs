//! Laws that hold however workers come and go.
//!
//! What would break them: a draining worker that the router still chooses (`work`; the roster asserts it), a
//! worker that leaves while it holds a prompt for another (`work`: a request is left over), a cancelled start
//! that becomes ready all the same (`presence`), anything that a policy keeps outside itself (`repetition`).

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use serde_json::json;
use wavetank_model::{Nanos, RequestId, ServeEvent, Sink, WorkerId, WorkerRole, WorkerStage};
use wavetank_report::Serving;
use wavetank_sim::scaling::{Limits, ScalingConfig};
use wavetank_sim::{EngineConfig, Outcome, Plan};

use crate::laws::{plan, row_shape, trace, workload};

/// Targets at times, for the first pool and for the second.
fn targets() -> impl Strategy<Value = Vec<(u32, u32, u32)>> {
    proptest::collection::vec((1u32..150, 1u32..5, 1u32..5), 0..12)
}

/// A plan whose fleet changes.
fn scaled() -> impl Strategy<Value = Plan> {
    (plan(), targets(), 0u64..60, any::<bool>()).prop_map(|(plan, targets, startup_ms, by_load)| {
        let startup_time = Nanos(startup_ms * 1_000_000);
        let engine = EngineConfig { startup_time, ..plan.engine };
        let limits = vec![Limits { min: 1, max: 4 }; 1 + usize::from(plan.decode.is_some())];
        let mut at = 0.0;
        let point = |&(gap, first, second): &(u32, u32, u32)| {
            at += f64::from(gap) / 1000.0;
            match plan.decode {
                None => json!({ "at_seconds": at, "workers": first }),
                Some(_) => json!({ "at_seconds": at, "prefill_workers": first, "decode_workers": second }),
            }
        };
        let (name, parameters) = match by_load {
            false => ("schedule", json!({ "targets": targets.iter().map(point).collect::<Vec<_>>() })),
            true => (
                "load",
                json!({ "interval_seconds": 0.02, "window_seconds": 0.03, "cooldown_seconds": 0.01,
                    "queue_up": 0.5, "queue_down": 0.2, "cache_up": 0.6, "cache_down": 0.5 }),
            ),
        };
        let parameters = parameters.as_object().expect("it is one").clone();
        let scaling = Some(ScalingConfig { name: name.to_owned(), limits, max_gpus: None, parameters });
        Plan { engine, scaling, ..plan }
    })
}

/// What the laws look at.
#[derive(Default)]
struct Watched {
    serving: Serving,
    workers: BTreeMap<WorkerId, Vec<(Nanos, WorkerStage)>>,
    pools: BTreeMap<WorkerId, WorkerRole>,
    sent: Vec<(RequestId, WorkerId, Nanos)>,
    text: String,
}

impl Sink<ServeEvent<'_>> for Watched {
    fn record(&mut self, event: &ServeEvent<'_>) {
        self.serving.record(event);
        self.text += &format!("{event:?}\n");
        match *event {
            ServeEvent::WorkerChanged { worker, pool, at, stage } => {
                self.workers.entry(worker).or_default().push((at, stage));
                self.pools.insert(worker, pool);
            }
            ServeEvent::RequestRouted { request, worker, at, .. } => self.sent.push((request, worker, at)),
            _ => {}
        }
    }
}

fn run(plan: &Plan, text: &str) -> (Watched, Outcome) {
    let mut watched = Watched::default();
    let mut workload = workload(plan, text);
    let outcome = wavetank_sim::run(plan, workload.as_mut(), &mut watched, &AtomicBool::new(false)).unwrap();
    (watched, outcome)
}

/// Whether a worker took requests at some time; at the time of a change it may be either.
fn was_active(stages: &[(Nanos, WorkerStage)], at: Nanos) -> bool {
    let ready = stages.iter().any(|&(then, stage)| stage == WorkerStage::Active && then <= at);
    let stopped = stages.iter().any(|&(then, stage)| stage >= WorkerStage::Draining && then < at);
    ready && !stopped
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn work(plan in scaled(), shapes in proptest::collection::vec(row_shape(), 1..30)) {
        let text = trace(&shapes);
        let (watched, outcome) = run(&plan, &text);
        if !watched.workers.is_empty() {
            for (request, worker, at) in &watched.sent {
                let stages = &watched.workers[worker];
                prop_assert!(was_active(stages, *at), "{request:?} {worker:?} {at:?} {stages:?}");
            }
        }
        let summary = watched.serving.summary();
        let ended = summary.counts.completed + summary.counts.rejected_total();
        if plan.max_sim_time.is_none() {
            prop_assert_eq!((summary.counts.arrived, ended), (shapes.len() as u64, shapes.len() as u64));
            prop_assert_eq!(outcome.total().blocks_in_use, 0);
        }
    }

    #[test]
    fn presence(plan in scaled(), shapes in proptest::collection::vec(row_shape(), 1..30)) {
        let (watched, outcome) = run(&plan, &trace(&shapes));
        let (stages_of, pools) = (watched.workers.clone(), watched.pools.clone());
        let summary = watched.serving.summary();
        let Some(scaling) = &summary.scaling else {
            prop_assert_eq!(outcome.ticks, None);
            return Ok(());
        };
        // Numbers are given out once, without a gap, and each worker goes its way once.
        let numbers: Vec<u32> = stages_of.keys().map(|worker| worker.0).collect();
        prop_assert_eq!(numbers, (0..outcome.work.len() as u32).collect::<Vec<_>>());
        let mut expected = BTreeMap::new();
        for (worker, stages) in &stages_of {
            prop_assert!(stages.is_sorted_by(|one, next| one.0 <= next.0 && one.1 < next.1), "{stages:?}");
            prop_assert_eq!(pools[worker], outcome.roles[worker.index()]);
            let gone = stages.iter().find(|(_, stage)| *stage == WorkerStage::Gone);
            let end = gone.map_or(summary.duration, |(at, _)| *at).min(summary.duration);
            *expected.entry(pools[worker]).or_insert(Nanos::ZERO) += end.since(stages[0].0);
        }
        for (pool, nanos) in expected {
            prop_assert_eq!(scaling.worker_seconds(pool, summary.duration), nanos.as_seconds());
        }
        // Never fewer than one, and never more than the limit, active or starting.
        for change in &scaling.changes {
            prop_assert!((1..=4).contains(&change.to) && change.from != change.to);
        }
    }

    #[test]
    fn repetition(plan in scaled(), shapes in proptest::collection::vec(row_shape(), 1..20)) {
        let text = trace(&shapes);
        let ((one, _), (other, _)) = (run(&plan, &text), run(&plan, &text));
        prop_assert_eq!(one.text, other.text);
    }
}
