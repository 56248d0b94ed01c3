//! Replays of made-up recordings, recorded and made again.

use proptest::prelude::*;
use wavetank_model::{FetchPolicy, LayoutId, LockMode, Nanos, Row};

use super::*;
use crate::engine::Tempo;
use crate::plan::{AdapterPlan, EvictionPlan, L1Plan, LoadPolicy, Medium, Plan, StorePolicy};
use crate::replay::{End, Mode, Recording, Scope, Tally, replay};
use crate::tick::Ticks;

const KEYS: u32 = 12;
const OBJECT: u64 = 4096;
const MS: u64 = 1_000_000;

fn keys() -> impl Strategy<Value = Keys> {
    prop::collection::vec(0..KEYS, 1..5).prop_map(|keys| keys.into_iter().map(KeyId).collect())
}

fn prefetch() -> impl Strategy<Value = StorageCall> {
    let columns = prop::collection::vec((0..KEYS, 0..KEYS), 1..4);
    let way = (0..2u32, 1..3u32, any::<[bool; 3]>(), prop::option::weighted(0.3, 0..4u64));
    (columns, 1..3usize, way).prop_map(
        |(columns, rows, (window, readers, [full, locks, skip_l2], handle))| {
            let keys = |row: usize| {
                let key = |(one, other): &(u32, u32)| KeyId(if row == 0 { *one } else { *other });
                columns.iter().map(key).collect()
            };
            let row = |row| Row { keys: keys(row), group: 0, layout: LayoutId(0), window: window as i32 };
            StorageCall::SubmitPrefetch(Box::new(Prefetch {
                rows: (0..rows).map(row).collect(),
                readers,
                policy: if full { FetchPolicy::Full } else { FetchPolicy::Prefix },
                lock: if locks { LockMode::Lock } else { LockMode::NoLock },
                request: "".into(),
                skip_l2,
                handle,
            }))
        },
    )
}

fn call() -> impl Strategy<Value = StorageCall> {
    let layout = LayoutId(0);
    prop_oneof![
        4 => prefetch(),
        4 => keys().prop_map(move |keys| StorageCall::ReserveWrite { keys, layout, mode: WriteMode::New }),
        4 => keys().prop_map(|keys| StorageCall::FinishWrite { keys }),
        2 => keys().prop_map(|keys| StorageCall::ReadEnter { keys }),
        2 => keys().prop_map(|keys| StorageCall::ReadExit { keys }),
        4 => (keys(), 1..3u32).prop_map(|(keys, locks)| StorageCall::FinishRead { keys, locks }),
        1 => (0..3u8).prop_map(|tier| StorageCall::EvictionPass { tier, evicted: 1, most: None }),
        1 => (1..4u8, keys()).prop_map(|(tier, keys)| StorageCall::StoreCompleted { tier, keys }),
        1 => (1..4u8, keys()).prop_map(|(tier, keys)| StorageCall::StoreBegun { tier, keys }),
        1 => (0..4u64, keys()).prop_map(|(handle, keys)| StorageCall::PrefetchCompleted { handle, keys }),
        1 => keys().prop_map(|keys| StorageCall::Removed { keys }),
    ]
}

/// Times in no order of their own; some with threads, some with devices that fail.
fn calls() -> impl Strategy<Value = Vec<Recorded>> {
    let one = (0..40 * MS, 0..3u32, any::<bool>(), call());
    (prop::collection::vec(one, 1..60), any::<bool>()).prop_map(|(calls, has_threads)| {
        let recorded = |(at, thread, fails, call): (u64, u32, bool, StorageCall)| {
            let is_device =
                matches!(call, StorageCall::StoreCompleted { .. } | StorageCall::PrefetchCompleted { .. });
            let fate = |key: KeyId| if key.0.is_multiple_of(2) { Fate::Failed } else { Fate::Done };
            let is_late = thread == 0 && matches!(call, StorageCall::StoreCompleted { .. });
            let fate = |key: KeyId| if is_late { Fate::NoMemory } else { fate(key) };
            let outcome = (fails && is_device).then(|| call.keys().map(fate).collect());
            let thread = has_threads.then_some(thread);
            Recorded { thread, outcome, ..Recorded::plain(Nanos(at), call) }
        };
        let mut calls: Vec<Recorded> = calls.into_iter().map(recorded).collect();
        calls.sort_by_key(|recorded| recorded.at);
        calls
    })
}

