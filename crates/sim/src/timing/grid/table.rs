//! Measured curves and surfaces in the form a pass is priced from: linear between points and beyond them,
//! found without a search.

use crate::provenance::left_out;

/// Points of an axis, ascending, two or more, and which interval a position falls into.
pub(super) struct Axis {
    points: Vec<f64>,
    /// The interval in which each step of `1 << shift` begins.
    starts: Vec<u16>,
    shift: u32,
}

/// Steps of an axis that are looked up at once.
const STEPS: u64 = 4096;

impl Axis {
    /// The axis through `points`.
    pub(super) fn of(points: &[u32]) -> Self {
        assert!(points.len() >= 2 && points.is_sorted_by(|a, b| a < b), "checked by the profile");
        let last = u64::from(points[points.len() - 1]);
        let shift = (last / STEPS + 1).next_power_of_two().trailing_zeros();
        let interval = |at: u64| {
            let after = points.partition_point(|&point| u64::from(point) <= at);
            after.saturating_sub(1).min(points.len() - 2) as u16
        };
        let starts = (0..=last >> shift).map(|step| interval(step << shift)).collect();
        Self { points: points.iter().map(|&point| f64::from(point)).collect(), starts, shift }
    }

    /// The interval of `at`; the first or last one when it is outside.
    #[inline]
    pub(super) fn interval(&self, at: f64) -> usize {
        let step = ((at as u64) >> self.shift) as usize;
        let mut interval = usize::from(self.starts[step.min(self.starts.len() - 1)]);
        while interval + 2 < self.points.len() && at >= self.points[interval + 1] {
            interval += 1;
        }
        interval
    }

    /// How far `at` is into `interval`, in widths of it.
    #[inline]
    fn share(&self, interval: usize, at: f64) -> f64 {
        let (from, to) = (self.points[interval], self.points[interval + 1]);
        (at - from) / (to - from)
    }

    /// Where `interval` ends; never for the last one.
    #[inline]
    fn end(&self, interval: usize) -> f64 {
        if interval + 2 < self.points.len() { self.points[interval + 1] } else { f64::INFINITY }
    }

    /// The last point.
    pub(super) fn last(&self) -> f64 {
        self.points[self.points.len() - 1]
    }
}

/// A curve over whole numbers, one value each.
pub(super) struct Curve {
    values: Vec<f64>,
    /// By how much the measured point before each is missed by its neighbours.
    errors: Vec<f32>,
    slope: f64,
}

impl Curve {
    /// The curve through `values` at `points`; before the first point it stays level.
    pub(super) fn of(points: &[u32], values: &[f64]) -> Self {
        let axis = Axis::of(points);
        let last = points[points.len() - 1];
        let value = |at: u32| {
            let at = f64::from(at.max(points[0]));
            let interval = axis.interval(at);
            blend(values[interval], values[interval + 1], axis.share(interval, at))
        };
        let slope =
            (value(last) - value(points[points.len() - 2])) / f64::from(last - points[points.len() - 2]);
        let missed = left_out(&[0.0], &axis.points, |_, at| values[at]);
        let error = |at: u32| missed[axis.interval(f64::from(at))] as f32;
        Self { values: (0..=last).map(value).collect(), errors: (0..=last).map(error).collect(), slope }
    }

    /// Points that were repaired are missed by at least as much as they were moved.
    pub(super) fn repaired(mut self, points: &[u32], before: &[f64], after: &[f64]) -> Self {
        let moved: Vec<f64> =
            before.iter().zip(after).map(|(before, after)| (before - after).abs()).collect();
        for (at, error) in self.errors.iter_mut().enumerate() {
            let next = points.partition_point(|&point| point as usize <= at);
            *error = error.max(moved[next.saturating_sub(1)] as f32);
        }
        self
    }

    /// The value at `at`.
    #[inline]
    pub(super) fn at(&self, at: u64) -> f64 {
        match self.values.get(at as usize) {
            Some(&value) => value,
            None => self.values[self.values.len() - 1] + self.slope * (at - self.last()) as f64,
        }
    }

    /// By how much the measured point at or before `at` is missed when it is left out.
    pub(super) fn error(&self, at: u64) -> f64 {
        self.errors[(at as usize).min(self.errors.len() - 1)].into()
    }

    /// The last measured position.
    pub(super) fn last(&self) -> u64 {
        self.values.len() as u64 - 1
    }
}

/// A surface over two axes, rows along the first.
pub(super) struct Surface {
    rows: Axis,
    columns: Axis,
    values: Vec<f64>,
    /// By how much each value is missed by its neighbours.
    errors: Vec<f64>,
}

impl Surface {
    /// The surface through `values`, row by row.
    pub(super) fn of(rows: &[u32], columns: &[u32], values: Vec<f64>) -> Self {
        assert_eq!(values.len(), rows.len() * columns.len(), "checked by the profile");
        let (rows, columns) = (Axis::of(rows), Axis::of(columns));
        let width = columns.points.len();
        let errors = left_out(&rows.points, &columns.points, |row, column| values[row * width + column]);
        Self { rows, columns, values, errors }
    }

    /// Values that were repaired are missed by at least as much as they were moved.
    pub(super) fn repaired(mut self, before: &[f64]) -> Self {
        for ((error, before), after) in self.errors.iter_mut().zip(before).zip(&self.values) {
            *error = error.max((before - after).abs());
        }
        self
    }

    /// The value at a row and a column; not below 0.
    #[inline]
    pub(super) fn at(&self, row: f64, column: f64) -> f64 {
        let line = self.line(row);
        let interval = self.columns.interval(column);
        let (from, slope) = line.piece(interval);
        (from + slope * (column - self.columns.points[interval])).max(0.0)
    }

