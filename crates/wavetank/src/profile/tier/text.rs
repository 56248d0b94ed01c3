//! Profiles of tiers for people.

use wavetank_model::{
    Operation, Sustained, TIER_QUANTILES, TierAgain, TierLatency, TierPoint, TierProfile, TierRoom,
};
use wavetank_report::render::table::framed;

use super::drift::{MEDIAN, P99};

const COLUMNS: &[&str] = &[
    "Operations",
    "size",
    "depth",
    "count",
    "MB/s",
    "scatter %",
    "read P50 us",
    "read P99 us",
    "write P50 us",
    "write P99 us",
];
/// Stands behind a quantile that fewer operations do not have.
const LONGEST: &str = "*";

/// Where it was measured, a row per point, and what writing comes to.
pub fn table(profile: &TierProfile) -> String {
    let mut table = framed(COLUMNS);
    for point in &profile.points {
        table.add_row(cells(point));
    }
    let partial = if profile.partial { " (partial)" } else { "" };
    let below = [
        footnote(profile),
        left_out(profile),
        together(profile),
        again(profile),
        profile.sustained.as_ref().map(sustained),
    ];
    let below: String = below.into_iter().flatten().collect();
    format!("wavetank profile tier{partial}\n{}\n{}\n{table}\n{below}", place(profile), settings(profile))
}

fn settings(profile: &TierProfile) -> String {
    let own = &profile.settings;
    let threads = if own.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", own.threads) };
    let passes = if own.passes == 1 { "1 pass".to_owned() } else { format!("{} passes", own.passes) };
    let (set, most) = (size(own.working_set_bytes), own.entries_max);
    format!(
        "Measured: {passes}, {} s a point, {threads}, {set} or {most} entries of each size",
        own.seconds_per_point
    )
}

/// What is marked in the table, where anything is.
fn footnote(profile: &TierProfile) -> Option<String> {
    let is_marked = |point: &TierPoint| cells(point).iter().any(|cell| cell.ends_with(LONGEST));
    let told = format!("{LONGEST} the longest seen: fewer than 100 operations have no P99\n");
    profile.points.iter().any(is_marked).then_some(told)
}

/// That there are no points with more in flight, where there are none.
fn left_out(profile: &TierProfile) -> Option<String> {
    let most = profile.settings.in_flight_bytes_max;
    let largest = profile.points.iter().map(|point| point.bytes).max()?;
    let deepest = profile.points.iter().map(|point| point.depth).max()?;
    let is_whole = largest.saturating_mul(u64::from(deepest)) <= most;
    (!is_whole).then(|| format!("Left out: points with more than {} in flight\n", size(most)))
}

/// That ends come together, where they do.
fn together(profile: &TierProfile) -> Option<String> {
    let told =
        "Reads under way together end together: this device tells of ends when nothing is left to do\n";
    profile.ends_together().then(|| told.to_owned())
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
    let (reads, writes) = (point.reads, point.operations - point.reads);
    let mut cells = named(point);
    cells.extend([
        point.operations.to_string(),
        format!("{:.1}", point.bytes_per_second / 1e6),
        share(point.scatter()),
        quantile(point.read.as_ref(), MEDIAN, reads),
        quantile(point.read.as_ref(), P99, reads),
        quantile(point.write.as_ref(), MEDIAN, writes),
        quantile(point.write.as_ref(), P99, writes),
    ]);
    cells
}

/// One of the quantiles of so many operations.
fn quantile(latency: Option<&TierLatency>, part: usize, operations: u64) -> String {
    let Some(latency) = latency else { return "-".to_owned() };
    // One in a hundred is at most the longest, and only that, below a hundred.
    let is_longest = operations as f64 * (1.0 - TIER_QUANTILES[part]) < 1.0 - 1e-9;
    let mark = if is_longest && part != MEDIAN { LONGEST } else { "" };
    microseconds(latency.quantiles_us[part]) + mark
}

/// In percent, where it is known.
pub(super) fn share(share: Option<f64>) -> String {
    share.map_or_else(|| "N/A".to_owned(), |share| format!("{:.1}", share * 100.0))
}

/// What it is of.
pub(super) fn named(point: &TierPoint) -> Vec<String> {
    let operations = match point.read_share {
        0.0 if point.room == TierRoom::New => "new writes".to_owned(),
        share if point.room == TierRoom::New => format!("{:.0} % reads, new", share * 100.0),
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

/// What reads of what was just read, or just written, come to, where that was measured.
fn again(profile: &TierProfile) -> Option<String> {
    let line = |seen: &[TierAgain]| {
        let rate = |again: &TierAgain| {
            format!("{:.0} MB/s {} later", again.bytes as f64 / again.mean_us, size(again.apart_bytes))
        };
        let rates: Vec<String> = seen.iter().map(rate).collect();
        let after = match (seen[0].after, seen[0].repeats) {
            (Operation::Write, _) => "written".to_owned(),
            (Operation::Read, 0) => "read".to_owned(),
            (Operation::Read, repeats) => format!("read {} times", repeats + 1),
        };
        format!("Reads of {} just {after}, at depth 1: {}\n", size(seen[0].bytes), rates.join(", "))
    };
    let lines: String = profile.again.chunk_by(TierAgain::is_like).map(line).collect();
    (!lines.is_empty()).then_some(lines)
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

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::profile::tier::testing::profile;

    #[test]
    fn a_profile_is_a_table() {
        let mut profile = profile();
        profile.partial = true;
        assert_snapshot!(table(&profile));
    }

    /// Broken by: a quantile of too few operations that is shown as if it were one.
    #[test]
    fn a_quantile_that_is_the_longest_is_marked() {
        let latency = profile().points[0].read.clone();
        assert!(!quantile(latency.as_ref(), P99, 100).ends_with(LONGEST));
        assert!(quantile(latency.as_ref(), P99, 99).ends_with(LONGEST));
        assert!(!quantile(latency.as_ref(), MEDIAN, 1).ends_with(LONGEST));
        assert_eq!(quantile(None, P99, 0), "-");
    }

    /// Broken by: points that are left out and not told.
    #[test]
    fn what_is_left_out_is_told() {
        let mut profile = profile();
        assert_eq!(left_out(&profile), None);
        profile.settings.in_flight_bytes_max = 128 << 10;
        assert_eq!(left_out(&profile).unwrap(), "Left out: points with more than 128 KiB in flight\n");
    }
}
