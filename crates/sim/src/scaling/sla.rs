//! As few workers as keep the time to the first token and between tokens within targets, by a forecast.
//!
//! What was asked and served in a window gives a rate and a mean request; the engine's timing model says what
//! its prompt and its tokens take on a worker that shares the rate with others (METHODOLOGY.md, "Scaling").
//! More workers come at once; fewer when no look of the window asked for as many.

use std::collections::VecDeque;

use serde::Deserialize;
use wavetank_model::{Nanos, Result, WorkerRole, WorkerStage};

use super::{
    Decision, Entry, Limits, Parameter, Policy, PoolSetting, Setting, Target, configure, span, wrong,
};
use crate::EngineConfig;
use crate::pace::Pace;
use crate::snapshot::{PoolState, Snapshot, Traffic};
use crate::timing::{Chunk, DecodeBatch, Parameters, Pass};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "sla",
    about: "the fewest workers whose predicted time to first token and between tokens is within targets",
    parameters: &[
        Parameter { name: "interval_seconds", about: "sla: between two looks (10)" },
        Parameter { name: "window_seconds", about: "sla: traffic that is predicted from (60)" },
        Parameter {
            name: "ttft_ms",
            about: "sla: target of the time to first token (--sla-ttft-ms, or none)",
        },
        Parameter { name: "itl_ms", about: "sla: target of the time between tokens (--sla-itl-ms, or none)" },
        Parameter {
            name: "headroom",
            about: "sla: the rate is taken to be so many times what was seen (1.2)",
        },
    ],
    build: |parameters, setting| Ok(Box::new(Forecaster::of(parameters, setting)?)),
};

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Config {
    interval_seconds: f64,
    window_seconds: f64,
    ttft_ms: Option<f64>,
    itl_ms: Option<f64>,
    headroom: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { interval_seconds: 10.0, window_seconds: 60.0, ttft_ms: None, itl_ms: None, headroom: 1.2 }
    }
}

impl Config {
    fn check(&self) -> Result<(), String> {
        let targets = [("ttft_ms", self.ttft_ms), ("itl_ms", self.itl_ms)];
        if targets.iter().all(|(_, target)| target.is_none()) {
            return Err("give \"ttft_ms\" or \"itl_ms\", or --sla-ttft-ms or --sla-itl-ms".to_owned());
        }
        for (key, target) in targets {
            if target.is_some_and(|ms| !(ms.is_finite() && ms > 0.0)) {
                return Err(format!("\"{key}\" must be above 0"));
            }
        }
        match (0.1..=100.0).contains(&self.headroom) {
            true => Ok(()),
            false => Err("\"headroom\" must be from 0.1 to 100".to_owned()),
        }
    }
}

struct Forecaster {
    config: Config,
    interval: Nanos,
    window: Nanos,
    traffic: VecDeque<(Nanos, Traffic)>,
    pools: Vec<Watched>,
}

/// A pool, and how many workers the looks of the window asked for.
struct Watched {
    model: Model,
    limits: Limits,
    asked: VecDeque<(Nanos, u32)>,
}

/// What comes, on average.
#[derive(Clone, Copy, Debug)]
struct Demand {
    per_ms: f64,
    input_tokens: f64,
    computed_tokens: f64,
    output_tokens: f64,
    /// Requests that wait now.
    backlog: f64,
}

/// What one request would see.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Forecast {
    ttft_ms: f64,
    itl_ms: f64,
}

/// What workers of a pool take for a request.
struct Model {
    role: WorkerRole,
    engine: EngineConfig,
    pace: Pace,
}

/// Rounds of the search for the batch that a rate leads to.
const ROUNDS: usize = 200;

impl Model {
    fn of(pool: &PoolSetting<'_>) -> Result<Self> {
        // A model of its own: what it is asked is no time of the run.
        let pace = Pace::of(pool.engine, pool.engine.timing.build()?);
        Ok(Self { role: pool.role, engine: pool.engine.clone(), pace })
    }

    /// The prompt of a request, alone on a worker, in parts as long as a pass.
    fn prompt_ms(&self, demand: &Demand) -> f64 {
        let computed = (demand.computed_tokens.ceil() as u32).max(1);
        let mut context = (demand.input_tokens - demand.computed_tokens).max(0.0) as u32;
        let longest = self.engine.max_num_batched_tokens.unwrap_or(computed).max(1);
        let (mut left, mut ms) = (computed, 0.0);
        while left > 0 {
            let tokens = left.min(longest);
            let chunks = &[Chunk::of_prompt(tokens, context)];
            ms += self.pace.pass(Pass { chunks, decode: DecodeBatch::default() }).as_ms();
            context += tokens;
            left -= tokens;
        }
        ms
    }

