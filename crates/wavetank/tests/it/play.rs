//! The large recording of storage calls with bytes, where the shared data lies beside the checkout.

use std::path::PathBuf;

use wavetank::{CallOutputs, CallPace, CallReplay, CallReplayArgs, Payload, StorageArgs, replay_calls};

/// As it was while the recording was made.
const L2: &str = r#"{"type": "mock", "max_size_gb": 0.4, "mock_bandwidth_gb": 20.0, "eviction":
    {"eviction_policy": "LRU", "trigger_watermark": 0.9, "eviction_ratio": 0.1}}"#;

fn run(change: impl Fn(&mut CallReplayArgs)) -> Option<CallReplay> {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/lct");
    if !data.exists() {
        return None;
    }
    let mut args = CallReplayArgs {
        recording: data.join("big.lct.gz").display().to_string(),
        storage: StorageArgs {
            l2_adapter: vec![L2.to_owned()],
            ticks: Some(data.join("big.schedule.json")),
            store_delay_ms: Some(3.0),
            ..Default::default()
        },
        ..Default::default()
    };
    change(&mut args);
    Some(replay_calls(&args, CallOutputs::default()).unwrap())
}

/// Broken by: a decision that depends on bytes, bytes that are read before they are there or after they are
/// gone.
#[test]
fn the_large_recording_has_the_same_outcomes_with_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(without), Some(with)) = (
        run(|_| {}),
        run(|args| {
            args.pace = Some(CallPace::Max);
            args.threads = Some(2);
        }),
    ) else {
        return;
    };
    assert_eq!(with.tally, without.tally);
    assert_eq!((with.tally.released, with.tally.release_failed, with.broken()), (64_014, 0, 0));
    let report = with.measured.as_ref().unwrap();
    let read = report.calls.iter().find(|kind| kind.call.ends_with(".enter")).unwrap();
    assert_eq!((read.bytes % with.tally.read, read.errors), (0, 0));
    assert_eq!(report.adapters[0].loaded.objects, with.tally.background.adapters[0].loaded);
    // The first seconds on a real drive, compared byte by byte: what is behind memory does not change what is
    // decided, only when.
    let place = folder.path().display();
    let real = L2.replace(r#""mock""#, &format!(r#""buffered", "location": "{place}""#));
    let real = real.replace(r#""mock_bandwidth_gb": 20.0, "#, "");
    let drive = |pace| {
        let real = real.clone();
        run(move |args| {
            args.storage.l2_adapter = vec![real.clone()];
            (args.to_s, args.pace) = (Some(1.5), pace);
            args.payload = pace.map(|_| Payload::Seeded);
        })
    };
    let (virtual_time, drive) = (drive(None).unwrap(), drive(Some(CallPace::Max)).unwrap());
    assert_eq!((drive.tally, drive.measured.unwrap().wrong), (virtual_time.tally, 0));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "what was written is removed");
}
