//! Many callers at a time: what was written is read, and what the journal says happens again.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;

use rand::RngExt;
use wavetank_model::{Draw, FetchPolicy, LockMode, Nanos, Recorded, Row, seeded};
use wavetank_store::payload;

use super::*;
use crate::engine::Tempo;
use crate::note::Note;
use crate::plan::{
    AdapterPlan, EvictionPlan, L1Plan, LoadPolicy, Medium, Plan, QuotaPlan, StorePolicy, Wrapping,
};
use crate::replay::{End, Listener, Made, Manner, Mode, Recording, Scope, Tally, replay};

pub(crate) const KEYS: u32 = 48;
/// Objects of even and of odd keys.
pub(crate) const LAYOUT_BYTES: [u64; 2] = [4096, 6000];
const CALLERS: u64 = 4;
const MS: u64 = 1_000_000;

/// What was told.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Vec<Recorded>>);

impl Kept {
    /// All of it; then there is none.
    pub(crate) fn take(&self) -> Vec<Recorded> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Journal for Kept {
    fn record(&self, recorded: Recorded, _: Called<'_>) {
        self.0.lock().unwrap().push(recorded);
    }
}

/// Compares what calls find now with what they found then.
struct Comparing<'a> {
    calls: &'a [Recorded],
    compared: usize,
}