    /// A decode pass of so many requests.
    fn step_ms(&self, requests: f64, demand: &Demand) -> f64 {
        let requests = (requests.ceil() as u32).max(1);
        let longest = (demand.input_tokens + demand.output_tokens / 2.0).ceil() as u32;
        let kv_tokens = u64::from(requests) * u64::from(longest);
        let capacity_tokens = self.capacity_tokens();
        self.pace.decode(DecodeBatch { requests, kv_tokens, capacity_tokens, longest }).as_ms()
    }

    fn capacity_tokens(&self) -> u64 {
        u64::from(self.engine.num_gpu_blocks) * u64::from(self.engine.block_size)
    }

    /// Requests that fit into a batch.
    fn seats(&self, demand: &Demand) -> f64 {
        let fit = self.capacity_tokens() as f64 / (demand.input_tokens + demand.output_tokens).max(1.0);
        let most = self.engine.max_num_seqs.map_or(f64::INFINITY, f64::from);
        (fit * f64::from(self.engine.data_parallel_ranks.max(1))).floor().min(most).max(1.0)
    }

    /// What requests see with so many workers; `None` where they come faster than they are served.
    fn forecast(&self, workers: u32, demand: &Demand) -> Option<Forecast> {
        let workers = f64::from(workers);
        let per_ms = demand.per_ms / workers;
        let prompt = if self.role == WorkerRole::Decode { 0.0 } else { self.prompt_ms(demand) };
        let prompt_share = per_ms * prompt;
        if prompt_share >= 1.0 {
            return None;
        }
        let queue = prompt_share * prompt / (2.0 * (1.0 - prompt_share));
        if self.role == WorkerRole::Prefill {
            let backlog = demand.backlog * prompt / workers;
            return Some(Forecast { ttft_ms: backlog + queue + prompt, itl_ms: 0.0 });
        }
        let seats = self.seats(demand);
        let step = self.steady_step_ms(per_ms, seats, prompt_share, demand)?;
        let full = prompt + demand.output_tokens * self.step_ms(seats, demand) / seats;
        let backlog = demand.backlog * full / workers;
        Some(Forecast { ttft_ms: backlog + queue + prompt + step, itl_ms: step })
    }

    /// The time between tokens at a steady rate: a batch is as large as requests that come while one decodes.
    fn steady_step_ms(&self, per_ms: f64, seats: f64, prompt_share: f64, demand: &Demand) -> Option<f64> {
        let mut batch = 1.0;
        for _ in 0..ROUNDS {
            let step = self.step_ms(batch, demand) / (1.0 - prompt_share);
            let next = per_ms * demand.output_tokens * step;
            if next <= batch {
                return Some(step);
            }
            if next > seats {
                return None;
            }
            batch = next.ceil();
        }
        None
    }
}

