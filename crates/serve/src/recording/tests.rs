//! What clients found, the recording lets them find again.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use rand::RngExt;
use wavetank_calls::{
    Blank, End, Got, Held, Hold, Keeping, Listener, Lookup, Made, Manner, Mode, Note, Only,
    Recording as Calls, Scope, SetManner, Storage, StorageOptions, Tempo, replay,
};
use wavetank_model::{Draw, Fate, FetchPolicy, StorageCall, seeded};
use wavetank_trace::Input;
use wavetank_trace::calls::CallReader;
use wavetank_trace::calls::lct::{FRAME_LIMIT, Reader};

use super::*;

/// Compares what calls find now with what they found then.
struct Comparing<'a> {
    calls: &'a [Recorded],
    compared: u64,
}

impl Listener for Comparing<'_> {
    fn made(&mut self, made: &Made<'_>) -> Result<ControlFlow<()>> {
        let recorded = &self.calls[made.number];
        if let Some(outcome) = &recorded.outcome {
            assert_eq!(made.fates, &outcome[..], "call {}: {:?}", made.number, recorded.call);
            self.compared += 1;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn ended(&mut self, _: &[Note]) -> Result<()> {
        Ok(())
    }
}

const POLICIES: [&str; 4] = ["LRU", "ARC", "s3fifo", "IsolatedLRU"];

fn one_of<T: Copy>(draw: &mut Draw, of: &[T]) -> T {
    of[draw.random_range(0..of.len())]
}

/// Some storage, with tiers that fail or are slow.
fn storage(draw: &mut Draw, folder: &Path) -> StoragePlan {
    let quotas = r#""quotas": {"by_salt": {"a": 0.00006}, "default_gb": 0.0002}"#;
    let mut tiers = Vec::new();
    if draw.random_bool(0.5) {
        let policy = one_of(draw, &POLICIES);
        tiers.push(format!(
            r#"{{"type": "mock", "max_size_gb": 0.0002, "mock_bandwidth_gb": 0.02, {quotas},
                "eviction": {{"eviction_policy": "{policy}"}}}}"#
        ));
    }
    if tiers.is_empty() || draw.random_bool(0.5) {
        let (policy, seed) = (one_of(draw, &POLICIES), draw.random::<u32>());
        let faults = one_of(draw, &[0.0, 0.2]);
        tiers.push(format!(
            r#"{{"type": "buffered", "location": "{}", "max_size_gb": 0.0003, {quotas},
                "options": {{"durable": false}}, "eviction": {{"eviction_policy": "{policy}"}},
                "wrappers": [{{"type": "fault", "seed": {seed},
                    "read_error": {faults}, "write_error": {faults}}}]
            }}"#,
            folder.display()
        ));
    }
    let l1 = wavetank_calls::L1Plan {
        capacity_bytes: Some(draw.random_range(12..40) * 8192),
        align_bytes: 4096,
        write_ttl: wavetank_model::Nanos::from_seconds(600.0),
        read_ttl: wavetank_model::Nanos::from_seconds(one_of(draw, &[0.005, 300.0])),
        eviction: wavetank_calls::EvictionPlan::typed(one_of(draw, &POLICIES), Some(0.7), None, [""; 3])
            .unwrap(),
        quotas: wavetank_calls::QuotaPlan {
            default_bytes: Some(80_000),
            by_salt: [("a".to_owned(), 40_000)].into(),
        },
    };
    StoragePlan {
        l1,
        adapters: tiers.iter().map(|tier| AdapterPlan::typed(tier).unwrap()).collect(),
        store_delay: wavetank_model::Nanos::ZERO,
        store_policy: one_of(draw, &[Default::default(), wavetank_calls::StorePolicy::SkipL1]),
        load_policy: one_of(draw, &[Default::default(), wavetank_calls::LoadPolicy::Retain]),
    }
}

fn name(draw: &mut Draw) -> Vec<u8> {
    let number = draw.random_range(0..30);
    match number % 3 {
        0 => format!("key:{number}").into_bytes(),
        1 => format!("m/x@01000100@0@{number:04x}@a").into_bytes(),
        _ => format!("m/x@01000100@1@{number:04x}@{}", number % 4).into_bytes(),
    }
}

