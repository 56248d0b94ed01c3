//! From flags and the recording's own configuration to what calls are made on.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wavetank_calls::{AdapterPlan, EvictionPlan, Expect, L1Plan, Mode, Plan, QuotaPlan, Scope, Tempo, Ticks};
use wavetank_model::{Error, Nanos, Result};

use super::args::{BackgroundWork, CallReplayArgs, StorageArgs};
use super::config::unlike;
use super::load::{Known, LONGEST};

/// Everything a replay of calls depends on, besides the recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallReplayPlan {
    /// The tiers.
    pub storage: Plan,
    /// The tiers behind memory, as they were typed or recorded.
    pub l2_adapters: Vec<Value>,
    /// Who says when background work is done.
    pub background: BackgroundWork,
    /// Why it is they.
    pub background_because: String,
    /// When that is.
    pub tempo: Tempo,
    /// How calls are taken.
    pub mode: Mode,
    /// Which of them are.
    pub scope: Scope,
}

const GIB: f64 = (1u64 << 30) as f64;
/// What the reference has where nothing is said (spec/storage-trace.md 6).
const EVICTION: [&str; 3] = ["--eviction-policy", "--eviction-trigger-watermark", "--eviction-ratio"];
const ALIGN: u64 = 4096;
/// No machine has more; what is larger is a slip.
const MOST_GIB: f64 = 1e9;
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
    /// Flags win over what the recording says of itself.
    pub(super) fn of(args: &CallReplayArgs, config: &Value, known: &Known) -> Result<Self> {
        let typed = &args.storage;
        let (storage, l2_adapters) = tiers(typed, config, known)?;
        let mode = typed.mode.unwrap_or_default();
        let scope = scope(args, known, mode)?;
        let ours = storage.config(&l2_adapters);
        let asked = Asked { typed, mode, scope: &scope };
        let (background, background_because) = choose(&asked, known, || changed(config, known, &ours))?;
        let tempo = match background {
            BackgroundWork::Recorded => Tempo::Told,
            BackgroundWork::Simulated => {
                Tempo::Clock(ticks(typed, storage.adapters.len(), (known, scope.rounds))?)
            }
        };
        Ok(Self { storage, l2_adapters, background, background_because, tempo, mode, scope })
    }
}

/// Refuses flags that have no effect on `plan`.
pub(super) fn check_effects(typed: &StorageArgs, plan: &CallReplayPlan) -> Result<()> {
    let StorageArgs { store_delay_ms, l2_store_policy, l2_prefetch_policy, .. } = typed;
    let behind = [
        ("--store-delay-ms", store_delay_ms.is_some()),
        ("--l2-store-policy", l2_store_policy.is_some()),
        ("--l2-prefetch-policy", l2_prefetch_policy.is_some()),
    ];
    let evicting = [
        (EVICTION[0], typed.eviction_policy.is_some()),
        (EVICTION[1], typed.eviction_trigger_watermark.is_some()),
        (EVICTION[2], typed.eviction_ratio.is_some()),
    ];
    let ticking = [("--ticks and --tick-*", typed.has_ticks())];
    let storage = &plan.storage;
    let is_limited = storage.l1.capacity_bytes.is_some();
    let evicts_behind =
        storage.adapters.iter().any(|tier| tier.eviction.is_some() && tier.capacity_bytes.is_some());
    let refused = |flags: &[(&str, bool)], what: &str, hint: &str| {
        let flag = flags.iter().find(|(_, typed)| *typed);
        flag.map_or(Ok(()), |(flag, _)| Err(Error::usage(what).at((*flag).to_owned()).hint(hint)))
    };
    if storage.adapters.is_empty() {
        refused(&behind, "there is no tier behind memory", "--l2-adapter gives one")?;
    }
    if !is_limited {
        refused(&evicting, "memory without a limit evicts nothing", "--l1-size-gb gives one")?;
        if !evicts_behind {
            refused(&ticking, "no tier has a limit, so none evicts", "--l1-size-gb gives one")?;
        }
    }
    Ok(())
}

