//! The same calls on several storages, side by side.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use wavetank_calls::{PlayOptions, PlayReport, Recording, Tally};
use wavetank_model::Result;

use super::bytes::make;
use super::load::Loaded;
use super::outputs::Played;
use super::{CallReplayArgs, CallReplayPlan, CallVariant};

/// What came of the calls on other storage.
#[derive(Clone, Debug, Serialize)]
pub struct CallAgainst {
    /// What was typed.
    pub flags: String,
    /// What that means.
    pub plan: CallReplayPlan,
    /// What became of the calls; nothing if they were not made, because it was ended before.
    pub tally: Option<Tally>,
    /// What moving their bytes took; nothing in virtual time.
    pub measured: Option<PlayReport>,
}

impl CallAgainst {
    /// Whether all calls were made.
    pub fn is_whole(&self) -> bool {
        self.whole().is_some()
    }

    /// What became of all calls.
    fn whole(&self) -> Option<&Tally> {
        self.tally.as_ref().filter(|tally| !tally.interrupted)
    }

    fn report(&self) -> Option<&PlayReport> {
        self.measured.as_ref().filter(|_| self.is_whole())
    }

    /// Why it stands beside nothing.
    fn remark(&self) -> &'static str {
        match &self.tally {
            None => " (not run, as it was ended early)",
            Some(tally) if tally.interrupted => " (ended early, not compared)",
            Some(_) => "",
        }
    }
}

/// Makes the calls on every other storage: side by side, or where bytes move one after the other.
pub(super) fn all(
    args: &CallReplayArgs,
    loaded: &Loaded,
    how: (Option<&PlayOptions>, &AtomicBool),
) -> Result<Vec<CallAgainst>> {
    let plan = |variant: &CallVariant| {
        let storage = variant.storage.on_top_of(&args.storage);
        let args = CallReplayArgs { storage, against: Vec::new(), ..args.clone() };
        CallReplayPlan::of(&args, &loaded.config, &loaded.known)
            .map_err(|error| error.at(format!("--against \"{}\"", variant.flags)))
    };
    let plans = args.against.iter().map(plan).collect::<Result<Vec<_>>>()?;
    let recording = loaded.recording();
    let played = match how {
        (Some(_), _) => plans.iter().map(|plan| one(plan, &recording, how)).collect(),
        (None, _) => side_by_side(&plans, &recording, how.1),
    };
    let against = args.against.iter().zip(plans).zip(played?);
    let row = |((variant, plan), played): ((&CallVariant, _), Option<Played>)| {
        let (tally, measured) = played.map_or((None, None), |(tally, measured)| (Some(tally), measured));
        CallAgainst { flags: variant.flags.clone(), plan, tally, measured }
    };
    Ok(against.map(row).collect())
}

/// Makes the calls, unless it was ended before.
fn one(
    plan: &CallReplayPlan,
    recording: &Recording<'_>,
    how: (Option<&PlayOptions>, &AtomicBool),
) -> Result<Option<Played>> {
    if how.1.load(Ordering::Relaxed) {
        return Ok(None);
    }
    make(recording, &plan.manner(), how, None).map(Some)
}

fn side_by_side(
    plans: &[CallReplayPlan],
    recording: &Recording<'_>,
    stop: &AtomicBool,
) -> Result<Vec<Option<Played>>> {
    std::thread::scope(|scope| {
        let replay = |plan: &CallReplayPlan| one(plan, recording, (None, stop));
        let threads: Vec<_> = plans.iter().map(|plan| scope.spawn(move || replay(plan))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a replay ends")).collect()
    })
}

/// Columns of a table are as wide as this, and wider where numbers are.
const LEAST_WIDTH: usize = 24;

/// One number of a replay; absent where it has none.
struct Row {
    name: String,
    values: Vec<Option<f64>>,
    is_rate: bool,
}

/// A table with a column for each storage; beside the others what they differ by from the first.
pub(super) struct Table<'a> {
    pub(super) first: (&'a Tally, Option<&'a PlayReport>),
    pub(super) others: &'a [CallAgainst],
}

