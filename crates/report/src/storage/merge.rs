//! Runs of many hosts as one: amounts add up, rates add up over each run's own window, percentiles are those
//! of the union.

use std::fmt;

use serde_json::Value;
use wavetank_model::{Class, Nanos, TierRole};

use super::{
    Busy, ClassSummary, Clock, LaneSummary, MoveSummary, ReasonCounts, RequestsSummary, Setting, SizeClass,
    SizeSummary, StorageSummary, TierSummary, TierUse, TimeSplit, TouchesSummary, Traffic, Window, timeline,
};
use crate::Spread;

/// Runs that were set to different things say nothing together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Which run differs from the first, from zero.
    pub part: usize,
    /// Where they differ.
    pub field: String,
    /// What the first has there.
    pub first: String,
    /// What the other has there.
    pub other: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, first, other, .. } = self;
        write!(f, "`{field}` is {first} in the first and {other} in the other")
    }
}

/// A place where two values differ, by its keys, and what each has there.
pub type Difference = (String, Value, Value);

/// The first place where two values differ.
pub fn difference(first: &Value, other: &Value) -> Option<Difference> {
    differences(first, other).into_iter().next()
}

/// Every place where two values differ.
pub fn differences(first: &Value, other: &Value) -> Vec<Difference> {
    let inside = |key: String, first: &Value, other: &Value| {
        let within = move |(rest, first, other): Difference| {
            let path = if rest.is_empty() { key.clone() } else { format!("{key}.{rest}") };
            (path, first, other)
        };
        differences(first, other).into_iter().map(within)
    };
    match (first, other) {
        (Value::Object(a), Value::Object(b)) => {
            let more = b.keys().filter(|key| !a.contains_key(*key));
            let value = |keys: &serde_json::Map<String, Value>, key: &str| {
                keys.get(key).cloned().unwrap_or(Value::Null)
            };
            let keys = a.keys().chain(more);
            keys.flat_map(|key| inside(key.clone(), &value(a, key), &value(b, key))).collect()
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().flat_map(|(at, (a, b))| inside(at.to_string(), a, b)).collect()
        }
        (a, b) if a == b => Vec::new(),
        (a, b) => vec![(String::new(), a.clone(), b.clone())],
    }
}

impl StorageSummary {
    /// All of `parts`, of which there is at least one, as one run. They may differ in their seeds only.
    pub fn merged(parts: Vec<Self>) -> Result<Self, Mismatch> {
        let setting = one_setting(&parts)?;
        let window = union_window(&parts, setting.clock);
        let (timeline, timeline_step) = timeline::aligned(&parts, &window, setting.clock);
        let all: Vec<&Self> = parts.iter().collect();
        let tiers = setting.tiers.iter().map(|&role| tier(&parts, role)).collect::<Result<_, _>>()?;
        Ok(Self {
            window,
            requests: requests(&each(&all, |run| &run.requests)),
            touches: touches(&each(&all, |run| &run.touches)),
            tiers,
            host_memory: union(&all, |run| &run.host_memory),
            timeline,
            timeline_step,
            setting,
            parts,
        })
    }
}

/// What all were set to; the seed is that of the first.
fn one_setting(parts: &[StorageSummary]) -> Result<Setting, Mismatch> {
    let first = &parts.first().expect("at least one run").setting;
    for (part, run) in parts.iter().enumerate() {
        let other = Setting { seed: first.seed, ..run.setting.clone() };
        let json = |setting: &Setting| serde_json::to_value(setting).expect("plain data");
        if let Some((field, first, other)) = difference(&json(first), &json(&other)) {
            return Err(Mismatch { part, field, first: first.to_string(), other: other.to_string() });
        }
    }
    Ok(first.clone())
}

/// From the first beginning to the last end. Times of a virtual clock all begin at zero.
fn union_window(parts: &[StorageSummary], clock: Clock) -> Window {
    let windows: Vec<&Window> = parts.iter().map(|run| &run.window).collect();
    let open = || windows.iter().filter(|window| window.elapsed > Nanos::ZERO);
    let began = open().map(|window| window.began).min().unwrap_or_default();
    let end = |window: &&&Window| match clock {
        Clock::Wall => window.end(),
        Clock::Virtual | Clock::VirtualLogged | Clock::Simulated => {
            Nanos(began.0.saturating_add(window.elapsed.0))
        }
    };
    Window {
        began,
        elapsed: open().map(|window| end(&window)).max().map_or(Nanos::ZERO, |end| end.since(began)),
        in_flight: sum(&windows, |window| window.in_flight),
        queued_at_end: sum(&windows, |window| window.queued_at_end),
    }
}

fn each<'a, T, U>(parts: &[&'a T], of: impl Fn(&'a T) -> &'a U) -> Vec<&'a U> {
    parts.iter().map(|part| of(part)).collect()
}

fn sum<T>(parts: &[&T], of: impl Fn(&T) -> u64) -> u64 {
    parts.iter().fold(0, |sum, part| sum.saturating_add(of(part)))
}

fn time<T>(parts: &[&T], of: impl Fn(&T) -> Nanos) -> Nanos {
    Nanos(sum(parts, |part| of(part).0))
}

fn union<'a, T>(parts: &[&'a T], of: impl Fn(&'a T) -> &'a Spread) -> Spread {
    Spread::merged(parts.iter().map(|part| of(part)))
}

