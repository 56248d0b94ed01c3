//! What callers hold, read and store, on recordings of a few calls.

use wavetank_model::{Keys, Row, WriteMode};

use super::*;
use crate::plan::{AdapterPlan, EvictionPlan, L1Plan, LoadPolicy, Medium, StorePolicy};
use crate::tick::Ticks;

const OBJECT: u64 = 4096;
const SECOND: u64 = 1_000_000_000;

fn keys(numbers: &[u32]) -> Keys {
    numbers.iter().map(|&number| KeyId(number)).collect()
}

fn prefetch(numbers: &[u32], lock: LockMode) -> StorageCall {
    let row = Row { keys: keys(numbers), group: 0, layout: LayoutId(0), window: -1 };
    StorageCall::SubmitPrefetch(Box::new(Prefetch { lock, ..Prefetch::of([row]) }))
}

fn reserve(numbers: &[u32], layout: u32) -> StorageCall {
    StorageCall::ReserveWrite { keys: keys(numbers), layout: LayoutId(layout), mode: WriteMode::New }
}

fn finish(numbers: &[u32]) -> StorageCall {
    StorageCall::FinishWrite { keys: keys(numbers) }
}

fn enter(numbers: &[u32]) -> StorageCall {
    StorageCall::ReadEnter { keys: keys(numbers) }
}

fn release(numbers: &[u32]) -> StorageCall {
    StorageCall::FinishRead { keys: keys(numbers), locks: 1 }
}

/// Calls a second apart.
fn calls(all: Vec<StorageCall>) -> Vec<Recorded> {
    let at = |number: usize| Nanos(number as u64 * SECOND);
    all.into_iter().enumerate().map(|(number, call)| Recorded::plain(at(number), call)).collect()
}

/// Memory without limits and a tier behind it, readers having 300 s.
fn manner(mode: Mode) -> Manner {
    let eviction = EvictionPlan { policy: "lru".to_owned(), trigger_watermark: 0.8, eviction_ratio: 0.2 };
    let l1 = L1Plan {
        quotas: Default::default(),
        capacity_bytes: None,
        align_bytes: OBJECT,
        write_ttl: Nanos(600 * SECOND),
        read_ttl: Nanos(300 * SECOND),
        eviction,
    };
    let behind = AdapterPlan {
        quotas: Default::default(),
        medium: Medium::Mock,
        capacity_bytes: None,
        bytes_per_second: None,
        eviction: None,
    };
    let plan = Plan {
        l1,
        adapters: vec![behind],
        store_delay: Nanos::ZERO,
        store_policy: StorePolicy::Default,
        load_policy: LoadPolicy::Default,
    };
    Manner { plan, tempo: Tempo::Clock(vec![Ticks::default(); 2]), mode, scope: Scope::default() }
}

fn made(calls: &[Recorded], mode: Mode) -> Tally {
    let recording =
        Recording { calls, keys: 16, table: None, layout_bytes: &[OBJECT, 0, 2 * OBJECT], end: End::Whole };
    replay(&recording, &manner(mode), None).unwrap()
}

/// Broken by: reading what a prefetch found and did not hold.
#[test]
fn a_caller_that_decides_reads_only_what_it_holds() {
    let tally = |lock| {
        let calls = calls(vec![
            prefetch(&[0, 1], lock),
            reserve(&[0, 1], 0),
            finish(&[0, 1]),
            prefetch(&[0, 1], lock),
            enter(&[0, 1]),
            release(&[0, 1]),
            prefetch(&[2], lock),
        ]);
        made(&calls, Mode::Closed)
    };
    let (held, not_held) = (tally(LockMode::Lock), tally(LockMode::NoLock));
    assert_eq!((held.hits_l1, held.read, held.read_failed, held.release_failed), (2, 2, 0, 0));
    let counts = (not_held.hits_l1, not_held.read, not_held.read_failed, not_held.release_failed);
    assert_eq!(counts, (2, 0, 0, 0));
}