impl Listener for Comparing<'_> {
    fn made(&mut self, made: &Made<'_>) -> Result<ControlFlow<()>> {
        let recorded = &self.calls[made.number];
        if let Some(outcome) = &recorded.outcome {
            assert_eq!(made.fates, &outcome[..], "call {}: {:?}", made.number, recorded.call);
            assert_eq!(made.thread, recorded.thread);
            self.compared += 1;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn ended(&mut self, _: &[Note]) -> Result<()> {
        Ok(())
    }
}

pub(crate) fn eviction(policy: &str, trigger_watermark: f64, eviction_ratio: f64) -> EvictionPlan {
    EvictionPlan { policy: policy.to_owned(), trigger_watermark, eviction_ratio }
}

pub(crate) fn adapter(medium: Medium, objects: u64) -> AdapterPlan {
    AdapterPlan {
        medium,
        capacity_bytes: Some(objects * 5000),
        bytes_per_second: None,
        eviction: Some(eviction("lru", 0.8, 0.2)),
        quotas: QuotaPlan::default(),
    }
}

pub(crate) fn directory(name: &str, location: &Path, wrappers: Vec<Wrapping>) -> Medium {
    let options = match name {
        "buffered" => BTreeMap::from([("durable".to_owned(), "false".to_owned())]),
        _ => BTreeMap::new(),
    };
    Medium::Backend { name: name.to_owned(), location: location.display().to_string(), options, wrappers }
}

/// Memory of so many bytes in pages of 4 KiB, and what is behind it.
pub(crate) fn memory(capacity: u64, adapters: Vec<AdapterPlan>) -> Plan {
    Plan {
        l1: L1Plan {
            capacity_bytes: Some(capacity),
            align_bytes: 4096,
            write_ttl: Nanos(600_000 * MS),
            read_ttl: Nanos(300_000 * MS),
            eviction: eviction("lru", 0.8, 0.2),
            quotas: QuotaPlan::default(),
        },
        adapters,
        store_delay: Nanos::ZERO,
        store_policy: StorePolicy::Default,
        load_policy: LoadPolicy::Default,
    }
}

pub(crate) fn faults(seed: u64) -> Wrapping {
    let chances = [("read_error", 0.2), ("write_error", 0.1), ("commit_error", 0.1), ("create_error", 0.1)];
    let mut options: BTreeMap<String, String> =
        chances.iter().map(|(name, chance)| ((*name).to_owned(), chance.to_string())).collect();
    options.insert("seed".to_owned(), seed.to_string());
    Wrapping { name: "fault".to_owned(), options }
}

fn one_of<T: Copy>(draw: &mut Draw, of: &[T]) -> T {
    of[draw.random_range(0..of.len())]
}

/// Some plan.
fn plan(draw: &mut Draw, location: &Path) -> Plan {
    let policies = ["lru", "arc", "s3fifo", "sieve", "fifo", "lfu"];
    let mut adapters = Vec::new();
    if draw.random_bool(0.6) {
        let mut mock = adapter(Medium::Mock, draw.random_range(8..40));
        mock.bytes_per_second = draw.random_bool(0.5).then_some(2e7);
        adapters.push(mock);
    }
    if adapters.is_empty() || draw.random_bool(0.5) {
        let wrappers = if draw.random_bool(0.4) { vec![faults(draw.random())] } else { Vec::new() };
        let medium = directory(one_of(draw, &["buffered", "direct"]), location, wrappers);
        adapters.push(adapter(medium, draw.random_range(8..40)));
    }
    for adapter in &mut adapters {
        adapter.eviction.iter_mut().for_each(|plan| plan.policy = one_of(draw, &policies).to_owned());
    }
    Plan {
        l1: L1Plan {
            capacity_bytes: Some(draw.random_range(10..30) * 8192),
            align_bytes: 4096,
            write_ttl: Nanos(one_of(draw, &[2 * MS, 1000 * MS])),
            read_ttl: Nanos(one_of(draw, &[3 * MS, 1000 * MS])),
            eviction: eviction(one_of(draw, &policies), 0.5, 0.3),
            quotas: QuotaPlan::default(),
        },
        adapters,
        store_delay: Nanos::ZERO,
        store_policy: one_of(draw, &[StorePolicy::Default, StorePolicy::Default, StorePolicy::SkipL1]),
        load_policy: one_of(draw, &[LoadPolicy::Default, LoadPolicy::Retain]),
    }
}

fn bytes_of(key: KeyId) -> u64 {
    LAYOUT_BYTES[key.0 as usize % 2]
}

/// What an object holds, by its key.
fn content(key: KeyId) -> Vec<u8> {
    let mut bytes = vec![0; bytes_of(key) as usize];
    payload::fill(u64::from(key.0), 0, &mut bytes);
    bytes
}

fn some_keys(draw: &mut Draw, count: usize) -> Vec<KeyId> {
    (0..count).map(|_| KeyId(draw.random_range(0..KEYS))).collect()
}

fn write(storage: &Storage, keys: &[KeyId]) -> Writing {
    let layout = keys.first().map_or(0, |key| key.0 % 2);
    let keys: Vec<KeyId> = keys.iter().copied().filter(|key| key.0 % 2 == layout).collect();
    let (fates, mut writing) = storage.reserve_write(&keys, LayoutId(layout), LAYOUT_BYTES[layout as usize]);
    assert_eq!(fates.iter().filter(|fate| **fate == Fate::Done).count(), writing.keys().count());
    writing.iter_mut().for_each(|(key, bytes)| payload::fill(u64::from(key.0), 0, bytes));
    writing
}

fn grid(draw: &mut Draw) -> Prefetch {
    let (rows, columns) = (draw.random_range(1..3), draw.random_range(1..7));
    let window = one_of(draw, &[-1, -1, 2]);
    let start = draw.random_range(0..KEYS);
    let row = |number: u32| Row {
        keys: (0..columns).map(|column| KeyId((start + number * 24 + column) % KEYS)).collect(),
        group: number,
        layout: LayoutId(0),
        window,
    };
    Prefetch {
        rows: (0..rows).map(row).collect(),
        readers: draw.random_range(1..3),
        policy: one_of(draw, &[FetchPolicy::Prefix, FetchPolicy::Full]),
        lock: one_of(draw, &[LockMode::Lock, LockMode::Lock, LockMode::NoLock]),
        request: "".into(),
        skip_l2: draw.random_bool(0.1),
        handle: None,
    }
}

fn check(reading: &Reading) {
    for (key, object) in reading.iter() {
        assert!(object[..] == content(key)[..], "{key:?}: other bytes");
    }
}

/// Fetches, reads and gives back what there is; now and then something is left out.
fn fetch(storage: &Storage, draw: &mut Draw) {
    let asked = grid(draw);
    let handle = storage.submit_prefetch(asked.clone()).unwrap();
    let fates = storage.wait(handle).expect("it is said once");
    assert_eq!(storage.query(handle), None, "and not again");
    let keys = asked.rows.iter().flat_map(|row| &row.keys).copied();
    let is_hit = |fate: &Fate| matches!(fate, Fate::FirstTier | Fate::LowerTier);
    let hits: Vec<KeyId> = keys.zip(&fates).filter(|(_, fate)| is_hit(fate)).map(|(key, _)| key).collect();
    if draw.random_bool(0.1) {
        return;
    }
    let reading = storage.read_prefetched(&hits);
    reading.iter().for_each(check);
    if draw.random_bool(0.9) {
        storage.finish_read(&hits, asked.readers);
        reading.iter().for_each(check);
    }
}

/// What one caller does.
fn call(storage: &Storage, draw: &mut Draw, calls: usize) {
    for _ in 0..calls {
        let count = draw.random_range(1..8);
        let keys = some_keys(draw, count);
        match draw.random_range(0..10) {
            0..4 => {
                let mut writing = write(storage, &keys);
                if draw.random_bool(0.2) {
                    std::thread::sleep(Duration::from_millis(3));
                }
                let odd = writing.split(|key| key.0 % 3 == 0);
                storage.finish_write(writing);
                if draw.random_bool(0.8) {
                    storage.finish_write(odd);
                }
            }
            4..8 => fetch(storage, draw),
            8 => drop(storage.finish_read(&keys, 1)),
            _ => storage.read_prefetched(&keys).iter().for_each(check),
        }
    }
}

/// What the journal says, made again.
fn made_again(calls: &[Recorded], plan: &Plan) -> Tally {
    let recording =
        Recording { calls, keys: KEYS as usize, table: None, layout_bytes: &LAYOUT_BYTES, end: End::Whole };
    let manner = Manner { plan: plan.clone(), tempo: Tempo::Told, mode: Mode::Open, scope: Scope::default() };
    let mut comparing = Comparing { calls, compared: 0 };
    let tally = replay(&recording, &manner, Some(&mut comparing)).unwrap();
    assert!(comparing.compared > 0);
    tally
}

/// Where the engine and the devices must agree at the end.
fn compare_devices(storage: &Storage, plan: &Plan) {
    let state = storage.shared.lock();
    for (number, depot) in storage.shared.depots.iter().enumerate() {
        let has_faults =
            matches!(&plan.adapters[number].medium, Medium::Backend { wrappers, .. } if !wrappers.is_empty());
        for key in (0..KEYS).map(KeyId) {
            let (decided, real) = (state.engine.is_behind(number, key), depot.contains(&key.0.to_le_bytes()));
            // A device may have lost what nobody has asked for again.
            assert!(decided == real || (has_faults && decided), "tier {number}, {key:?}: {decided} {real}");
        }
    }
    assert!(storage.shared.pool.held().0 <= state.engine.used().0, "memory is what was granted");
}

/// How often each fate was met, how many prefetches were under way while something else happened, and how
/// often copies were made later.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    fates: [u64; Fate::ALL.len()],
    overlapped: u64,
    resumed: u64,
}

