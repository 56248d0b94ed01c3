//! What a measured table holds and how well its points are computed from their neighbours, for people who are
//! to trust it.

/// An axis of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What is counted along it.
    pub name: &'static str,
    /// The measured points, ascending.
    pub points: Vec<f64>,
}

impl Axis {
    pub(crate) fn of<T: Copy + Into<f64>>(name: &'static str, points: &[T]) -> Self {
        Self { name, points: points.iter().map(|&point| point.into()).collect() }
    }
}

/// What errors are fractions of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// A pass in which the value occurs.
    Step,
    /// The value itself.
    Value,
}

/// What making a table rise changed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Repair {
    /// Values that were changed.
    pub values: usize,
    /// The largest change, a fraction of what errors are fractions of.
    pub most: f64,
}

/// One table of a measured timing model.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    /// Its name.
    pub table: &'static str,
    /// Its axes; tables of several layers have the points of the longest.
    pub axes: Vec<Axis>,
    /// Measured values.
    pub values: usize,
    /// By how much values are missed when they are left out, ascending; none for a value at the edge of all
    /// axes.
    pub errors: Vec<f64>,
    /// What the errors are fractions of.
    pub whole: Whole,
    /// What was changed so that more work takes no less time; `None` where the model uses values as they are.
    pub repair: Option<Repair>,
}

impl Survey {
    /// The survey of `values` over `axes`, the last axis the quickest; `None` was not measured.
    pub(crate) fn of(table: &'static str, axes: Vec<Axis>, values: &[Option<f64>]) -> Self {
        let share = |at: usize| values[at].unwrap_or(0.0);
        let mut survey = Self::of_steps(table, axes, values, share);
        survey.whole = Whole::Value;
        survey
    }

    /// The same with errors as fractions of `step`, by position of the value.
    pub(crate) fn of_steps(
        table: &'static str,
        axes: Vec<Axis>,
        values: &[Option<f64>],
        step: impl Fn(usize) -> f64,
    ) -> Self {
        let found = left_out(&axes, values).into_iter().enumerate();
        let errors = found.filter_map(|(at, error)| Some(share(error?, step(at)))).collect();
        let measured = values.iter().flatten().count();
        let survey = Self { table, axes, values: measured, errors, whole: Whole::Step, repair: None };
        survey.sorted()
    }

    /// Adds the values and errors of `other`, another layer of the same table.
    pub(crate) fn and(mut self, other: Self) -> Self {
        if other.axes[0].points.len() > self.axes[0].points.len() {
            self.axes = other.axes;
        }
        self.values += other.values;
        self.errors.extend(other.errors);
        self.sorted()
    }

    /// With what repair made of the `measured` values, as fractions of `step`.
    pub(crate) fn repaired(
        mut self,
        measured: &[Option<f64>],
        repaired: &[f64],
        step: impl Fn(usize) -> f64,
    ) -> Self {
        let mut repair = Repair::default();
        for (at, (before, after)) in measured.iter().zip(repaired).enumerate() {
            let change = before.map_or(0.0, |before| (before - after).abs());
            if change > 1e-9 * after {
                repair.values += 1;
                repair.most = repair.most.max(share(change, step(at)));
            }
        }
        self.repair = Some(repair);
        self
    }

    fn sorted(mut self) -> Self {
        self.errors.sort_by(f64::total_cmp);
        self
    }

    /// The error that a `part` of all values stays at or below; `None` if no value could be left out.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let last = self.errors.len().checked_sub(1)?;
        Some(self.errors[(last as f64 * part).round() as usize])
    }
}

fn share(part: f64, whole: f64) -> f64 {
    match (part, whole) {
        (0.0, _) => 0.0,
        (_, 0.0) => 1.0,
        _ => part / whole,
    }
}

/// By how much each value is missed when it is computed from its neighbours along an axis; the largest of all
/// axes.
fn left_out(axes: &[Axis], values: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut errors = vec![None; values.len()];
    let mut stride = values.len();
    for Axis { points, .. } in axes {
        let length = points.len();
        stride /= length;
        for (at, error) in errors.iter_mut().enumerate() {
            let position = at / stride % length;
            if position == 0 || position + 1 == length {
                continue;
            }
            let (Some(low), Some(value), Some(high)) = (values[at - stride], values[at], values[at + stride])
            else {
                continue;
            };
            let part =
                (points[position] - points[position - 1]) / (points[position + 1] - points[position - 1]);
            let missed = (low + (high - low) * part - value).abs();
            *error = Some(missed.max(error.unwrap_or(0.0)));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_computed_from_their_neighbours() {
        let axes = vec![Axis::of("a", &[0u32, 1, 4]), Axis::of("b", &[1u32, 2])];
        let plane: Vec<_> = [0.0, 1.0, 4.0].iter().flat_map(|a| [Some(a + 1.0), Some(a + 2.0)]).collect();
        let survey = Survey::of("plane", axes.clone(), &plane);
        assert_eq!((survey.values, &survey.errors[..]), (6, &[0.0, 0.0][..]));
        let mut bump = plane.clone();
        bump[2] = Some(4.0);
        let survey = Survey::of("bump", axes.clone(), &bump);
        assert_eq!((survey.errors.as_slice(), survey.quantile(1.0)), (&[0.0, 0.5][..], Some(0.5)));
        bump[0] = None;
        assert_eq!(Survey::of("hole", axes, &bump).errors, [0.0]);
    }

    #[test]
    fn repairs_are_counted() {
        let axes = || vec![Axis::of("a", &[0u32, 1, 4])];
        let measured = [Some(1.0), Some(4.0), Some(2.0)];
        let survey = Survey::of("a", axes(), &measured).repaired(&measured, &[1.0, 3.0, 3.0], |_| 4.0);
        assert_eq!(survey.repair, Some(Repair { values: 2, most: 0.25 }));
    }
}
