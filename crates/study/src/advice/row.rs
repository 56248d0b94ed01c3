//! One thing that was tried, and where it stands among the others.

use std::cmp::Ordering;

use wavetank::Plan;
use wavetank_report::render::table::number;

use super::effect::{Change, Goal, Measured, Verdict};
use super::resources::{Perturbation, Seen, Side};

/// A change and what came of it.
pub(super) struct Row {
    pub(super) perturbation: Perturbation,
    pub(super) verdict: Verdict,
    /// The same in words, with the reason where it is known; empty where the numbers say all.
    pub(super) why: String,
    /// By how many percent the goal got better.
    pub(super) gain: f64,
    pub(super) run: Measured,
    pub(super) money: Option<Money>,
}

/// What a change costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Money {
    pub(super) usd_per_hour: Change,
    pub(super) usd_per_million: Change,
    /// Dollars an hour for each percent that the goal got better, or saved for each that it got worse; not a
    /// number where one has nothing to do with the other.
    pub(super) usd_per_point: f64,
}

/// Dollars that differ by less are the same.
const ROUNDING: f64 = 1e-9;

impl Money {
    /// Nothing where dollars are not known, or what was changed has no price.
    fn of(base: &Measured, run: &Measured, gain: f64) -> Option<Self> {
        let usd_per_hour = Change { before: base.usd_per_hour(), after: run.usd_per_hour() };
        let usd_per_million = Change { before: base.usd_per_million(), after: run.usd_per_million() };
        let is_priced = usd_per_hour.relative().abs() > ROUNDING;
        let per_point = usd_per_hour.absolute() / gain;
        let usd_per_point = if per_point > 0.0 && per_point.is_finite() { per_point } else { f64::NAN };
        is_priced.then_some(Self { usd_per_hour, usd_per_million, usd_per_point })
    }
}

impl Row {
    /// Of a `run` held against the `base`, by a goal that seeds move by `spread`.
    pub(super) fn of(
        plan: &Plan,
        perturbation: &Perturbation,
        (base, run): (&Measured, Measured),
        (goal, spread): (&'static Goal, f64),
    ) -> Self {
        let change = Change { before: base.of(goal.name), after: run.of(goal.name) };
        let rejected = run.of("counts.rejected") - base.of("counts.rejected");
        let verdict = Verdict::of(change, goal.wish, rejected, spread);
        let gain = change.gain(goal.wish);
        let is_better = matches!(verdict, Verdict::Helps | Verdict::Hurts);
        let seen = Seen { perturbation, plan, base, tried: &run };
        Self {
            why: why(&seen, verdict, goal, spread),
            money: Money::of(base, &run, if is_better { gain } else { f64::NAN }),
            perturbation: perturbation.clone(),
            verdict,
            gain,
            run,
        }
    }

    /// Dollars a point, with what cannot be said last.
    fn price_of_point(&self) -> f64 {
        self.money.map_or(f64::INFINITY, |money| match money.usd_per_point.is_nan() {
            true => f64::INFINITY,
            false => money.usd_per_point,
        })
    }

    fn saved(&self) -> f64 {
        self.money.map_or(0.0, |money| -money.usd_per_hour.absolute())
    }
}

fn why(seen: &Seen<'_>, verdict: Verdict, goal: &Goal, spread: f64) -> String {
    let rejected = (seen.tried.of("counts.rejected") - seen.base.of("counts.rejected")).abs();
    let requests = if rejected == 1.0 { "request" } else { "requests" };
    match verdict {
        Verdict::Serves => format!("{rejected} {requests} fewer are rejected, and their latencies count now"),
        Verdict::Rejects => format!("{rejected} {requests} more are rejected: latencies are of the others"),
        Verdict::WithinSpread => format!("within what seeds differ by ({})", number(spread)),
        Verdict::NoEffect => no_effect(seen, goal),
        Verdict::Helps | Verdict::Hurts => ended(seen),
    }
}

/// How many requests more or fewer end before the run does, where a time limit ends it.
fn ended(seen: &Seen<'_>) -> String {
    let more = seen.tried.of("counts.completed") - seen.base.of("counts.completed");
    let requests = if more.abs() == 1.0 { "request" } else { "requests" };
    match more == 0.0 {
        true => String::new(),
        false => {
            format!("{} {requests} {} end in time", more.abs(), if more > 0.0 { "more" } else { "fewer" })
        }
    }
}

fn no_effect(seen: &Seen<'_>, goal: &Goal) -> String {
    let same = |of: &Goal| Change { before: seen.base.of(of.name), after: seen.tried.of(of.name) }.is_none();
    let reason = (seen.perturbation.resource.idle)(seen).unwrap_or_else(|| seen.base.in_general());
    match Goal::of(seen.plan).all(same) {
        true => format!("no effect: {reason}"),
        false => format!("no effect on {}: {reason}", goal.name),
    }
}

/// What there could be more of, the most valuable first; then what could be saved, the least missed first.
/// Where a point of the goal has a price, that is what it is worth.
pub(super) fn rank(rows: &mut [Row]) {
    let side = |row: &Row| row.perturbation.side == Side::Less;
    rows.sort_by(|a, b| {
        side(a).cmp(&side(b)).then_with(|| match a.perturbation.side {
            Side::More => by_value(a, b),
            Side::Less => by_loss(a, b),
        })
    });
}

/// What serves more requests comes before what is faster, and that before the rest.
fn by_value(a: &Row, b: &Row) -> Ordering {
    let class = |row: &Row| match row.verdict {
        Verdict::Serves => 0,
        Verdict::Helps => 1,
        Verdict::WithinSpread => 2,
        Verdict::NoEffect => 3,
        Verdict::Hurts => 4,
        Verdict::Rejects => 5,
    };
    let price = |row: &Row| if row.verdict == Verdict::Helps { row.price_of_point() } else { 0.0 };
    let by_class = class(a).cmp(&class(b)).then(price(a).total_cmp(&price(b)));
    by_class.then(b.gain.total_cmp(&a.gain))
}

/// What nobody misses comes first, the dearest of it before the others; then what saves most for a point.
fn by_loss(a: &Row, b: &Row) -> Ordering {
    let class = |row: &Row| match row.verdict {
        Verdict::Serves | Verdict::Helps | Verdict::NoEffect | Verdict::WithinSpread => 0,
        Verdict::Hurts => 1,
        Verdict::Rejects => 2,
    };
    let saved_per_point = |row: &Row| match row.money {
        Some(money) if row.verdict == Verdict::Hurts && !money.usd_per_point.is_nan() => money.usd_per_point,
        _ => 0.0,
    };
    let by_class = class(a).cmp(&class(b)).then(saved_per_point(b).total_cmp(&saved_per_point(a)));
    let by_saving = match class(a) {
        0 => b.saved().total_cmp(&a.saved()),
        _ => Ordering::Equal,
    };
    by_class.then(by_saving).then(b.gain.total_cmp(&a.gain))
}
