//! What every medium keeps, and the laws of queues.

use proptest::prelude::*;
use serde_json::json;
use wavetank_model::{
    TIER_LAYOUT, TIER_QUANTILES, TierAgain, TierLatency, TierOrigin, TierPoint, TierProfile, TierSettings,
};

use super::*;

/// A device of `latency_us` and `gbps`, measured at these depths, with latencies from half to twice the mean.
fn profile(latency_us: f64, gbps: f64, depths: &[u32], spread: f64) -> TierProfile {
    let mut points = Vec::new();
    for bytes in [4096u64, 65_536, 1 << 20, 16 << 20] {
        for &depth in depths {
            for read_share in [0.0, 0.5, 1.0] {
                // Reads and writes together are slower than either.
                let burden = if read_share == 0.5 { 1.25 } else { 1.0 };
                let carried_us = bytes as f64 * f64::from(depth) / (gbps * 1e3);
                let mean_us = latency_us.max(carried_us) * burden;
                let quantiles_us = TIER_QUANTILES.map(|quantile| mean_us * (1.0 + spread * (quantile - 0.5)));
                let latency = || TierLatency { mean_us, device_mean_us: mean_us, quantiles_us };
                let operations = 1000u64;
                let seconds = operations as f64 * mean_us / f64::from(depth) / 1e6;
                points.push(TierPoint {
                    busy_us: 0.0,
                    ended_at_once: 0.0,
                    read_share,
                    room: TierRoom::Used,
                    bytes,
                    depth,
                    operations,
                    reads: (operations as f64 * read_share) as u64,
                    seconds,
                    bytes_per_second: operations as f64 * bytes as f64 / seconds,
                    pass_bytes_per_second: vec![operations as f64 * bytes as f64 / seconds],
                    read: (read_share > 0.0).then(latency),
                    write: (read_share < 1.0).then(latency),
                });
            }
        }
    }
    TierProfile {
        layout: TIER_LAYOUT.to_owned(),
        partial: false,
        origin: TierOrigin::default(),
        settings: TierSettings {
            seconds_per_point: 1.0,
            sustained_seconds: 0.0,
            working_set_bytes: 1 << 30,
            entries_max: 4096,
            in_flight_bytes_max: 1 << 30,
            passes: 1,
            threads: 1,
            seed: 42,
        },
        sustained: None,
        again: Vec::new(),
        points,
    }
}

fn built(name: &str, parameters: Value) -> Box<dyn Medium> {
    let Value::Object(parameters) = parameters else { panic!("parameters are an object") };
    MediumConfig { name: name.to_owned(), parameters }.build(42).unwrap()
}

fn measured(profile: &TierProfile) -> Box<dyn Medium> {
    built("measured", json!({"profile": profile}))
}

/// The same, seen to end together.
fn together(mut profile: TierProfile) -> TierProfile {
    profile.points.iter_mut().for_each(|point| point.ended_at_once = f64::from(point.depth));
    profile
}

fn example(name: &str) -> Box<dyn Medium> {
    match name {
        "measured" => measured(&profile(100.0, 2.0, &[1, 4, 16], 1.0)),
        _ => built(name, json!({"latency_us": 100.0, "gbps": 2.0})),
    }
}

fn read(id: TransferId, bytes: u64) -> Transfer {
    Transfer { id, count: 1, operation: Operation::Read, bytes, room: TierRoom::Used, before: None }
}

/// What has ended by `now`, in order.
fn ended(medium: &mut dyn Medium, now: Nanos) -> Vec<(TransferId, Nanos)> {
    let (mut ends, mut at_once) = (Vec::new(), Vec::new());
    while let Some(at) = medium.end(now, &mut at_once) {
        ends.extend(at_once.drain(..).map(|id| (id, at)));
    }
    ends
}

/// Lets all end; the ends in order.
fn drain(medium: &mut dyn Medium) -> Vec<(TransferId, Nanos)> {
    let mut ends = Vec::new();
    while let Some(at) = medium.next() {
        ends.extend(ended(medium, at));
    }
    ends
}