impl Seen {
    fn see(&mut self, calls: &[Recorded]) {
        for fate in calls.iter().filter_map(|recorded| recorded.outcome.as_ref()).flatten() {
            self.fates[*fate as usize] += 1;
        }
        let is_resumed = |recorded: &&Recorded| matches!(recorded.call, StorageCall::StoreBegun { .. });
        self.resumed += calls.iter().filter(is_resumed).count() as u64;
        for pair in calls.windows(2) {
            let began = matches!(&pair[0].call, StorageCall::SubmitPrefetch(asked) if asked.handle.is_some());
            let ended = matches!(pair[1].call, StorageCall::PrefetchCompleted { .. });
            self.overlapped += u64::from(began && !ended);
        }
    }
}

/// What random callers did, on some plan.
pub(crate) fn recorded(seed: u64, location: &Path) -> (Plan, Vec<Recorded>) {
    let (plan, storage, calls) = live(seed, location);
    storage.close().unwrap();
    (plan, calls)
}

fn live(seed: u64, location: &Path) -> (Plan, Storage, Vec<Recorded>) {
    let mut draw = seeded(seed, "plan");
    let plan = plan(&mut draw, location);
    let options = StorageOptions {
        eviction_sleep: Duration::from_millis(2),
        prefetches_in_flight: draw.random_range(1..4),
        under_way_bytes: draw.random_bool(0.5).then_some(8192),
        ..StorageOptions::default()
    };
    let kept = Arc::new(Kept::default());
    let mut storage = Storage::open(&plan, &options, Some(Arc::clone(&kept) as _)).unwrap();
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            let storage = &storage;
            scope.spawn(move || call(storage, &mut seeded(seed * 100 + caller, "caller"), 40));
        }
    });
    storage.end_threads().unwrap();
    let calls = kept.take();
    (plan, storage, calls)
}

fn lives(seed: u64, seen: &mut Seen) {
    let location = tempfile::tempdir().unwrap();
    let (plan, storage, calls) = live(seed, location.path());
    let (used, background) = (storage.used(), storage.background());
    seen.see(&calls);
    let tally = made_again(&calls, &plan);
    assert_eq!(tally.passes_that_differ, 0);
    assert_eq!((tally.used_l1, tally.used_l2), used);
    assert_eq!(tally.background, background);
    assert_eq!((tally.prefetches_that_differ, tally.writes_that_differ), (0, 0));
    compare_devices(&storage, &plan);
    storage.close().unwrap();
    assert_eq!(std::fs::read_dir(location.path()).unwrap().count(), 0, "nothing of ours stays");
}

