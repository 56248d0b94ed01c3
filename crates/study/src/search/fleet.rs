//! The smallest fleet that meets the bounds: over the number of workers, or over those that prefill and those
//! that decode. Other axes are searched each on their own; a fleet must be good with every seed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Map, Value, json};
use wavetank::in_parallel;
use wavetank_model::{Error, Result};

use super::Found;
use super::answer::{Fate, proof_row};
use super::staircase::{self, Cell, Grid, Walk};
use crate::sweep::Setting;
use crate::sweep::axis::Axis;
use crate::sweep::bank::{Bank, Onlooker};
use crate::sweep::bound::Bound;
use crate::sweep::finished::Finished;
use crate::sweep::metric;
use crate::sweep::point::Point;

const ONE_POOL: &str = "num_workers";
const TWO_POOLS: [&str; 2] = ["num_prefill_workers", "num_decode_workers"];

/// A fleet that changes has no size of its own.
pub(super) const AUTOSCALED: &str = "a search for a fleet goes over numbers of workers that stay: \
     take \"autoscale\" out, or search for the best by gpu_hours";

/// Where the sides of a fleet are among the axes.
pub(super) fn check_axes(axes: &[Axis]) -> Result<(), String> {
    if axes.iter().any(|axis| axis.name.starts_with("autoscale")) {
        return Err(AUTOSCALED.to_owned());
    }
    sides(axes).map(drop).ok_or_else(|| {
        format!("a search for a fleet needs an axis {ONE_POOL}, or both of {}", TWO_POOLS.join(" and "))
    })
}

fn sides(axes: &[Axis]) -> Option<(usize, Option<usize>)> {
    let at = |name: &str| axes.iter().position(|axis| axis.name == name);
    match (at(ONE_POOL), at(TWO_POOLS[0]), at(TWO_POOLS[1])) {
        (Some(workers), None, None) => Some((workers, None)),
        (None, Some(prefill), Some(decode)) => Some((prefill, Some(decode))),
        _ => None,
    }
}

/// Points that differ in their fleet and seed alone.
struct Field<'a> {
    /// Values of the other axes, for words.
    others: Map<String, Value>,
    /// Workers at each place of either side, ascending.
    workers: [Vec<u64>; 2],
    cells: BTreeMap<Cell, Vec<&'a Point>>,
}

/// Why a search does not go on.
enum Halt {
    Stopped,
    Failed(Error),
}

/// What is known of a fleet.
struct Verdict<'a> {
    point: &'a Point,
    finished: Arc<Finished>,
}

/// A field that is being looked at.
struct Probed<'f, 'a> {
    field: &'f Field<'a>,
    bank: &'f Bank<'f>,
    /// Is told of every run.
    onlooker: &'f dyn Onlooker,
    prefer: usize,
    verdicts: BTreeMap<Cell, Verdict<'a>>,
    /// Every run that was asked for.
    runs: Vec<(&'a Point, Arc<Finished>)>,
    /// GPUs of a worker on either side.
    gpus: [u64; 2],
}

impl Grid for Probed<'_, '_> {
    type Halt = Halt;

    fn sides(&self) -> Cell {
        (self.field.workers[0].len(), self.field.workers[1].len())
    }