/// `count` operations of `bytes`, `depth` at a time; from the first begin to the last end.
fn closed_loop(medium: &mut dyn Medium, (bytes, depth, count): (u64, u64, u64)) -> Nanos {
    let (mut begun, mut ended, mut last) = (0, 0, Nanos::ZERO);
    let mut at_once = Vec::new();
    while ended < count {
        while begun < count && begun - ended < depth {
            medium.begin(read(begun, bytes), last);
            begun += 1;
        }
        let at = medium.next().expect("some are under way");
        if let Some(end) = medium.end(at, &mut at_once) {
            (ended, last) = (ended + at_once.drain(..).count() as u64, end);
        }
    }
    last
}

proptest! {
    /// Broken by: a transfer that is forgotten, ends twice, or ends before it began or out of order.
    #[test]
    fn every_transfer_ends_once(
        sends in proptest::collection::vec((0u64..4_000_000, 0u64..200_000, any::<bool>()), 1..60)
    ) {
        for entry in ALL {
            let mut medium = example(entry.name);
            let (mut now, mut ends, mut begins) = (Nanos::ZERO, Vec::new(), Vec::new());
            for (id, &(bytes, gap, reads)) in (0..).zip(&sends) {
                now += Nanos(gap);
                ends.extend(ended(medium.as_mut(), now));
                let operation = if reads { Operation::Read } else { Operation::Write };
                medium.begin(Transfer { operation, ..read(id, bytes) }, now);
                begins.push(now);
            }
            ends.extend(drain(medium.as_mut()));
            prop_assert!(ends.is_sorted_by_key(|(_, at)| *at), "{}", entry.name);
            prop_assert!(ends.iter().all(|&(id, at)| at >= begins[id as usize]), "{}", entry.name);
            let mut ids: Vec<_> = ends.iter().map(|(id, _)| *id).collect();
            ids.sort_unstable();
            prop_assert!(ids.iter().copied().eq(0..sends.len() as u64), "{}: {ids:?}", entry.name);
            prop_assert_eq!(medium.next(), None);
        }
    }

    /// Every medium that takes runs. Broken by: a run that gets the bandwidth of one transfer, goes in parts
    /// or counts for more than it is; one that ends apart from what it cannot be told from.
    #[test]
    fn a_run_ends_as_its_transfers_one_by_one(
        sends in proptest::collection::vec(
            (0u64..6, 0u64..900_000, any::<bool>(), 1u32..9), 1..60
        ),
    ) {
        let media = [
            ("constant", json!({"latency_us": 100.0, "gbps": 2.0})),
            ("queued", json!({"latency_us": 100.0, "gbps": 2.0})),
            ("queued", json!({"gbps": 2.0})),
            ("queued", json!({"latency_us": 100.0, "gbps": 3.0, "duplex": "half"})),
        ];
        for (name, parameters) in media {
            let [mut runs, mut single] = [built(name, parameters.clone()), built(name, parameters.clone())];
            prop_assert!(runs.takes_runs());
            let (mut now, mut of_runs, mut of_single) = (Nanos::ZERO, Vec::new(), Vec::new());
            for (run, &(blocks, gap, reads, count)) in (0..).zip(&sends) {
                // Some begin with the one before them.
                now += Nanos(gap.saturating_sub(300_000));
                of_runs.extend(ended(runs.as_mut(), now));
                of_single.extend(ended(single.as_mut(), now));
                let operation = if reads { Operation::Read } else { Operation::Write };
                let transfer = Transfer { operation, count, ..read(run, blocks << 18) };
                runs.begin(transfer, now);
                for number in 0..u64::from(count) {
                    single.begin(Transfer { id: run * 16 + number, count: 1, ..transfer }, now);
                }
            }
            of_runs.extend(drain(runs.as_mut()));
            of_single.extend(drain(single.as_mut()));
            let each = |&(run, at): &(TransferId, Nanos)| {
                (0..u64::from(sends[run as usize].3)).map(move |number| (run * 16 + number, at))
            };
            let expected: Vec<_> = of_runs.iter().flat_map(each).collect();
            prop_assert_eq!(of_single, expected, "{} {}", name, parameters);
        }
    }

    /// Broken by: a depth that counts those who have left, or a draw whose mean is not one.
    #[test]
    fn at_low_load_latency_is_that_of_depth_one(
        latency_us in 1.0f64..1e4, gbps in 0.1f64..20.0, bytes in 1u64..64_000_000
    ) {
        let profile = profile(latency_us, gbps, &[1, 8], 0.0);
        for entry in ALL {
            let mut medium = match entry.name {
                "measured" => measured(&profile),
                name => built(name, json!({"latency_us": latency_us, "gbps": gbps})),
            };
            let alone = medium.alone(Operation::Read, bytes);
            let mut now = Nanos::ZERO;
            for id in 0..20 {
                medium.begin(read(id, bytes), now);
                let [(_, end)] = drain(medium.as_mut())[..] else { panic!("one was under way") };
                prop_assert!((end - now).0.abs_diff(alone.0) <= 2, "{}: {} {alone}", entry.name, end - now);
                now = end + Nanos(1000);
            }
        }
    }

    /// Broken by: new room that costs what used room does, or reads that pay for it.
    #[test]
    fn a_write_into_new_room_takes_what_such_writes_took(
        latency_us in 1.0f64..1e4, more in 0.5f64..5.0, bytes in 1u64..64_000_000
    ) {
        let mut profile = profile(latency_us, 2.0, &[1, 8], 0.0);
        let used = measured(&profile);
        let new: Vec<_> = profile.points.iter().filter(|point| point.read_share == 0.0).map(|point| {
            TierPoint { room: TierRoom::New, ..point.clone() }
        }).collect();
        let slower = TierProfile { points: new, ..profile.clone() }.sped(1.0 / more);
        profile.points.extend(slower.points);
        let mut medium = measured(&profile);
        let mut now = Nanos::ZERO;
        for (room, operation, factor) in [
            (TierRoom::New, Operation::Write, more),
            (TierRoom::Used, Operation::Write, 1.0),
            (TierRoom::New, Operation::Read, 1.0),
        ] {
            medium.begin(Transfer { operation, room, ..read(1, bytes) }, now);
            let [(_, end)] = drain(medium.as_mut())[..] else { panic!("one was under way") };
            let expected = used.alone(operation, bytes).0 as f64 * factor;
            prop_assert!(((end - now).0 as f64 - expected).abs() <= 4.0 + more, "{} {expected}", end - now);
            now = end + Nanos(1000);
        }
    }

    /// Broken by: reads that do not feel whether the writes beside them go into new room, or feel it alone.
    #[test]
    fn operations_beside_writes_into_new_room_take_what_they_took_there(
        more in 0.5f64..5.0, bytes in 1u64..1_000_000
    ) {
        let mut profile = profile(100.0, 2.0, &[1, 2, 8], 0.0);
        let with_writes = profile.points.iter().filter(|point| point.read_share < 1.0);
        let new = with_writes.map(|point| TierPoint { room: TierRoom::New, ..point.clone() }).collect();
        let slower = TierProfile { points: new, ..profile.clone() }.sped(1.0 / more);
        let used = measured(&profile);
        profile.points.extend(slower.points);
        let both_end = |medium: &mut dyn Medium, room| {
            medium.begin(read(1, bytes), Nanos::ZERO);
            medium.begin(Transfer { operation: Operation::Write, room, ..read(2, bytes) }, Nanos::ZERO);
            drain(medium).iter().map(|&(_, end)| end.0 as f64).fold(0.0, f64::max)
        };
        let [mut used, mut here, mut beside] = [used, measured(&profile), measured(&profile)];
        let before = both_end(used.as_mut(), TierRoom::Used);
        prop_assert_eq!(both_end(here.as_mut(), TierRoom::Used), before);
        let after = both_end(beside.as_mut(), TierRoom::New);
        prop_assert!((after - before * more).abs() <= 8.0 + more, "{} {}", after, before * more);
    }

    /// Broken by: reads that do not feel what was moved before them or how often, writes that do, or a memory
    /// without end.
    #[test]
    fn what_was_moved_a_moment_ago_is_read_sooner(share in 0.1f64..1.0, bytes in 4096u64..1_000_000) {
        let mut profile = profile(100.0, 2.0, &[1], 0.0);
        let usual = measured(&profile).alone(Operation::Read, 65_536).0 as f64;
        let again = |apart_bytes, share: f64| {
            let (after, mean_us) = (Operation::Read, usual / 1e3 * share);
            TierAgain { after, repeats: 1, apart_bytes, bytes: 65_536, operations: 9, mean_us }
        };
        let after_write = TierAgain { after: Operation::Write, repeats: 0, ..again(1 << 20, share / 2.0) };
        let first = TierAgain { repeats: 0, ..again(2 << 20, share / 4.0) };
        profile.again = vec![again(1 << 20, share), again(3 << 20, 1.0), after_write, first];
        let takes = |operation, before| {
            let mut medium = measured(&profile);
            medium.begin(Transfer { operation, before, ..read(1, bytes) }, Nanos::ZERO);
            drain(medium.as_mut())[0].1.0 as f64
        };
        let before = |after, repeats, apart_bytes| Some(Before { after, repeats, apart_bytes });
        prop_assert_eq!(measured(&profile).remembers(), 3 << 20);
        let (never, wrote) = (takes(Operation::Read, None), takes(Operation::Write, None));
        let half_way = (1.0 + share) / 2.0;
        for (apart, expected) in [(1, share), (1 << 20, share), (2 << 20, half_way), (4 << 20, 1.0)] {
            let took = takes(Operation::Read, before(Operation::Read, 3, apart)) / never;
            prop_assert!((took - expected).abs() < 1e-3, "{} for {}", took, expected);
            prop_assert_eq!(takes(Operation::Write, before(Operation::Read, 3, apart)), wrote);
        }
        let after_write = takes(Operation::Read, before(Operation::Write, 1, 1 << 20)) / never;
        prop_assert!((after_write - share / 2.0).abs() < 1e-3);
        let first = takes(Operation::Read, before(Operation::Read, 0, 1 << 20)) / never;
        prop_assert!((first - share / 4.0).abs() < 1e-3);
    }

    /// Broken by: what another size, operation or depth spends, or rows that measured none.
    #[test]
    fn a_thread_spends_what_was_measured(read_us in 0.0f64..90.0, write_us in 0.0f64..90.0, at in 0usize..3) {
        let mut profile = profile(100.0, 2.0, &[1, 8], 0.0);
        let larger = |bytes: u64| (bytes as f64).log2();
        for point in &mut profile.points {
            let spent = if point.read_share == 1.0 { read_us } else { write_us };
            point.busy_us = spent * larger(point.bytes) / 400.0 * f64::from(point.depth);
        }
        let mut sizes: Vec<_> = profile.points.iter().map(|point| point.bytes).collect();
        sizes.dedup();
        let (bytes, mut medium) = (sizes[at % sizes.len()], measured(&profile));
        for depth in [1.0, 2.0] {
            for (operation, spent) in [(Operation::Read, read_us), (Operation::Write, write_us)] {
                let spends = medium.holds_up(Transfer { operation, ..read(9, bytes) });
                let expected = spent * larger(bytes) / 400.0 * depth * 1000.0;
                prop_assert!((spends.0 as f64 - expected).abs() <= 1.0, "{spends} {expected}");
            }
            medium.begin(read(1, bytes), Nanos::ZERO);
        }
        prop_assert_eq!(example("queued").holds_up(read(1, bytes)), Nanos::ZERO);
    }

    /// Broken by: a latency that does not grow with the depth beyond the last one that was measured.
    #[test]
    fn throughput_saturates_at_the_peak(
        bytes in 4096u64..8_000_000, depth in 1u64..200, latency_us in 1.0f64..2000.0
    ) {
        let media = [
            measured(&profile(latency_us, 3.0, &[1, 2, 4, 8, 16, 32], 0.0)),
            measured(&together(profile(latency_us, 3.0, &[1, 2, 4, 8, 16, 32], 0.0))),
            built("queued", json!({"gbps": 3.0})),
            built("queued", json!({"gbps": 3.0, "order": "fifo"})),
        ];
        for mut medium in media {
            let peak = medium.peak_bytes_per_second(Operation::Read, bytes);
            let count = depth * 20;
            let took = closed_loop(medium.as_mut(), (bytes, depth, count));
            let rate = (count * bytes) as f64 / took.as_ms() * 1e3;
            prop_assert!(rate <= peak * 1.001, "{rate} {peak}");
            if depth >= 32 {
                prop_assert!(rate >= peak * 0.99, "{rate} {peak}");
            }
        }
    }

    /// Broken by: an end that is told while something is left to do, and work that is not done meanwhile.
    #[test]
    fn what_ends_together_takes_as_long_as_all_of_it(
        sizes in proptest::collection::vec(4096u64..4_000_000, 2..12), later_us in 0u64..8000
    ) {
        let profile = profile(50.0, 1.0, &[1, 2, 4, 8, 16], 0.5);
        let (half, later) = (sizes.len() as u64 / 2, Nanos(later_us * 1000));
        let ends = |profile: &TierProfile| {
            let mut medium = measured(profile);
            let (first, second) = sizes.split_at(half as usize);
            (0..).zip(first).for_each(|(id, &bytes)| medium.begin(read(id, bytes), Nanos::ZERO));
            let mut ends = ended(medium.as_mut(), later);
            (half..).zip(second).for_each(|(id, &bytes)| medium.begin(read(id, bytes), later));
            ends.extend(drain(medium.as_mut()));
            ends
        };
        let (alone, at_once) = (ends(&profile), ends(&together(profile.clone())));
        let last = |ids: std::ops::Range<u64>| {
            alone.iter().filter(|(id, _)| ids.contains(id)).map(|(_, at)| *at).max().unwrap()
        };
        let all = 0..sizes.len() as u64;
        let told = |ids: std::ops::Range<u64>, at: Nanos| ids.map(move |id| (id, at));
        let expected: Vec<_> = match last(0..half) <= later {
            true => told(0..half, last(0..half)).chain(told(half..all.end, last(half..all.end))).collect(),
            false => told(all.clone(), last(all)).collect(),
        };
        prop_assert_eq!(at_once, expected);
    }

    /// Broken by: bandwidth that is given to one for longer than it is there.
    #[test]
    fn two_transfers_take_as_long_as_their_bytes(first in 1u64..1 << 30, second in 1u64..1 << 30) {
        for order in ["share", "fifo"] {
            for duplex in ["full", "half"] {
                let mut medium = built("queued", json!({"gbps": 1.0, "order": order, "duplex": duplex}));
                medium.begin(read(0, first), Nanos::ZERO);
                medium.begin(Transfer { operation: Operation::Write, ..read(1, second) }, Nanos::ZERO);
                let last = drain(medium.as_mut())[1].1;
                let expected = if duplex == "half" { first + second } else { first.max(second) };
                prop_assert!(last.0.abs_diff(expected) <= 2, "{order} {duplex}: {last} {expected}");
            }
        }
    }
}