fn eviction(policy: &str) -> EvictionPlan {
    EvictionPlan { policy: policy.to_owned(), trigger_watermark: 0.5, eviction_ratio: 0.4 }
}

fn manner() -> impl Strategy<Value = Manner> {
    let policy =
        prop_oneof![Just("lru"), Just("arc"), Just("s3fifo"), Just("sieve"), Just("lfu"), Just("fifo")];
    let policies = (policy, any::<[bool; 3]>());
    (policies, 2..10u64, 0..3usize, 0..5u64, 0..4u8).prop_map(
        |((policy, [skip_l1, retain, tight]), l1, adapters, delay, way)| {
            let adapter = AdapterPlan {
                quotas: Default::default(),
                capacity_bytes: Some(6 * OBJECT),
                bytes_per_second: Some(1e6),
                eviction: Some(eviction(policy)),
                medium: Medium::Mock,
            };
            let ticks = Ticks::Sleeping { first: Nanos(3 * MS), sleep: Nanos(7 * MS), work: Nanos(MS) };
            let plan = Plan {
                l1: L1Plan {
                    quotas: Default::default(),
                    capacity_bytes: (way != 3).then_some(l1 * OBJECT),
                    align_bytes: OBJECT,
                    write_ttl: Nanos(if tight { 5 * MS } else { 600_000 * MS }),
                    read_ttl: Nanos(if tight { 5 * MS } else { 300_000 * MS }),
                    eviction: eviction(policy),
                },
                adapters: vec![adapter; adapters],
                store_delay: Nanos(delay * MS),
                store_policy: if skip_l1 { StorePolicy::SkipL1 } else { StorePolicy::Default },
                load_policy: if retain { LoadPolicy::Retain } else { LoadPolicy::Default },
            };
            let tempo = match way {
                0 => Tempo::Told,
                _ => Tempo::Clock(vec![ticks; adapters + 1]),
            };
            let mode = if way == 2 { Mode::Closed } else { Mode::Open };
            let rounds = if way == 3 { 2 } else { 1 };
            Manner { plan, tempo, mode, scope: Scope { rounds, to: Nanos(70 * MS), ..Scope::default() } }
        },
    )
}

fn record(calls: &[Recorded], manner: &Manner) -> (Tally, Vec<Recorded>) {
    let mut records = Vec::new();
    let recording =
        Recording { calls, keys: KEYS as usize, table: None, layout_bytes: &[OBJECT], end: End::Whole };
    let mut recorder = Recorder::new(manner, |recorded: &Recorded| {
        records.push(recorded.clone());
        Ok(())
    });
    let tally = replay(&recording, manner, Some(&mut recorder)).unwrap();
    (tally, records)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Broken by: background work out of its order, a lock that is given back unseen, callers that are mixed
    /// up, a release that takes another caller's lock.
    #[test]
    fn a_recorded_replay_made_again_is_itself(calls in calls(), manner in manner()) {
        let (first, records) = record(&calls, &manner);
        let Scope { to, rounds, .. } = manner.scope;
        let again = Manner { tempo: Tempo::Told, mode: Mode::Open, scope: Scope::default(), ..manner };
        let (tally, second) = record(&records, &again);
        prop_assert!(tally.is_faithful(), "{:?}", tally);
        prop_assert_eq!(&second, &records);
        // Locks expire: who holds them at the end depends on when that is, and what happens to nothing is not
        // recorded.
        let end = |records: &[Recorded]| records.iter().map(|record| record.at).filter(|at| *at < to).max();
        let ends_alike = rounds == 1 && end(&calls) == end(&records);
        let state = |tally: &Tally| {
            let held = if ends_alike { tally.held_at_end } else { 0 };
            (tally.hits_l1, tally.hits_l2, tally.stored, tally.read, held, tally.used_l1)
        };
        prop_assert_eq!(state(&tally), state(&first));
        prop_assert_eq!(tally.background, first.background);
    }
}
