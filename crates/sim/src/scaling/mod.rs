//! Who changes the number of workers during a run, and when: one file per policy, one row each in [`ALL`].
//!
//! A policy says how many workers a pool should have; the world keeps its limits, adds workers and drains
//! them (spec/replay.md 9).

mod load;
mod schedule;
mod sla;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wavetank_model::{Error, Nanos, Result, WorkerRole, described, find};

use crate::snapshot::Snapshot;
use crate::timing::Parameters;
use crate::{EngineConfig, Plan};

/// Decides how many workers there should be. It sees nothing but snapshots, so that a run repeats.
pub trait Policy {
    /// When it looks first; `None` never does.
    fn first_tick(&self) -> Option<Nanos>;

    /// Looks at the fleet. A next look that is not later than this one is none.
    fn tick(&mut self, snapshot: &Snapshot) -> Decision;
}

/// What a policy wants.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Pools that should have another number of workers; one that is not named stays as it is.
    pub targets: Vec<Target>,
    /// When it looks again; `None` never does.
    pub next_tick: Option<Nanos>,
}

/// How many workers a pool should have, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The pool.
    pub pool: WorkerRole,
    /// Workers that are active or starting.
    pub workers: u32,
    /// In words.
    pub reason: String,
}

/// A row of [`ALL`], what it may do, and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScalingConfig {
    /// The row.
    pub name: String,
    /// What holds for the pool where requests begin, and for the one that decodes, if there is one.
    pub limits: Vec<Limits>,
    /// Most GPUs of all workers, those that drain included; `None` is no limit.
    pub max_gpus: Option<u32>,
    /// What the row's own configuration takes.
    pub parameters: Parameters,
}

/// How many workers a pool may have, active or starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The fewest.
    pub min: u32,
    /// The most.
    pub max: u32,
}

/// What a policy is built from.
pub struct Setting<'a> {
    /// The pools, in the order of a snapshot.
    pub pools: Vec<PoolSetting<'a>>,
}

/// A pool of workers.
#[derive(Clone, Copy)]
pub struct PoolSetting<'a> {
    /// What they do of a request.
    pub role: WorkerRole,
    /// What they run.
    pub engine: &'a EngineConfig,
    /// How many there may be.
    pub limits: Limits,
}

/// A parameter of a row, for `wavetank list`.
pub struct Parameter {
    /// As written in JSON.
    pub name: &'static str,
    /// One line; the row's name first.
    pub about: &'static str,
}

described!(Parameter);

/// A row of the table.
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// One line for `wavetank list`.
    pub about: &'static str,
    /// What its configuration takes.
    pub parameters: &'static [Parameter],
    /// Builds the policy.
    pub build: fn(&Parameters, &Setting<'_>) -> Result<Box<dyn Policy>>,
}

described!(Entry);

/// Every scaling policy, alphabetical. `wavetank list autoscale` prints this table.
pub const ALL: &[Entry] = &[load::ENTRY, schedule::ENTRY, sla::ENTRY];

/// The policy of a plan, if it has one.
pub fn policy(plan: &Plan) -> Result<Option<Box<dyn Policy>>> {
    let Some(config) = &plan.scaling else { return Ok(None) };
    let role = if plan.decode.is_some() { WorkerRole::Prefill } else { WorkerRole::Aggregated };
    let decode = plan.decode.as_ref().map(|pool| (WorkerRole::Decode, &pool.engine));
    let pools = std::iter::once((role, &plan.engine)).chain(decode);
    let pools = pools.zip(&config.limits);
    let pools = pools.map(|((role, engine), &limits)| PoolSetting { role, engine, limits }).collect();
    let entry = find("scaling policy", ALL, &config.name)?;
    (entry.build)(&config.parameters, &Setting { pools }).map(Some)
}

/// Reads the parameters of the row `name` into its own configuration type.
fn configure<'de, T: Deserialize<'de>>(name: &str, parameters: &Parameters) -> Result<T> {
    T::deserialize(Value::Object(parameters.clone())).map_err(|error| wrong(name, error))
}

/// What is wrong with the parameters of the row `name`.
fn wrong(name: &str, finding: impl std::fmt::Display) -> Error {
    Error::usage(format!("scaling policy \"{name}\": {finding}"))
        .hint("`wavetank list autoscale-args -v` shows every parameter")
}