    /// The values along the columns at `row`.
    #[inline]
    pub(super) fn line(&self, row: f64) -> Line<'_> {
        let interval = self.rows.interval(row);
        Line { surface: self, row: interval, share: self.rows.share(interval, row) }
    }

    /// By how much the measured point at or before a position is missed when it is left out.
    pub(super) fn error(&self, row: f64, column: f64) -> f64 {
        self.errors[self.rows.interval(row) * self.columns.points.len() + self.columns.interval(column)]
    }

    /// Whether a position is beyond the measured ones.
    pub(super) fn is_beyond(&self, row: f64, column: f64) -> bool {
        row > self.rows.last() || column > self.columns.last()
    }
}

/// A surface at one row.
pub(super) struct Line<'a> {
    surface: &'a Surface,
    row: usize,
    share: f64,
}

impl Line<'_> {
    /// Value and slope at the start of a column interval.
    #[inline]
    fn piece(&self, interval: usize) -> (f64, f64) {
        let Surface { columns, values, .. } = self.surface;
        let first = self.row * columns.points.len() + interval;
        let second = first + columns.points.len();
        let from = blend(values[first], values[second], self.share);
        let to = blend(values[first + 1], values[second + 1], self.share);
        (from, (to - from) / (columns.points[interval + 1] - columns.points[interval]))
    }

    /// Fills `out` with `plus` and the values at `column(0)`, `column(1)`, …, which ascend.
    #[inline]
    pub(super) fn fill(&self, plus: f64, column: impl Fn(u32) -> f64, out: &mut [f64]) {
        let columns = &self.surface.columns;
        let mut interval = columns.interval(column(0));
        let (mut start, mut end) = (columns.points[interval], columns.end(interval));
        let (mut from, mut slope) = self.piece(interval);
        for (pass, ms) in out.iter_mut().enumerate() {
            let at = column(pass as u32);
            while at >= end {
                interval += 1;
                (start, end) = (end, columns.end(interval));
                (from, slope) = self.piece(interval);
            }
            *ms = plus + (from + slope * (at - start)).max(0.0);
        }
    }
}

#[inline]
fn blend(from: f64, to: f64, share: f64) -> f64 {
    from + (to - from) * share
}

/// The nearest series that never falls (pool adjacent violators): what falls becomes the mean of its stretch.
pub(super) fn isotonic(values: &mut [f64]) {
    let mut pools: Vec<(f64, usize)> = Vec::with_capacity(values.len());
    for &value in values.iter() {
        let mut pool = (value, 1);
        while let Some(&(mean, count)) = pools.last()
            && mean >= pool.0
        {
            let total = count + pool.1;
            pool = ((mean * count as f64 + pool.0 * pool.1 as f64) / total as f64, total);
            pools.pop();
        }
        pools.push(pool);
    }
    let level = pools.into_iter().flat_map(|(mean, count)| std::iter::repeat_n(mean, count));
    values.iter_mut().zip(level).for_each(|(value, mean)| *value = mean);
}

/// [`isotonic`] along every row of `width` values.
pub(super) fn isotonic_rows(values: &mut [f64], width: usize) {
    values.chunks_mut(width).for_each(isotonic);
}

/// [`isotonic`] along every column of rows of `width` values.
pub(super) fn isotonic_columns(values: &mut [f64], width: usize) {
    for column in 0..width {
        let mut line: Vec<f64> = values.iter().skip(column).step_by(width).copied().collect();
        isotonic(&mut line);
        values.iter_mut().skip(column).step_by(width).zip(line).for_each(|(value, level)| *value = level);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falling_stretches_become_their_mean() {
        let mut values = [1.0, 5.0, 3.0, 1.0, 4.0, 9.0, 8.0];
        isotonic(&mut values);
        assert_eq!(values, [1.0, 3.0, 3.0, 3.0, 4.0, 8.5, 8.5]);
        let mut surface = [1.0, 3.0, 2.0, 0.0, 4.0, 6.0];
        isotonic_rows(&mut surface, 3);
        assert_eq!(surface, [1.0, 2.5, 2.5, 0.0, 4.0, 6.0]);
        isotonic_columns(&mut surface, 3);
        assert_eq!(surface, [0.5, 2.5, 2.5, 0.5, 4.0, 6.0]);
    }

    #[test]
    fn intervals_are_those_of_a_search() {
        let points = [1, 2, 7, 64, 1000, 131_071];
        let axis = Axis::of(&points);
        for at in (0..140_000).step_by(13).chain([0, 1, 2, 6, 7, 63, 64, 999, 1000]) {
            let plain = points.iter().filter(|&&point| point <= at).count().saturating_sub(1).min(4);
            assert_eq!(axis.interval(f64::from(at)), plain, "{at}");
        }
    }

    #[test]
    fn curves_and_surfaces_are_linear_between_points_and_beyond() {
        let curve = Curve::of(&[2, 4, 8], &[1.0, 3.0, 5.0]);
        assert_eq!([0, 2, 3, 6, 8, 10].map(|at| curve.at(at)), [1.0, 1.0, 2.0, 4.0, 5.0, 6.0]);
        let surface = Surface::of(&[1, 3], &[0, 10], vec![0.0, 10.0, 4.0, 34.0]);
        assert_eq!(surface.at(2.0, 5.0), 12.0);
        assert_eq!(surface.at(5.0, 20.0), 8.0 + 100.0);
        let mut run = [0.0; 3];
        surface.line(2.0).fill(1.0, |pass| f64::from(4 + pass), &mut run);
        assert_eq!(run, [1.0 + 10.0, 1.0 + 12.0, 1.0 + 14.0]);
    }
}
