//! What would have been measured of a backend with another speed.

use super::{Sustained, TierLatency, TierPoint, TierProfile, TierSettings};

impl TierProfile {
    /// The same backend by a clock that runs `factor` times as slowly: every time is shorter by it, every
    /// rate higher, so that what holds between the numbers of a measurement still does.
    #[must_use]
    pub fn sped(&self, factor: f64) -> Self {
        let settings = TierSettings {
            seconds_per_point: self.settings.seconds_per_point / factor,
            sustained_seconds: self.settings.sustained_seconds / factor,
            ..self.settings.clone()
        };
        Self {
            settings,
            sustained: self.sustained.as_ref().map(|sustained| sustained.sped(factor)),
            again: self.again.iter().map(|again| again.sped(factor)).collect(),
            points: self.points.iter().map(|point| point.sped(factor)).collect(),
            ..self.clone()
        }
    }
}

impl TierPoint {
    fn sped(&self, factor: f64) -> Self {
        let latency = |of: &Option<TierLatency>| of.as_ref().map(|latency| latency.sped(factor));
        Self {
            seconds: self.seconds / factor,
            bytes_per_second: self.bytes_per_second * factor,
            pass_bytes_per_second: self.pass_bytes_per_second.iter().map(|rate| rate * factor).collect(),
            busy_us: self.busy_us / factor,
            read: latency(&self.read),
            write: latency(&self.write),
            ..self.clone()
        }
    }
}

impl TierLatency {
    fn sped(&self, factor: f64) -> Self {
        Self {
            mean_us: self.mean_us / factor,
            device_mean_us: self.device_mean_us / factor,
            quantiles_us: self.quantiles_us.map(|us| us / factor),
        }
    }
}

impl Sustained {
    fn sped(&self, factor: f64) -> Self {
        Self {
            step_seconds: self.step_seconds / factor,
            burst_bytes_per_second: self.burst_bytes_per_second * factor,
            steady_bytes_per_second: self.steady_bytes_per_second * factor,
            fell_at_seconds: self.fell_at_seconds.map(|seconds| seconds / factor),
            course_bytes_per_second: self.course_bytes_per_second.iter().map(|rate| rate * factor).collect(),
            ..self.clone()
        }
    }
}