/// More than a device can take at a time stands in line. Broken by: one that ends together and is never idle,
/// so that it tells of nothing before the last; places that are not given back; bandwidth that is lost.
#[test]
fn a_device_with_more_than_it_can_take_goes_on_telling() {
    let profile = profile(100.0, 1.0, &[1, 4, 16], 0.0);
    for profile in [together(profile.clone()), profile] {
        let mut medium = measured(&profile);
        (0..400).for_each(|id| medium.begin(read(id, 1 << 20), Nanos::ZERO));
        let ends = drain(medium.as_mut());
        assert!(ends.iter().map(|(id, _)| *id).eq(0..400));
        let (first, last) = (ends[0].1.as_ms(), ends[399].1.as_ms());
        assert!((last / (400.0 * 1.048576) - 1.0).abs() < 0.01 && first < last / 1.5, "{first} {last}");
    }
}

#[test]
fn the_mean_of_many_is_the_mean_that_was_measured() {
    let profile = profile(100.0, 2.0, &[1, 4, 16], 1.5);
    for (depth, mean_us) in [(1, 524.288), (4, 2097.152), (16, 8388.608)] {
        let took = closed_loop(measured(&profile).as_mut(), (1 << 20, depth, 4000)).as_ms() * 1000.0;
        let expected = mean_us * 4000.0 / depth as f64;
        assert!((took / expected - 1.0).abs() < 0.02, "{depth}: {took} {expected}");
    }
}

