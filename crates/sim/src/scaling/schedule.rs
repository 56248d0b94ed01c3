//! Numbers of workers at given times: a plan that is made before, and the hand of a test.

use serde::Deserialize;
use wavetank_model::{Nanos, Result, WorkerRole};

use super::{Decision, Entry, LONGEST_S, Parameter, Policy, Setting, Target, configure, wrong};
use crate::snapshot::Snapshot;
use crate::timing::Parameters;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "schedule",
    about: "numbers of workers at given times",
    parameters: &[Parameter {
        name: "targets",
        about: "schedule: [{\"at_seconds\": S, \"workers\": N}, ...] in order of time; of prefill and decode \
                workers \"prefill_workers\" and \"decode_workers\" (none: nothing ever changes)",
    }],
    build: |parameters, setting| Ok(Box::new(Schedule::of(parameters, setting)?)),
};

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Config {
    targets: Vec<Point>,
}

/// What should be from some time on.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Point {
    at_seconds: f64,
    workers: Option<u32>,
    prefill_workers: Option<u32>,
    decode_workers: Option<u32>,
}

impl Point {
    fn wanted(&self) -> impl Iterator<Item = (&'static str, WorkerRole, u32)> {
        let all = [
            ("workers", WorkerRole::Aggregated, self.workers),
            ("prefill_workers", WorkerRole::Prefill, self.prefill_workers),
            ("decode_workers", WorkerRole::Decode, self.decode_workers),
        ];
        all.into_iter().filter_map(|(key, role, workers)| Some((key, role, workers?)))
    }

    fn at(&self) -> Nanos {
        Nanos::from_seconds(self.at_seconds)
    }
}

struct Schedule {
    points: Vec<Point>,
    /// How many are past.
    done: usize,
}

impl Schedule {
    fn of(parameters: &Parameters, setting: &Setting<'_>) -> Result<Self> {
        let Config { targets: points } = configure(ENTRY.name, parameters)?;
        for (number, point) in points.iter().enumerate() {
            check(point, setting)
                .map_err(|finding| wrong(ENTRY.name, format!("targets[{number}]: {finding}")))?;
        }
        if !points.is_sorted_by(|one, next| one.at() < next.at()) {
            return Err(wrong(ENTRY.name, "\"targets\" must be in order of their times, each once"));
        }
        Ok(Self { points, done: 0 })
    }
}

fn check(point: &Point, setting: &Setting<'_>) -> Result<(), String> {
    if !(0.0..=LONGEST_S).contains(&point.at_seconds) {
        return Err(format!("\"at_seconds\" must be from 0 to {LONGEST_S}"));
    }
    if point.wanted().next().is_none() {
        return Err("says of no pool how many workers it should have".to_owned());
    }
    for (key, role, workers) in point.wanted() {
        let Some(pool) = setting.pools.iter().find(|pool| pool.role == role) else {
            return Err(format!("\"{key}\": there is no such pool in this replay"));
        };
        let (min, max) = (pool.limits.min, pool.limits.max);
        if !(min..=max).contains(&workers) {
            return Err(format!("\"{key}\" is {workers}, the limits are {min} to {max}"));
        }
    }
    Ok(())
}

impl Policy for Schedule {
    fn first_tick(&self) -> Option<Nanos> {
        self.points.first().map(Point::at)
    }

    fn tick(&mut self, snapshot: &Snapshot) -> Decision {
        let point = self.points[self.done];
        self.done += 1;
        let reason = || format!("scheduled at {} s", point.at_seconds);
        let target = |(_, pool, workers)| Target { pool, workers, reason: reason() };
        let next = self.points.get(self.done).map(Point::at);
        debug_assert!(next.is_none_or(|next| next > snapshot.now), "points are in order");
        Decision { targets: point.wanted().map(target).collect(), next_tick: next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EngineConfig;
    use crate::scaling::{Limits, PoolSetting};

    fn refused(json: &str) -> String {
        let (engine, limits) = (EngineConfig::default(), Limits { min: 1, max: 4 });
        let role = WorkerRole::Aggregated;
        let setting = Setting { pools: vec![PoolSetting { role, engine: &engine, limits }] };
        Schedule::of(&serde_json::from_str(json).unwrap(), &setting).err().expect(json).to_string()
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (json, part) in [
            (r#"{"targets":[{"at_seconds":1}]}"#, "targets[0]: says of no pool"),
            (r#"{"targets":[{"at_seconds":-1,"workers":2}]}"#, "\"at_seconds\" must be from 0"),
            (r#"{"targets":[{"at_seconds":1,"workers":9}]}"#, "\"workers\" is 9, the limits are 1 to 4"),
            (r#"{"targets":[{"at_seconds":1,"decode_workers":2}]}"#, "there is no such pool"),
            (
                r#"{"targets":[{"at_seconds":2,"workers":2},{"at_seconds":2,"workers":3}]}"#,
                "in order of their times",
            ),
            (r#"{"targets":[{"at":2,"workers":2}]}"#, "unknown field `at`"),
        ] {
            let message = refused(json);
            assert!(message.contains(part), "{json}: {message}");
        }
    }
}