/// Memory, what is behind it, and what happens between them; the adapters also as they were typed.
fn tiers(args: &StorageArgs, config: &Value, known: &Known) -> Result<(Plan, Vec<Value>)> {
    let l1 = l1(args, config)?;
    let texts = adapter_texts(args, config)?;
    let adapters = texts.iter().map(|text| AdapterPlan::typed(text)).collect::<Result<Vec<_>>>()?;
    let behind = adapters.iter().filter_map(|adapter| Some((adapter.eviction.as_ref()?, &adapter.quotas)));
    let lacks = |(eviction, quotas): (&EvictionPlan, &QuotaPlan)| {
        eviction.policy == "isolated_lru" && *quotas == QuotaPlan::default()
    };
    if behind.chain([(&l1.eviction, &l1.quotas)]).any(lacks) {
        return Err(Error::usage("isolated_lru goes by quotas of tenants, and there are none")
            .at("--eviction-policy")
            .hint("recordings of wavetank serve have them; lru keeps one list for all tenants"));
    }
    let recorded = |name: &str| config[name].clone();
    let usual = config["store_delay_ms"].as_f64().or(known.copy_takes.map(Nanos::as_ms));
    let delay = within("--store-delay-ms", args.store_delay_ms.or(usual).unwrap_or(0.0), 0.0, 3.6e6)?;
    let delay = if adapters.is_empty() { 0.0 } else { delay };
    let plan = Plan {
        l1,
        adapters,
        store_delay: Nanos::from_seconds(delay / 1e3),
        store_policy: args
            .l2_store_policy
            .or_else(|| serde_json::from_value(recorded("store_policy")).ok())
            .unwrap_or_default(),
        load_policy: args
            .l2_prefetch_policy
            .or_else(|| serde_json::from_value(recorded("prefetch_policy")).ok())
            .unwrap_or_default(),
    };
    let values = texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
    Ok((plan, values))
}

/// Those typed, else those recorded, as far as the recording has more of them than an address.
fn adapter_texts(args: &StorageArgs, config: &Value) -> Result<Vec<String>> {
    if args.l2_adapter.iter().any(|text| text == "none") {
        return match args.l2_adapter.len() {
            1 => Ok(Vec::new()),
            _ => Err(Error::usage("none is no tier, and others are given").at("--l2-adapter")),
        };
    }
    if !args.l2_adapter.is_empty() || is_of_bench(config) {
        return Ok(args.l2_adapter.clone());
    }
    let recorded = config["l2_adapter_config"]["adapters"].as_array();
    let known = recorded.into_iter().flatten().filter(|value| value.is_object());
    Ok(known.map(Value::to_string).collect())
}

fn scope(args: &CallReplayArgs, known: &Known, mode: Mode) -> Result<Scope> {
    let rounds = args.rounds.unwrap_or(1);
    let usage = |what: &str, flag: &str| Error::usage(what).at(flag);
    let last = known.last.as_seconds() * f64::from(rounds);
    let second = |flag: &str, value: Option<f64>| {
        value.map(|value| within(flag, value, 0.0, 1e9).map(Nanos::from_seconds)).transpose()
    };
    let usual = Scope::default();
    let from = second("--from", args.from_s)?.unwrap_or(usual.from);
    let to = second("--to", args.to_s)?.unwrap_or(usual.to);
    let expect = args.expect.unwrap_or_default();
    if rounds == 0 || last > LONGEST.as_seconds() {
        return Err(usage("must be 1 or more, and all rounds together shorter than a year", "--loop"));
    }
    if from >= to {
        return Err(usage("no call is between --from and --to", "--to").hint("--to is the later one"));
    }
    if from.as_seconds() > last {
        return Err(usage(&format!("is after the last call, at {last:.3} s"), "--from"));
    }
    match (mode, args.expect) {
        (Mode::Closed, Some(_)) => {
            Err(usage("callers that decide again have no recorded outcome to meet", "--expect")
                .hint("--mode open or pinned compares"))
        }
        (Mode::Pinned, Some(Expect::None)) => {
            Err(usage("--mode pinned goes by what is expected", "--expect none"))
        }
        _ => Ok(Scope { expect, from, to, rounds }),
    }
}

