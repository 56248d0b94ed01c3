//! The experts of a mixture: their time by tokens and by how many are in use.

use std::collections::BTreeMap;

use wavetank_model::Result;

use super::Points;
use super::axis::lerp;
use super::table::Table;

/// Microseconds by tokens, then by experts in use.
pub(super) type ExpertRows = Vec<(u32, Points)>;

/// Expert times by tokens, then by experts in use.
pub(super) fn expert_rows(table: &Table) -> Result<ExpertRows> {
    let mut rows: BTreeMap<u32, Points> = Default::default();
    for row in table.rows() {
        let points = rows.entry(row.count("tokens")?).or_default();
        let at = row.count("activated_experts")?;
        if points.last().is_some_and(|&(before, _)| before >= at) {
            return Err(row.error("\"activated_experts\" does not rise"));
        }
        points.push((at, row.time_us("time_us")?));
    }
    if rows.len() < 2 {
        return Err(table.error("fewer than two token counts"));
    }
    Ok(rows.into_iter().collect())
}

/// Linear in the experts in use, then in tokens.
pub(super) fn expert_us(rows: &[(u32, Points)], tokens: f64, busy: f64) -> f64 {
    let next = rows.partition_point(|&(at, _)| f64::from(at) <= tokens).clamp(1, rows.len() - 1);
    let [low, high] = [&rows[next - 1], &rows[next]];
    let width = f64::from(high.0) - f64::from(low.0);
    let part = ((tokens - f64::from(low.0)) / width).max(0.0);
    lerp(along(&low.1, busy), along(&high.1, busy), part)
}

fn along(points: &[(u32, f64)], at: f64) -> f64 {
    let [.., before, last] = points else {
        return points[0].1 * (at / f64::from(points[0].0)).max(1.0);
    };
    let next = points.partition_point(|&(point, _)| f64::from(point) <= at).max(1);
    let (low, high) = if next < points.len() { (&points[next - 1], &points[next]) } else { (before, last) };
    lerp(low.1, high.1, ((at - f64::from(low.0)) / f64::from(high.0 - low.0)).max(0.0))
}
