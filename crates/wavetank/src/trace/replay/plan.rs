//! From flags and the recording's own configuration to what calls are made on.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wavetank_calls::{AdapterPlan, EvictionPlan, L1Plan, Mode, Plan, Tempo, Ticks};
use wavetank_model::{Error, Nanos, Result};

use super::args::CallReplayArgs;

/// Everything a replay of calls depends on, besides the recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallReplayPlan {
    /// The tiers.
    pub storage: Plan,
    /// Who says when background work is done.
    pub tempo: Tempo,
    /// How calls are taken.
    pub mode: Mode,
}

const GIB: f64 = (1u64 << 30) as f64;
/// What the reference has where nothing is said (spec/storage-trace.md 6).
const EVICTION: [&str; 3] = ["--eviction-policy", "--eviction-trigger-watermark", "--eviction-ratio"];
const ALIGN: u64 = 4096;
const WRITE_TTL: f64 = 600.0;
const READ_TTL: f64 = 300.0;
const TICK: Nanos = Nanos(1_000_000_000);

/// Times of passes, in seconds of the recording.
#[derive(Deserialize)]
struct Schedule {
    l1_ticks_s: Vec<f64>,
    #[serde(default)]
    l2_ticks_s: Vec<f64>,
}

impl CallReplayPlan {
    /// Flags win over what the recording says of itself; the first call was made at `first`.
    pub(super) fn of(args: &CallReplayArgs, recorded: &Value, first: Nanos) -> Result<Self> {
        let l1 = l1(args, recorded)?;
        let adapters = args.l2_adapter.iter().map(|text| AdapterPlan::typed(text));
        let adapters = adapters.collect::<Result<Vec<_>>>()?;
        let delay = within("--store-delay-ms", args.store_delay_ms.unwrap_or(0.0), 0.0, 3.6e6)?;
        let tempo = Tempo::Clock(ticks(args, adapters.len(), first)?);
        let storage = Plan {
            l1,
            adapters,
            store_delay: Nanos::from_seconds(delay / 1e3),
            store_policy: args.l2_store_policy.unwrap_or_default(),
            load_policy: args.l2_prefetch_policy.unwrap_or_default(),
        };
        Ok(Self { storage, tempo, mode: args.mode.unwrap_or_default() })
    }
}

fn l1(args: &CallReplayArgs, recorded: &Value) -> Result<L1Plan> {
    let manager = &recorded["l1_manager_config"];
    let number = |pointer: &str| manager.pointer(pointer).and_then(Value::as_f64);
    let typed = args.l1_size_gb.map(|size| size * GIB);
    let bytes = typed.or_else(|| number("/memory_config/size_in_bytes")).ok_or_else(|| {
        Error::usage("the recording does not say how much memory there was")
            .at("--l1-size-gb")
            .hint("give it, in GiB; inf is no limit")
    })?;
    if bytes.is_nan() || bytes < 0.0 {
        return Err(Error::usage(format!("must be 0 or more, not {bytes}")).at("--l1-size-gb"));
    }
    let policy = args.eviction_policy.clone();
    let policy = policy.or_else(|| manager.pointer("/eviction/eviction_policy")?.as_str().map(str::to_owned));
    let watermark = args.eviction_trigger_watermark.or_else(|| number("/eviction/trigger_watermark"));
    let ratio = args.eviction_ratio.or_else(|| number("/eviction/eviction_ratio"));
    let ttl = |flag: &str, typed: Option<f64>, key: &str, usual: f64| {
        let seconds = typed.or_else(|| number(key)).unwrap_or(usual);
        within(flag, seconds, 0.001, 1e9).map(Nanos::from_seconds)
    };
    Ok(L1Plan {
        capacity_bytes: bytes.is_finite().then_some(bytes as u64),
        align_bytes: args
            .l1_align_bytes
            .or_else(|| number("/memory_config/align_bytes").map(|bytes| bytes as u64))
            .unwrap_or(ALIGN)
            .max(1),
        write_ttl: ttl("--l1-write-ttl-seconds", args.l1_write_ttl_seconds, "/write_ttl_seconds", WRITE_TTL)?,
        read_ttl: ttl("--l1-read-ttl-seconds", args.l1_read_ttl_seconds, "/read_ttl_seconds", READ_TTL)?,
        eviction: EvictionPlan::typed(policy.as_deref().unwrap_or("LRU"), watermark, ratio, EVICTION)?,
    })
}

fn ticks(args: &CallReplayArgs, adapters: usize, first: Nanos) -> Result<Vec<Ticks>> {
    if let Some(path) = &args.ticks {
        return schedule(path, adapters);
    }
    let phase = within("--tick-phase-s", args.tick_phase_s.unwrap_or(1.0), 0.0, 1e6)?;
    let work = within("--tick-work-ms", args.tick_work_ms.unwrap_or(0.0), 0.0, 1e6)?;
    let ticks = Ticks::Sleeping {
        first: first + Nanos::from_seconds(phase),
        sleep: TICK,
        work: Nanos::from_seconds(work / 1e3),
    };
    Ok(vec![ticks; adapters + 1])
}

fn schedule(path: &Path, adapters: usize) -> Result<Vec<Ticks>> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
    let schedule: Schedule = serde_json::from_str(&text).map_err(|error| {
        Error::input(format!("not a schedule: {error}"))
            .at(format!("{}:{}", path.display(), error.line()))
            .hint("it has l1_ticks_s and l2_ticks_s, lists of seconds")
    })?;
    let times = |name: &str, seconds: &[f64]| {
        let is_time = |second: &f64| second.is_finite() && *second >= 0.0;
        if !seconds.iter().all(is_time) || !seconds.is_sorted() {
            return Err(
                Error::input(format!("{name} has to be ascending, from 0")).at(path.display().to_string())
            );
        }
        Ok(Ticks::At(seconds.iter().map(|second| Nanos::from_seconds(*second)).collect()))
    };
    let behind = times("l2_ticks_s", &schedule.l2_ticks_s)?;
    let memory = times("l1_ticks_s", &schedule.l1_ticks_s)?;
    Ok([memory].into_iter().chain(std::iter::repeat_n(behind, adapters)).collect())
}

fn within(flag: &str, value: f64, least: f64, most: f64) -> Result<f64> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(Error::usage(format!("must be from {least} to {most}, not {value}")).at(flag))
}
