//! `--autoscale` and the JSON of `--autoscale-config`: limits that every policy has, and its own keys.

use serde_json::Value;
use wavetank_model::{Error, Nanos, Result, WorkerRole, find};
use wavetank_sim::EngineConfig;
use wavetank_sim::scaling::{self, Limits, Parameter, ScalingConfig};

use crate::args::ReplayArgs;
use crate::json_arg::{self, JsonArg};
use crate::keys::{at_least_one, not_negative};
use crate::pools::Pools;
use crate::verdict::from_one_to;

/// The keys that every policy has, then those of each. `wavetank list autoscale-args` prints this.
pub(crate) fn parameters() -> impl Iterator<Item = &'static Parameter> {
    COMMON.iter().chain(scaling::ALL.iter().flat_map(|entry| entry.parameters))
}

const COMMON: &[Parameter] = &[
    Parameter { name: "min", about: "all: fewest workers of a pool (1); or {\"prefill\": N, \"decode\": N}" },
    Parameter {
        name: "max",
        about: "all: most workers of a pool (16, or as many as it begins with); or as of min",
    },
    Parameter { name: "max_gpus", about: "all: most GPUs of all workers, draining ones included (no limit)" },
];

/// Most workers of a pool that nobody gave a limit.
const USUAL_MOST: u32 = 16;
/// The longest time a worker may take to start: a day.
const LONGEST_START: Nanos = Nanos(86_400_000_000_000);

/// The policy that the flags name, if they do.
pub(crate) fn of(args: &ReplayArgs, pools: &Pools) -> Result<Option<ScalingConfig>> {
    let mut typed = json_arg::read("--autoscale-config", args.autoscale_config.as_deref())?;
    let Some(name) = &args.autoscale else {
        return match args.autoscale_config {
            None => Ok(None),
            Some(_) => Err(Error::usage("needs --autoscale").at("--autoscale-config")),
        };
    };
    let entry = find("scaling policy", scaling::ALL, name).map_err(|error| error.at("--autoscale"))?;
    let decode = pools.decode.as_ref().map(|pool| (WorkerRole::Decode, pool.num_workers));
    let first = if decode.is_some() { WorkerRole::Prefill } else { WorkerRole::Aggregated };
    let pools: Vec<_> = std::iter::once((first, pools.num_workers)).chain(decode).collect();
    let min = numbers(&mut typed, "min", &pools)?;
    let max = numbers(&mut typed, "max", &pools)?;
    let limits = pools.iter().zip(min.iter().zip(&max)).map(|(&(_, begins), (min, max))| Limits {
        min: min.unwrap_or(1),
        max: max.unwrap_or(USUAL_MOST.max(begins)),
    });
    let limits = limits.collect();
    let max_gpus = match typed.object.remove("max_gpus").filter(|value| !value.is_null()) {
        Some(value) => Some(at_least_one(&value).map_err(|finding| wrong(&typed, "max_gpus", &finding))?),
        None => None,
    };
    // A policy with targets takes those of the replay where it is given none.
    for (key, bound) in [("ttft_ms", args.sla_ttft_ms), ("itl_ms", args.sla_itl_ms)] {
        if let Some(bound) = bound.filter(|_| entry.parameters.iter().any(|own| own.name == key)) {
            typed.object.entry(key).or_insert(Value::from(bound));
        }
    }
    Ok(Some(ScalingConfig { name: name.clone(), limits, max_gpus, parameters: typed.object }))
}

/// A number of workers for each pool: one for all, or one for each by its name.
fn numbers(typed: &mut JsonArg, key: &str, pools: &[(WorkerRole, u32)]) -> Result<Vec<Option<u32>>> {
    let value = typed.object.remove(key).unwrap_or(Value::Null);
    let number = |value: &Value| at_least_one(value).map_err(|finding| wrong(typed, key, &finding));
    let Value::Object(by_pool) = &value else {
        let all = (!value.is_null()).then(|| number(&value)).transpose()?;
        return Ok(vec![all; pools.len()]);
    };
    let is_pool = |name: &str| pools.iter().any(|(role, _)| role.name() == name);
    if let Some(name) = by_pool.keys().find(|name| !is_pool(name)) {
        let known: Vec<&str> = pools.iter().map(|(role, _)| role.name()).collect();
        let finding = format!("there is no pool \"{name}\"; there is {}", known.join(" and "));
        return Err(wrong(typed, key, &finding));
    }
    pools.iter().map(|(role, _)| by_pool.get(role.name()).map(number).transpose()).collect()
}

fn wrong(typed: &JsonArg, key: &str, finding: &str) -> Error {
    Error::usage(format!("\"{key}\": {finding}"))
        .at(typed.place.clone())
        .hint("`wavetank list autoscale-args -v` shows every key")
}

/// Enters `startup_time`, which has an effect only where workers join.
pub(crate) fn startup(
    args: &ReplayArgs,
    engine: &mut EngineConfig,
    typed: &JsonArg,
    notes: &mut Vec<String>,
) {
    let seconds = typed.object.get("startup_time").and_then(|value| not_negative(value).ok());
    match (seconds, &args.autoscale) {
        (Some(seconds), Some(_)) => engine.startup_time = Nanos::from_seconds(seconds),
        (Some(_), None) => notes.push(format!(
            "{}: \"startup_time\" has no effect: no worker is added during the run",
            typed.place
        )),
        (None, _) => {}
    }
}

/// The rules about limits and parameters, whoever wrote them.
pub(crate) fn check(plan: &wavetank_sim::Plan, most_workers: u32) -> Result<()> {
    let Some(config) = &plan.scaling else { return Ok(()) };
    let flag = "--autoscale-config";
    find("scaling policy", scaling::ALL, &config.name).map_err(|error| error.at("--autoscale"))?;
    let decode = plan.decode.as_ref().map(|pool| (&pool.engine, pool.num_workers));
    let pools: Vec<_> = std::iter::once((&plan.engine, plan.num_workers)).chain(decode).collect();
    if config.limits.len() != pools.len() {
        return Err(Error::usage("there must be limits for each pool").at(flag));
    }
    let mut gpus = 0u32;
    for (&(engine, begins), &Limits { min, max }) in pools.iter().zip(&config.limits) {
        from_one_to(flag, max, most_workers)?;
        if !(1..=max).contains(&min) {
            return Err(Error::usage(format!("\"min\" must be from 1 to \"max\", which is {max}")).at(flag));
        }
        if !(min..=max).contains(&begins) {
            return Err(Error::usage(format!("{begins} workers at the start are not from {min} to {max}"))
                .at(flag)
                .hint("change \"min\" or \"max\", or the number of workers"));
        }
        if engine.startup_time > LONGEST_START {
            return Err(Error::usage("\"startup_time\" must be at most a day").at("--extra-engine-args"));
        }
        gpus = gpus.saturating_add(begins.saturating_mul(engine.timing.build()?.gpus()));
    }
    if let Some(most) = config.max_gpus.filter(|&most| most < gpus) {
        return Err(Error::usage(format!("\"max_gpus\" is {most}, the replay begins with {gpus}")).at(flag));
    }
    scaling::policy(plan).map(drop).map_err(|error| error.at(flag))
}