impl Forecaster {
    fn of(parameters: &Parameters, setting: &Setting<'_>) -> Result<Self> {
        let config: Config = configure(ENTRY.name, parameters)?;
        config.check().map_err(|finding| wrong(ENTRY.name, finding))?;
        let watched = |pool: &PoolSetting<'_>| {
            Ok(Watched { model: Model::of(pool)?, limits: pool.limits, asked: VecDeque::new() })
        };
        Ok(Self {
            config,
            interval: span(ENTRY.name, "interval_seconds", config.interval_seconds)?,
            window: span(ENTRY.name, "window_seconds", config.window_seconds)?,
            traffic: VecDeque::new(),
            pools: setting.pools.iter().map(watched).collect::<Result<_>>()?,
        })
    }

    /// The traffic of the window that ends with this look.
    fn see(&mut self, snapshot: &Snapshot) -> Traffic {
        self.traffic.push_back((snapshot.now, snapshot.traffic));
        while self.traffic.front().is_some_and(|(at, _)| *at + self.window <= snapshot.now) {
            self.traffic.pop_front();
        }
        self.traffic.iter().map(|(_, traffic)| *traffic).fold(Traffic::default(), Traffic::and)
    }

    /// What a pool must be ready for; `None` while too little is known.
    fn demand(&self, traffic: &Traffic, pool: &PoolState) -> Option<Demand> {
        let input_tokens = traffic.offered_tokens.value().or(traffic.input_tokens.value())?;
        let output_tokens = match pool.role {
            WorkerRole::Prefill => 0.0,
            WorkerRole::Aggregated | WorkerRole::Decode => traffic.output_tokens.value()?,
        };
        let reused = traffic.reused_tokens.value().unwrap_or(0.0);
        let per_ms = traffic.offered() as f64 / traffic.duration.as_ms().max(1e-6);
        Some(Demand {
            per_ms: per_ms * self.config.headroom,
            input_tokens,
            computed_tokens: (input_tokens - reused).max(1.0),
            output_tokens,
            backlog: f64::from(pool.waiting()),
        })
    }

    /// Whether a forecast is within the targets that a pool is responsible for.
    fn holds(&self, role: WorkerRole, forecast: Option<Forecast>, factor: f64) -> bool {
        let Some(Forecast { ttft_ms, itl_ms }) = forecast else { return false };
        let within = |value: f64, target: Option<f64>| target.is_none_or(|target| value <= target);
        let first = role == WorkerRole::Decode || within(ttft_ms, self.config.ttft_ms);
        let next = role == WorkerRole::Prefill || within(itl_ms * factor, self.config.itl_ms);
        first && next
    }

    /// The fewest workers that hold the targets, or the most there may be.
    fn fewest(&self, number: usize, demand: &Demand, factor: f64) -> u32 {
        let Watched { model, limits, .. } = &self.pools[number];
        let (mut too_few, mut enough) = (limits.min - 1, limits.max);
        while enough - too_few > 1 {
            let workers = too_few + (enough - too_few) / 2;
            match self.holds(model.role, model.forecast(workers, demand), factor) {
                true => enough = workers,
                false => too_few = workers,
            }
        }
        enough
    }

    /// How far the gaps that were seen are from those forecast for the workers there are.
    fn correction(&self, number: usize, demand: &Demand, traffic: &Traffic, pool: &PoolState) -> f64 {
        let active = pool.staged(WorkerStage::Active).count() as u32;
        let as_seen = Demand { per_ms: demand.per_ms / self.config.headroom, ..*demand };
        let expected = self.pools[number].model.forecast(active.max(1), &as_seen);
        match (traffic.itl_ms.value(), expected) {
            (Some(seen), Some(Forecast { itl_ms, .. })) if itl_ms > 0.0 => (seen / itl_ms).clamp(0.5, 2.0),
            _ => 1.0,
        }
    }

    fn target(
        &mut self,
        number: usize,
        traffic: &Traffic,
        (pool, now): (&PoolState, Nanos),
    ) -> Option<Target> {
        let demand = self.demand(traffic, pool)?;
        let factor = self.correction(number, &demand, traffic, pool);
        let fewest = self.fewest(number, &demand, factor);
        let watched = &mut self.pools[number];
        watched.asked.push_back((now, fewest));
        while watched.asked.front().is_some_and(|(at, _)| *at + self.window <= now) {
            watched.asked.pop_front();
        }
        let strength = pool.strength();
        let asked = watched.asked.iter().map(|(_, workers)| *workers).max().unwrap_or(fewest);
        // Before a window is over, nobody knows what it will ask for.
        let begun = now < self.window;
        let workers = if fewest > strength {
            fewest
        } else if begun {
            strength
        } else {
            asked.min(strength)
        };
        if workers == strength {
            return None;
        }
        let forecast = watched.model.forecast(strength, &demand);
        let reason = self.reason(strength, forecast, factor, &demand);
        Some(Target { pool: pool.role, workers, reason })
    }

    /// What is expected of the workers there are.
    fn reason(&self, workers: u32, forecast: Option<Forecast>, factor: f64, demand: &Demand) -> String {
        let rate = demand.per_ms * 1000.0;
        let Some(Forecast { ttft_ms, itl_ms }) = forecast else {
            return format!("{workers} would not keep up with {rate:.2} requests/s");
        };
        let part = |name: &str, value: f64, target: Option<f64>| {
            target.map(|target| format!("{name} {value:.2} ms (target {target} ms)"))
        };
        let parts = [
            part("TTFT", ttft_ms, self.config.ttft_ms).filter(|_| ttft_ms > 0.0),
            part("ITL", itl_ms * factor, self.config.itl_ms).filter(|_| itl_ms > 0.0),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("{workers} would give {} at {rate:.2} requests/s", parts.join(", "))
    }
}

impl Policy for Forecaster {
    fn first_tick(&self) -> Option<Nanos> {
        Some(self.interval)
    }

