//! Workers by load: more when requests wait, caches fill or workers are busy, fewer when none of that is so.
//!
//! Each look gives a sample per pool; what is held against the thresholds is the mean over a window, so that
//! a moment decides nothing. After a change the pool is left alone for a while, and its samples begin anew.

use std::collections::VecDeque;

use serde::Deserialize;
use wavetank_model::{Nanos, Result, WorkerStage};

use super::{Decision, Entry, LONGEST_S, Limits, Parameter, Policy, Setting, Target, configure, span, wrong};
use crate::snapshot::{PoolState, Snapshot};
use crate::timing::Parameters;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "load",
    about: "more workers when requests wait or caches are full, fewer when not; over a window, with cooldown",
    parameters: &[
        Parameter { name: "interval_seconds", about: "load: between two looks (10)" },
        Parameter { name: "window_seconds", about: "load: what means are taken over (30)" },
        Parameter { name: "cooldown_seconds", about: "load: a pool that changed is left alone (30)" },
        Parameter { name: "step", about: "load: workers added or removed at once (1)" },
        Parameter { name: "queue_up", about: "load: more where more requests wait per worker (2.0)" },
        Parameter { name: "queue_down", about: "load: fewer only where at most so many wait (0.5)" },
        Parameter { name: "cache_up", about: "load: more above this part of blocks in use (0.8)" },
        Parameter { name: "cache_down", about: "load: fewer only at this part or below (0.4)" },
        Parameter { name: "busy_up", about: "load: more above this part of time in passes (1.0: never)" },
        Parameter {
            name: "busy_down",
            about: "load: fewer only at this part or below (1.0: whatever it is)",
        },
    ],
    build: |parameters, setting| Ok(Box::new(Load::of(parameters, setting)?)),
};

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Config {
    interval_seconds: f64,
    window_seconds: f64,
    cooldown_seconds: f64,
    step: u32,
    queue_up: f64,
    queue_down: f64,
    cache_up: f64,
    cache_down: f64,
    busy_up: f64,
    busy_down: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            interval_seconds: 10.0,
            window_seconds: 30.0,
            cooldown_seconds: 30.0,
            step: 1,
            queue_up: 2.0,
            queue_down: 0.5,
            cache_up: 0.8,
            cache_down: 0.4,
            busy_up: 1.0,
            busy_down: 1.0,
        }
    }
}

impl Config {
    fn check(&self) -> Result<(), String> {
        let pairs = [
            ("queue", self.queue_down, self.queue_up, f64::MAX),
            ("cache", self.cache_down, self.cache_up, 1.0),
            ("busy", self.busy_down, self.busy_up, 1.0),
        ];
        for (name, down, up, most) in pairs {
            if !(0.0 <= down && down <= up && up <= most) {
                let most = if most > 1.0 { String::new() } else { format!(", and that at most {most}") };
                return Err(format!("\"{name}_down\" must be 0 or more, at most \"{name}_up\"{most}"));
            }
        }
        if self.step == 0 {
            return Err("\"step\" must be 1 or more".to_owned());
        }
        if !(0.0..=LONGEST_S).contains(&self.cooldown_seconds) {
            return Err(format!("\"cooldown_seconds\" must be from 0 to {LONGEST_S}"));
        }
        Ok(())
    }
}

struct Load {
    config: Config,
    interval: Nanos,
    window: Nanos,
    cooldown: Nanos,
    pools: Vec<Watched>,
}

/// What is remembered of a pool.
struct Watched {
    limits: Limits,
    samples: VecDeque<(Nanos, Sample)>,
    quiet_until: Nanos,
}

/// A pool at one time, or on average.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    /// Requests that wait, per worker that is active or will be.
    queue: f64,
    cache: f64,
    busy: f64,
}

impl Sample {
    fn of(pool: &PoolState) -> Self {
        let active = || pool.staged(WorkerStage::Active);
        let blocks: u64 = active().map(|worker| worker.blocks).sum();
        let in_use: u64 = active().map(|worker| worker.blocks_in_use).sum();
        let busy: f64 = active().map(|worker| worker.busy_share).sum();
        Self {
            queue: f64::from(pool.waiting()) / f64::from(pool.strength().max(1)),
            cache: in_use as f64 / blocks.max(1) as f64,
            busy: busy / active().count().max(1) as f64,
        }
    }
}

