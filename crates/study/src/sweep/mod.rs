//! Many replays in one process: every point of a spec, its trace read once, all processors busy.
//!
//! [`Spec::read`] reads a file, [`Sweep::prepare`] makes and checks the plan of every point before anything
//! runs, [`Sweep::run`] runs what is not kept from before. Rows depend on the spec alone: not on threads, the
//! order of runs, or how many shards they came from.

pub(crate) mod axis;
pub(crate) mod bank;
pub(crate) mod bound;
pub(crate) mod cost;
pub(crate) mod document;
pub(crate) mod finished;
mod job;
mod merge;
pub(crate) mod metric;
mod outputs;
mod pareto;
pub(crate) mod point;
mod remote;
mod row;
mod runner;
pub(crate) mod spec;
pub(crate) mod storage_price;
pub(crate) mod store;
mod table;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::{Value, json};
use wavetank::in_parallel;
use wavetank_model::{Error, ErrorKind, Result};

use crate::search;
use bank::Bank;
use cost::Fleet;
use point::{Planner, Point};
use store::Store;

pub use axis::Axis;
pub use bank::Onlooker;
pub use document::Tree;
pub use finished::Finished;
pub use job::Job;
pub use merge::merge;
pub use metric::{Metric, all as metrics};
pub use outputs::{Cells, Column, check as check_output, write as write_output, write_report};
pub use remote::{answer, outcome};
pub use row::Row;
pub use runner::{Local, Runner, Stop};
pub use spec::Spec;
pub use store::{Start, points_beside};

/// More points are likely a mistake.
pub const MOST_POINTS: u64 = 100_000;

/// A part of the points: every `of`-th, from the `number`-th on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

impl Shard {
    /// All points.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// What `--shard` says: `2/3`; all points where it is not given.
    pub fn asked(text: Option<&str>) -> Result<Self> {
        text.map_or(Ok(Self::WHOLE), Self::parse).map_err(|error| error.at("--shard"))
    }

    fn parse(text: &str) -> Result<Self> {
        let parts =
            text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Self { number, of }),
            _ => Err(Error::usage(format!("\"{text}\" is no shard"))
                .hint("--shard 1/3, 2/3 and 3/3 are the whole")),
        }
    }

    fn has(self, point: usize) -> bool {
        point % self.of == self.number - 1
    }
}

/// Points that are known to be sound.
pub struct Sweep<'s> {
    planner: Planner<'s>,
    points: Vec<Point>,
    shard: Shard,
    /// How many points were left out, and of how many.
    warnings: Vec<String>,
}

impl<'s> Sweep<'s> {
    /// Makes the plan of every point, on `threads` threads; the first that is none is an error, or left out
    /// where the spec says so.
    pub fn prepare(spec: &'s Spec, shard: Shard, threads: usize) -> Result<Self> {
        if shard != Shard::WHOLE && spec.search.is_some() {
            return Err(Error::usage("a search is not divided: what it runs depends on what it finds")
                .at("--shard")
                .hint("leave [search] out to run every point"));
        }
        let planner = Planner::of(spec);
        let values = point::enumerate(spec);
        let mut points: Vec<Option<Result<Point>>> = values.iter().map(|_| None).collect();
        let make = |number: usize| planner.point(number, values[number].clone());
        in_parallel(values.len(), threads, &AtomicBool::new(false), make, |number, point| {
            points[number] = Some(point);
        });
        let mut sweep = Self { planner, points: Vec::new(), shard, warnings: Vec::new() };
        let mut skipped: Vec<(usize, Error)> = Vec::new();
        for (number, point) in points.into_iter().flatten().enumerate() {
            match point {
                Ok(point) => sweep.points.push(point),
                Err(error) if spec.skips_invalid && is_no_plan(&error) => skipped.push((number, error)),
                Err(error) => return Err(sweep.invalid(number, &values[number], &error)),
            }
        }
        sweep.note_gaps(&skipped, &values);
        sweep.note_idle_seeds()?;
        match sweep.points.is_empty() {
            true => Err(Error::input("no point is a plan").at(spec.file.clone())),
            false => Ok(sweep),
        }
    }

    fn invalid(&self, number: usize, values: &[Value], error: &Error) -> Error {
        let message = format!("point {number} ({}): {error}", self.planner.describe(values));
        let hint = "\nhint: [sweep] invalid = \"skip\" leaves such points out";
        let hint = if is_no_plan(error) { hint } else { "" };
        Error::input(message + hint).at(self.planner.spec.file.clone())
    }