#[test]
fn reads_and_writes_are_in_each_others_way() {
    let profile = profile(100.0, 2.0, &[1, 2, 4], 0.0);
    let together = |other| {
        let mut medium = measured(&profile);
        medium.begin(read(0, 1 << 20), Nanos::ZERO);
        medium.begin(Transfer { operation: other, ..read(1, 1 << 20) }, Nanos::ZERO);
        drain(medium.as_mut())[1].1.as_ms()
    };
    let (same, mixed) = (together(Operation::Read), together(Operation::Write));
    assert!((mixed / same - 1.25).abs() < 0.001, "{same} {mixed}");
}

#[test]
fn a_long_entry_hardly_sees_a_short_one() {
    let mut medium = measured(&profile(100.0, 2.0, &[1, 2, 4], 0.0));
    let alone = medium.alone(Operation::Read, 16 << 20);
    medium.begin(read(0, 16 << 20), Nanos::ZERO);
    medium.begin(read(1, 4096), Nanos::ZERO);
    let ends = drain(medium.as_mut());
    assert_eq!(ends.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 0]);
    assert!(ends[1].1.as_ms() / alone.as_ms() < 1.1, "{} {alone}", ends[1].1);
}

#[test]
fn transfers_in_turn_end_in_turn() {
    let mut medium = built("queued", json!({"gbps": 1.0, "order": "fifo", "latency_us": 1.0}));
    medium.begin(read(0, 5000), Nanos::ZERO);
    medium.begin(read(1, 1000), Nanos::ZERO);
    assert_eq!(drain(medium.as_mut()), [(0, Nanos(6000)), (1, Nanos(7000))]);
}

