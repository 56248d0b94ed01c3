//! A figure in words: for those who do not see it, and for tables beside it.

use super::plot::{Plot, Size};
use crate::figure::{Figure, Role, Series};
use crate::render::number::grouped;

/// More series than this are not told one by one.
const TOLD: usize = 12;

/// What a series is in numbers.
pub(crate) struct Facts {
    pub(crate) points: usize,
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
    pub(crate) last: f64,
}

impl Facts {
    /// Of the numbers of `series`, if there are any.
    pub(crate) fn of(series: &Series) -> Option<Self> {
        let mut values: Vec<f64> =
            series.points.iter().map(|(_, y)| *y).filter(|value| value.is_finite()).collect();
        let last = *values.last()?;
        values.sort_by(f64::total_cmp);
        let (low, high) = (values[0], values[values.len() - 1]);
        Some(Self { points: values.len(), low, median: values[(values.len() - 1) / 2], high, last })
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

/// Range, median and last value of each series.
pub(crate) fn numbers(figure: &Figure) -> String {
    let unit = if figure.y.unit.is_empty() { String::new() } else { format!(" {}", figure.y.unit) };
    let told = figure.series.iter().filter(|series| series.role != Role::Guide);
    let (count, mut parts) = (told.clone().count(), Vec::new());
    for series in told.take(TOLD) {
        let name = if series.name.is_empty() { &figure.y.label } else { &series.name };
        parts.push(match Facts::of(series) {
            None => format!("{name}: nothing."),
            Some(facts) if facts.points == 1 => format!("{name}: {}{unit}.", grouped(facts.last)),
            Some(Facts { low, median, high, last, .. }) => format!(
                "{name}: {} to {}{unit}, median {}, last {}.",
                grouped(low),
                grouped(high),
                grouped(median),
                grouped(last)
            ),
        });
    }
    if count > TOLD {
        parts.push(format!("And {} more.", count - TOLD));
    }
    parts.join(" ")
}

/// How many points there are, where not all are drawn one by one.
pub(crate) fn drawn(plot: &Plot<'_>) -> Option<String> {
    let (all, shown, how) = plot.thinned()?;
    Some(format!("{} of {} points are drawn: {how}.", grouped(shown as f64), grouped(all as f64)))
}