/// The law of recordings: what concurrent callers found, loops did and devices failed, one caller finds again
/// from the journal alone.
///
/// Broken by: a call that is told outside the lock or at another time than the engine's, background work that
/// is not told (a copy that begins later too), a completion in another order, a decision that depends on
/// bytes.
#[test]
fn what_the_journal_says_happens_again() {
    let seeds = std::env::var("WAVETANK_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    let first = std::env::var("WAVETANK_FIRST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut seen = Seen::default();
    for seed in first..first + seeds {
        let live = std::panic::catch_unwind(move || {
            lives(seed, &mut seen);
            seen
        });
        assert!(live.is_ok(), "seed {seed}");
        seen = live.unwrap_or_default();
    }
    // Otherwise the callers are too tame to say anything.
    let is_wild = seen.overlapped > 0 && seen.resumed > 0;
    assert!(seen.fates.iter().all(|count| *count > 0) && is_wild, "{seen:?}");
}

/// Broken by: bytes of another key, of another length, or of a buffer that is used again too early.
#[test]
fn what_was_written_is_read_from_memory_and_from_behind() {
    for name in ["", "memory", "buffered", "direct"] {
        let location = tempfile::tempdir().unwrap();
        let medium = match name {
            "" => Medium::Mock,
            "memory" => directory(name, Path::new(""), Vec::new()),
            _ => directory(name, location.path(), Vec::new()),
        };
        let mut plan = plan(&mut seeded(0, "plan"), location.path());
        plan.l1 = L1Plan {
            capacity_bytes: Some(16 * 8192),
            write_ttl: Nanos(1000 * MS),
            read_ttl: Nanos(60_000 * MS),
            eviction: eviction("lru", 0.0, 1.0),
            ..plan.l1
        };
        plan.adapters = vec![adapter(medium, 100)];
        (plan.store_policy, plan.load_policy) = (StorePolicy::Default, LoadPolicy::Default);
        let options = StorageOptions {
            eviction_sleep: Duration::from_secs(3600),
            under_way_bytes: Some(u64::MAX),
            ..Default::default()
        };
        let storage = Storage::open(&plan, &options, None).unwrap();
        let keys: Vec<KeyId> = (0..8).map(KeyId).collect();
        let fetched = |expected: Fate| {
            let row = Row { keys: keys.clone().into(), group: 0, layout: LayoutId(0), window: -1 };
            let asked =
                Prefetch { rows: [row].into(), lock: LockMode::Lock, readers: 1, ..grid(&mut seeded(0, "")) };
            let asked = Prefetch { policy: FetchPolicy::Prefix, skip_l2: false, ..asked };
            let handle = storage.submit_prefetch(asked).unwrap();
            assert_eq!(storage.wait(handle).unwrap(), vec![expected; 8], "{name}");
            let reading = storage.read_prefetched(&keys).expect("held");
            check(&reading);
            assert!(storage.finish_read(&keys, 1).iter().all(|fate| *fate == Fate::Done));
            // What leaves memory with its last reader is still the reader's.
            check(&reading);
        };
        for parity in 0..2 {
            let some: Vec<KeyId> = keys.iter().copied().filter(|key| key.0 % 2 == parity).collect();
            assert_eq!(storage.finish_write(write(&storage, &some)), vec![Fate::Done; 4]);
        }
        fetched(Fate::FirstTier);
        storage.settle();
        assert_eq!(storage.shared.lock().engine.pass(0), Some(8));
        storage.shared.lock().follow(&mut Incoming::default());
        fetched(Fate::LowerTier);
        fetched(Fate::LowerTier);
        assert_eq!(storage.used().0, 0, "what came from behind left with its readers");
        let pool = storage.shared.pool.held();
        assert_eq!((pool.0, pool.1), (0, 4 * (4096 + 6000)), "and its memory is used again");
        storage.close().unwrap();
    }
}

/// Broken by: taking the directory for ours, or leaving ours where a second tier cannot be opened.
#[test]
fn what_others_have_in_a_directory_stays_and_nothing_of_ours_does() {
    let location = tempfile::tempdir().unwrap();
    std::fs::write(location.path().join("theirs"), "x").unwrap();
    let mut plan = plan(&mut seeded(0, "plan"), location.path());
    plan.adapters = vec![adapter(directory("buffered", location.path(), Vec::new()), 10)];
    let there = || std::fs::read_dir(location.path()).unwrap().count();
    let storage = Storage::open(&plan, &StorageOptions::default(), None).unwrap();
    storage.finish_write(write(&storage, &[KeyId(0), KeyId(2)]));
    storage.settle();
    assert_eq!((there(), storage.used().1[0]), (2, 2 * LAYOUT_BYTES[0]));
    drop(storage);
    assert_eq!(there(), 1);
    let none = location.path().join("theirs").join("none");
    plan.adapters.push(adapter(directory("buffered", &none, Vec::new()), 10));
    let refusal = Storage::open(&plan, &StorageOptions::default(), None).err().unwrap().to_string();
    assert!(refusal.contains("wavetank.calls-1"), "{refusal}");
    assert_eq!(there(), 1);
}
