//! How long users wait: as distributions, and over time.

use super::super::Run;
use super::clock::{Clock, named, timed};
use crate::figure::{Axis, Figure, Kind, Series};
use crate::pointers::numbers;

/// Key in the curves, name in files, what it is.
const CURVES: [(&str, &str, &str); 3] = [
    ("ttft_ms", "ttft", "Time to first token"),
    ("itl_ms", "itl", "Time between tokens"),
    ("e2e_latency_ms", "e2e", "End-to-end latency"),
];

/// Key over time, name in files, what it is.
const COURSES: [(&str, &str, &str, &str); 3] = [
    ("ttft_ms", "ttft", "Time to first token", "whose first token came then"),
    ("tpot_ms", "tpot", "Mean time between tokens of a request", "that ended then"),
    ("e2e_ms", "e2e", "End-to-end latency", "that ended then"),
];

pub(super) fn figures(runs: &[&Run]) -> Vec<Figure> {
    let curves = CURVES.iter().filter_map(|curve| distribution(runs, *curve));
    let timed = timed(runs);
    let clock = Clock::of(&timed);
    let courses =
        COURSES.iter().filter(|_| !timed.is_empty()).map(|course| over_time(&timed, clock, *course));
    curves.chain(courses).collect()
}

fn distribution(runs: &[&Run], (key, id, title): (&str, &str, &str)) -> Option<Figure> {
    let curve = |run: &&Run| {
        let values = numbers(&run.report, &format!("/curves/values/{key}"));
        let percentiles = numbers(&run.report, "/curves/percentiles");
        let name = if runs.len() == 1 { "all requests".to_owned() } else { run.name.clone() };
        Series::of(name, values.into_iter().zip(percentiles).collect())
    };
    let series: Vec<Series> = runs.iter().map(curve).filter(|series| !series.points.is_empty()).collect();
    (!series.is_empty()).then(|| Figure {
        id: format!("{id}-distribution"),
        title: format!("{title}: distribution"),
        about: format!("For each value of {}, the share that took no longer.", title.to_lowercase()),
        kind: Kind::Lines,
        x: Axis::log(title, "ms"),
        y: Axis::linear("share", "%"),
        series,
    })
}

fn over_time(runs: &[&Run], clock: Clock, (key, id, title, whose): (&str, &str, &str, &str)) -> Figure {
    let lines = |run: &&Run| {
        let percentiles: &[&str] = if runs.len() == 1 { &["p50", "p90", "p99"] } else { &["p50", "p99"] };
        let line = |percentile: &&str| {
            let name = named(runs, run, &percentile.to_uppercase());
            clock.fleet(run, name, &format!("{percentile}_{key}"))
        };
        percentiles.iter().map(line).collect::<Vec<_>>()
    };
    Figure {
        id: format!("{id}-over-time"),
        title: format!("{title} over time"),
        about: format!("Percentiles of {} over the requests {whose}.", title.to_lowercase()),
        kind: Kind::Lines,
        x: clock.axis(),
        y: Axis::log(title, "ms"),
        series: runs.iter().flat_map(lines).collect(),
    }
}