    fn is_good(&mut self, cell: Cell) -> Result<bool, Halt> {
        // A fleet that is no plan was left out; it cannot be the answer.
        let Some(points) = self.field.cells.get(&cell) else { return Ok(false) };
        for point in points {
            let finished = self.bank.result(&point.values, &point.hash).map_err(Halt::Failed)?;
            let Some(finished) = finished.filter(|_| !self.bank.stop.is_raised()) else {
                return Err(Halt::Stopped);
            };
            self.onlooker.done();
            self.learn(&finished);
            self.runs.push((point, Arc::clone(&finished)));
            let meets = self.bank.planner.spec.bounds.iter().all(|bound| bound.is_met(&finished.metrics));
            let worst = self.verdicts.get(&cell).is_none_or(|known| {
                !meets || finished.metrics[self.prefer] > known.finished.metrics[self.prefer]
            });
            if worst {
                self.verdicts.insert(cell, Verdict { point, finished });
            }
            if !meets {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn cost(&self, cell: Cell) -> u64 {
        self.field.workers[0][cell.0] * self.gpus[0] + self.field.workers[1][cell.1] * self.gpus[1]
    }

    fn rank(&self, cell: Cell) -> f64 {
        self.verdicts.get(&cell).map_or(f64::INFINITY, |verdict| verdict.finished.metrics[self.prefer])
    }
}

impl Probed<'_, '_> {
    fn learn(&mut self, finished: &Finished) {
        let of = |name: &str| finished.metrics[metric::number(name)] as u64;
        let (prefill, decode) = (of("prefill_gpus_per_worker"), of("decode_gpus_per_worker"));
        let has_two = prefill > 0;
        self.gpus = if has_two { [prefill, decode.max(1)] } else { [decode.max(1), 0] };
    }

    /// The answer, what it rests on, and what else was looked at.
    fn json(&self, walk: &Walk) -> Value {
        let row = |cell: &Cell| self.verdicts.get(cell).map(|verdict| self.row(verdict));
        let answer = walk.best.and_then(|cell| row(&cell));
        let mut proof: Vec<Value> = answer.iter().cloned().collect();
        match walk.best {
            Some(best) => {
                let ruled: Vec<Cell> = walk
                    .seen
                    .iter()
                    .filter(|(cell, good)| !**good && self.cost(**cell) < self.cost(best))
                    .map(|(cell, _)| *cell)
                    .collect();
                let below =
                    |cell: &&Cell| ruled.iter().any(|o| o != *cell && staircase::is_below(**cell, *o));
                proof.extend(ruled.iter().filter(|cell| !below(cell)).filter_map(row));
            }
            None => proof.extend(walk.seen.keys().filter_map(row)),
        }
        let violation = walk.violation.and_then(|(good, bad)| Some(json!([row(&good)?, row(&bad)?])));
        json!({
            "fixed": self.field.others,
            "answer": answer,
            "gpus": walk.best.map(|best| self.cost(best)),
            "runs": self.runs.len(),
            "proof": proof,
            "not_monotone": violation,
        })
    }

    fn row(&self, verdict: &Verdict<'_>) -> Value {
        let spec = self.bank.planner.spec;
        let fate = Fate { bounds: &spec.bounds, prefer: self.prefer };
        proof_row(spec, verdict.point, &verdict.finished, &fate)
    }
}

/// Searches every field; the answer is the smallest of theirs.
pub(super) fn run<'a>(
    prefer: usize,
    bank: &Bank<'_>,
    points: &'a [Point],
    setting: &Setting<'_>,
) -> Result<Found<'a>> {
    let fields = fields(bank, points)?;
    setting.onlooker.expect(0, 0);
    let search = |number: usize| {
        let mut probed = Probed {
            field: &fields[number],
            bank,
            onlooker: setting.onlooker,
            prefer,
            verdicts: BTreeMap::new(),
            runs: Vec::new(),
            gpus: [1, 1],
        };
        let (halt, walk) = match staircase::walk(&mut probed) {
            Ok(walk) => (None, walk),
            Err((halt, walk)) => (Some(halt), walk),
        };
        let json = probed.json(&walk);
        (halt, json, probed.runs)
    };
    let mut results: Vec<Option<_>> = fields.iter().map(|_| None).collect();
    in_parallel(fields.len(), setting.threads, setting.stop, search, |number, result| {
        results[number] = Some(result);
    });
    let (mut answers, mut asked) = (Vec::new(), Vec::new());
    for (halt, json, runs) in results.into_iter().flatten() {
        match halt {
            Some(Halt::Failed(error)) => return Err(error),
            Some(Halt::Stopped) => asked.extend(runs),
            None => {
                asked.extend(runs);
                answers.push(json);
            }
        }
    }
    asked.sort_by_key(|(point, _)| point.number);
    let is_whole = !setting.stop.load(Ordering::Relaxed);
    let warnings = warnings(&answers);
    let json = summary(answers, asked.len(), points.len(), is_whole);
    Ok(Found { points: asked, json, warnings })
}

fn summary(answers: Vec<Value>, runs: usize, grid: usize, is_whole: bool) -> Value {
    let size = |answer: &&Value| answer["gpus"].as_u64().unwrap_or(u64::MAX);
    let best = answers.iter().filter(|answer| is_whole && !answer["answer"].is_null()).min_by_key(size);
    let part = |key: &str| best.or(answers.first()).map_or(Value::Null, |answer| answer[key].clone());
    let mut search = json!({
        "goal": "smallest_fleet",
        "answer": best.map_or(Value::Null, |best| best["answer"].clone()),
        "gpus": best.map_or(Value::Null, |best| best["gpus"].clone()),
        "runs": runs,
        "grid": grid,
        "proof": part("proof"),
        "not_monotone": part("not_monotone"),
    });
    if answers.len() > 1 {
        search["answers"] = json!(answers);
    }
    search
}

fn warnings(answers: &[Value]) -> Vec<String> {
    let odd = answers.iter().filter(|answer| !answer["not_monotone"].is_null());
    let odd = odd.map(|answer| {
        let side = |at: usize| answer["not_monotone"][at]["parameters"].to_string();
        format!(
            "more workers did not help everywhere: {} meets the SLA, {} does not; cheaper fleets near the \
             answer were all run, others may meet it too",
            side(0),
            side(1)
        )
    });
    odd.collect()
}

/// Points by what they have in common.
fn fields<'a>(bank: &Bank<'_>, points: &'a [Point]) -> Result<Vec<Field<'a>>> {
    let axes = &bank.planner.spec.axes;
    let Some((first, second)) = sides(axes) else {
        unreachable!("the spec was checked");
    };
    let counts = |axis: usize| -> Result<Vec<u64>> {
        let whole = axes[axis].values.iter().map(|value| value.as_u64().filter(|count| *count > 0));
        let mut counts: Vec<u64> = whole.collect::<Option<_>>().ok_or_else(|| {
            Error::input(format!("axis \"{}\" must be numbers of workers", axes[axis].name))
        })?;
        counts.sort_unstable();
        Ok(counts)
    };
    let workers = [counts(first)?, second.map_or(Ok(vec![0]), counts)?];
    let seed = axes.iter().position(|axis| axis.name == "seed");
    let mut fields: BTreeMap<String, Field<'a>> = BTreeMap::new();
    let mut order = Vec::new();
    for point in points {
        let is_other = |at: &usize| *at != first && Some(*at) != second && Some(*at) != seed;
        let others: Map<String, Value> = (0..axes.len())
            .filter(is_other)
            .map(|at| (axes[at].name.clone(), point.values[at].clone()))
            .collect();
        let key = json!(others).to_string();
        let field = fields.entry(key.clone()).or_insert_with(|| {
            order.push(key);
            Field { others, workers: workers.clone(), cells: BTreeMap::new() }
        });
        let place = |side: usize, axis: Option<usize>| {
            axis.map_or(0, |axis| {
                let count = point.values[axis].as_u64().unwrap_or(0);
                workers[side].iter().position(|known| *known == count).unwrap_or(0)
            })
        };
        field.cells.entry((place(0, Some(first)), place(1, second))).or_default().push(point);
    }
    Ok(order.iter().filter_map(|key| fields.remove(key)).collect())
}

/// The bounds that a reader looks for.
pub(super) fn shown(bounds: &[Bound], prefer: usize) -> Vec<usize> {
    let named =
        bounds.iter().map(|bound| bound.metric).filter(|at| !metric::name(*at).starts_with("counts."));
    metric::distinct([metric::number("gpus")].into_iter().chain(named).chain([prefer]))
}
