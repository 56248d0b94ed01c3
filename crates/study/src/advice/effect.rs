//! What a change did: numbers before and after, and what to make of them.

use wavetank::{Plan, Replayed};
use wavetank_model::{Error, Result, nearest};
use wavetank_report::Attribution;

use crate::search::Wish;
use crate::sweep::cost::Fleet;
use crate::sweep::metric;

/// A number that advice shows, and may go by.
#[derive(Debug, PartialEq)]
pub(crate) struct Goal {
    /// As in a report.
    pub(crate) name: &'static str,
    /// On a terminal.
    pub(crate) title: &'static str,
    pub(crate) wish: Wish,
}

/// Every one of them, as they are shown.
pub(crate) const GOALS: [Goal; 5] = [
    Goal { name: "p99_ttft_ms", title: "P99 TTFT (ms)", wish: Wish::Less },
    Goal { name: "mean_ttft_ms", title: "mean TTFT (ms)", wish: Wish::Less },
    Goal { name: "p99_itl_ms", title: "P99 ITL (ms)", wish: Wish::Less },
    Goal { name: "output_throughput_tok_s", title: "tokens/s", wish: Wish::More },
    Goal { name: GOODPUT, title: "good requests/s", wish: Wish::More },
];

const GOODPUT: &str = "goodput_request_throughput_rps";

/// What a point cost.
const COST: &str = metric::DERIVED[0];

impl Goal {
    /// The one called `name`, which must be known of runs of `plan`.
    pub(super) fn find(name: &str, plan: &Plan) -> Result<&'static Self> {
        let names = || GOALS.iter().map(|goal| goal.name);
        let goal = GOALS.iter().find(|goal| goal.name == name).ok_or_else(|| {
            let error = Error::usage(format!("unknown metric \"{name}\"")).at("--advise");
            match nearest(name, names()) {
                Some(meant) => error.hint(format!("did you mean {meant}?")),
                None => error.hint(format!("known: {}", names().collect::<Vec<_>>().join(", "))),
            }
        })?;
        match goal.name == GOODPUT && !plan.sla.is_set() {
            true => Err(Error::usage(format!("\"{name}\" needs bounds"))
                .at("--advise")
                .hint("give --sla-ttft-ms, --sla-itl-ms or --sla-e2e-ms")),
            false => Ok(goal),
        }
    }

    /// Without its unit.
    pub(super) fn plain_title(&self) -> &'static str {
        self.title.split(" (").next().unwrap_or(self.title)
    }

    /// Those that runs of `plan` have.
    pub(super) fn of(plan: &Plan) -> impl Iterator<Item = &'static Self> {
        let has_bounds = plan.sla.is_set();
        GOALS.iter().filter(move |goal| goal.name != GOODPUT || has_bounds)
    }
}

/// The numbers of a run.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    metrics: Vec<f64>,
    pub(crate) attribution: Attribution,
}

impl Measured {
    /// Those of a run, with what it cost where that is known.
    pub(super) fn of_run(run: &Replayed, fleet: Option<&Fleet>) -> Self {
        let mut metrics = metric::of_run(run);
        if let Some(fleet) = fleet {
            fleet.derive(&mut metrics);
        }
        Self { metrics, attribution: run.summary.attribution.clone() }
    }

    /// A number by its name in a sweep's rows.
    pub(crate) fn of(&self, name: &str) -> f64 {
        self.metrics[metric::number(name)]
    }

    /// Dollars for a million output tokens; not a number where nothing has a price.
    pub(super) fn usd_per_million(&self) -> f64 {
        self.of(COST)
    }

    /// Dollars an hour, over the run.
    pub(super) fn usd_per_hour(&self) -> f64 {
        let (millions, hours) = (self.of("total_output_tokens") / 1e6, self.of("duration_ms") / 3.6e6);
        self.of(COST) * millions / hours
    }

    /// Which part of the mean time to first token these parts are, where there is any.
    pub(crate) fn share_of_ttft(&self, names: &[&str]) -> Option<f64> {
        let parts = self.attribution.ttft_parts();
        let all: f64 = parts.iter().map(|(_, part)| part.mean).sum();
        let some: f64 =
            parts.iter().filter(|(name, _)| names.contains(name)).map(|(_, part)| part.mean).sum();
        (all > 0.0).then(|| some / all)
    }

