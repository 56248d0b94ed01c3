//! Whether a profile that was read can be what was measured.

use super::{
    Sustained, TIER_LAYOUT, TIER_QUANTILES, TierAgain, TierFlaw, TierLatency, TierPoint, TierProfile,
    TierSettings,
};

/// A bandwidth is written with all its digits: more than this is another number.
const ROUNDING: f64 = 1e-6;

type Rule = (bool, &'static str, &'static str);

impl TierProfile {
    /// The first thing that no measurement can have given.
    pub fn flaw(&self) -> Option<TierFlaw> {
        let own = [
            (self.layout == TIER_LAYOUT, "layout", "is not one that this version reads"),
            (!self.points.is_empty(), "points", "has none"),
            (
                self.again.is_sorted_by(rises),
                "again",
                "must rise in apart_bytes, of each operation and number of repeats",
            ),
        ];
        let parts = || self.settings.flaw().or_else(|| self.sustained.as_ref().and_then(Sustained::flaw));
        let alone = broken(&own).or_else(parts).map(|(field, rule)| TierFlaw { place: None, field, rule });
        alone.or_else(|| self.flaw_of_again()).or_else(|| self.flaw_of_points())
    }

    fn flaw_of_again(&self) -> Option<TierFlaw> {
        self.again.iter().enumerate().find_map(|(number, again)| {
            let (field, rule) = again.flaw()?;
            Some(TierFlaw { place: Some(("again", number)), field, rule })
        })
    }

    fn flaw_of_points(&self) -> Option<TierFlaw> {
        self.points.iter().enumerate().find_map(|(number, point)| {
            let twice = self.points[..number].iter().any(|other| other.is_of(point));
            let twin = [(!twice, "bytes", "is measured twice with this depth, read_share and room")];
            let (field, rule) = broken(&twin).or_else(|| point.flaw())?;
            Some(TierFlaw { place: Some(("points", number)), field, rule })
        })
    }
}

/// Whether what was read further apart comes later, of its kind.
fn rises(a: &TierAgain, b: &TierAgain) -> bool {
    !a.is_like(b) || a.apart_bytes < b.apart_bytes
}

const ABOVE_ZERO: &str = "must be above 0";
const NOT_NEGATIVE: &str = "must not be negative";
const AS_COUNTED: &str = "must be there exactly if there were such operations";

impl TierSettings {
    fn flaw(&self) -> Option<(&'static str, &'static str)> {
        let rules = [
            (self.passes > 0, "passes", ABOVE_ZERO),
            (is_time(self.seconds_per_point), "seconds_per_point", ABOVE_ZERO),
            (is_rate(self.sustained_seconds), "sustained_seconds", NOT_NEGATIVE),
            (self.threads > 0, "threads", ABOVE_ZERO),
        ];
        broken(&rules)
    }
}

impl Sustained {
    fn flaw(&self) -> Option<(&'static str, &'static str)> {
        let course = &self.course_bytes_per_second;
        let is_course = !course.is_empty() && course.iter().copied().all(is_rate);
        let rules = [
            (is_time(self.step_seconds), "step_seconds", ABOVE_ZERO),
            (is_rate(self.burst_bytes_per_second), "burst_bytes_per_second", NOT_NEGATIVE),
            (is_rate(self.steady_bytes_per_second), "steady_bytes_per_second", NOT_NEGATIVE),
            (self.fell_at_seconds.is_none_or(is_rate), "fell_at_seconds", NOT_NEGATIVE),
            (is_course, "course_bytes_per_second", "must have steps, none of them negative"),
        ];
        broken(&rules)
    }
}

impl TierAgain {
    fn flaw(&self) -> Option<(&'static str, &'static str)> {
        let rules = [
            (self.bytes > 0, "bytes", ABOVE_ZERO),
            (self.apart_bytes >= self.bytes, "apart_bytes", "must be an entry at least"),
            (self.operations > 0, "operations", ABOVE_ZERO),
            (is_time(self.mean_us), "mean_us", ABOVE_ZERO),
        ];
        broken(&rules)
    }
}

impl TierPoint {
    /// What the bandwidth of a pass differs by from that of another: the standard deviation as a share of
    /// their mean; `None` where there was one pass.
    pub fn scatter(&self) -> Option<f64> {
        let rates = &self.pass_bytes_per_second;
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let squares = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>();
        (rates.len() > 1).then(|| (squares / (rates.len() - 1) as f64).sqrt() / mean)
    }

    /// Whether it is of the same operations as another.
    pub fn is_of(&self, other: &Self) -> bool {
        let of = |point: &Self| (point.read_share, point.room, point.bytes, point.depth);
        of(self) == of(other)
    }