    fn note_gaps(&mut self, skipped: &[(usize, Error)], values: &[Vec<Value>]) {
        let spec = self.planner.spec;
        if let Some((number, error)) = skipped.first() {
            let first = format!(
                "{} ({})",
                error.to_string().replace('\n', "; "),
                self.planner.describe(&values[*number])
            );
            let (count, all) = (skipped.len(), values.len());
            self.warnings
                .push(format!("{count} of {all} points are no plan and were left out; the first: {first}"));
        }
        if (values.len() as u64) < spec.size() {
            self.warnings.push(format!(
                "{} of {} samples: there are no more different points",
                values.len(),
                spec.size()
            ));
        }
    }

    /// Several seeds of what is not left to chance are the same run several times.
    fn note_idle_seeds(&mut self) -> Result<()> {
        let axes = &self.planner.spec.axes;
        let Some(seed) = axes.iter().find(|axis| axis.name == "seed" && axis.values.len() > 1) else {
            return Ok(());
        };
        for point in &self.points {
            if self.planner.plan(&point.values)?.has_chance() {
                return Ok(());
            }
        }
        let count = seed.values.len();
        let same = "nothing in these plans is left to chance, so rows that differ in it alone are the same";
        self.warnings.push(format!("axis \"seed\" with {count} values has no effect: {same}"));
        Ok(())
    }

    /// The files and folders that points read, each with the hash of what is in it.
    pub fn inputs(&self) -> Vec<(PathBuf, String)> {
        self.planner.contents()
    }

    /// How many points are to be run, or found.
    pub fn len(&self) -> usize {
        self.points.iter().filter(|point| self.shard.has(point.number)).count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Runs what is not in `store`; raising `stop` ends it with what is done by then.
    pub fn run(&self, setting: &Setting<'_>) -> Result<Swept> {
        let started = Instant::now();
        let store = match setting.store {
            Some((path, start)) => Store::open(path, start)?,
            None => Store::in_memory(),
        };
        let mut warnings = self.warnings.clone();
        warnings.extend(store.note.clone());
        let bank = Bank::of(&self.planner, store, setting);
        let spec = self.planner.spec;
        let (asked, search) = match &spec.search {
            None => (self.every(&bank, setting)?, None),
            Some(search) => {
                let found = search::run(search, &bank, &self.points, setting)?;
                warnings.extend(found.warnings);
                (found.points, Some(found.json))
            }
        };
        let mut rows: Vec<Row> = asked.iter().map(|(point, finished)| Row::of(point, finished)).collect();
        judge(spec, &mut rows);
        warnings.extend(unpriced(spec, &rows));
        warnings.extend(self.caveats(&asked)?);
        warnings.extend(valueless(spec, &rows));
        let is_partial = setting.stop.load(Ordering::Relaxed);
        if is_partial {
            warnings.push(format!("interrupted: {} of {} points are done", rows.len(), self.len()));
        }
        Ok(Swept {
            head: Head::of(self),
            rows,
            search,
            warnings,
            is_partial,
            ran: bank.ran(),
            wall_seconds: started.elapsed().as_secs_f64(),
        })
    }

    /// The result of every point of the shard.
    fn every(&self, bank: &Bank<'_>, setting: &Setting<'_>) -> Result<Vec<Asked<'_>>> {
        let mut order: Vec<&Point> =
            self.points.iter().filter(|point| self.shard.has(point.number)).collect();
        // Points of one trace follow each other, and points of one plan are run once.
        order.sort_by_key(|point| point.tape);
        let mut distinct = HashSet::new();
        let jobs: Vec<&Point> = order.iter().copied().filter(|point| distinct.insert(&point.hash)).collect();
        let kept = jobs.iter().filter(|point| bank.kept(&point.hash).is_some()).count();
        setting.onlooker.expect(jobs.len(), kept);
        let (mut results, mut failure) = (HashMap::new(), None);
        let work = |job: usize| match bank.stop.is_raised() {
            true => Ok(None),
            false => bank.result(&jobs[job].values, &jobs[job].hash),
        };
        in_parallel(jobs.len(), setting.threads, setting.stop, work, |job, result| {
            setting.onlooker.done();
            match result {
                Ok(finished) => results.extend(finished.map(|finished| (&jobs[job].hash, finished))),
                Err(error) => {
                    bank.stop.fail();
                    failure.get_or_insert(error);
                }
            }
        });
        if let Some(error) = failure {
            return Err(error.within(self.planner.spec.file.clone()));
        }
        order.sort_by_key(|point| point.number);
        let found = |point: &'_ &Point| results.get(&point.hash).map(Arc::clone);
        Ok(order.into_iter().filter_map(|point| Some((point, found(&point)?))).collect())
    }

    /// What must be known of the prices that were taken.
    fn caveats(&self, asked: &[Asked<'_>]) -> Result<Vec<String>> {
        let Some(cost) = &self.planner.spec.cost else { return Ok(Vec::new()) };
        let (mut gpus, mut gaps) = (BTreeSet::new(), BTreeSet::new());
        for (point, _) in asked {
            let plan = self.planner.plan(&point.values)?;
            gpus.extend(cost.fleet(&plan)?.iter().flat_map(Fleet::gpus));
            gaps.extend(cost.gaps(&plan));
        }
        Ok(cost.caveats(&gpus).into_iter().chain(gaps).collect())
    }
}

/// A point and its result.
type Asked<'a> = (&'a Point, Arc<Finished>);

