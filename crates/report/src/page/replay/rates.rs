//! How much is done: requests and tokens over time.

use super::super::Run;
use super::clock::{Clock, named, timed};
use crate::figure::{Axis, Figure, Kind};

/// Id, title, sentence, unit, and columns with their names.
struct Rate {
    id: &'static str,
    title: &'static str,
    about: &'static str,
    unit: &'static str,
    columns: &'static [(&'static str, &'static str)],
}

const RATES: [Rate; 3] = [
    Rate {
        id: "requests-over-time",
        title: "Requests per second",
        about: "Requests that came, and requests that got all their tokens; the gap between them is a queue \
                that grows.",
        unit: "requests/s",
        columns: &[("arrived_per_s", "arrived"), ("completed_per_s", "completed")],
    },
    Rate {
        id: "tokens-over-time",
        title: "Tokens per second",
        about: "Tokens generated, and prompt tokens computed (those found in a cache are not).",
        unit: "tokens/s",
        columns: &[("output_tokens_per_s", "generated"), ("prompt_tokens_per_s", "prompt, computed")],
    },
    Rate {
        id: "trouble-over-time",
        title: "Preemptions and rejections per second",
        about: "Requests that lost their cache blocks and begin again, and requests that were given up.",
        unit: "requests/s",
        columns: &[("preempted_per_s", "preempted"), ("rejected_per_s", "rejected")],
    },
];

pub(super) fn figures(runs: &[&Run]) -> Vec<Figure> {
    let runs = timed(runs);
    if runs.is_empty() {
        return Vec::new();
    }
    let clock = Clock::of(&runs);
    let mut figures: Vec<Figure> = RATES.iter().map(|rate| figure(&runs, clock, rate)).collect();
    // Most runs have no trouble.
    figures.retain(|figure| figure.id != "trouble-over-time" || has_any(figure));
    figures
}

fn has_any(figure: &Figure) -> bool {
    figure.series.iter().flat_map(|series| &series.points).any(|(_, value)| *value > 0.0)
}

fn figure(runs: &[&Run], clock: Clock, rate: &Rate) -> Figure {
    let lines = |run: &&Run| {
        let line = |&(column, name): &(&str, &str)| clock.fleet(run, named(runs, run, name), column);
        rate.columns.iter().map(line).collect::<Vec<_>>()
    };
    Figure {
        id: rate.id.to_owned(),
        title: rate.title.to_owned(),
        about: rate.about.to_owned(),
        kind: Kind::Lines,
        x: clock.axis(),
        y: Axis::linear(rate.title, rate.unit),
        series: runs.iter().flat_map(lines).collect(),
    }
}
