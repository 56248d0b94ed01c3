//! The large recording of storage calls, where the shared data lies beside the checkout: what is known of it
//! comes out again (spec/storage-trace.md 10.3).

use std::path::PathBuf;

use wavetank::{
    BackgroundWork, CallMode, CallOutputs, CallRecording, CallReplay, CallReplayArgs, StorageArgs,
    replay_calls,
};

/// As it was while the recording was made.
const L2: &str = r#"{"type": "mock", "max_size_gb": 0.4, "mock_bandwidth_gb": 20.0, "eviction":
    {"eviction_policy": "LRU", "trigger_watermark": 0.9, "eviction_ratio": 0.1}}"#;
/// Keys that its caller released, and those it had read.
const RELEASED: u64 = 64_014;
const READ: u64 = 61_882;

fn data() -> Option<PathBuf> {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/lct");
    data.exists().then_some(data)
}

fn run(change: impl Fn(&mut StorageArgs)) -> Option<CallReplay> {
    let recording = data()?.join("big.lct.gz").display().to_string();
    let mut storage = StorageArgs { l2_adapter: vec![L2.to_owned()], ..Default::default() };
    change(&mut storage);
    Some(replay(&CallReplayArgs { recording, storage, ..Default::default() }))
}

fn replay(args: &CallReplayArgs) -> CallReplay {
    replay_calls(args, CallOutputs::default()).unwrap()
}

/// Broken by: any rule about locks, batches or resident keys.
#[test]
fn without_limits_everything_recorded_is_found() {
    let Some(replay) = run(|args| {
        args.l1_size_gb = Some(f64::INFINITY);
        args.l2_adapter = vec![r#"{"type": "mock"}"#.to_owned()];
    }) else {
        return;
    };
    let tally = &replay.tally;
    assert_eq!((tally.released, tally.release_failed, tally.read, tally.read_failed), (RELEASED, 0, READ, 0));
    assert_eq!((tally.stored, tally.refused_resident, tally.surplus), (14_240, 12_712, 12_712));
}

/// Broken by: the order of the policies, what counts as tracked, who is skipped, when copies end.
#[test]
fn with_its_schedule_no_prefetch_differs_and_twice_is_the_same() {
    let with_schedule = || {
        run(|args| {
            args.ticks = data().map(|data| data.join("big.schedule.json"));
            args.store_delay_ms = Some(3.0);
        })
    };
    let (Some(replay), Some(again)) = (with_schedule(), with_schedule()) else { return };
    let tally = &replay.tally;
    assert_eq!((tally.released, tally.release_failed, tally.prefetches_that_differ), (RELEASED, 0, 0));
    assert_eq!((tally.hits_l1, tally.hits_l2, tally.writes_that_differ), (39_396, 24_618, 1));
    assert_eq!(replay.tally, again.tally);
    assert!(!replay.is_faithful(), "a reservation differs by six keys");
}

#[test]
fn pinned_and_closed_need_no_schedule() {
    for phase in [0.0, 0.35, 0.7] {
        let mode = |mode| {
            run(|args| {
                args.tick_phase_s = Some(phase);
                args.store_delay_ms = Some(3.0);
                args.mode = Some(mode);
            })
        };
        let (Some(pinned), Some(closed)) = (mode(CallMode::Pinned), mode(CallMode::Closed)) else { return };
        assert_eq!((pinned.tally.released, pinned.tally.release_failed), (RELEASED, 0), "{phase}");
        assert!(pinned.tally.forced_in > 0 && pinned.tally.first_divergence.is_some());
        assert!(pinned.first_divergence_key.is_some_and(|key| key.starts_with("meta-llama/")));
        let off = closed.tally.released.abs_diff(RELEASED) as f64 / RELEASED as f64;
        assert!(off < 0.01 && closed.tally.release_failed == 0, "{phase}: {}", closed.tally.released);
    }
}

/// The same calls of several releases; broken by: an argument of one generation misread.
#[test]
fn every_generation_replays_without_a_divergence() {
    let Some(data) = data() else { return };
    for name in ["small", "small_v0.4.5", "small_v0.5.2", "small_v0.5.4", "small_v0.5.5"] {
        let recording = data.join(format!("{name}.lct")).display().to_string();
        let replay = replay(&CallReplayArgs { recording, ..Default::default() });
        assert!(replay.is_faithful() && replay.tally.released > 0, "{name}: {replay}");
    }
    // What the last prefetch of a file that was cut found is not known, so it cannot differ.
    for name in ["trunc_body", "trunc_prefix"] {
        let recording = data.join(format!("{name}.lct")).display().to_string();
        let replay = replay(&CallReplayArgs { recording, ..Default::default() });
        assert!(replay.is_faithful() && !replay.left_out.is_empty(), "{name}: {replay}");
    }
    let recording = data.join("events.lct").display().to_string();
    let args = CallReplayArgs { recording, ..Default::default() };
    let refused = replay_calls(&args, CallOutputs::default()).unwrap_err();
    assert!(refused.to_string().contains("its level is \"events\""), "{refused}");
}

/// Broken by: anything of a replay that its recording does not hold.
#[test]
fn a_recorded_replay_of_the_large_recording_is_itself() {
    let Some(data) = data() else { return };
    let folder = tempfile::tempdir().unwrap();
    let record = |from: String, storage: StorageArgs, name: &str| {
        let to = CallRecording { path: folder.path().join(name), rotate_bytes: None, cap_bytes: None };
        let outputs = CallOutputs { recording: Some(&to), ..Default::default() };
        let args = CallReplayArgs { recording: from, storage, ..Default::default() };
        (replay_calls(&args, outputs).unwrap(), std::fs::read(&to.path).unwrap())
    };
    let named = |name: &str| folder.path().join(name).display().to_string();
    for phase in [0.0, 0.35] {
        let storage = StorageArgs {
            l2_adapter: vec![L2.to_owned()],
            tick_phase_s: Some(phase),
            store_delay_ms: Some(3.0),
            ..Default::default()
        };
        let (first, one) = record(data.join("big.lct.gz").display().to_string(), storage, "one.lct");
        let (second, other) = record(named("one.lct"), StorageArgs::default(), "other.lct");
        assert!(!first.is_faithful() && second.is_faithful(), "{second}");
        assert_eq!(second.plan.background, BackgroundWork::Recorded);
        assert_eq!(first.plan.storage, second.plan.storage);
        assert_eq!(first.tally.background, second.tally.background);
        assert!(one == other, "{phase}");
    }
}
