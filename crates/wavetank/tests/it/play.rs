//! The large recording of storage calls with bytes, where the shared data lies beside the checkout.

use std::path::PathBuf;

use wavetank::{CallReplayArgs, replay_calls};
use wavetank_calls::{Contents, End, Manner, Pace, PlayOptions, Recording, play};
use wavetank_model::Recorded;
use wavetank_trace::Input;
use wavetank_trace::calls::lct::{FRAME_LIMIT, Reader};

/// As it was while the recording was made.
const L2: &str = r#"{"type": "mock", "max_size_gb": 0.4, "mock_bandwidth_gb": 20.0, "eviction":
    {"eviction_policy": "LRU", "trigger_watermark": 0.9, "eviction_ratio": 0.1}}"#;

/// Broken by: a decision that depends on bytes, bytes that are read before they are there or after they are
/// gone.
#[test]
fn the_large_recording_has_the_same_outcomes_with_bytes() {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/lct");
    if !data.exists() {
        return;
    }
    let args = CallReplayArgs {
        recording: data.join("big.lct.gz").display().to_string(),
        l2_adapter: vec![L2.to_owned()],
        ticks: Some(data.join("big.schedule.json")),
        store_delay_ms: Some(3.0),
        ..Default::default()
    };
    let without = replay_calls(&args).unwrap();
    let mut reader = Reader::open(&Input::named(&args.recording), FRAME_LIMIT).unwrap();
    let mut calls: Vec<Recorded> = Vec::new();
    while let Some(recorded) = reader.advance().unwrap() {
        calls.push(recorded);
    }
    let keys = reader.keys();
    let layout_bytes: Vec<u64> = keys.layouts().iter().map(|layout| layout.bytes().unwrap()).collect();
    let recording =
        Recording { calls: &calls, keys: keys.len(), layout_bytes: &layout_bytes, end: End::Whole };
    let plan = without.plan;
    let manner = Manner { plan: plan.storage, tempo: plan.tempo, mode: plan.mode };
    let options =
        PlayOptions { pace: Pace::Max, threads: 2, contents: Contents::Seeded(1), stop: Default::default() };
    let (tally, report) = play(&recording, &manner, &options).unwrap();
    assert_eq!(tally, without.tally);
    assert_eq!((tally.released, tally.release_failed, report.wrong), (64_014, 0, 0));
    let read = report.calls.iter().find(|kind| kind.call.ends_with(".enter")).unwrap();
    assert_eq!((read.bytes, read.errors), (tally.read * layout_bytes[0], 0));
    assert_eq!(report.adapters[0].loaded.objects, tally.background.adapters[0].loaded);
}
