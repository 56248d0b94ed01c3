//! Profiles of tiers and their drift for people.

use wavetank_model::{Sustained, TierLatency, TierPoint, TierProfile};
use wavetank_report::render::table::framed;

use super::drift::{Change, Drift, MEDIAN, P99};

const COLUMNS: &[&str] = &[
    "Operations",
    "size",
    "depth",
    "MB/s",
    "scatter %",
    "read P50 us",
    "read P99 us",
    "write P50 us",
    "write P99 us",
];
const DRIFT_COLUMNS: &[&str] =
    &["Operations", "size", "depth", "MB/s %", "scatter %", "P50 %", "P99 %", "beyond scatter"];

/// Where it was measured, a row per point, and what writing comes to.
pub fn table(profile: &TierProfile) -> String {
    let mut table = framed(COLUMNS);
    for point in &profile.points {
        table.add_row(cells(point));
    }
    let sustained = profile.sustained.as_ref().map(sustained).unwrap_or_default();
    let partial = if profile.partial { " (partial)" } else { "" };
    format!("wavetank profile tier{partial}\n{}\n{table}\n{sustained}", place(profile))
}

fn place(profile: &TierProfile) -> String {
    let origin = &profile.origin;
    let known = [
        Some(&origin.location).filter(|location| !location.is_empty()),
        origin.device.as_ref(),
        origin.file_system.as_ref(),
        origin.machine.as_ref(),
        origin.kernel.as_ref(),
        Some(&origin.date),
    ];
    let known: Vec<&str> = known.into_iter().flatten().map(String::as_str).collect();
    format!("Backend: {} ({})", origin.backend, known.join(", "))
}

fn cells(point: &TierPoint) -> Vec<String> {
    let at = |latency: &Option<TierLatency>, part: usize| {
        latency.as_ref().map_or_else(|| "-".to_owned(), |it| microseconds(it.quantiles_us[part]))
    };
    let mut cells = named(point);
    cells.extend([
        format!("{:.1}", point.bytes_per_second / 1e6),
        point.scatter.map_or_else(|| "N/A".to_owned(), |scatter| format!("{:.1}", scatter * 100.0)),
        at(&point.read, MEDIAN),
        at(&point.read, P99),
        at(&point.write, MEDIAN),
        at(&point.write, P99),
    ]);
    cells
}

fn named(point: &TierPoint) -> Vec<String> {
    let operations = match point.read_share {
        1.0 => "reads".to_owned(),
        0.0 => "writes".to_owned(),
        share => format!("{:.0} % reads", share * 100.0),
    };
    vec![operations, size(point.bytes), point.depth.to_string()]
}

fn microseconds(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// In the largest unit that it is a whole number of.
fn size(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = units.into_iter().find(|(_, shift)| bytes.is_multiple_of(1 << shift));
    unit.map_or_else(|| format!("{bytes} B"), |(unit, shift)| format!("{} {unit}", bytes >> shift))
}

fn sustained(course: &Sustained) -> String {
    let fell = match course.fell_at_seconds {
        Some(seconds) => format!("fell after {seconds:.1} s"),
        None => "did not fall".to_owned(),
    };
    format!(
        "Sustained writes of {} at depth {}: {:.1} MB/s at first, {:.1} MB/s later, {fell}\n",
        size(course.bytes),
        course.depth,
        course.burst_bytes_per_second / 1e6,
        course.steady_bytes_per_second / 1e6
    )
}

/// A row per point of both profiles, and what makes them incomparable.
pub fn drift_table(drift: &Drift) -> String {
    let mut table = framed(DRIFT_COLUMNS);
    for change in &drift.changes {
        table.add_row(drift_cells(change));
    }
    let mut text = format!(
        "Drift\n{table}\n{} of {} points changed by more than they scatter\n",
        drift.beyond_scatter(),
        drift.changes.len()
    );
    if drift.only_before + drift.only_after > 0 {
        text += &format!("Not in both: {} then, {} now\n", drift.only_before, drift.only_after);
    }
    drift.differences.iter().for_each(|difference| text += &format!("Not the same: {difference}\n"));
    text
}

fn drift_cells(change: &Change) -> Vec<String> {
    let percent = |share: f64| format!("{:+.1}", share * 100.0);
    let mut cells = named(&change.point);
    cells.extend([
        percent(change.bandwidth),
        change.scatter.map_or_else(|| "N/A".to_owned(), |scatter| format!("{:.1}", scatter * 100.0)),
        percent(change.median),
        percent(change.p99),
        if change.is_beyond_scatter() { "yes" } else { "no" }.to_owned(),
    ]);
    cells
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::profile::tier::testing::profile;

    #[test]
    fn a_profile_and_its_drift_are_tables() {
        let (before, mut after) = (profile(), profile());
        after.points[0].bytes_per_second *= 0.9;
        after.points.pop();
        after.partial = true;
        let drift = drift_table(&Drift::between(&before, &after));
        assert_snapshot!(format!("{}\n{drift}", table(&after)));
    }
}
