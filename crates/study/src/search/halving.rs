//! The best of many by successive halving (Jamieson and Talwalkar, 2016): all run the beginning of the trace,
//! the better half runs twice as much, and so on; the last ones run all of it, with more seeds.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::{Value, json};
use wavetank::in_parallel;
use wavetank_model::{Error, Result};

use super::answer::{Fate, parameters, proof_row};
use super::{Contest, Found, Wish};
use crate::sweep::Setting;
use crate::sweep::bank::Bank;
use crate::sweep::finished::Finished;
use crate::sweep::metric;
use crate::sweep::point::{Part, Point};

/// How a point did in a rung.
struct Score<'a> {
    point: &'a Point,
    /// The mean over seeds, with a sign that makes less better.
    cost: f64,
    /// The worst miss of a bound, over seeds.
    miss: f64,
    runs: usize,
}

impl Score<'_> {
    /// Who meets the bounds comes first, by the metric; the others by how far they are off.
    fn order(&self, other: &Self) -> Ordering {
        let off = |score: &Self| score.miss > 0.0 || score.cost.is_nan();
        let keys = match (off(self), off(other)) {
            (true, true) => self.miss.total_cmp(&other.miss),
            (one, two) => one.cmp(&two).then(self.cost.total_cmp(&other.cost)),
        };
        keys.then(self.point.number.cmp(&other.point.number))
    }

    fn meets(&self) -> bool {
        self.miss == 0.0 && !self.cost.is_nan()
    }
}

/// One rung: how much is run of each.
#[derive(Clone, Copy)]
struct Rung {
    part: Part,
    seeds: u64,
}

fn rungs(contest: Contest) -> Vec<Rung> {
    let rung = |number: u32| {
        let of = 1u64 << (contest.rungs - 1 - number);
        let part = if of == 1 { Part::Whole } else { Part::First { part: 1, of } };
        Rung { part, seeds: contest.seeds.div_ceil(of) }
    };
    (0..contest.rungs).map(rung).collect()
}

/// How many of `count` go on.
fn kept(count: usize) -> usize {
    count.div_ceil(2)
}

/// Runs the rungs.
pub(super) fn run<'a>(
    contest: Contest,
    bank: &Bank<'_>,
    points: &'a [Point],
    setting: &Setting<'_>,
) -> Result<Found<'a>> {
    let rungs = rungs(contest);
    let mut left: Vec<&Point> = points.iter().collect();
    let sizes = rungs.iter().scan(left.len(), |count, _| Some(std::mem::replace(count, kept(*count))));
    setting.onlooker.expect(sizes.sum(), 0);
    let (mut shown, mut runs, mut work) = (Vec::new(), 0, 0.0);
    let mut scores: Vec<Score<'a>> = Vec::new();
    for (number, rung) in rungs.iter().enumerate() {
        scores = scored(contest, *rung, bank, &left, setting)?;
        if setting.stop.load(Relaxed) {
            break;
        }
        scores.sort_by(Score::order);
        let ran: usize = scores.iter().map(|score| score.runs).sum();
        (runs, work) = (runs + ran, work + ran as f64 * share(rung.part));
        let is_last = number + 1 == rungs.len();
        let goes_on = if is_last { 1 } else { kept(scores.len()) };
        shown.push(rung_json(contest, *rung, &scores, goes_on));
        left = scores.iter().take(goes_on).map(|score| score.point).collect();
        if !is_last {
            left.sort_by_key(|point| (point.tape, point.number));
        }
    }
    let is_whole = shown.len() == rungs.len();
    let mut finalists: Vec<(&Point, Arc<Finished>)> = Vec::new();
    for score in &scores {
        finalists.extend(bank.found(score.point)?.map(|finished| (score.point, finished)));
    }
    let best = scores.first().filter(|best| is_whole && best.meets());
    let json = json!({
        "goal": "best",
        "metric": metric::name(contest.metric),
        "answer": best.map(|best| answer(contest, bank, best)),
        "runs": runs,
        "grid": points.len() as u64 * contest.seeds,
        "whole_runs": work,
        "rungs": shown,
        "proof": proof(contest, bank, &finalists),
    });
    finalists.sort_by_key(|(point, _)| point.number);
    Ok(Found { points: finalists, json, warnings: Vec::new() })
}

