//! What changed between two profiles of a tier, and whether that is more than it changes by itself.
//!
//! A point changed when its bandwidth did by more than passes differ. A few passes tell badly how much they
//! differ, so that a point whose passes happen to agree is given what points usually differ by. Of many
//! points some are beyond that by chance: a tier drifted when more are.

use wavetank_model::{TierPoint, TierProfile, TierRoom};
use wavetank_report::median;

/// Changes below this many deviations of the difference are chance.
const DEVIATIONS: f64 = 3.0;
/// Changes below this are of no interest, and come with every other start of a process.
const LEAST: f64 = 0.05;
/// The share of points that may be beyond their limits by chance.
const BY_CHANCE: f64 = 0.05;

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
    /// What the bandwidth may change by without being beyond what passes differ by; absent where nothing was
    /// measured in two passes.
    pub limit: Option<f64>,
}

impl Change {
    /// Whether the bandwidth changed by more than passes differ: to (1 + limit) times, or a (1 + limit)th.
    pub fn is_beyond(&self) -> bool {
        self.limit.is_some_and(|limit| self.bandwidth.ln_1p().abs() > limit.ln_1p())
    }

    fn between(before: &TierPoint, after: &TierPoint, usual: Option<f64>) -> Self {
        // New room is written once: nothing says what it differs by.
        let judged = after.room == TierRoom::Used;
        let change = |was: f64, is: f64| if was > 0.0 { is / was - 1.0 } else { 0.0 };
        let latency = |part: usize| change(at(before, part), at(after, part));
        Self {
            point: after.clone(),
            bandwidth: change(before.bytes_per_second, after.bytes_per_second),
            median: latency(MEDIAN),
            p99: latency(P99),
            limit: judged.then_some(usual).flatten().map(|usual| limit(before, after, usual)),
        }
    }
}

/// What two runs of a point may differ by, where passes usually have this variance.
fn limit(before: &TierPoint, after: &TierPoint, usual: f64) -> f64 {
    let variance = variance(before, after).map_or(usual, |own| own.max(usual));
    let passes = |point: &TierPoint| point.pass_bytes_per_second.len() as f64;
    let deviation = (variance * (1.0 / passes(before) + 1.0 / passes(after))).sqrt();
    (DEVIATIONS * deviation).exp_m1().max(LEAST)
}

/// How the bandwidth of passes varies around that of their run, as logarithms; `None` where each had one
/// pass.
fn variance(before: &TierPoint, after: &TierPoint) -> Option<f64> {
    let squares = |point: &TierPoint| {
        let rates: Vec<f64> = point.pass_bytes_per_second.iter().map(|rate| rate.ln()).collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>()
    };
    let passes = before.pass_bytes_per_second.len() + after.pass_bytes_per_second.len();
    (passes > 2).then(|| (squares(before) + squares(after)) / (passes - 2) as f64)
}

/// Places in [`TIER_QUANTILES`](wavetank_model::TIER_QUANTILES).
pub(super) const MEDIAN: usize = 3;
pub(super) const P99: usize = 7;

/// A quantile of reads, or of writes where there are none.
pub(super) fn at(point: &TierPoint, part: usize) -> f64 {
    point.read.as_ref().or(point.write.as_ref()).map_or(0.0, |latency| latency.quantiles_us[part])
}

/// Whether a tier changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// More points are beyond their limits than are by chance.
    Drifted,
    /// No more than that.
    Steady,
    /// Nothing was measured in two passes.
    Unknown,
}

impl Drift {
    /// What changed from `before` to `after`.
    pub fn between(before: &TierProfile, after: &TierProfile) -> Self {
        let twin = |point: &TierPoint| before.points.iter().find(|other| other.is_of(point));
        let pairs: Vec<(&TierPoint, &TierPoint)> =
            after.points.iter().filter_map(|point| Some((twin(point)?, point))).collect();
        let variances: Vec<f64> = pairs.iter().filter_map(|(was, is)| variance(was, is)).collect();
        let usual = median(&variances);
        let changes: Vec<Change> = pairs.iter().map(|(was, is)| Change::between(was, is, usual)).collect();
        Self {
            only_before: before.points.len() - changes.len(),
            only_after: after.points.len() - changes.len(),
            differences: differences(before, after),
            changes,
        }
    }

    /// How many points changed by more than passes differ.
    pub fn beyond(&self) -> usize {
        self.changes.iter().filter(|change| change.is_beyond()).count()
    }

    /// How many points have a limit.
    pub fn judged(&self) -> usize {
        self.changes.iter().filter(|change| change.limit.is_some()).count()
    }