impl Watched {
    /// Takes a sample; the means of the window that ends with it.
    fn sample(&mut self, pool: &PoolState, now: Nanos, window: Nanos) -> Sample {
        self.samples.push_back((now, Sample::of(pool)));
        while self.samples.front().is_some_and(|(at, _)| *at + window <= now) {
            self.samples.pop_front();
        }
        let mean = |part: fn(&Sample) -> f64| {
            self.samples.iter().map(|(_, sample)| part(sample)).sum::<f64>() / self.samples.len() as f64
        };
        Sample { queue: mean(|s| s.queue), cache: mean(|s| s.cache), busy: mean(|s| s.busy) }
    }
}

impl Load {
    fn of(parameters: &Parameters, setting: &Setting<'_>) -> Result<Self> {
        let config: Config = configure(ENTRY.name, parameters)?;
        config.check().map_err(|finding| wrong(ENTRY.name, finding))?;
        let watched = |limits| Watched { limits, samples: VecDeque::new(), quiet_until: Nanos::ZERO };
        Ok(Self {
            config,
            interval: span(ENTRY.name, "interval_seconds", config.interval_seconds)?,
            window: span(ENTRY.name, "window_seconds", config.window_seconds)?,
            cooldown: Nanos::from_seconds(config.cooldown_seconds),
            pools: setting.pools.iter().map(|pool| watched(pool.limits)).collect(),
        })
    }

    /// Why there should be more workers, if so. Workers that start count where requests wait; what else they
    /// will change is not known before they are there.
    fn overload(&self, mean: Sample, pool: &PoolState) -> Option<String> {
        let Config { queue_up, cache_up, busy_up, .. } = self.config;
        let starts = pool.staged(WorkerStage::Starting).next().is_some();
        if mean.queue > queue_up {
            return Some(format!("{:.1} requests wait per worker, above {queue_up}", mean.queue));
        }
        let part = |what: &str, share: f64, above: f64| {
            let text = format!("{what} {:.0} %, above {:.0} %", share * 100.0, above * 100.0);
            (share > above && !starts).then_some(text)
        };
        part("caches in use", mean.cache, cache_up).or_else(|| part("time in passes", mean.busy, busy_up))
    }

    /// Why there may be fewer, if so.
    fn idleness(&self, mean: Sample) -> Option<String> {
        let Config { queue_down, cache_down, busy_down, .. } = self.config;
        let idle = mean.queue <= queue_down && mean.cache <= cache_down && mean.busy <= busy_down;
        let text = || {
            let (cache, busy) = (mean.cache * 100.0, mean.busy * 100.0);
            format!(
                "{:.1} requests wait per worker, caches in use {cache:.0} %, busy {busy:.0} %",
                mean.queue
            )
        };
        idle.then(text)
    }
}

impl Policy for Load {
    fn first_tick(&self) -> Option<Nanos> {
        Some(self.interval)
    }

    fn tick(&mut self, snapshot: &Snapshot) -> Decision {
        let (now, step) = (snapshot.now, self.config.step);
        let mut targets = Vec::new();
        for (number, pool) in snapshot.pools.iter().enumerate() {
            let watched = &mut self.pools[number];
            let Limits { min, max } = watched.limits;
            let mean = watched.sample(pool, now, self.window);
            if now < watched.quiet_until {
                continue;
            }
            let strength = pool.strength();
            let more =
                self.overload(mean, pool).map(|reason| (strength.saturating_add(step).min(max), reason));
            let fewer = || self.idleness(mean).map(|reason| (strength.saturating_sub(step).max(min), reason));
            let Some((workers, reason)) = more.or_else(fewer).filter(|(workers, _)| *workers != strength)
            else {
                continue;
            };
            targets.push(Target { pool: pool.role, workers, reason });
            let watched = &mut self.pools[number];
            watched.quiet_until = now + self.cooldown;
            watched.samples.clear();
        }
        Decision { targets, next_tick: Some(now + self.interval) }
    }
}