impl Table<'_> {
    fn rows(&self) -> Vec<Row> {
        let others = self.others.iter().map(CallAgainst::whole);
        let tallies: Vec<Option<&Tally>> = [Some(self.first.0)].into_iter().chain(others).collect();
        let row = |name: &str, value: &dyn Fn(&Tally) -> Option<f64>| {
            let values = tallies.iter().map(|tally| tally.and_then(value)).collect();
            Row { name: name.to_owned(), values, is_rate: false }
        };
        let count = |name: &str, value: fn(&Tally) -> u64| row(name, &|tally| Some(value(tally) as f64));
        let mut rows = vec![count("hits in memory", |tally| tally.hits_l1)];
        let tiers = tallies.iter().flatten().map(|tally| tally.used_l2.len()).max().unwrap_or(0);
        let behind = |tally: &Tally, tier: usize| tally.background.adapters.get(tier).copied();
        for tier in 0..tiers {
            let loaded = |tally: &Tally| Some(behind(tally, tier)?.loaded as f64);
            rows.push(row(&format!("hits behind, tier {}", tier + 1), &loaded));
        }
        rows.push(Row { is_rate: true, ..row("hit rate", &|tally| Some(hit_rate(tally))) });
        rows.push(count("misses", |tally| tally.misses));
        rows.push(count("misses for want of memory", |tally| tally.misses_no_memory));
        rows.push(count("evicted from memory", |tally| tally.background.l1.evicted));
        for tier in 0..tiers {
            let evicted = |tally: &Tally| Some(behind(tally, tier)?.evictions.evicted as f64);
            rows.push(row(&format!("evicted behind, tier {}", tier + 1), &evicted));
        }
        rows.extend([
            count("stored", |tally| tally.stored),
            count("refused, there already", |tally| tally.refused_resident + tally.refused_staged),
            count("refused for want of memory", |tally| tally.refused_no_memory),
            count("reads that failed", |tally| tally.read_failed),
            count("releases that failed", |tally| tally.release_failed),
            count("bytes in memory at the end", |tally| tally.used_l1),
        ]);
        for tier in 0..tiers {
            let used = |tally: &Tally| tally.used_l2.get(tier).map(|bytes| *bytes as f64);
            rows.push(row(&format!("bytes behind at the end, tier {}", tier + 1), &used));
        }
        rows.extend(self.measured(tiers));
        rows
    }

    /// What moving bytes took, where they moved.
    fn measured(&self, tiers: usize) -> Vec<Row> {
        let others = self.others.iter().map(CallAgainst::report);
        let reports: Vec<Option<&PlayReport>> = [self.first.1].into_iter().chain(others).collect();
        if self.first.1.is_none() {
            return Vec::new();
        }
        let row = |name: &str, value: &dyn Fn(&PlayReport) -> Option<u64>| {
            let ms = |nanos: u64| (nanos as f64 / 1e3).round() / 1e3;
            let values = reports.iter().map(|report| report.and_then(value).map(ms)).collect();
            Row { name: name.to_owned(), values, is_rate: false }
        };
        let prefetch = |report: &PlayReport| report.calls.first().map(|calls| calls.latency);
        let mut rows = vec![
            row("ms in all", &|report| Some(report.wall_ns)),
            row("ms of a prefetch, P50", &|report| Some(prefetch(report)?.p50_ns)),
            row("ms of a prefetch, P99", &|report| Some(prefetch(report)?.p99_ns)),
        ];
        for tier in 0..tiers {
            let of = |report: &PlayReport| report.adapters.get(tier).cloned();
            let number = tier + 1;
            rows.push(row(&format!("ms of a load, tier {number}, P50"), &|report| {
                Some(of(report)?.loaded.latency.p50_ns)
            }));
            rows.push(row(&format!("ms of a load, tier {number}, P99"), &|report| {
                Some(of(report)?.loaded.latency.p99_ns)
            }));
            rows.push(row(&format!("ms of a store, tier {number}, P99"), &|report| {
                Some(of(report)?.stored.latency.p99_ns)
            }));
        }
        rows
    }
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nAgainst other storage, with what they differ by from 0:")?;
        for (number, other) in (1..).zip(self.others) {
            writeln!(f, "  {number}: {}{}", other.flags, other.remark())?;
        }
        if !self.others.iter().any(CallAgainst::is_whole) {
            return Ok(());
        }
        let rows = self.rows();
        let names = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
        let cells = |row: &Row| row.values.iter().map(|value| row.cell(*value)).collect::<Vec<_>>();
        let longest = rows.iter().flat_map(cells).map(|cell| cell.len()).max().unwrap_or(0);
        let width = LEAST_WIDTH.max(longest + 2);
        let line =
            |cells: Vec<String>| cells.iter().map(|cell| format!("{cell:>width$}")).collect::<String>();
        let numbers = (0..=self.others.len()).map(|number| number.to_string());
        writeln!(f, "{:names$}{}", "", line(numbers.collect()))?;
        rows.iter().try_for_each(|row| writeln!(f, "{:names$}{}", row.name, line(cells(row))))
    }
}

impl Row {
    fn cell(&self, value: Option<f64>) -> String {
        let Some(value) = value else { return "-".to_owned() };
        let plain = if self.is_rate { format!("{value:.4}") } else { format!("{value}") };
        let first = self.values[0].filter(|first| *first != value);
        let difference = first.map(|first| value - first);
        let beside = difference.map(|by| {
            let exact = by.fract() == 0.0;
            if self.is_rate {
                format!(" ({by:+.4})")
            } else if exact {
                format!(" ({by:+})")
            } else {
                format!(" ({by:+.3})")
            }
        });
        plain + &beside.unwrap_or_default()
    }
}

/// Of the keys that prefetches asked for.
pub(super) fn hit_rate(tally: &Tally) -> f64 {
    let hits = (tally.hits_l1 + tally.hits_l2) as f64;
    if tally.asked == 0 { 0.0 } else { hits / tally.asked as f64 }
}
