//! The smallest profile that is sound.

use super::{TIER_LAYOUT, TierLatency, TierOrigin, TierPoint, TierProfile, TierRoom, TierSettings};

pub(super) fn profile() -> TierProfile {
    let latency = TierLatency { mean_us: 5.0, device_mean_us: 4.0, quantiles_us: [5.0; 10] };
    let point = TierPoint {
        busy_us: 1.0,
        ended_at_once: 0.0,
        read_share: 1.0,
        room: TierRoom::Used,
        bytes: 4096,
        depth: 1,
        operations: 10,
        reads: 10,
        seconds: 2.0,
        bytes_per_second: 20480.0,
        pass_bytes_per_second: vec![20480.0],
        read: Some(latency),
        write: None,
    };
    let settings = TierSettings {
        passes: 1,
        seconds_per_point: 2.0,
        sustained_seconds: 0.0,
        working_set_bytes: 1 << 20,
        entries_max: 4096,
        in_flight_bytes_max: 1 << 20,
        threads: 1,
        seed: 1,
    };
    TierProfile {
        layout: TIER_LAYOUT.to_owned(),
        partial: false,
        origin: TierOrigin::default(),
        settings,
        sustained: None,
        again: Vec::new(),
        points: vec![point],
    }
}
