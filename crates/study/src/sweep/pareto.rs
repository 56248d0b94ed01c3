//! Which points no other point beats in everything.

use std::cmp::Ordering;

use serde_json::{Value, json};
use wavetank_model::Result;

use super::document::Section;
use super::metric;

/// What is wanted, each a number of [`metric::all`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Objectives {
    minimize: Vec<usize>,
    maximize: Vec<usize>,
}

impl Objectives {
    pub(crate) fn read(section: Option<&Section<'_>>) -> Result<Self> {
        let Some(section) = section else { return Ok(Self::default()) };
        section.only(&["maximize", "minimize"])?;
        let metrics = |key: &str| -> Result<Vec<usize>> {
            let found = section.names(key)?.into_iter().map(|(name, line)| {
                metric::find(&name).map_err(|error| error.at(section.document.place(line)))
            });
            found.collect()
        };
        let objectives = Self { minimize: metrics("minimize")?, maximize: metrics("maximize")? };
        let all: Vec<usize> = objectives.metrics().collect();
        if let Some((_, twice)) = all.iter().enumerate().find(|(at, metric)| all[..*at].contains(metric)) {
            let message = format!("\"{}\" is there twice", metric::name(*twice));
            return Err(section.document.wrong(section.line(), message));
        }
        if all.is_empty() {
            let error = section.document.wrong(section.line(), "[pareto] names no metric");
            return Err(error.hint("minimize = [\"p99_ttft_ms\"], maximize = [\"output_throughput_tok_s\"]"));
        }
        Ok(objectives)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.minimize.is_empty() && self.maximize.is_empty()
    }

    /// All metrics that matter.
    pub(crate) fn metrics(&self) -> impl Iterator<Item = usize> {
        self.minimize.iter().chain(&self.maximize).copied()
    }

    pub(crate) fn json(&self) -> Value {
        let names =
            |metrics: &[usize]| metrics.iter().map(|metric| metric::name(*metric)).collect::<Vec<_>>();
        json!({ "minimize": names(&self.minimize), "maximize": names(&self.maximize) })
    }

    /// The same from a report.
    pub(crate) fn of_json(value: &Value) -> Result<Self> {
        let metrics = |key: &str| -> Result<Vec<usize>> {
            let names = value.get(key).and_then(Value::as_array).into_iter().flatten();
            names.filter_map(Value::as_str).map(metric::find).collect()
        };
        Ok(Self { minimize: metrics("minimize")?, maximize: metrics("maximize")? })
    }

    /// Smaller is better in all of them.
    fn costs(&self, metrics: &[f64]) -> Option<Vec<f64>> {
        let down = self.minimize.iter().map(|&metric| metrics[metric]);
        let up = self.maximize.iter().map(|&metric| -metrics[metric]);
        let costs: Vec<f64> = down.chain(up).collect();
        costs.iter().all(|cost| !cost.is_nan()).then_some(costs)
    }

    /// Whether each of `rows` is on the front; equal ones are together.
    pub(crate) fn front<'r>(&self, rows: impl Iterator<Item = &'r [f64]>) -> Vec<bool> {
        let rows: Vec<Option<Vec<f64>>> = rows.map(|metrics| self.costs(metrics)).collect();
        let mut on_front = vec![false; rows.len()];
        if self.is_empty() {
            return on_front;
        }
        let mut order: Vec<usize> = (0..rows.len()).filter(|&row| rows[row].is_some()).collect();
        order.sort_by(|&one, &other| by_all(rows[one].as_deref(), rows[other].as_deref()));
        // Whoever beats another comes before it in this order, so only the front so far can.
        let mut front: Vec<&[f64]> = Vec::new();
        for row in order {
            let costs = rows[row].as_deref().unwrap_or_default();
            if !front.iter().any(|other| beats(other, costs)) {
                on_front[row] = true;
                front.push(costs);
            }
        }
        on_front
    }
}

fn by_all(one: Option<&[f64]>, other: Option<&[f64]>) -> Ordering {
    let pairs = one.unwrap_or_default().iter().zip(other.unwrap_or_default());
    pairs.map(|(one, other)| one.total_cmp(other)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Nowhere worse, somewhere better.
fn beats(one: &[f64], other: &[f64]) -> bool {
    one.iter().zip(other).all(|(one, other)| one <= other) && one != other
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    /// Broken by: an objective with the wrong sign, equal points that beat each other, or a front that is
    /// compared with less than all that can beat.
    #[test]
    fn the_front_is_who_nobody_beats() {
        let mut draw = wavetank_model::seeded(3, "front");
        let objectives = Objectives { minimize: vec![0, 2], maximize: vec![1] };
        for _ in 0..50 {
            let mut row = || {
                vec![
                    f64::from(draw.random_range(0..6u32)),
                    f64::from(draw.random_range(0..6u32)),
                    f64::from(draw.random_range(0..6u32)),
                ]
            };
            let mut rows: Vec<Vec<f64>> = (0..40).map(|_| row()).collect();
            rows[7][1] = f64::NAN;
            let worse = |one: &[f64], other: &[f64]| {
                other[0] <= one[0] && other[1] >= one[1] && other[2] <= one[2] && other != one
            };
            let front = objectives.front(rows.iter().map(Vec::as_slice));
            for (row, on_front) in rows.iter().zip(&front) {
                let beaten = rows.iter().any(|other| worse(row, other));
                assert_eq!(*on_front, !beaten && !row[1].is_nan(), "{row:?}");
            }
        }
        assert_eq!(Objectives::default().front([&[1.0][..]].into_iter()), [false]);
    }
}
