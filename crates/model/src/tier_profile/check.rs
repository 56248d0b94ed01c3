//! Whether a profile that was read can be what was measured.

use super::{TIER_LAYOUT, TierFlaw, TierLatency, TierPoint, TierProfile};

/// A bandwidth is written with all its digits: more than this is another number.
const ROUNDING: f64 = 1e-6;

type Rule = (bool, &'static str, &'static str);

impl TierProfile {
    /// The first thing that no measurement can have given.
    pub fn flaw(&self) -> Option<TierFlaw> {
        let own = [
            (self.layout == TIER_LAYOUT, "layout", "is not one that this version reads"),
            (!self.points.is_empty(), "points", "has none"),
            (self.sustained.as_ref().is_none_or(|it| is_time(it.step_seconds)), "step_seconds", ABOVE_ZERO),
        ];
        broken(&own).map(|(field, rule)| TierFlaw { point: None, field, rule }).or_else(|| {
            self.points.iter().enumerate().find_map(|(number, point)| {
                let twice = self.points[..number].iter().any(|other| other.is_of(point));
                let twin = [(!twice, "bytes", "is measured twice with this depth and read_share")];
                let (field, rule) = broken(&twin).or_else(|| point.flaw())?;
                Some(TierFlaw { point: Some(number), field, rule })
            })
        })
    }
}

const ABOVE_ZERO: &str = "must be above 0";
const AS_COUNTED: &str = "must be there exactly if there were such operations";

impl TierPoint {
    /// Whether it is of the same operations as another.
    pub fn is_of(&self, other: &Self) -> bool {
        (self.read_share, self.bytes, self.depth) == (other.read_share, other.bytes, other.depth)
    }

    fn flaw(&self) -> Option<(&'static str, &'static str)> {
        let rate = self.operations as f64 * self.bytes as f64 / self.seconds;
        let is_rate = (self.bytes_per_second / rate - 1.0).abs() <= ROUNDING;
        let rules = [
            ((0.0..=1.0).contains(&self.read_share), "read_share", "must be between 0 and 1"),
            (self.bytes > 0, "bytes", ABOVE_ZERO),
            (self.depth > 0, "depth", ABOVE_ZERO),
            (self.operations > 0, "operations", ABOVE_ZERO),
            (self.reads <= self.operations, "reads", "must be some of the operations"),
            (is_time(self.seconds), "seconds", ABOVE_ZERO),
            (is_rate, "bytes_per_second", "must be operations × bytes / seconds"),
            (self.scatter.is_none_or(|it| it.is_finite() && it >= 0.0), "scatter", "must not be negative"),
            (self.read.is_some() == (self.reads > 0), "read", AS_COUNTED),
            (self.write.is_some() == (self.reads < self.operations), "write", AS_COUNTED),
        ];
        let latencies = || self.read.iter().chain(&self.write).find_map(TierLatency::flaw);
        broken(&rules).or_else(latencies)
    }
}

impl TierLatency {
    fn flaw(&self) -> Option<(&'static str, &'static str)> {
        let all = &self.quantiles_us;
        let longest = all[all.len() - 1];
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

fn broken(rules: &[Rule]) -> Option<(&'static str, &'static str)> {
    rules.iter().find(|(holds, ..)| !holds).map(|(_, field, rule)| (*field, *rule))
}

#[cfg(test)]
mod tests {
    use super::super::{TierOrigin, TierSettings};
    use super::*;

    fn profile() -> TierProfile {
        let latency = TierLatency { mean_us: 5.0, device_mean_us: 4.0, quantiles_us: [5.0; 10] };
        let point = TierPoint {
            read_share: 1.0,
            bytes: 4096,
            depth: 1,
            operations: 10,
            reads: 10,
            seconds: 2.0,
            bytes_per_second: 20480.0,
            scatter: None,
            read: Some(latency),
            write: None,
        };
        let settings = TierSettings {
            seconds_per_point: 2.0,
            sustained_seconds: 0.0,
            working_set_bytes: 1 << 20,
            threads: 1,
            seed: 1,
        };
        TierProfile {
            layout: TIER_LAYOUT.to_owned(),
            partial: false,
            origin: TierOrigin::default(),
            settings,
            sustained: None,
            points: vec![point],
        }
    }

    /// Broken by: leaving out the rule of one of the fields.
    #[test]
    fn what_cannot_have_been_measured_is_found() {
        type Damage = fn(&mut TierProfile);
        assert_eq!(profile().flaw(), None);
        let cases: [(&str, Damage); 9] = [
            ("layout", |it| it.layout.push('1')),
            ("points", |it| it.points.clear()),
            ("bytes", |it| it.points.push(it.points[0].clone())),
            ("reads", |it| it.points[0].reads = 11),
            ("seconds", |it| it.points[0].seconds = f64::NAN),
            ("bytes_per_second", |it| it.points[0].bytes_per_second = 20481.0),
            ("write", |it| it.points[0].write = it.points[0].read.clone()),
            ("quantiles_us", |it| it.points[0].read.as_mut().unwrap().quantiles_us[3] = 4.0),
            ("mean_us", |it| it.points[0].read.as_mut().unwrap().mean_us = 6.0),
        ];
        for (field, damage) in cases {
            let mut damaged = profile();
            damage(&mut damaged);
            assert_eq!(damaged.flaw().map(|flaw| flaw.field), Some(field));
        }
    }
}
