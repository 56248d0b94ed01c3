//! No more points than can be seen: two for each column of pixels.

use std::collections::HashSet;

/// The points of a line, at most two for each of `columns`: the lowest and the highest, in their order.
/// `place` says where a point is, from 0 to 1. Gaps narrower than a column are closed.
pub(crate) fn line(points: &[(f64, f64)], columns: usize, place: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    if points.len() <= columns * 2 {
        return points.to_vec();
    }
    let known = || points.iter().filter(|(x, _)| x.is_finite());
    let sorted = known().zip(known().skip(1)).all(|(one, next)| one.0 <= next.0);
    let last = (points.len() - 1).max(1) as f64;
    let column = |index: usize, x: f64| {
        let part = if sorted { place(x) } else { index as f64 / last };
        ((part * columns as f64) as usize).min(columns.saturating_sub(1))
    };
    let mut out = Vec::new();
    let (mut from, mut here) = (0, 0);
    for (index, &(x, _)) in points.iter().enumerate() {
        // What has no place is where the one before it is.
        let next = if x.is_finite() { column(index, x) } else { here };
        if next != here && index > from {
            extremes(&points[from..index], &mut out);
            from = index;
        }
        here = next;
    }
    extremes(&points[from..], &mut out);
    out
}

/// Adds the lowest and the highest of `points` in their order, or a gap if none is a number.
fn extremes(points: &[(f64, f64)], out: &mut Vec<(f64, f64)>) {
    let known = || points.iter().enumerate().filter(|(_, (x, y))| x.is_finite() && y.is_finite());
    let low = known().min_by(|one, other| one.1.1.total_cmp(&other.1.1));
    let high = known().max_by(|one, other| one.1.1.total_cmp(&other.1.1));
    match (low, high) {
        (Some((first, low)), Some((second, high))) if first < second => out.extend([*low, *high]),
        (Some((first, low)), Some((second, high))) if first > second => out.extend([*high, *low]),
        (Some((_, low)), _) => out.push(*low),
        _ => out.push((f64::NAN, f64::NAN)),
    }
}

/// One number for each column: the highest there. The result is sorted by column; columns without are left
/// out.
pub(crate) fn highest(points: &[(f64, f64)], columns: usize, place: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    if points.len() <= columns {
        return points.to_vec();
    }
    let mut best: Vec<Option<(f64, f64)>> = vec![None; columns.max(1)];
    for &(x, y) in points.iter().filter(|(x, y)| x.is_finite() && y.is_finite()) {
        let column = ((place(x) * columns as f64) as usize).min(best.len() - 1);
        let here = &mut best[column];
        if here.is_none_or(|(_, high)| y > high) {
            *here = Some((x, y));
        }
    }
    best.into_iter().flatten().collect()
}

/// The mean of each column, at the place of the first there. The result is sorted by column.
pub(crate) fn mean(points: &[(f64, f64)], columns: usize, place: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    if points.len() <= columns {
        return points.to_vec();
    }
    let mut sums: Vec<Option<(f64, f64, u32)>> = vec![None; columns.max(1)];
    for &(x, y) in points.iter().filter(|(x, y)| x.is_finite() && y.is_finite()) {
        let column = ((place(x) * columns as f64) as usize).min(sums.len() - 1);
        let (first, mean, count) = sums[column].unwrap_or((x, 0.0, 0));
        sums[column] = Some((first, mean + (y - mean) / f64::from(count + 1), count + 1));
    }
    sums.into_iter().flatten().map(|(x, mean, _)| (x, mean)).collect()
}

/// Keeps one point of each pixel and drops those that are no numbers.
pub(crate) fn pixels(points: &mut Vec<(f64, f64)>, pixel: impl Fn((f64, f64)) -> (u32, u32)) {
    let mut taken = HashSet::new();
    points.retain(|&(x, y)| x.is_finite() && y.is_finite() && taken.insert(pixel((x, y))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_and_gaps_stay() {
        let mut points: Vec<(f64, f64)> = (0..10_000).map(|i| (f64::from(i), 1.0)).collect();
        points[5_003].1 = 99.0;
        points[5_004].1 = -99.0;
        for point in &mut points[7_000..8_000] {
            point.1 = f64::NAN;
        }
        let thin = line(&points, 100, |x| x / 9_999.0);
        assert!(thin.len() <= 200, "{}", thin.len());
        let peak = thin.iter().position(|point| *point == (5_003.0, 99.0)).unwrap();
        assert_eq!(thin[peak + 1], (5_004.0, -99.0));
        assert!(thin.iter().filter(|(_, y)| y.is_nan()).count() >= 9);
    }

    #[test]
    fn few_points_stay_as_they_are_and_any_order_is_bounded() {
        let few = [(1.0, 2.0), (f64::NAN, f64::NAN)];
        assert_eq!(line(&few, 10, |x| x)[0], few[0]);
        let shuffled: Vec<(f64, f64)> = (0..5_000_u32).map(|i| (f64::from(i * 7919 % 5_000), 1.0)).collect();
        assert!(line(&shuffled, 100, |x| x / 5_000.0).len() <= 202);
        let highest = highest(&shuffled, 100, |x| x / 5_000.0);
        assert_eq!(highest.len(), 100);
    }
}