/// What decides who says when background work is done.
struct Asked<'a> {
    typed: &'a StorageArgs,
    mode: Mode,
    scope: &'a Scope,
}

/// Recorded work is followed where the rest is as recorded too. `changed` names what is not.
fn choose(
    asked: &Asked<'_>,
    known: &Known,
    changed: impl FnOnce() -> Option<String>,
) -> Result<(BackgroundWork, String)> {
    use BackgroundWork::{Recorded, Simulated};
    let Asked { typed, mode, scope } = asked;
    let hindrance = if known.records == 0 && !known.is_of_bench {
        Some("the recording holds none".to_owned())
    } else if *mode != Mode::Open {
        Some("it is followed in open mode only (--mode)".to_owned())
    } else if scope.rounds > 1 {
        Some("it is recorded for one round (--loop)".to_owned())
    } else {
        None
    };
    let wrong = |what: &str| Err(Error::usage(what.to_owned()).at("--background recorded"));
    let times = typed.has_ticks() || typed.store_delay_ms.is_some();
    match (typed.background, hindrance) {
        (Some(Recorded), Some(why)) => wrong(&why),
        (Some(Recorded), None) if times => wrong(
            "it says itself when loops look and copies end: --ticks, --tick-* and --store-delay-ms do not",
        ),
        (Some(asked), _) => Ok((asked, "asked for".to_owned())),
        (None, Some(why)) => Ok((Simulated, why)),
        (None, None) if typed.has_ticks() => Ok((Simulated, "other times are given (--tick*)".to_owned())),
        (None, None) => Ok(match changed() {
            Some(what) => (Simulated, what),
            None => (Recorded, "the storage is as recorded".to_owned()),
        }),
    }
}

/// What of the storage is not as the recording says.
fn changed(config: &Value, known: &Known, ours: &Value) -> Option<String> {
    let Ok((plan, adapters)) = tiers(&StorageArgs::default(), config, known) else {
        return Some("the recording does not say what it was made on".to_owned());
    };
    let fields: Vec<String> =
        unlike(&plan.config(&adapters), ours).into_iter().map(|found| found.field).collect();
    (!fields.is_empty()).then(|| format!("not as recorded: {}", fields.join(", ")))
}

fn l1(args: &StorageArgs, recorded: &Value) -> Result<L1Plan> {
    let manager = &recorded["l1_manager_config"];
    let number = |pointer: &str| manager.pointer(pointer).and_then(Value::as_f64);
    let policy = args.eviction_policy.clone();
    let policy = policy.or_else(|| manager.pointer("/eviction/eviction_policy")?.as_str().map(str::to_owned));
    let watermark = args.eviction_trigger_watermark.or_else(|| number("/eviction/trigger_watermark"));
    let ratio = args.eviction_ratio.or_else(|| number("/eviction/eviction_ratio"));
    let ttl = |flag: &str, typed: Option<f64>, key: &str, usual: f64| {
        let seconds = typed.or_else(|| number(key)).unwrap_or(usual);
        within(flag, seconds, 0.001, 1e9).map(Nanos::from_seconds)
    };
    Ok(L1Plan {
        quotas: quotas(&manager["quotas"])?,
        capacity_bytes: memory(args, recorded)?,
        align_bytes: align(args.l1_align_bytes, number("/memory_config/align_bytes"))?,
        write_ttl: ttl("--l1-write-ttl-seconds", args.l1_write_ttl_seconds, "/write_ttl_seconds", WRITE_TTL)?,
        read_ttl: ttl("--l1-read-ttl-seconds", args.l1_read_ttl_seconds, "/read_ttl_seconds", READ_TTL)?,
        eviction: EvictionPlan::typed(policy.as_deref().unwrap_or("LRU"), watermark, ratio, EVICTION)?,
    })
}