fn share(part: Part) -> f64 {
    match part {
        Part::Whole => 1.0,
        Part::First { part, of } => part as f64 / of as f64,
    }
}

fn scored<'a>(
    contest: Contest,
    rung: Rung,
    bank: &Bank<'_>,
    points: &[&'a Point],
    setting: &Setting<'_>,
) -> Result<Vec<Score<'a>>> {
    let mut scores: Vec<Score<'a>> = Vec::with_capacity(points.len());
    let mut failure = None;
    let work = |number: usize| score(contest, rung, bank, points[number]);
    in_parallel(points.len(), setting.threads, setting.stop, work, |_, result| {
        setting.onlooker.done();
        match result {
            Ok(score) => scores.extend(score),
            Err(error) => {
                failure.get_or_insert(error);
            }
        }
    });
    failure.map_or(Ok(scores), Err)
}

/// How one point does; nothing when it was stopped.
fn score<'a>(contest: Contest, rung: Rung, bank: &Bank<'_>, point: &'a Point) -> Result<Option<Score<'a>>> {
    let planner = bank.planner;
    let plan = planner.plan(&point.values)?;
    // Where nothing is left to chance another seed says nothing new.
    let seeds = if plan.has_chance() { rung.seeds } else { 1 };
    let (mut sum, mut miss) = (0.0, 0.0f64);
    for offset in 0..seeds {
        let plan = plan.with_seed(plan.simulation.seed.wrapping_add(offset));
        let result = bank.part(&plan, rung.part).map_err(|error| {
            Error::new(error.kind(), format!("{}: {error}", planner.describe(&point.values)))
        })?;
        let Some(finished) = result else { return Ok(None) };
        sum += finished.metrics[contest.metric];
        let misses = planner.spec.bounds.iter().map(|bound| bound.miss(&finished.metrics));
        miss = misses.fold(miss, f64::max);
    }
    let mean = sum / seeds as f64;
    let cost = if contest.wish == Wish::Less { mean } else { -mean };
    Ok(Some(Score { point, cost, miss, runs: seeds as usize }))
}

/// The metric of a score, as it is.
fn value(contest: Contest, score: &Score<'_>) -> f64 {
    if contest.wish == Wish::Less { score.cost } else { -score.cost }
}

fn rung_json(contest: Contest, rung: Rung, scores: &[Score<'_>], kept: usize) -> Value {
    let part = match rung.part {
        Part::Whole => "all".to_owned(),
        Part::First { part, of } => format!("{part}/{of}"),
    };
    json!({
        "part": part,
        "seeds": rung.seeds,
        "tried": scores.len(),
        "meet": scores.iter().filter(|score| score.meets()).count(),
        "kept": kept,
        "best": scores.first().map(|best| value(contest, best)),
        "best_point": scores.first().map(|best| best.point.number),
    })
}

fn answer(contest: Contest, bank: &Bank<'_>, best: &Score<'_>) -> Value {
    json!({
        "point": best.point.number,
        "parameters": parameters(bank.planner.spec, best.point),
        "value": value(contest, best),
        "seeds": best.runs,
    })
}

/// The last ones, the best first.
fn proof(contest: Contest, bank: &Bank<'_>, finalists: &[(&Point, Arc<Finished>)]) -> Value {
    let spec = bank.planner.spec;
    let fate = Fate { bounds: &spec.bounds, prefer: contest.metric };
    finalists.iter().map(|(point, finished)| proof_row(spec, point, finished, &fate)).collect()
}