/// No look is less than this later than the one before, nor more than a year.
const SHORTEST_S: f64 = 0.001;
const LONGEST_S: f64 = 31_536_000.0;

/// A time in seconds that is neither nothing nor endless.
fn span(name: &str, key: &str, seconds: f64) -> Result<Nanos> {
    match (SHORTEST_S..=LONGEST_S).contains(&seconds) {
        true => Ok(Nanos::from_seconds(seconds)),
        false => Err(wrong(name, format!("\"{key}\" must be from {SHORTEST_S} to {LONGEST_S} seconds"))),
    }
}

#[cfg(test)]
mod tests {
    use wavetank_model::{WorkerId, WorkerStage};

    use super::*;
    use crate::snapshot::{Mean, PoolState, Traffic, WorkerState};

    /// Parameters for rows that cannot do without.
    fn example(entry: &Entry) -> Parameters {
        let text = match entry.name {
            "schedule" => r#"{"targets": [{"at_seconds": 5, "workers": 2}]}"#,
            "sla" => r#"{"ttft_ms": 500, "itl_ms": 30}"#,
            _ => "{}",
        };
        serde_json::from_str(text).unwrap()
    }

    fn engine() -> EngineConfig {
        EngineConfig::default()
    }

    fn setting(engine: &EngineConfig) -> Setting<'_> {
        let limits = Limits { min: 1, max: 8 };
        Setting { pools: vec![PoolSetting { role: WorkerRole::Aggregated, engine, limits }] }
    }

    fn snapshot(ordinal: u64, now: Nanos, waiting: u32) -> Snapshot {
        let mean = |value: f64| Mean { samples: 10, sum: value * 10.0 };
        let worker = WorkerState {
            worker: WorkerId(0),
            stage: WorkerStage::Active,
            waiting,
            running: waiting.min(4),
            blocks_in_use: u64::from(waiting) * 100,
            blocks: 16_384,
            busy_share: 0.5,
        };
        let traffic = Traffic {
            duration: Nanos(10_000_000_000),
            offered_tokens: mean(1000.0),
            reused_tokens: mean(0.0),
            input_tokens: mean(1000.0),
            output_tokens: mean(100.0),
            ttft_ms: mean(100.0),
            itl_ms: mean(10.0),
        };
        let pool = PoolState { role: WorkerRole::Aggregated, queued: 0, workers: vec![worker] };
        Snapshot { ordinal, now, traffic, pools: vec![pool] }
    }

    /// Broken by: a policy that keeps anything outside itself, looks back, or names a pool that is not there.
    #[test]
    fn every_policy_repeats_and_looks_ahead() {
        let engine = engine();
        for entry in ALL {
            let decisions = || {
                let mut policy = (entry.build)(&example(entry), &setting(&engine)).unwrap();
                let mut now = policy.first_tick().expect("the examples look");
                let mut decisions = Vec::new();
                for ordinal in 0..20 {
                    let decision = policy.tick(&snapshot(ordinal, now, ordinal as u32 * 3));
                    let next = decision.next_tick;
                    decisions.push(decision);
                    match next {
                        Some(next) => assert!(next > now, "{}", entry.name),
                        None => break,
                    }
                    now = next.unwrap();
                }
                decisions
            };
            assert_eq!(decisions(), decisions(), "{}", entry.name);
            let targets = decisions().into_iter().flat_map(|decision| decision.targets);
            for Target { pool, workers, reason } in targets {
                assert!(
                    pool == WorkerRole::Aggregated && workers > 0 && !reason.is_empty(),
                    "{}",
                    entry.name
                );
            }
        }
    }

    /// Broken by: a parameter that is taken and not described, or described and not taken.
    #[test]
    fn every_parameter_is_described_and_taken() {
        let engine = engine();
        for entry in ALL {
            let unknown = Parameters::from_iter([("nonsense".to_owned(), Value::from(1))]);
            let message = (entry.build)(&unknown, &setting(&engine)).err().unwrap().to_string();
            let known = message.lines().next().and_then(|line| line.split("expected ").nth(1)).unwrap();
            let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
            let described: Vec<&str> = entry.parameters.iter().map(|parameter| parameter.name).collect();
            assert_eq!(known, described, "{}: {message}", entry.name);
            let named = |parameter: &Parameter| parameter.about.starts_with(entry.name);
            assert!(entry.parameters.iter().all(named), "{}", entry.name);
        }
    }
}
