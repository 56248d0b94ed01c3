//! Whether a device tells of ends one by one, or when it has nothing left to do.

use super::TierProfile;

/// As much as one thread's queue has at the device at a time.
const AT_DEVICE_BYTES: u64 = 32 << 20;

impl TierProfile {
    /// Whether reads that were under way together ended together: by more than half of what would be all of
    /// them, on average over the points in which all could be at the device.
    pub fn ends_together(&self) -> bool {
        let points = self.points.iter().filter(|point| {
            let at_device = point.bytes.saturating_mul(point.depth.into());
            let is_seen = point.read_share == 1.0 && point.depth > 1 && point.ended_at_once > 0.0;
            is_seen && at_device <= AT_DEVICE_BYTES
        });
        let share = |ended: f64, depth: u32| (ended - 1.0) / (f64::from(depth) - 1.0);
        let (sum, count) = points
            .fold((0.0, 0), |(sum, count), point| (sum + share(point.ended_at_once, point.depth), count + 1));
        sum > f64::from(count) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::profile;
    use crate::TierPoint;

    /// Broken by: points of one operation, of writes, or with more than fits at the device, that count; or a
    /// device of which nothing was seen that ends together.
    #[test]
    fn most_must_have_ended_at_once() {
        let ends_together = |points: &[(f64, u64, u32, f64)]| {
            let mut profile = profile();
            let alone = profile.points[0].clone();
            let point = |&(read_share, bytes, depth, ended_at_once)| TierPoint {
                read_share,
                bytes,
                depth,
                ended_at_once,
                ..alone.clone()
            };
            profile.points = points.iter().map(point).collect();
            profile.ends_together()
        };
        assert!(!ends_together(&[]));
        assert!(!ends_together(&[(1.0, 4096, 1, 1.0), (1.0, 4096, 4, 0.0)]));
        assert!(ends_together(&[(1.0, 4096, 4, 4.0), (1.0, 4096, 8, 6.0)]));
        assert!(!ends_together(&[(1.0, 4096, 4, 1.2), (1.0, 4096, 8, 6.0)]));
        assert!(ends_together(&[(1.0, 4096, 4, 4.0), (1.0, 16 << 20, 4, 1.0), (0.0, 4096, 4, 1.0)]));
    }
}