    /// What the time to first token mostly is.
    fn largest_part(&self) -> Option<String> {
        let parts = self.attribution.ttft_parts();
        let (name, _) = parts.into_iter().max_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean))?;
        let share = self.share_of_ttft(&[name])?;
        let plain = name.trim_end_matches("_ms").replace('_', " ");
        Some(format!("{:.0} % of the time to first token is {plain}", share * 100.0))
    }

    /// Why most changes do nothing.
    pub(super) fn in_general(&self) -> String {
        self.largest_part().unwrap_or_else(|| "no request got a first token".to_owned())
    }
}

/// A number before and after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) before: f64,
    pub(super) after: f64,
}

impl Change {
    pub(super) fn absolute(self) -> f64 {
        self.after - self.before
    }

    /// As a part of what it was; without end where it was nothing.
    pub(super) fn relative(self) -> f64 {
        match self.before == 0.0 {
            true if self.after == 0.0 => 0.0,
            true => f64::INFINITY.copysign(self.after),
            false => self.absolute() / self.before.abs(),
        }
    }

    /// By how many percent it got better.
    pub(super) fn gain(self, wish: Wish) -> f64 {
        let towards = if wish == Wish::Less { -1.0 } else { 1.0 };
        self.relative() * towards * 100.0
    }

    /// Whether it is smaller than what is shown of it.
    pub(super) fn is_none(self) -> bool {
        self.relative().abs() < NEGLIGIBLE
    }
}

/// Half of the last digit that a percentage has.
const NEGLIGIBLE: f64 = 0.0005;

/// What to make of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// More requests are served that were given up before.
    Serves,
    Helps,
    /// The goal is what it was.
    NoEffect,
    /// Another seed changes as much.
    WithinSpread,
    Hurts,
    /// Requests are given up that were served before.
    Rejects,
}

impl Verdict {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Serves => "serves_more",
            Self::Helps => "helps",
            Self::NoEffect => "no_effect",
            Self::WithinSpread => "within_spread",
            Self::Hurts => "hurts",
            Self::Rejects => "rejects_more",
        }
    }

    /// Of the goal's `change`, with so many requests more given up, where seeds are `spread` apart.
    pub(super) fn of(change: Change, wish: Wish, rejected: f64, spread: f64) -> Self {
        if rejected != 0.0 {
            return if rejected > 0.0 { Self::Rejects } else { Self::Serves };
        }
        if change.is_none() {
            return Self::NoEffect;
        }
        match change.gain(wish) > 0.0 {
            _ if change.absolute().abs() <= spread => Self::WithinSpread,
            true => Self::Helps,
            false => Self::Hurts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a wish that is taken the wrong way round, a spread that is not looked at, or latencies of
    /// fewer requests that count as an improvement.
    #[test]
    fn what_is_better_depends_on_what_is_wished() {
        let change = |before, after| Change { before, after };
        let verdict = |change, wish| Verdict::of(change, wish, 0.0, 0.0);
        assert_eq!(change(200.0, 150.0).gain(Wish::Less), 25.0);
        assert_eq!(change(200.0, 150.0).gain(Wish::More), -25.0);
        assert_eq!(verdict(change(200.0, 150.0), Wish::Less), Verdict::Helps);
        assert_eq!(verdict(change(200.0, 150.0), Wish::More), Verdict::Hurts);
        assert_eq!(verdict(change(200.0, 200.01), Wish::Less), Verdict::NoEffect);
        assert_eq!(verdict(change(0.0, 0.0), Wish::Less), Verdict::NoEffect);
        assert_eq!(verdict(change(0.0, 1.0), Wish::More), Verdict::Helps);
        assert_eq!(verdict(change(0.0, 1.0), Wish::Less), Verdict::Hurts);
        assert_eq!(Verdict::of(change(200.0, 150.0), Wish::Less, 0.0, 50.0), Verdict::WithinSpread);
        assert_eq!(Verdict::of(change(200.0, 150.0), Wish::Less, 0.0, 49.0), Verdict::Helps);
        assert_eq!(Verdict::of(change(200.0, 150.0), Wish::Less, 1.0, 0.0), Verdict::Rejects);
        assert_eq!(Verdict::of(change(150.0, 200.0), Wish::Less, -1.0, 0.0), Verdict::Serves);
    }
}
