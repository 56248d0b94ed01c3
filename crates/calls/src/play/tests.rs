//! With bytes everything comes out as without.

use std::path::Path;

use wavetank_model::{Recorded, StorageCall};

use super::*;
use crate::engine::Tempo;
use crate::plan::{Medium, Plan};
use crate::replay::{End, Mode, Scope};
use crate::storage::tests::{KEYS, LAYOUT_BYTES, recorded};
use crate::tick::Ticks;

fn options(pace: Pace, threads: usize) -> PlayOptions {
    PlayOptions { pace, threads, contents: Contents::Seeded(7), keep: Keep::Nothing, stop: Arc::default() }
}

fn has_faults(plan: &Plan) -> bool {
    let is_faulty =
        |medium: &Medium| matches!(medium, Medium::Backend { wrappers, .. } if !wrappers.is_empty());
    plan.adapters.iter().any(|adapter| is_faulty(&adapter.medium))
}

fn recording(calls: &[Recorded]) -> Recording<'_> {
    Recording { calls, keys: KEYS as usize, table: None, layout_bytes: &LAYOUT_BYTES, end: End::Whole }
}

fn compare(calls: &[Recorded], manner: &Manner, options: &PlayOptions, location: &Path) {
    let recording = recording(calls);
    let (tally, report) = play(&recording, manner, options, None).unwrap();
    assert_eq!(tally, replay(&recording, manner, None).unwrap());
    assert_eq!((report.wrong, report.interrupted), (0, false));
    assert_eq!(report.calls.iter().map(|kind| kind.latency.count).sum::<u64>(), tally.calls);
    let read = &report.calls[Kind::ReadEnter as usize];
    let fetched = &report.calls[Kind::Prefetch as usize];
    let loaded = |tier: &AdapterTimes| tier.loaded.bytes;
    assert_eq!(report.adapters.iter().map(loaded).sum::<u64>(), fetched.bytes, "prefetches load");
    if !has_faults(&manner.plan) {
        let errors = report.calls.iter().map(|kind| kind.errors);
        let moved = report.adapters.iter().map(|tier| tier.stored.errors + tier.loaded.errors);
        assert_eq!(errors.chain(moved).sum::<u64>(), 0, "{report:?}");
        assert!(read.bytes >= tally.read * LAYOUT_BYTES[0], "what was read had bytes");
    }
    assert_eq!(std::fs::read_dir(location).unwrap().count(), 0, "nothing of ours stays");
}

/// Broken by: a decision that depends on bytes or pace, bytes that are read before they are there or after
/// they are gone, threads that wait for each other.
#[test]
fn with_bytes_outcomes_are_as_without_and_bytes_are_right() {
    let seeds = std::env::var("WAVETANK_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    for seed in 1003..1003 + seeds {
        println!("seed {seed}");
        let location = tempfile::tempdir().unwrap();
        let (plan, calls) = recorded(seed, location.path());
        let ticks = Ticks::Sleeping { first: Nanos(2_000_000), sleep: Nanos(2_000_000), work: Nanos::ZERO };
        let tempos = [Tempo::Told, Tempo::Clock(vec![ticks; plan.adapters.len() + 1])];
        for (tempo, mode) in tempos
            .iter()
            .flat_map(|tempo| [Mode::Open, Mode::Pinned, Mode::Closed].map(|mode| (tempo.clone(), mode)))
        {
            let manner = Manner { plan: plan.clone(), tempo, mode, scope: Scope::default() };
            compare(&calls, &manner, &options(Pace::Max, 1 + seed as usize % 4), location.path());
        }
        let manner = Manner { plan, tempo: Tempo::Told, mode: Mode::Open, scope: Scope::default() };
        compare(&calls, &manner, &options(Pace::Recorded(2.0), 3), location.path());
    }
}

/// Broken by: a pace that is not kept.
#[test]
fn a_pace_is_kept() {
    let call = |at| Recorded::plain(Nanos(at), StorageCall::FinishRead { keys: [KeyId(0)].into(), locks: 1 });
    let calls = [call(5_000_000_000), call(5_040_000_000)];
    let location = tempfile::tempdir().unwrap();
    let (plan, _) = recorded(1, location.path());
    let manner = Manner { plan, tempo: Tempo::Told, mode: Mode::Open, scope: Scope::default() };
    let wall = |pace| play(&recording(&calls), &manner, &options(pace, 1), None).unwrap().1.wall_ns;
    assert!(wall(Pace::Recorded(1.0)) >= 40_000_000, "from the first call on");
    assert!(wall(Pace::Recorded(2.0)) >= 20_000_000);
}

/// Broken by: a stop that nobody looks at, or one that leaves something behind.
#[test]
fn who_stops_gets_what_there_is() {
    let location = tempfile::tempdir().unwrap();
    let (plan, calls) = recorded(3, location.path());
    let manner = Manner { plan, tempo: Tempo::Told, mode: Mode::Open, scope: Scope::default() };
    let options = options(Pace::Recorded(1e-6), 2);
    let stop = Arc::clone(&options.stop);
    let stopping = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        stop.store(true, Ordering::Relaxed);
    });
    let (tally, report) = play(&recording(&calls), &manner, &options, None).unwrap();
    stopping.join().unwrap();
    assert!(report.interrupted && tally.calls < calls.len() as u64, "{}", tally.calls);
    assert_eq!(std::fs::read_dir(location.path()).unwrap().count(), 0);
}

/// Broken by: a queue that is worked off after a stop, a sleep that nobody ends, or somebody who waits for
/// what was given up: each of them takes hours.
#[test]
fn who_stops_does_not_wait_for_what_was_decided() {
    let mut dropped = 0;
    for seed in 1003..1009 {
        let location = tempfile::tempdir().unwrap();
        let (mut plan, calls) = recorded(seed, location.path());
        for adapter in &mut plan.adapters {
            (adapter.medium, adapter.bytes_per_second) = (Medium::Mock, Some(1.0));
        }
        let manner = Manner { plan, tempo: Tempo::Told, mode: Mode::Open, scope: Scope::default() };
        let options = options(Pace::Max, 2);
        let stop = Arc::clone(&options.stop);
        let (done, is_done) = channel();
        std::thread::spawn(move || {
            let _ = done.send(play(&recording(&calls), &manner, &options, None));
        });
        std::thread::sleep(Duration::from_millis(50));
        stop.store(true, Ordering::Relaxed);
        let (tally, report) = is_done.recv_timeout(Duration::from_secs(30)).expect("it ends").unwrap();
        assert_eq!((tally.interrupted, report.wrong), (report.interrupted, 0));
        let errors = report.calls.iter().map(|calls| calls.errors);
        let moved = report.adapters.iter().map(|tier| tier.stored.errors + tier.loaded.errors);
        assert_eq!(errors.chain(moved).sum::<u64>(), 0, "what was given up is no error: {report:?}");
        dropped += report.dropped;
    }
    assert!(dropped > 0, "something waited");
}
