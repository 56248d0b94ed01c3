//! What changed between two profiles of a tier, and whether that is more than it scatters.

use wavetank_model::{TierPoint, TierProfile};

/// Changes below this many deviations of both runs together are scatter.
const DEVIATIONS: f64 = 2.0;

/// What changed from one profile to a later one.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    /// Every point of both, in the order of the later one.
    pub changes: Vec<Change>,
    /// Points that only the earlier one has.
    pub only_before: usize,
    /// Points that only the later one has.
    pub only_after: usize,
    /// What would make the two incomparable, in words.
    pub differences: Vec<String>,
}

/// What changed at a point; shares of what was, so that 0.1 is 10 % more.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The point in the later profile.
    pub point: TierPoint,
    /// Of the bandwidth.
    pub bandwidth: f64,
    /// Of the median latency: of reads, or of writes where there are none.
    pub median: f64,
    /// Of the 99th percentile of the same.
    pub p99: f64,
    /// What bandwidth scatters by within the two runs; absent where one has too few operations to say.
    pub scatter: Option<f64>,
}

impl Change {
    /// Whether the bandwidth changed by more than it scatters.
    pub fn is_beyond_scatter(&self) -> bool {
        self.scatter.is_some_and(|scatter| self.bandwidth.abs() > scatter)
    }

    fn between(before: &TierPoint, after: &TierPoint) -> Self {
        let change = |was: f64, is: f64| if was > 0.0 { is / was - 1.0 } else { 0.0 };
        let latency = |part: usize| change(at(before, part), at(after, part));
        Self {
            point: after.clone(),
            bandwidth: change(before.bytes_per_second, after.bytes_per_second),
            median: latency(MEDIAN),
            p99: latency(P99),
            scatter: before.scatter.zip(after.scatter).map(|(was, is)| DEVIATIONS * was.hypot(is)),
        }
    }
}

/// Places in [`TIER_QUANTILES`](wavetank_model::TIER_QUANTILES).
pub(super) const MEDIAN: usize = 3;
pub(super) const P99: usize = 7;

/// A quantile of reads, or of writes where there are none.
pub(super) fn at(point: &TierPoint, part: usize) -> f64 {
    point.read.as_ref().or(point.write.as_ref()).map_or(0.0, |latency| latency.quantiles_us[part])
}

impl Drift {
    /// What changed from `before` to `after`.
    pub fn between(before: &TierProfile, after: &TierProfile) -> Self {
        let twin = |point: &TierPoint| before.points.iter().find(|other| other.is_of(point));
        let changes: Vec<Change> =
            after.points.iter().filter_map(|point| Some(Change::between(twin(point)?, point))).collect();
        Self {
            only_before: before.points.len() - changes.len(),
            only_after: after.points.len() - changes.len(),
            differences: differences(before, after),
            changes,
        }
    }

    /// How many points changed by more than they scatter.
    pub fn beyond_scatter(&self) -> usize {
        self.changes.iter().filter(|change| change.is_beyond_scatter()).count()
    }
}

fn differences(before: &TierProfile, after: &TierProfile) -> Vec<String> {
    let (was, is) = (&before.origin, &after.origin);
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "not known".to_owned());
    let place = |text: &str| if text.is_empty() { "none".to_owned() } else { text.to_owned() };
    let seconds = |profile: &TierProfile| profile.settings.seconds_per_point.to_string();
    let bytes = |profile: &TierProfile| profile.settings.working_set_bytes.to_string();
    let rows = [
        ("backend", was.backend.clone(), is.backend.clone()),
        ("location", place(&was.location), place(&is.location)),
        ("version", was.wavetank.clone(), is.wavetank.clone()),
        ("processor", text(&was.machine), text(&is.machine)),
        ("cores", was.cores.to_string(), is.cores.to_string()),
        ("kernel", text(&was.kernel), text(&is.kernel)),
        ("device", text(&was.device), text(&is.device)),
        ("file system", text(&was.file_system), text(&is.file_system)),
        ("seconds per point", seconds(before), seconds(after)),
        ("working set", bytes(before), bytes(after)),
    ];
    let differ = rows.into_iter().filter(|(_, was, is)| was != is);
    differ.map(|(what, was, is)| format!("{what}: {was} then, {is} now")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tier::testing::profile;

    /// Broken by: comparing a point with another one.
    #[test]
    fn nothing_drifts_from_itself() {
        let drift = Drift::between(&profile(), &profile());
        assert_eq!((drift.changes.len(), drift.only_before, drift.only_after), (3, 0, 0));
        assert_eq!(drift.differences, [""; 0]);
        for change in &drift.changes {
            assert_eq!((change.bandwidth, change.median, change.p99), (0.0, 0.0, 0.0));
            assert!(!change.is_beyond_scatter());
        }
    }

    /// Broken by: a limit that leaves out the scatter of one run, or a sign that is turned around.
    #[test]
    fn a_change_counts_when_it_is_more_than_both_scatter() {
        let (before, mut after) = (profile(), profile());
        after.points[0].bytes_per_second *= 0.96;
        after.points[1].bytes_per_second *= 1.02;
        after.points[2].bytes_per_second *= 2.0;
        after.points[2].scatter = None;
        after.points[0].read.as_mut().unwrap().quantiles_us[P99] *= 3.0;
        after.origin.kernel = Some("6.2".to_owned());
        let drift = Drift::between(&before, &after);
        let beyond: Vec<bool> = drift.changes.iter().map(Change::is_beyond_scatter).collect();
        assert_eq!(beyond, [true, false, false], "twice the root of two times 1 % is 2.8 %");
        assert!(
            (drift.changes[0].bandwidth + 0.04).abs() < 1e-9 && (drift.changes[0].p99 - 2.0).abs() < 1e-9
        );
        assert_eq!(drift.differences, ["kernel: 6.1 then, 6.2 now"]);
        after.points.remove(1);
        let fewer = Drift::between(&before, &after);
        assert_eq!((fewer.changes.len(), fewer.only_before, fewer.only_after), (2, 1, 0));
    }
}