/// The bytes of an object: its name, again and again.
fn content(name: &[u8], length: usize) -> Vec<u8> {
    name.iter().copied().cycle().take(length).collect()
}

fn check(name: &[u8], object: &[u8]) {
    assert!(object == content(name, object.len()), "other bytes under {}", String::from_utf8_lossy(name));
}

/// What one client does.
fn client(storage: &Storage, draw: &mut Draw, calls: usize) {
    let (mut holds, mut blanks): (Vec<Held>, Vec<Blank>) = (Vec::new(), Vec::new());
    for _ in 0..calls {
        let name = name(draw);
        match draw.random_range(0..12) {
            0..4 => {
                let length = draw.random_range(0..9000);
                let Some(mut blank) = storage.room(length as u64) else { continue };
                blank.bytes_mut().copy_from_slice(&content(&name, length));
                if draw.random_bool(0.3) {
                    // Its client takes its time, and memory is short meanwhile.
                    blanks.push(blank);
                    continue;
                }
                let expires = draw
                    .random_bool(0.2)
                    .then(|| SystemTime::now() + Duration::from_millis(draw.random_range(0..4)));
                let only = one_of(draw, &[Only::Any, Only::Any, Only::Absent, Only::Present]);
                storage.set(&name, blank, SetManner { only, expires });
            }
            4..8 => {
                let (sender, got) = channel();
                match storage.get(&name) {
                    Got::Here(object) => check(&name, &object),
                    Got::Behind if draw.random_bool(0.8) => {
                        storage.fetch(&name, Box::new(move |object| drop(sender.send(object))));
                        got.recv().unwrap().iter().for_each(|object| check(&name, object));
                    }
                    Got::Behind | Got::Absent => {}
                }
            }
            8 => drop(storage.remove(&name)),
            9 => holds.extend(match storage.hold(&name) {
                Hold::Here(held) => Some(held),
                Hold::Behind | Hold::Absent => None,
            }),
            10 => {
                let names: Vec<Vec<u8>> = (0..4).map(|_| self::name(draw)).collect();
                let rows = [vec![&names[0][..], &names[1]], vec![&names[2], &names[3]]];
                let policy = one_of(draw, &[FetchPolicy::Prefix, FetchPolicy::Full]);
                let (sender, got) = channel();
                storage.look(
                    &Lookup { rows: &rows, policy, request: "r" },
                    Box::new(move |held| drop(sender.send(held))),
                );
                let held = got.recv().unwrap();
                for (cell, name) in names.iter().enumerate() {
                    held.object(cell).into_iter().for_each(|object| check(name, object));
                }
                holds.push(held);
            }
            _ => {
                std::thread::sleep(Duration::from_millis(draw.random_range(0..8)));
                holds.clear();
                blanks.truncate(draw.random_range(0..6));
            }
        }
    }
    if draw.random_bool(0.2) {
        storage.clear();
    }
}

/// What a recording says, made again: how many outcomes were compared, and those there were.
fn made_again(path: &Path, plan: &StoragePlan) -> (u64, Seen) {
    let mut reader = Reader::open(&Input::File(path.to_owned()), FRAME_LIMIT).unwrap();
    let mut calls = Vec::new();
    while let Some(recorded) = reader.advance().unwrap() {
        calls.push(recorded);
    }
    let survey = reader.survey();
    assert!(survey.cut.is_none() && survey.lost == 0 && survey.damaged.reasons.is_empty());
    assert!(calls.is_sorted_by_key(|recorded| recorded.at));
    let layouts: Vec<u64> = reader.keys().layouts().iter().map(|layout| layout.bytes().unwrap()).collect();
    let keys = reader.keys();
    let recording =
        Calls { calls: &calls, keys: keys.len(), table: Some(keys), layout_bytes: &layouts, end: End::Whole };
    let manner = Manner { plan: plan.clone(), tempo: Tempo::Told, mode: Mode::Open, scope: Scope::default() };
    let mut comparing = Comparing { calls: &calls, compared: 0 };
    let tally = replay(&recording, &manner, Some(&mut comparing)).unwrap();
    assert_eq!((tally.passes_that_differ, tally.prefetches_that_differ, tally.writes_that_differ), (0, 0, 0));
    let fates = calls.iter().filter_map(|recorded| recorded.outcome.as_ref()).flatten().copied().collect();
    let is_resumed = |recorded: &&Recorded| matches!(recorded.call, StorageCall::StoreBegun { .. });
    (comparing.compared, (fates, calls.iter().filter(is_resumed).count()))
}

