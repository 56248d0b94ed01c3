//! Where a curve bends.
//!
//! The points of a hit-ratio curve that no straight line between two others passes above are where capacity
//! pays best. Most of them lie close to each other; a few, such that the lines between them miss the others
//! by little, describe the curve.

use serde::Serialize;

/// A capacity after which more of it pays less.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Knee {
    /// The capacity.
    pub capacity: u64,
    /// The share of blocks served there.
    pub block_hit_ratio: f64,
}

/// Of the highest ratio: how far lines may pass below a point that is left out.
const TOLERANCE: f64 = 0.02;

/// The knees of a curve through `points`, which rise, and the origin.
pub(super) fn knees(points: impl Iterator<Item = (u64, f64)>) -> Vec<Knee> {
    let envelope = envelope(points.map(|(capacity, ratio)| (capacity as f64, ratio)));
    let Some(&(_, top)) = envelope.last() else { return Vec::new() };
    let mut kept = vec![false; envelope.len()];
    kept[envelope.len() - 1] = true;
    keep_between(&envelope, top * TOLERANCE, &mut kept);
    let knees = envelope.iter().zip(&kept).skip(1).filter(|(_, kept)| **kept);
    let knee = |(&(capacity, ratio), _)| Knee { capacity: capacity as u64, block_hit_ratio: ratio };
    knees.map(knee).collect()
}

/// The points that no line between two others passes above, from the origin on.
fn envelope(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut hull = vec![(0.0, 0.0)];
    for point in points {
        while let [.., before, last] = hull[..]
            && slope(before, last) <= slope(last, point)
        {
            hull.pop();
        }
        if point.1 > hull[hull.len() - 1].1 {
            hull.push(point);
        }
    }
    hull
}

fn slope(from: (f64, f64), to: (f64, f64)) -> f64 {
    (to.1 - from.1) / (to.0 - from.0)
}

/// Keeps the point furthest above the line from the first to the last, and again on both sides of it
/// (Douglas and Peucker, 1973).
fn keep_between(points: &[(f64, f64)], tolerance: f64, kept: &mut [bool]) {
    let [first, .., last] = *points else { return };
    let above = |point: (f64, f64)| point.1 - (first.1 + slope(first, last) * (point.0 - first.0));
    let inner = 1..points.len() - 1;
    let furthest = inner.max_by(|&a, &b| above(points[a]).total_cmp(&above(points[b])));
    if let Some(at) = furthest.filter(|&at| above(points[at]) > tolerance) {
        kept[at] = true;
        keep_between(&points[..=at], tolerance, &mut kept[..=at]);
        keep_between(&points[at..], tolerance, &mut kept[at..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacities(points: &[(u64, f64)]) -> Vec<u64> {
        knees(points.iter().copied()).iter().map(|knee| knee.capacity).collect()
    }

    /// Broken by: points below the envelope that are kept, and by a curve's end that is left out.
    #[test]
    fn are_where_the_slope_falls() {
        assert_eq!(capacities(&[]), [0; 0]);
        assert_eq!(capacities(&[(7, 0.5)]), [7]);
        let line: Vec<_> = (1..=100).map(|at| (at, at as f64 / 200.0)).collect();
        assert_eq!(capacities(&line), [100], "a line has its end");
        let bent: Vec<_> =
            (1..=1000).map(|at| (at, (at as f64 / 200.0).min(0.4 + at as f64 / 1e4))).collect();
        assert_eq!(capacities(&bent), [82, 1000]);
        let cliff = [(10, 0.01), (500, 0.02), (501, 0.9), (700, 0.904), (900, 0.905)];
        assert_eq!(
            capacities(&cliff),
            [501, 900],
            "what lies before a cliff is no use, nor what is hardly more"
        );
    }
}
