//! Where the time of a run came from: measured points, what lies between or beyond them, fitted constants.

use std::cell::Cell;
use std::ops::Add;

/// Milliseconds that a measured model gave, and how sure they are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Provenance {
    /// All of it.
    pub total_ms: f64,
    /// Between measured points.
    pub interpolated_ms: f64,
    /// Beyond them.
    pub extrapolated_ms: f64,
    /// From constants that were fitted: the host, links.
    pub fitted_ms: f64,
    /// From a formula with no hardware in it.
    pub formula_ms: f64,
    /// By how much a measured point is missed when it is computed from its neighbours, summed over the time
    /// that was read there.
    pub error_ms: f64,
}

impl Provenance {
    fn share(&self, part_ms: f64) -> f64 {
        if self.total_ms > 0.0 { part_ms / self.total_ms } else { 0.0 }
    }

    /// The leave-one-out error of the cells that were used, weighted by time: a fraction of all time. Leaving
    /// a point out doubles the distance between points, so it is more than what interpolation adds.
    pub fn error(&self) -> f64 {
        self.share(self.error_ms)
    }

    /// The part of all time between measured points.
    pub fn interpolated(&self) -> f64 {
        self.share(self.interpolated_ms)
    }

    /// The part of all time beyond measured points.
    pub fn extrapolated(&self) -> f64 {
        self.share(self.extrapolated_ms)
    }

    /// The part of all time from fitted constants.
    pub fn fitted(&self) -> f64 {
        self.share(self.fitted_ms)
    }

    /// The part of all time from a formula.
    pub fn formula(&self) -> f64 {
        self.share(self.formula_ms)
    }

    /// A pass of `total_ms`, of which `fitted_ms` come from constants and the rest from tables that miss
    /// `error_ms`, or from beyond them.
    pub(crate) fn of_tables(total_ms: f64, fitted_ms: f64, error_ms: f64, beyond: bool) -> Self {
        let tables_ms = total_ms - fitted_ms;
        let (interpolated_ms, extrapolated_ms) = if beyond { (0.0, tables_ms) } else { (tables_ms, 0.0) };
        Self { total_ms, interpolated_ms, extrapolated_ms, fitted_ms, formula_ms: 0.0, error_ms }
    }

    /// Time that no table gave.
    pub(crate) fn of_formula(ms: f64) -> Self {
        Self { total_ms: ms, formula_ms: ms, ..Self::default() }
    }

    /// The same for `passes` passes.
    pub(crate) fn times(self, passes: usize) -> Self {
        let passes = passes as f64;
        Self {
            total_ms: self.total_ms * passes,
            interpolated_ms: self.interpolated_ms * passes,
            extrapolated_ms: self.extrapolated_ms * passes,
            fitted_ms: self.fitted_ms * passes,
            formula_ms: self.formula_ms * passes,
            error_ms: self.error_ms * passes,
        }
    }
}

impl Add for Provenance {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            total_ms: self.total_ms + other.total_ms,
            interpolated_ms: self.interpolated_ms + other.interpolated_ms,
            extrapolated_ms: self.extrapolated_ms + other.extrapolated_ms,
            fitted_ms: self.fitted_ms + other.fitted_ms,
            formula_ms: self.formula_ms + other.formula_ms,
            error_ms: self.error_ms + other.error_ms,
        }
    }
}

/// What a model has given so far.
#[derive(Default)]
pub(crate) struct Ledger(Cell<Provenance>);

impl Ledger {
    pub(crate) fn enter(&self, entry: Provenance) {
        self.0.set(self.0.get() + entry);
    }

    pub(crate) fn total(&self) -> Provenance {
        self.0.get()
    }
}

/// For each of `rows` x `columns` values, by how much it is missed when it is computed from its neighbours on
/// either axis; the larger of the two. A value at the edge of both axes has no error of its own.
pub(crate) fn left_out(rows: &[f64], columns: &[f64], value: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let between = |axis: &[f64], at: usize, of: &dyn Fn(usize) -> f64| {
        if at == 0 || at + 1 >= axis.len() {
            return 0.0;
        }
        let part = (axis[at] - axis[at - 1]) / (axis[at + 1] - axis[at - 1]);
        (of(at - 1) + (of(at + 1) - of(at - 1)) * part - of(at)).abs()
    };
    let mut errors = Vec::with_capacity(rows.len() * columns.len());
    for row in 0..rows.len() {
        for column in 0..columns.len() {
            let along = between(columns, column, &|at| value(row, at));
            let across = between(rows, row, &|at| value(at, column));
            errors.push(along.max(across));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plane_is_computed_from_its_neighbours_and_a_bump_is_not() {
        let axis = [0.0, 1.0, 4.0];
        let plane = left_out(&axis, &axis, |row, column| axis[row] + 2.0 * axis[column]);
        assert!(plane.iter().all(|error| error.abs() < 1e-12));
        let bump = left_out(&axis, &axis, |row, column| f64::from(u8::from((row, column) == (1, 1))));
        assert_eq!(bump[4], 1.0);
    }
}
