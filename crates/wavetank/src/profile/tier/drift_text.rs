//! What changed between two profiles of a tier, for people.

use wavetank_report::render::table::framed;

use super::drift::{Change, Drift, Verdict};
use super::text::{named, share};

const COLUMNS: &[&str] = &["Operations", "size", "depth", "MB/s %", "limit %", "P50 %", "P99 %", "beyond"];

/// A row per point of both profiles, whether the tier changed, and what makes them incomparable.
pub fn drift_table(drift: &Drift) -> String {
    let mut table = framed(COLUMNS);
    drift.changes.iter().for_each(|change| _ = table.add_row(cells(change)));
    let mut text = format!("{table}\n{}", verdict(drift));
    if drift.only_before + drift.only_after > 0 {
        text += &format!("Not in both: {} then, {} now\n", drift.only_before, drift.only_after);
    }
    drift.differences.iter().for_each(|difference| text += &format!("Not the same: {difference}\n"));
    text
}

fn verdict(drift: &Drift) -> String {
    let counted = format!(
        "{} of {} points changed by more than passes differ, bandwidth by {:+.1} % in the middle",
        drift.beyond(),
        drift.judged(),
        drift.middle() * 100.0
    );
    match drift.verdict() {
        Verdict::Drifted => format!("Drift: yes: {counted}\n"),
        Verdict::Steady => format!("Drift: no: {counted}\n"),
        Verdict::Unknown => "Drift: not known: no point of both was measured in two passes\n".to_owned(),
    }
}

fn cells(change: &Change) -> Vec<String> {
    let percent = |share: f64| format!("{:+.1}", share * 100.0);
    let mut cells = named(&change.point);
    cells.extend([
        percent(change.bandwidth),
        share(change.limit),
        percent(change.median),
        percent(change.p99),
        if change.is_beyond() { "yes" } else { "no" }.to_owned(),
    ]);
    cells
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::profile::tier::testing::profile;

    #[test]
    fn a_drift_is_a_table() {
        let (before, mut after) = (profile(), profile());
        after.points[0].bytes_per_second *= 0.8;
        after.points.pop();
        let drifted = drift_table(&Drift::between(&before, &after));
        let steady = drift_table(&Drift::between(&before, &before));
        after.points.iter_mut().for_each(|point| point.pass_bytes_per_second.truncate(1));
        let once = Drift::between(&after, &after);
        assert_snapshot!(format!("{drifted}\n{steady}\n{}", verdict(&once)));
    }
}