/// Fates there were, and how often copies began later.
type Seen = (Vec<Fate>, usize);

fn lives(seed: u64, seen: &mut Seen) {
    let folder = tempfile::tempdir().unwrap();
    let mut draw = seeded(seed, "storage");
    let plan = storage(&mut draw, &folder.path().join("tier"));
    let options = StorageOptions {
        eviction_sleep: Duration::from_millis(2),
        prefetches_in_flight: 2,
        keeping: Keeping::All,
        under_way_bytes: draw.random_bool(0.5).then_some(12_288),
        ..StorageOptions::default()
    };
    // The second life finds what the first left.
    for life in 0..2 {
        let path = folder.path().join(format!("{life}.lct"));
        let to = Recording { path: path.clone(), rotate_bytes: None, cap_bytes: None };
        let tape = Tape::start(&to, &plan).unwrap();
        let storage = Storage::open(&plan, &options, Some(tape.journal())).unwrap();
        std::thread::scope(|scope| {
            for number in 0..3 {
                let storage = &storage;
                let mut draw = seeded(seed * 100 + number + 10 * life, "client");
                scope.spawn(move || client(storage, &mut draw, 60));
            }
        });
        storage.close().unwrap();
        let kept = tape.finish().unwrap();
        assert_eq!((kept.lost(), kept.failure), (0, None));
        let (compared, (fates, resumed)) = made_again(&path, &plan);
        assert!(compared > 100);
        seen.0.extend(fates);
        seen.1 += resumed;
    }
}

/// The law of recordings of a server.
///
/// Broken by: numbers that are translated after they are given to another name, a call that is told outside
/// the lock, a removal, an expiry or an eviction that is not told, a copy that
/// begins later and is not told, room without a name that is not told, what
/// a process found at its start that is not told, tenants that are lost.
#[test]
fn what_clients_found_they_find_again_from_the_recording() {
    let mut seen = Seen::default();
    let seeds = std::env::var("WAVETANK_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let first = std::env::var("WAVETANK_FIRST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    for seed in first..first + seeds {
        let life = std::panic::catch_unwind(|| {
            let mut seen = Seen::default();
            lives(seed, &mut seen);
            seen
        });
        assert!(life.is_ok(), "seed {seed}");
        let (fates, resumed) = life.unwrap_or_default();
        seen.0.extend(fates);
        seen.1 += resumed;
    }
    // Otherwise the clients are too tame to say anything.
    let needed = [Fate::Done, Fate::Absent, Fate::FirstTier, Fate::LowerTier, Fate::Failed, Fate::Expired];
    assert!(needed.iter().all(|fate| seen.0.contains(fate)) && seen.1 > 0);
}

/// Broken by: two names that become one key.
#[test]
fn names_stay_apart() {
    let (mut scribe, mut keys) = (NameScribe::default(), KeyTable::default());
    let names: [&[u8]; 6] = [
        b"a",
        b"resp@00000000@0@61",
        b"m@01000100@0@61",
        b"m@01000100@0@61@s",
        b"m@01000100@1@61",
        b"resp@00000000@0@61@s",
    ];
    let numbers: Vec<KeyId> = names.iter().map(|name| scribe.key(name, &mut keys)).collect();
    let mut once = numbers.clone();
    once.dedup();
    assert_eq!((numbers.len(), once.len(), keys.len()), (6, 6, 6));
    assert_eq!(keys.key(numbers[3]).family.cache_salt, "s");
}