fn at(second: u64, call: StorageCall) -> Recorded {
    Recorded::plain(Nanos(second * SECOND), call)
}

/// Broken by: a lock that expires unseen because nobody gives it back as recorded.
#[test]
fn a_hit_that_is_not_given_back_in_time_has_expired() {
    let lock = LockMode::Lock;
    let mut calls = vec![
        at(0, reserve(&[0, 1], 0)),
        at(1, finish(&[0, 1])),
        at(2, prefetch(&[0, 1], lock)),
        at(400, prefetch(&[2], lock)),
    ];
    let tally = made(&calls, Mode::Open);
    assert_eq!((tally.surplus, tally.leaked, tally.expired, tally.held_at_end), (2, 0, 2, 0));
    // The end comes too late as well.
    calls[3] = at(400, release(&[5]));
    calls[2].outcome = Some([Fate::FirstTier; 2].into());
    let tally = made(&calls, Mode::Open);
    assert_eq!((tally.surplus, tally.leaked, tally.expired, tally.held_at_end), (0, 2, 2, 0));
}

/// Broken by: giving back at the end what the recording does not, or taking for a leak what it never had.
#[test]
fn what_the_recording_had_and_never_gave_back_is_leaked() {
    let lock = LockMode::Lock;
    let mut calls = calls(vec![
        reserve(&[0, 1, 2], 0),
        finish(&[0, 1, 2]),
        prefetch(&[0, 1, 2], lock),
        release(&[1]),
        prefetch(&[0, 1, 2], lock),
        release(&[1]),
    ]);
    let found = |one: Fate| Some([Fate::FirstTier, Fate::FirstTier, one].into());
    (calls[2].outcome, calls[4].outcome) = (found(Fate::Absent), found(Fate::Absent));
    let tally = made(&calls, Mode::Open);
    assert_eq!((tally.surplus, tally.leaked, tally.expired, tally.held_at_end), (2, 2, 0, 1));
    assert_eq!(tally.prefetches_that_differ, 2);
}

/// Broken by: dropping what a caller wrote without looking for it, or objects without a length.
#[test]
fn a_caller_that_decides_writes_what_it_never_looked_for() {
    let (lock, unknown) = (LockMode::Lock, 1);
    let mut lookup = prefetch(&[5, 6], lock);
    if let StorageCall::SubmitPrefetch(asked) = &mut lookup {
        asked.rows[0].layout = LayoutId(unknown);
    }
    let calls = calls(vec![
        reserve(&[0, 1], 0),
        finish(&[1]),
        lookup,
        reserve(&[5], 2),
        finish(&[5]),
        prefetch(&[0, 1], lock),
        enter(&[0, 1, 9]),
        release(&[0, 1]),
        reserve(&[1, 2], 0),
        finish(&[1, 2]),
    ]);
    let tally = made(&calls, Mode::Closed);
    // 0 and 1 as recorded, of which one was refused then; 5 as it was not found, 2 as recorded.
    assert_eq!((tally.stored, tally.store_failed, tally.used_l1), (4, 0, 5 * OBJECT));
    assert_eq!((tally.hits_l1, tally.read, tally.released, tally.read_failed), (2, 2, 2, 0));
    assert_eq!((tally.writes_left, tally.reads_left, tally.unsized_misses), (1, 1, 1));
}

/// Broken by: keeping what every prefetch took, however many there are.
#[test]
fn many_rounds_take_no_more_memory() {
    let calls = calls(vec![prefetch(&[0], LockMode::NoLock)]);
    let recording =
        Recording { calls: &calls, keys: 1, table: None, layout_bytes: &[OBJECT], end: End::Whole };
    let rounds = 1_100_000;
    let manner = Manner { scope: Scope { rounds, ..Scope::default() }, ..manner(Mode::Open) };
    let tally = replay(&recording, &manner, None).unwrap();
    assert_eq!((tally.prefetches, tally.took().count, tally.took.kept()), (1_100_000, 1_100_000, 0));
}