/// Quotas of tenants, as our servers record them.
fn quotas(recorded: &Value) -> Result<QuotaPlan> {
    if recorded.is_null() {
        return Ok(QuotaPlan::default());
    }
    serde_json::from_value(recorded.clone())
        .map_err(|error| Error::usage(format!("no quotas of tenants: {error}")).at("quotas"))
}

fn align(typed: Option<u64>, recorded: Option<f64>) -> Result<u64> {
    match typed {
        Some(0) => Err(Error::usage("must be 1 or more, not 0").at("--l1-align-bytes")),
        Some(bytes) => Ok(bytes),
        None => Ok(recorded.map_or(ALIGN, |bytes| (bytes as u64).max(1))),
    }
}

/// Whether a benchmark's store was recorded: its tiers make room when it is needed, and what then leaves the
/// last of them is recorded, so it is taken as one tier without limits that objects are taken out of.
pub(super) fn is_of_bench(config: &Value) -> bool {
    config["wavetank"]["command"] == "bench"
}

/// What memory holds; a recording that gives null as its size has no limit.
fn memory(args: &StorageArgs, config: &Value) -> Result<Option<u64>> {
    let size = config.pointer("/l1_manager_config/memory_config/size_in_bytes");
    let size = size.filter(|_| !is_of_bench(config));
    let unlimited = size.map_or(is_of_bench(config), Value::is_null).then_some(f64::INFINITY);
    let typed = args.l1_size_gb.map(|size| size * GIB);
    let bytes = typed.or_else(|| size.and_then(Value::as_f64)).or(unlimited).ok_or_else(|| {
        Error::usage("the recording does not say how much memory there was")
            .at("--l1-size-gb")
            .hint("give it, in GiB; inf is no limit")
    })?;
    let is_size = |size: &f64| (0.0..=MOST_GIB).contains(size) || *size == f64::INFINITY;
    let given = args.l1_size_gb.unwrap_or(bytes / GIB);
    if !is_size(&given) {
        let wrong = format!("must be from 0 to {MOST_GIB}, or inf, not {given}");
        return Err(Error::usage(wrong).at("--l1-size-gb"));
    }
    Ok(bytes.is_finite().then_some(bytes as u64))
}

/// Of memory and of each tier behind: as typed, else as recorded, else a second apart.
fn ticks(args: &StorageArgs, adapters: usize, (known, rounds): (&Known, u32)) -> Result<Vec<Ticks>> {
    if let Some(path) = &args.ticks {
        return schedule(path, adapters);
    }
    let phase = within("--tick-phase-s", args.tick_phase_s.unwrap_or(1.0), 0.0, 1e6)?;
    let work = within("--tick-work-ms", args.tick_work_ms.unwrap_or(0.0), 0.0, 1e6)?;
    let sleeping = Ticks::Sleeping {
        first: known.first + Nanos::from_seconds(phase),
        sleep: TICK,
        work: Nanos::from_seconds(work / 1e3),
    };
    let of = |tier: usize| match known.passes.get(tier).filter(|passes| !passes.is_empty()) {
        Some(passes) if !args.has_ticks() => recorded_ticks(passes, known.last, rounds),
        _ => sleeping.clone(),
    };
    Ok((0..=adapters).map(of).collect())
}

fn recorded_ticks(passes: &[Nanos], round_takes: Nanos, rounds: u32) -> Ticks {
    let begins = |round: u32| Nanos(round_takes.0.saturating_mul(round.into()));
    Ticks::At((0..rounds).flat_map(|round| passes.iter().map(move |at| *at + begins(round))).collect())
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