    fn tick(&mut self, snapshot: &Snapshot) -> Decision {
        let traffic = self.see(snapshot);
        let mut targets = Vec::new();
        for (number, pool) in snapshot.pools.iter().enumerate() {
            targets.extend(self.target(number, &traffic, (pool, snapshot.now)));
        }
        Decision { targets, next_tick: Some(snapshot.now + self.interval) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::timing::TimingConfig;

    fn engine() -> EngineConfig {
        let parameters = json!({ "prefill_ms": 100.0, "decode_ms": 10.0 });
        let parameters = parameters.as_object().expect("it is one").clone();
        let timing = TimingConfig { name: "fixed".to_owned(), parameters };
        EngineConfig { timing, max_num_seqs: Some(4), ..EngineConfig::default() }
    }

    fn model(role: WorkerRole, engine: &EngineConfig) -> Model {
        Model::of(&PoolSetting { role, engine, limits: Limits { min: 1, max: 64 } }).unwrap()
    }

    fn demand(per_second: f64, backlog: f64) -> Demand {
        Demand {
            per_ms: per_second / 1000.0,
            input_tokens: 1000.0,
            computed_tokens: 1000.0,
            output_tokens: 50.0,
            backlog,
        }
    }

    /// By hand: passes of 100 and 10 ms, 4 seats, 50 tokens.
    #[test]
    fn forecasts_are_the_rule_s() {
        let engine = engine();
        let prefill = model(WorkerRole::Prefill, &engine).forecast(2, &demand(10.0, 6.0)).unwrap();
        // 5 requests/s of 100 ms: half of the time; M/D/1 waits 0.5 * 100 / (2 * 0.5); six wait on two.
        assert!((prefill.ttft_ms - (300.0 + 50.0 + 100.0)).abs() < 1e-9, "{prefill:?}");
        assert_eq!(model(WorkerRole::Prefill, &engine).forecast(1, &demand(10.0, 0.0)), None);
        let decode = model(WorkerRole::Decode, &engine);
        assert_eq!(decode.forecast(1, &demand(4.0, 0.0)).unwrap().itl_ms, 10.0);
        // 500 ms in four seats: eight requests/s.
        assert!(decode.forecast(1, &demand(7.9, 0.0)).is_some());
        assert_eq!(decode.forecast(1, &demand(8.1, 0.0)), None);
        // Two requests/s compute prompts for a fifth of the time: steps of 10 ms become 12.5.
        let both = model(WorkerRole::Aggregated, &engine).forecast(1, &demand(2.0, 0.0)).unwrap();
        assert!((both.itl_ms - 12.5).abs() < 1e-9, "{both:?}");
        assert!((both.ttft_ms - (12.5 + 100.0 + 12.5)).abs() < 1e-9, "{both:?}");
    }

    /// Broken by: a search that trusts a forecast which gets worse with more workers.
    #[test]
    fn more_workers_are_never_worse() {
        let engine = engine();
        for role in [WorkerRole::Aggregated, WorkerRole::Prefill, WorkerRole::Decode] {
            let model = model(role, &engine);
            for (rate, backlog) in [(0.5, 0.0), (7.0, 30.0), (40.0, 3.0), (200.0, 500.0)] {
                let mut before: Option<Forecast> = None;
                for workers in 1..64 {
                    let now = model.forecast(workers, &demand(rate, backlog));
                    let worse = |was: Forecast| {
                        now.is_none_or(|now| {
                            now.ttft_ms > was.ttft_ms + 1e-9 || now.itl_ms > was.itl_ms + 1e-9
                        })
                    };
                    assert!(!before.is_some_and(worse), "{role:?} {rate} {workers}: {before:?} {now:?}");
                    before = now;
                }
            }
        }
    }

    #[test]
    fn targets_are_needed_and_sound() {
        for (json, part) in [
            (json!({}), "give \"ttft_ms\""),
            (json!({ "ttft_ms": 0.0 }), "\"ttft_ms\" must be above 0"),
            (json!({ "itl_ms": 5.0, "headroom": 0.0 }), "\"headroom\" must be"),
            (json!({ "itl_ms": 5.0, "interval_seconds": 0.0 }), "\"interval_seconds\" must be"),
        ] {
            let parameters = json.as_object().expect("it is one").clone();
            let engine = engine();
            let pool = PoolSetting {
                role: WorkerRole::Aggregated,
                engine: &engine,
                limits: Limits { min: 1, max: 2 },
            };
            let setting = Setting { pools: vec![pool] };
            let message = Forecaster::of(&parameters, &setting).err().expect("refused").to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