    fn flaw(&self) -> Option<(&'static str, &'static str)> {
        let rate = self.operations as f64 * self.bytes as f64 / self.seconds;
        let is_whole = (self.bytes_per_second / rate - 1.0).abs() <= ROUNDING;
        let passes = || self.pass_bytes_per_second.iter().copied();
        let is_between = passes().all(is_time)
            && passes().any(|pass| pass <= self.bytes_per_second * (1.0 + ROUNDING))
            && passes().any(|pass| pass >= self.bytes_per_second * (1.0 - ROUNDING));
        let rules = [
            ((0.0..=1.0).contains(&self.read_share), "read_share", "must be between 0 and 1"),
            (self.bytes > 0, "bytes", ABOVE_ZERO),
            (self.depth > 0, "depth", ABOVE_ZERO),
            (self.operations > 0, "operations", ABOVE_ZERO),
            (self.reads <= self.operations, "reads", "must be some of the operations"),
            (
                self.room.is_used() || self.reads < self.operations,
                "room",
                "is new where something is written",
            ),
            (is_time(self.seconds), "seconds", ABOVE_ZERO),
            (is_whole, "bytes_per_second", "must be operations × bytes / seconds"),
            (is_between, "pass_bytes_per_second", "must be passes that come to bytes_per_second"),
            (self.read.is_some() == (self.reads > 0), "read", AS_COUNTED),
            (self.write.is_some() == (self.reads < self.operations), "write", AS_COUNTED),
        ];
        let longest = self.read.iter().chain(&self.write).map(TierLatency::longest_us).fold(0.0, f64::max);
        let is_spent = (0.0..=longest).contains(&self.busy_us);
        let is_some = (0.0..=f64::from(self.depth)).contains(&self.ended_at_once);
        let spent = [
            (is_spent, "busy_us", "must be between 0 and the longest that was seen"),
            (is_some, "ended_at_once", "must be between 0 and the depth"),
        ];
        let latencies = || self.read.iter().chain(&self.write).find_map(TierLatency::flaw);
        broken(&rules).or_else(latencies).or_else(|| broken(&spent))
    }
}

impl TierLatency {
    /// The longest that was seen.
    pub fn longest_us(&self) -> f64 {
        self.quantiles_us[TIER_QUANTILES.len() - 1]
    }

    fn flaw(&self) -> Option<(&'static str, &'static str)> {
        let all = &self.quantiles_us;
        let longest = self.longest_us();
        let is_sound = all.iter().all(|it| it.is_finite() && *it >= 0.0) && all.is_sorted();
        let rules = [
            (is_sound, "quantiles_us", "must rise"),
            ((0.0..=longest).contains(&self.mean_us), "mean_us", "must not be above the longest"),
            (
                (0.0..=longest).contains(&self.device_mean_us),
                "device_mean_us",
                "must not be above the longest",
            ),
        ];
        broken(&rules)
    }
}

fn is_time(seconds: f64) -> bool {
    seconds.is_finite() && seconds > 0.0
}

fn is_rate(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

fn broken(rules: &[Rule]) -> Option<(&'static str, &'static str)> {
    rules.iter().find(|(holds, ..)| !holds).map(|(_, field, rule)| (*field, *rule))
}

#[cfg(test)]
mod tests {
    use super::super::TierRoom;
    use super::super::testing::profile;
    use super::*;
    use crate::Operation;

    fn again(apart_bytes: u64) -> TierAgain {
        let after = Operation::Read;
        TierAgain { after, repeats: 0, apart_bytes, bytes: 4096, operations: 9, mean_us: 3.0 }
    }

    /// Broken by: leaving out the rule of one of the fields.
    #[test]
    fn what_cannot_have_been_measured_is_found() {
        type Damage = fn(&mut TierProfile);
        assert_eq!(profile().flaw(), None);
        let cases: [(&str, Damage); 18] = [
            ("layout", |it| it.layout.push('1')),
            ("points", |it| it.points.clear()),
            ("bytes", |it| it.points.push(it.points[0].clone())),
            ("reads", |it| it.points[0].reads = 11),
            ("room", |it| it.points[0].room = TierRoom::New),
            ("seconds", |it| it.points[0].seconds = f64::NAN),
            ("bytes_per_second", |it| it.points[0].bytes_per_second = 20481.0),
            ("pass_bytes_per_second", |it| it.points[0].pass_bytes_per_second[0] = 20481.0),
            ("pass_bytes_per_second", |it| it.points[0].pass_bytes_per_second.clear()),
            ("passes", |it| it.settings.passes = 0),
            ("course_bytes_per_second", |it| {
                it.sustained = Some(Sustained {
                    bytes: 1,
                    depth: 1,
                    step_seconds: 1.0,
                    burst_bytes_per_second: 1.0,
                    steady_bytes_per_second: 1.0,
                    fell_at_seconds: None,
                    course_bytes_per_second: vec![f64::NAN],
                });
            }),
            ("again", |it| it.again = vec![again(2 << 20), again(1 << 20)]),
            ("mean_us", |it| it.again = vec![TierAgain { mean_us: 0.0, ..again(1 << 20) }]),
            ("write", |it| it.points[0].write = it.points[0].read.clone()),
            ("quantiles_us", |it| it.points[0].read.as_mut().unwrap().quantiles_us[3] = 4.0),
            ("busy_us", |it| it.points[0].busy_us = 5.1),
            ("ended_at_once", |it| it.points[0].ended_at_once = 1.5),
            ("mean_us", |it| it.points[0].read.as_mut().unwrap().mean_us = 6.0),
        ];
        for (field, damage) in cases {
            let mut damaged = profile();
            damage(&mut damaged);
            assert_eq!(damaged.flaw().map(|flaw| flaw.field), Some(field));
        }
    }

    /// Broken by: a deviation of all instead of a sample, or one that is no share.
    #[test]
    fn scatter_is_between_passes() {
        let mut point = profile().points.remove(0);
        assert_eq!(point.scatter(), None);
        point.pass_bytes_per_second = vec![1.0, 3.0];
        assert_eq!(point.scatter(), Some(2.0_f64.sqrt() / 2.0));
    }
}