/// How a sweep is run; nothing of it changes a row.
pub struct Setting<'a> {
    /// On how many threads.
    pub threads: usize,
    /// Raised to end it with what it has.
    pub stop: &'a AtomicBool,
    /// Runs what is not kept.
    pub runner: &'a dyn Runner,
    /// Where finished points are kept.
    pub store: Option<(&'a Path, Start)>,
    /// Watches it.
    pub onlooker: &'a dyn Onlooker,
}

/// What is said of a sweep before its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// The file, as it is.
    plan: Value,
    axes: Vec<String>,
    inputs: Value,
    objectives: pareto::Objectives,
    sla: Value,
    /// Which part, of how many points.
    shard: Value,
}

impl Head {
    fn of(sweep: &Sweep<'_>) -> Self {
        let (spec, Shard { number, of }) = (sweep.planner.spec, sweep.shard);
        Self {
            plan: spec.json.clone(),
            axes: spec.axes.iter().map(|axis| axis.name.clone()).collect(),
            inputs: sweep.planner.inputs(),
            objectives: spec.objectives.clone(),
            sla: bound::json(&spec.bounds),
            shard: json!({ "number": number, "of": of, "points": sweep.points.len() }),
        }
    }
}

/// A finished sweep.
pub struct Swept {
    head: Head,
    /// One for each point that was run or found, in the order of points.
    pub rows: Vec<Row>,
    search: Option<Value>,
    /// What a reader of the rows must know.
    pub warnings: Vec<String>,
    /// Whether it was ended early.
    pub is_partial: bool,
    /// How many points were run, not found.
    pub ran: usize,
    wall_seconds: f64,
}

impl Swept {
    /// The table and the lines around it.
    pub fn table(&self) -> String {
        table::of(self)
    }

    /// The answer of a search, if there is one.
    pub fn search(&self) -> Option<&Value> {
        self.search.as_ref()
    }
}

/// Whether values do not go together; a file that is not there or a value of the wrong kind is a mistake.
fn is_no_plan(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Usage | ErrorKind::Unsupported)
}

/// Points whose cost was asked for and is not known.
fn unpriced(spec: &Spec, rows: &[Row]) -> Option<String> {
    let cost = metric::number(metric::DERIVED[1]);
    let count = rows.iter().filter(|row| spec.cost.is_some() && row.metrics[cost].is_nan()).count();
    (count > 0).then(|| format!("{count} points have no cost: [cost] names no gpu, nor does their timing"))
}

/// Metrics that something depends on and that no row has.
fn valueless(spec: &Spec, rows: &[Row]) -> Vec<String> {
    let mut wanted: Vec<usize> =
        spec.objectives.metrics().chain(spec.bounds.iter().map(|b| b.metric)).collect();
    wanted.dedup();
    wanted.retain(|&metric| !rows.is_empty() && rows.iter().all(|row| row.metrics[metric].is_nan()));
    wanted.iter().map(|&metric| format!("\"{}\" has no value in any row", metric::name(metric))).collect()
}

/// Holds rows against the bounds and against each other.
fn judge(spec: &Spec, rows: &mut [Row]) {
    for row in rows.iter_mut() {
        row.meets_sla = bound::all_met(&spec.bounds, &row.metrics);
    }
    mark_front(&spec.objectives, rows);
}

fn mark_front(objectives: &pareto::Objectives, rows: &mut [Row]) {
    let front = objectives.front(rows.iter().map(|row| row.metrics.as_slice()));
    rows.iter_mut().zip(front).for_each(|(row, on_front)| row.is_on_front = on_front);
}

/// What a table shows: what is wanted, bounded or searched for, or what most look at first.
fn shown_metrics(swept: &Swept) -> Vec<usize> {
    let head = &swept.head;
    let bounded = head.sla.as_object().into_iter().flat_map(|bounds| bounds.keys().map(String::as_str));
    let searched = swept.search.as_ref().and_then(|search| search["metric"].as_str());
    let named = bounded.filter(|name| !name.starts_with("counts.")).chain(searched);
    let chosen = head.objectives.metrics().chain(named.filter_map(|name| metric::find(name).ok()));
    let chosen = metric::distinct(chosen);
    if chosen.is_empty() { SHOWN.map(metric::number).into() } else { chosen }
}

const SHOWN: [&str; 5] =
    ["gpus", "p99_ttft_ms", "p99_itl_ms", "p99_e2e_latency_ms", "output_throughput_tok_s"];
