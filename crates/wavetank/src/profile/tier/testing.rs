//! A small profile for tests.

use wavetank_model::{
    Operation, Sustained, TIER_LAYOUT, TierAgain, TierLatency, TierOrigin, TierPoint, TierProfile, TierRoom,
    TierSettings,
};

pub(super) fn latency(scale: f64) -> TierLatency {
    let quantiles_us = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.1].map(|part| part * scale);
    TierLatency { mean_us: 4.3 * scale, device_mean_us: 4.1 * scale, quantiles_us }
}

pub(crate) fn profile() -> TierProfile {
    let point = |read_share: f64, depth: u32, operations: u64, reads: u64| TierPoint {
        busy_us: 1.0,
        ended_at_once: f64::from(depth.min(2)),
        read_share,
        room: TierRoom::Used,
        bytes: 65_536,
        depth,
        operations,
        reads,
        seconds: 0.3,
        bytes_per_second: operations as f64 * 65_536.0 / 0.3,
        pass_bytes_per_second: [0.99, 1.0, 1.01]
            .map(|part| part * operations as f64 * 65_536.0 / 0.3)
            .to_vec(),
        read: (reads > 0).then(|| latency(f64::from(depth) / 3.0)),
        write: (reads < operations).then(|| latency(f64::from(depth))),
    };
    TierProfile {
        layout: TIER_LAYOUT.to_owned(),
        partial: false,
        origin: TierOrigin {
            backend: "direct".to_owned(),
            location: "/mnt/kv \"1\"".to_owned(),
            date: "2026-01-02T03:04:05Z".to_owned(),
            wavetank: "0.1.0".to_owned(),
            machine: Some("A processor".to_owned()),
            cores: 2,
            kernel: Some("6.1".to_owned()),
            device: None,
            file_system: Some("ext4".to_owned()),
        },
        settings: TierSettings {
            passes: 3,
            seconds_per_point: 0.3,
            sustained_seconds: 4.0,
            working_set_bytes: 1 << 30,
            entries_max: 4096,
            in_flight_bytes_max: 1 << 28,
            threads: 1,
            seed: 42,
        },
        sustained: Some(Sustained {
            bytes: 65_536,
            depth: 4,
            step_seconds: 2.0,
            burst_bytes_per_second: 2e9,
            steady_bytes_per_second: 1e9 / 3.0,
            fell_at_seconds: Some(2.0),
            course_bytes_per_second: vec![2e9, 1e9 / 3.0],
        }),
        again: vec![
            TierAgain {
                after: Operation::Read,
                repeats: 0,
                apart_bytes: 2 << 20,
                bytes: 65_536,
                operations: 9,
                mean_us: 2.5,
            },
            TierAgain {
                after: Operation::Write,
                repeats: 0,
                apart_bytes: 2 << 20,
                bytes: 65_536,
                operations: 9,
                mean_us: 5.0,
            },
        ],
        points: vec![point(1.0, 1, 1000, 1000), point(0.5, 4, 2000, 1000), point(0.0, 4, 70, 0)],
    }
}
