//! A figure in words: for those who do not see it, and for tables beside it.

use super::plot::{Plot, Size};
use crate::figure::{Axis, Figure, Role, Series};
use crate::render::number::grouped;

/// More series than this are not told one by one.
const TOLD: usize = 12;

/// What a series is in numbers: of what is measured, which is on the x axis where the y axis is a share.
pub(crate) struct Facts {
    pub(crate) points: usize,
    pub(crate) low: f64,
    /// Over time, or of what is cumulated: elsewhere places have nothing in common that has a middle.
    pub(crate) median: Option<f64>,
    pub(crate) high: f64,
    /// Over time.
    pub(crate) last: Option<f64>,
}

/// What the places of a figure are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Places {
    Times,
    Names,
    /// The share of what is no more than each of them.
    Cumulated,
    Others,
}

impl Places {
    fn of(figure: &Figure) -> Self {
        match figure {
            _ if !figure.x.names.is_empty() => Self::Names,
            _ if ["time", "simulated time", "at"].contains(&figure.x.label.as_str()) => Self::Times,
            _ if figure.y.label.starts_with("share") => Self::Cumulated,
            _ => Self::Others,
        }
    }
}

/// The axis that numbers are told of.
pub(crate) fn told_axis(figure: &Figure) -> &Axis {
    if Places::of(figure) == Places::Cumulated { &figure.x } else { &figure.y }
}

impl Facts {
    /// Of the numbers of a series of `figure`, if there are any.
    pub(crate) fn of(figure: &Figure, series: &Series) -> Option<Self> {
        let places = Places::of(figure);
        let points = series.points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
        let told = |&(x, y): &(f64, f64)| if places == Places::Cumulated { x } else { y };
        let mut values: Vec<f64> = points.clone().map(told).collect();
        let last = *values.last()?;
        values.sort_by(f64::total_cmp);
        let (low, high) = (values[0], values[values.len() - 1]);
        let half = if figure.y.unit == "%" { 50.0 } else { 0.5 };
        let median = match places {
            Places::Times => Some(values[(values.len() - 1) / 2]),
            Places::Cumulated => points.clone().find(|(_, share)| *share >= half).map(told),
            Places::Names | Places::Others => None,
        };
        let last = (places == Places::Times).then_some(last);
        Some(Self { points: values.len(), low, median, high, last })
    }
}

/// What the figure is, its numbers, and how it was drawn.
pub(super) fn all(figure: &Figure) -> String {
    let drawn = drawn(&Plot::of(figure, Size::WIDE, 0.0)).unwrap_or_default();
    [figure.about.as_str(), &numbers(figure), &drawn]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Each series in numbers: its values where they have names, else what [`Facts`] has of it.
pub(crate) fn numbers(figure: &Figure) -> String {
    let axis = told_axis(figure);
    let unit = if axis.unit.is_empty() { String::new() } else { format!(" {}", axis.unit) };
    let told = figure.series.iter().filter(|series| series.role != Role::Guide);
    let (count, mut parts) = (told.clone().count(), Vec::new());
    for series in told.take(TOLD) {
        let name = if series.name.is_empty() { &axis.label } else { &series.name };
        parts.push(match (Facts::of(figure, series), by_name(figure, series)) {
            (None, _) => format!("{name}: nothing."),
            (Some(facts), _) if facts.points == 1 => format!("{name}: {}{unit}.", grouped(facts.high)),
            (_, Some(values)) => format!("{name}: {values}{unit}."),
            (Some(Facts { low, median, high, last, .. }), None) => {
                let other = |what: &str, value: Option<f64>| {
                    value.map_or(String::new(), |value| format!(", {what} {}", grouped(value)))
                };
                let (median, last) = (other("median", median), other("last", last));
                format!("{name}: {} to {}{unit}{median}{last}.", grouped(low), grouped(high))
            }
        });
    }
    if count > TOLD {
        parts.push(format!("And {} more.", count - TOLD));
    }
    parts.join(" ")
}

/// The values of a series with the names of their places, where these are few.
fn by_name(figure: &Figure, series: &Series) -> Option<String> {
    let named = |&(x, y): &(f64, f64)| Some(format!("{} {}", figure.x.name_of(x)?, grouped(y)));
    let few = series.points.len() <= TOLD;
    let named: Option<Vec<String>> = series.points.iter().filter(|(_, y)| y.is_finite()).map(named).collect();
    Some(named.filter(|_| few)?.join(", "))
}

/// How many points there are, where not all are drawn one by one.
pub(crate) fn drawn(plot: &Plot<'_>) -> Option<String> {
    let (all, shown, how) = plot.thinned()?;
    Some(format!("{} of {} points are drawn: {how}.", grouped(shown as f64), grouped(all as f64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Kind;

    fn figure(x: Axis, y: Axis, points: &[(f64, f64)]) -> Figure {
        let series = vec![Series::of("all", points.to_vec())];
        let (id, title, about) = <(String, String, String)>::default();
        Figure { id, title, about, kind: Kind::Lines, x, y, series }
    }

    /// Broken by: a median over statistics or tiers, or the share told as if it were the latency.
    #[test]
    fn what_has_no_middle_is_told_without_one() {
        let names = || Axis::names("statistic", vec!["mean".to_owned(), "P50".to_owned(), "max".to_owned()]);
        let points = [(0.0, 9.5), (1.0, 9.25), (2.0, 12.0)];
        let ms = || Axis::linear("time", "ms");
        assert_eq!(numbers(&figure(names(), ms(), &points)), "all: mean 9.50, P50 9.25, max 12 ms.");
        let shares = [(2.0, 0.0), (3.0, 50.0), (40.0, 99.0), (41.0, 100.0)];
        let cumulated = figure(Axis::log("latency", "ms"), Axis::linear("share", "%"), &shares);
        assert_eq!(numbers(&cumulated), "all: 2 to 41 ms, median 3.");
        let over_time = figure(Axis::linear("time", "s"), ms(), &points);
        assert_eq!(numbers(&over_time), "all: 9.25 to 12 ms, median 9.50, last 12.");
        let other = figure(Axis::log("capacity", "GiB"), ms(), &points);
        assert_eq!(numbers(&other), "all: 9.25 to 12 ms.");
    }
}