    /// What the bandwidth of the point in the middle changed by.
    pub fn middle(&self) -> f64 {
        let changes: Vec<f64> = self.changes.iter().map(|change| change.bandwidth).collect();
        median(&changes).unwrap_or_default()
    }

    /// Whether the tier changed.
    pub fn verdict(&self) -> Verdict {
        if self.changes.iter().all(|change| change.limit.is_none()) {
            return Verdict::Unknown;
        }
        let is_more = self.beyond() as f64 > BY_CHANCE * self.judged() as f64;
        if is_more { Verdict::Drifted } else { Verdict::Steady }
    }
}

fn differences(before: &TierProfile, after: &TierProfile) -> Vec<String> {
    let (was, is) = (&before.origin, &after.origin);
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "not known".to_owned());
    let place = |text: &str| if text.is_empty() { "none".to_owned() } else { text.to_owned() };
    let (then, now) = (&before.settings, &after.settings);
    let rows = [
        ("backend", was.backend.clone(), is.backend.clone()),
        ("location", place(&was.location), place(&is.location)),
        ("version", was.wavetank.clone(), is.wavetank.clone()),
        ("processor", text(&was.machine), text(&is.machine)),
        ("cores", was.cores.to_string(), is.cores.to_string()),
        ("kernel", text(&was.kernel), text(&is.kernel)),
        ("device", text(&was.device), text(&is.device)),
        ("file system", text(&was.file_system), text(&is.file_system)),
        ("passes", then.passes.to_string(), now.passes.to_string()),
        ("seconds per point", then.seconds_per_point.to_string(), now.seconds_per_point.to_string()),
        ("sustained seconds", then.sustained_seconds.to_string(), now.sustained_seconds.to_string()),
        ("working set", then.working_set_bytes.to_string(), now.working_set_bytes.to_string()),
        ("most entries", then.entries_max.to_string(), now.entries_max.to_string()),
        ("threads", then.threads.to_string(), now.threads.to_string()),
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
            assert!(!change.is_beyond());
        }
    }

    /// Broken by: a limit that leaves out what passes of one run differ by, or a sign that is turned around.
    #[test]
    fn a_change_counts_when_it_is_more_than_passes_differ() {
        let (before, mut after) = (profile(), profile());
        after.points[0].bytes_per_second *= 0.94;
        after.points[1].bytes_per_second *= 1.04;
        after.points[2].bytes_per_second *= 1.3;
        after.points[2].pass_bytes_per_second[0] *= 0.7;
        after.points[0].read.as_mut().unwrap().quantiles_us[P99] *= 3.0;
        after.origin.kernel = Some("6.2".to_owned());
        let drift = Drift::between(&before, &after);
        let beyond: Vec<bool> = drift.changes.iter().map(Change::is_beyond).collect();
        assert_eq!(beyond, [true, false, false], "more than 5 %, less, and less than its passes differ");
        assert!(
            (drift.changes[0].bandwidth + 0.06).abs() < 1e-9 && (drift.changes[0].p99 - 2.0).abs() < 1e-9
        );
        assert_eq!(drift.differences, ["kernel: 6.1 then, 6.2 now"]);
        assert_eq!(drift.verdict(), Verdict::Drifted);
        after.points.remove(1);
        let fewer = Drift::between(&before, &after);
        assert_eq!((fewer.changes.len(), fewer.only_before, fewer.only_after), (2, 1, 0));
    }

    /// Broken by: a point whose passes agree by chance and which is then held to that, or one of many that is
    /// taken for all.
    #[test]
    fn a_point_is_given_what_points_usually_differ_by() {
        let (mut before, mut after) = (profile(), profile());
        for profile in [&mut before, &mut after] {
            let template = profile.points[0].clone();
            let point = |depth: u32| {
                let passes = [0.8, 1.0, 1.2].map(|part| part * template.bytes_per_second).to_vec();
                TierPoint { depth, pass_bytes_per_second: passes, ..template.clone() }
            };
            profile.points = (1..=40).map(point).collect();
            profile.points[0].pass_bytes_per_second = vec![template.bytes_per_second; 3];
        }
        after.points[0].bytes_per_second *= 1.3;
        let drift = Drift::between(&before, &after);
        assert_eq!((drift.beyond(), drift.verdict()), (0, Verdict::Steady));
        after.points[1].bytes_per_second *= 4.0;
        let drift = Drift::between(&before, &after);
        assert_eq!((drift.beyond(), drift.verdict()), (1, Verdict::Steady), "one of 40 may be");
        after.points.iter_mut().for_each(|point| point.bytes_per_second *= 2.0);
        assert_eq!(Drift::between(&before, &after).verdict(), Verdict::Drifted);
    }
}