fn requests(parts: &[&RequestsSummary]) -> RequestsSummary {
    let class = |index: usize| class(Class::ALL[index], &each(parts, |run| &run.classes[index]));
    RequestsSummary {
        classes: std::array::from_fn(class),
        context_tokens: sum(parts, |run| run.context_tokens),
        generated_tokens: sum(parts, |run| run.generated_tokens),
        total_storage: time(parts, |run| run.total_storage),
        total_generation: time(parts, |run| run.total_generation),
        end_to_end: union(parts, |run| &run.end_to_end),
        storage: union(parts, |run| &run.storage),
        generation: union(parts, |run| &run.generation),
        waited: union(parts, |run| &run.waited),
        prefill: union(parts, |run| &run.prefill),
        decode: union(parts, |run| &run.decode),
        lists: None,
    }
}

fn class(class: Class, parts: &[&ClassSummary]) -> ClassSummary {
    ClassSummary {
        class,
        arrived: sum(parts, |run| run.arrived),
        turned_away: sum(parts, |run| run.turned_away),
        unfinished: sum(parts, |run| run.unfinished),
        violations: sum(parts, |run| run.violations),
        target: parts[0].target,
        end_to_end: union(parts, |run| &run.end_to_end),
    }
}

fn touches(parts: &[&TouchesSummary]) -> TouchesSummary {
    let reason = |of: fn(&TouchesSummary) -> &ReasonCounts| {
        parts.iter().fold(ReasonCounts::default(), |sum, run| sum.plus(of(run)))
    };
    let spent = |of: fn(&TimeSplit) -> Nanos| time(parts, |run| of(&run.time));
    TouchesSummary {
        prompt: reason(|run| &run.prompt),
        history: reason(|run| &run.history),
        prefill: reason(|run| &run.prefill),
        document: reason(|run| &run.document),
        decode: reason(|run| &run.decode),
        time: TimeSplit {
            storage_read: spent(|time| time.storage_read),
            storage_read_device: spent(|time| time.storage_read_device),
            storage_write: spent(|time| time.storage_write),
            storage_write_device: spent(|time| time.storage_write_device),
            memory: spent(|time| time.memory),
            lane_wait: spent(|time| time.lane_wait),
            elsewhere: spent(|time| time.elsewhere),
        },
    }
}

/// The tiers with one role; every run has it.
fn tier(runs: &[StorageSummary], role: TierRole) -> Result<TierSummary, Mismatch> {
    let of_run = |(part, run): (usize, &'_ StorageSummary)| {
        let missing = || Mismatch {
            part,
            field: "tiers".to_owned(),
            first: format!("with {}", role.name()),
            other: "without".to_owned(),
        };
        run.tiers.iter().position(|tier| tier.role == role).ok_or_else(missing)
    };
    let places: Vec<usize> = runs.iter().enumerate().map(of_run).collect::<Result<_, _>>()?;
    let parts: Vec<&TierSummary> = runs.iter().zip(places).map(|(run, at)| &run.tiers[at]).collect();
    let parts = parts.as_slice();
    Ok(TierSummary {
        role,
        hits: sum(parts, |tier| tier.hits),
        hit_bytes: sum(parts, |tier| tier.hit_bytes),
        reads: lane(&each(parts, |tier| &tier.reads)),
        writes: lane(&each(parts, |tier| &tier.writes)),
        demoted_out: moved(&each(parts, |tier| &tier.demoted_out)),
        demoted_in: moved(&each(parts, |tier| &tier.demoted_in)),
        promoted_out: moved(&each(parts, |tier| &tier.promoted_out)),
        promoted_in: moved(&each(parts, |tier| &tier.promoted_in)),
        evictions: sum(parts, |tier| tier.evictions),
        drops: sum(parts, |tier| tier.drops),
        failures: sum(parts, |tier| tier.failures),
        traffic: traffic(&each(parts, |tier| &tier.traffic)),
        busy: Busy {
            reading: time(parts, |tier| tier.busy.reading),
            writing: time(parts, |tier| tier.busy.writing),
        },
        whole_run: traffic(&each(parts, |tier| &tier.whole_run)),
        at_end: TierUse {
            bytes: sum(parts, |tier| tier.at_end.bytes),
            entries: sum(parts, |tier| tier.at_end.entries),
        },
    })
}

fn lane(parts: &[&LaneSummary]) -> LaneSummary {
    let size = |class: SizeClass| {
        let same = |lane: &&'_ LaneSummary| lane.sizes.iter().position(|size| size.class == class);
        let sizes: Vec<&SizeSummary> =
            parts.iter().filter_map(|lane| Some(&lane.sizes[same(lane)?])).collect();
        (!sizes.is_empty()).then(|| SizeSummary {
            class,
            bytes: sum(&sizes, |size| size.bytes),
            device: union(&sizes, |size| &size.device),
            device_per_mib: union(&sizes, |size| &size.device_per_mib),
        })
    };
    LaneSummary {
        operations: sum(parts, |lane| lane.operations),
        bytes: sum(parts, |lane| lane.bytes),
        total: union(parts, |lane| &lane.total),
        device: union(parts, |lane| &lane.device),
        host: union(parts, |lane| &lane.host),
        wait: union(parts, |lane| &lane.wait),
        service: union(parts, |lane| &lane.service),
        sizes: SizeClass::ALL.into_iter().filter_map(size).collect(),
    }
}

fn moved(parts: &[&MoveSummary]) -> MoveSummary {
    MoveSummary {
        operations: sum(parts, |moves| moves.operations),
        bytes: sum(parts, |moves| moves.bytes),
        total: union(parts, |moves| &moves.total),
    }
}

fn traffic(parts: &[&Traffic]) -> Traffic {
    Traffic {
        reads: sum(parts, |traffic| traffic.reads),
        read_bytes: sum(parts, |traffic| traffic.read_bytes),
        writes: sum(parts, |traffic| traffic.writes),
        written_bytes: sum(parts, |traffic| traffic.written_bytes),
    }
}