#[test]
fn what_no_medium_takes_is_refused() {
    let refusal = |name: &str, parameters: Value| {
        let Value::Object(parameters) = parameters else { panic!("parameters are an object") };
        let config = MediumConfig { name: name.to_owned(), parameters };
        config.build(1).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(refusal("flash", json!({})).contains("known: constant, measured, queued"));
    for name in ["constant", "queued"] {
        assert!(refusal(name, json!({"gbps": 0.0})).contains("must be above 0"));
        assert!(refusal(name, json!({"gbps": 1.0, "latency_us": -1.0})).contains("latency_us"));
        assert!(refusal(name, json!({"gbps": 1.0, "no_such_key": 1})).contains("no_such_key"));
    }
    let half = json!({"gbps": 1.0, "read_gbps": 2.0, "duplex": "half"});
    assert!(refusal("queued", half).contains("one bandwidth"));
    let mut unsound = profile(1.0, 1.0, &[1], 0.0);
    unsound.points[0].depth = 0;
    assert!(refusal("measured", json!({"profile": unsound})).contains("\"depth\" must be above 0"));
    let mut no_reads = profile(1.0, 1.0, &[1], 0.0);
    no_reads.points.retain(|point| point.read_share == 0.0);
    assert!(refusal("measured", json!({"profile": no_reads})).contains("has no reads"));
}

/// Every row: twice the speed is what the row takes, halves the part of a transfer that bandwidth decides,
/// and halved again is what it was. Broken by: a time or a rate of a profile that is left out, so that it is
/// no profile any more or has its old speed.
#[test]
fn a_medium_with_twice_the_speed() {
    let parameters = |name: &str| match name {
        "measured" => json!({ "profile": profile(100.0, 2.0, &[1, 4, 16], 1.0) }),
        _ => json!({ "gbps": 2.0 }),
    };
    for row in ALL {
        let Value::Object(parameters) = parameters(row.name) else { panic!("parameters are an object") };
        let medium = MediumConfig { name: row.name.to_owned(), parameters };
        let fast = medium.sped(2.0).unwrap();
        let alone = |medium: &MediumConfig| medium.build(42).unwrap().alone(Operation::Read, 16 << 20).0;
        let peak = |medium: &MediumConfig| {
            medium.build(42).unwrap().peak_bytes_per_second(Operation::Write, 1 << 20)
        };
        assert!(alone(&medium).abs_diff(2 * alone(&fast)) <= 1, "{}", row.name);
        assert!(peak(&fast) == 2.0 * peak(&medium), "{}", row.name);
        assert_eq!(fast.sped(0.5).unwrap(), medium, "{}", row.name);
        assert_eq!(medium.is_random(), row.name == "measured");
    }
    let both = MediumConfig {
        name: "queued".to_owned(),
        parameters: Parameters::from_iter([
            ("gbps".to_owned(), json!(1)),
            ("read_gbps".to_owned(), json!(6.0)),
            ("latency_us".to_owned(), json!(80.0)),
        ]),
    };
    let expected = json!({ "gbps": 2.0, "read_gbps": 12.0, "latency_us": 80.0 });
    assert_eq!(Value::Object(both.sped(2.0).unwrap().parameters), expected);
}
