//! The whole store against a plain map: several lanes, every tier, faults, and what is left afterwards.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use rand::RngExt;
use wavetank_cache::{Promotion, Refusal, Rules, WritePolicy, eviction};
use wavetank_model::{StoreFact, seeded};
use wavetank_store::backend::{Backend, Location, Recovery};
use wavetank_store::backends::{self, Site};
use wavetank_store::meter::Work;
use wavetank_store::wrappers;
use wavetank_store::{
    Call, Deed, Done, Existing, KEY_BYTES_MAX, Key, Lane, Listener, Options, Outcome, Payload, Put, Shared,
    Store, Tier, Usage, Want,
};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

fn backend(name: &str, place: &tempfile::TempDir, capacity: Option<u64>) -> Arc<dyn Backend> {
    let files = backends::backend(name).unwrap().caps.location == Location::Directory;
    let location = if files { place.path().display().to_string() } else { String::new() };
    let site = Site { location, capacity_bytes: capacity, ..Site::default() };
    backends::open(name, &site).unwrap()
}

fn tier(backend: Arc<dyn Backend>, capacity_bytes: Option<u64>) -> Tier {
    let settings = eviction::Settings { capacity_bytes, ..Default::default() };
    Tier { backend, capacity_bytes, eviction: (eviction::policy("lru").unwrap().build)(&settings).unwrap() }
}

fn key(number: u64) -> Key {
    Key::from(format!("{number}").as_str())
}

fn put(lane: &mut Lane, number: u64, seed: u64, bytes: u64) -> Done {
    let payload = Payload::Seeded { seed, bytes };
    lane.put(Put { key: key(number), payload, tenant: 0, existing: Existing::Replace });
    lane.wait().unwrap()
}

fn get(lane: &mut Lane, number: u64) -> Done {
    lane.get(key(number), Want::Bytes);
    lane.wait().unwrap()
}

fn made(seed: u64, bytes: u64) -> Vec<u8> {
    let mut out = vec![0; bytes as usize];
    Payload::Seeded { seed, bytes }.fill(0, &mut out);
    out
}

#[test]
fn what_falls_down_comes_back_whole() {
    let place = tempfile::tempdir().unwrap();
    for (promotion, write) in [
        (Promotion::Never, WritePolicy::Back),
        (Promotion::OnHit, WritePolicy::Back),
        (Promotion::OnHit, WritePolicy::Around),
    ] {
        let place = tempfile::tempdir_in(place.path()).unwrap();
        let upper = tier(backend("memory", &place, Some(4 * MIB)), Some(4 * MIB));
        let lower = tier(backend("direct", &place, None), None);
        let store = Store::open(vec![upper, lower], Rules { promotion, write, ..Rules::default() }).unwrap();
        let mut lane = store.lane(4).unwrap();
        for number in 0..20 {
            assert!(matches!(put(&mut lane, number, number, MIB + number).outcome, Outcome::Stored(_)));
        }
        for number in (0..20).chain(0..20) {
            let done = get(&mut lane, number);
            assert!(matches!(done.outcome, Outcome::Hit(_)), "{done:?}");
            assert!(done.data == Some(made(number, MIB + number)), "entry {number}");
        }
        let usage = store.usage();
        assert!(usage[0].bytes <= 4 * MIB && usage[1].bytes > 10 * MIB, "{usage:?}");
        let kinds = [Work::Write, Work::Demote, Work::Promote];
        let moved: u64 = kinds.iter().map(|work| lane.meter().gauge(0, *work).count).sum();
        assert_eq!(moved > 0, (promotion, write) != (Promotion::Never, WritePolicy::Around));
    }
}

/// Broken by: bytes that come in other memory than was lent, or that are not those of their owner.
#[test]
fn bytes_come_in_what_was_lent_and_go_from_what_is_shared() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(vec![tier(backend("direct", &place, None), None)], Rules::default()).unwrap();
    let mut lane = store.lane(2).unwrap();
    let bytes = 2 * MIB + 5;
    let owned = Arc::new(made(3, bytes));
    let payload = Payload::Shared(Shared(Arc::clone(&owned) as _));
    lane.put(Put { key: key(1), payload, tenant: 0, existing: Existing::Keep });
    assert!(matches!(lane.wait().unwrap().outcome, Outcome::Stored(_)));
    assert_eq!(Arc::strong_count(&owned), 1, "its owner has it back");
    let (other, lent) = (vec![1; 10], vec![7; bytes as usize]);
    let address = lent.as_ptr();
    lane.lend(other);
    lane.lend(lent);
    let data = get(&mut lane, 1).data.unwrap();
    assert!(data.as_ptr() == address && data == *owned);
    assert_eq!(lane.take_back(), [vec![1; 10]], "what did not fit was not used");
    assert!(get(&mut lane, 1).data.unwrap() == *owned, "without one it comes all the same");
}

/// Broken by: an operation that is given up and never comes back, or leaves something where it was going.
#[test]
fn what_is_given_up_leaves_nothing() {
    for name in ["null", "memory", "buffered", "direct"] {
        let place = tempfile::tempdir().unwrap();
        let store =
            Store::open(vec![tier(backend(name, &place, Some(99 * MIB)), None)], Rules::default()).unwrap();
        let mut lane = store.lane(2).unwrap();
        put(&mut lane, 1, 1, MIB);
        let before = (store.len(), store.usage()[0].bytes);
        for number in [2, 3] {
            let payload = Payload::Seeded { seed: 1, bytes: 40 * MIB };
            lane.put(Put { key: key(number), payload, tenant: 0, existing: Existing::Replace });
        }
        assert!(lane.poll().is_none(), "{name}: the first of them is under way");
        lane.give_up();
        let ends: Vec<Done> = std::iter::from_fn(|| lane.wait()).collect();
        let are_failed = ends.iter().all(|done| matches!(done.outcome, Outcome::Failed(_)));
        assert!(ends.len() == 2 && are_failed, "{name}: {ends:?}");
        assert_eq!((store.len(), store.usage()[0].bytes), before, "{name}");
    }
}

#[test]
fn host_and_device_time_add_up() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(vec![tier(backend("direct", &place, None), None)], Rules::default()).unwrap();
    let mut lane = store.lane(8).unwrap();
    for number in 0..30 {
        let times = put(&mut lane, number, number, 3 * MIB).times;
        assert!(times.device.0 > 0 && times.host.0 > 0, "{times:?}");
        assert!(times.queue + times.device <= times.total, "{times:?}");
        let times = get(&mut lane, number).times;
        assert!(times.device.0 > 0 && times.queue + times.device <= times.total, "{times:?}");
    }
    let gauge = lane.meter().gauge(0, Work::Read);
    assert_eq!((gauge.count, gauge.bytes), (30, 90 * MIB));
    assert!(gauge.device_ns.value_at_quantile(0.5) > 0);
}

#[test]
fn what_cannot_be_done_is_said_and_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let store =
        Store::open(vec![tier(backend("memory", &place, Some(2 * MIB)), Some(2 * MIB))], Rules::default())
            .unwrap();
    let mut lane = store.lane(2).unwrap();
    assert!(matches!(put(&mut lane, 1, 1, 3 * MIB).outcome, Outcome::Refused(Refusal::TooLarge)));
    let long = Key::new(vec![0; KEY_BYTES_MAX + 1]);
    lane.get(long, Want::Nothing);
    assert!(matches!(lane.wait().unwrap().outcome, Outcome::Failed(_)));
    assert!(matches!(get(&mut lane, 1).outcome, Outcome::Missed));
    lane.remove(key(1));
    assert!(matches!(lane.wait().unwrap().outcome, Outcome::Removed(false)));
    assert!(lane.wait().is_none());
    assert_eq!((store.len(), store.usage()[0].bytes), (0, 0));
    let keep = |lane: &mut Lane, seed| {
        let payload = Payload::Seeded { seed, bytes: 10 };
        lane.put(Put { key: key(7), payload, tenant: 0, existing: Existing::Keep });
        lane.wait().unwrap().outcome
    };
    assert!(matches!(keep(&mut lane, 1), Outcome::Stored(0)));
    assert!(matches!(keep(&mut lane, 2), Outcome::Existed));
    assert_eq!(get(&mut lane, 7).data, Some(made(1, 10)));
    assert!(matches!(put(&mut lane, 7, 2, 20).outcome, Outcome::Stored(0)));
    assert_eq!(get(&mut lane, 7).data, Some(made(2, 20)));
    assert_eq!((store.len(), store.usage()[0].bytes), (1, 20));
}

/// A smaller tier keeps the newest; what it cannot hold, and what is spare, goes when asked.
#[test]
fn entries_come_back_after_a_restart_as_far_as_there_is_room() {
    let place = tempfile::tempdir().unwrap();
    let open = |capacity| {
        Store::open(vec![tier(backend("direct", &place, capacity), capacity)], Rules::default()).unwrap()
    };
    let store = open(None);
    let mut lane = store.lane(2).unwrap();
    for number in 0..10 {
        put(&mut lane, number, number, 100 * KIB);
    }
    drop((lane, store));
    let store = open(Some(450 * KIB));
    assert_eq!((store.len(), store.usage()[0].bytes), (4, 400 * KIB));
    let mut lane = store.lane(2).unwrap();
    for number in 6..10 {
        assert_eq!(get(&mut lane, number).data, Some(made(number, 100 * KIB)));
        lane.remove(key(number));
        lane.wait().unwrap();
    }
    store.trim().unwrap();
    drop((lane, store));
    let store = open(None);
    assert_eq!((store.len(), store.recovery()), (0, Recovery::default()));
}

/// Broken by: numbering files instead of writes, or taking the fastest tier's entry whatever its age.
#[test]
fn after_a_restart_the_later_write_wins_wherever_it_is() {
    let (upper, lower) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let open = |write| {
        let tiers = [(&upper, Some(MIB)), (&lower, None)];
        let tiers = tiers.map(|(place, capacity)| tier(backend("direct", place, capacity), capacity));
        Store::open(tiers.into(), Rules { write, ..Rules::default() }).unwrap()
    };
    let store = open(WritePolicy::Back);
    let mut lane = store.lane(1).unwrap();
    put(&mut lane, 1, 10, 100 * KIB);
    put(&mut lane, 2, 20, 100 * KIB);
    drop((lane, store));
    // What a process killed between writing the new entry below and removing the old one above leaves.
    let old: Vec<_> = files_of(&upper).map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    let store = open(WritePolicy::Back);
    let mut lane = store.lane(1).unwrap();
    assert!(matches!(put(&mut lane, 1, 11, 2 * MIB).outcome, Outcome::Stored(1)));
    drop((lane, store));
    for (path, bytes) in old {
        std::fs::write(path, bytes).unwrap();
    }
    let store = open(WritePolicy::Back);
    let mut lane = store.lane(1).unwrap();
    assert!(get(&mut lane, 1).data == Some(made(11, 2 * MIB)), "the write that was acknowledged last");
    assert!(get(&mut lane, 2).data == Some(made(20, 100 * KIB)));
    assert_eq!((store.len(), files_of(&upper).count()), (2, 1), "the older one is gone");
    drop((lane, store));
    let store = open(WritePolicy::Through);
    put(&mut store.lane(1).unwrap(), 3, 30, 100 * KIB);
    drop(store);
    let store = open(WritePolicy::Through);
    let entries: Vec<u64> = store.usage().iter().map(|usage| usage.entries).collect();
    assert_eq!((store.len(), entries), (3, vec![2, 2]), "both copies of the last one are known again");
}

fn files_of(place: &tempfile::TempDir) -> impl Iterator<Item = std::path::PathBuf> {
    let folders = std::fs::read_dir(place.path().join("wavetank.store")).unwrap().flatten();
    let files = folders.filter_map(|folder| std::fs::read_dir(folder.path()).ok()).flatten().flatten();
    files.map(|file| file.path()).filter(|path| path.extension() == Some("kv".as_ref()))
}

/// Broken by: trusting an entry of an earlier process.
#[test]
fn damage_while_nobody_looked_is_not_served() {
    let place = tempfile::tempdir().unwrap();
    let open = || Store::open(vec![tier(backend("direct", &place, None), None)], Rules::default()).unwrap();
    let store = open();
    put(&mut store.lane(1).unwrap(), 1, 1, 3 * MIB);
    drop(store);
    let files = std::fs::read_dir(place.path().join("wavetank.store")).unwrap().flatten();
    let inside = files.filter_map(|folder| std::fs::read_dir(folder.path()).ok()).flatten().flatten();
    let entry = inside.map(|file| file.path()).find(|path| path.extension() == Some("kv".as_ref())).unwrap();
    let mut bytes = std::fs::read(&entry).unwrap();
    bytes[2_000_000] ^= 1;
    std::fs::write(&entry, bytes).unwrap();
    let store = open();
    let mut lane = store.lane(1).unwrap();
    let done = get(&mut lane, 1);
    assert!(
        matches!(&done.outcome, Outcome::Failed(e) if e.kind() == std::io::ErrorKind::InvalidData),
        "{done:?}"
    );
    assert!(done.data.is_none() && matches!(get(&mut lane, 1).outcome, Outcome::Missed));
    assert_eq!(store.usage()[0].bytes, 0);
}

#[test]
fn a_listener_that_sleeps_stops_nobody() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(vec![tier(backend("null", &place, None), None)], Rules::default()).unwrap();
    let events = store.listen(10);
    let mut lane = store.lane(1).unwrap();
    for number in 0..100 {
        put(&mut lane, number, number, 100);
    }
    assert_eq!((events.take().count(), events.lost()), (10, 90));
}

/// Random operations of one lane on its own keys, all tiers shared, against a map. Errors may come from
/// faults only.
fn storm(store: &Arc<Store>, seed: u64, faults: bool) -> u64 {
    let mut lane = store.lane(6).unwrap();
    let mut draw = seeded(seed, "storm");
    let mut model: HashMap<u64, (u64, u64)> = HashMap::new();
    let mut served = 0;
    for step in 0..400 {
        let number = seed * 1000 + draw.random_range(0..30);
        match draw.random_range(0..10) {
            0..=3 => {
                let bytes = draw.random_range(0..5) * draw.random_range(0..600 * KIB);
                match put(&mut lane, number, step, bytes).outcome {
                    Outcome::Stored(_) => {
                        model.insert(number, (step, bytes));
                    }
                    Outcome::Refused(_) => {}
                    Outcome::Failed(e) => assert!(faults, "{e}"),
                    other => panic!("{other:?}"),
                }
            }
            4..=8 => {
                let done = get(&mut lane, number);
                match done.outcome {
                    Outcome::Hit(_) => {
                        let (seed, bytes) = model[&number];
                        assert!(done.data == Some(made(seed, bytes)), "step {step}: other bytes");
                        served += 1;
                    }
                    // Another lane's entries may have pushed it out.
                    Outcome::Missed => {}
                    Outcome::Failed(e) => assert!(faults, "{e}"),
                    other => panic!("{other:?}"),
                }
            }
            _ => {
                lane.remove(key(number));
                let there = matches!(lane.wait().unwrap().outcome, Outcome::Removed(true));
                assert!(!there || model.contains_key(&number));
                model.remove(&number);
            }
        }
    }
    served
}

fn storms(wrap: impl Fn(Arc<dyn Backend>) -> Arc<dyn Backend>, rules: Rules, faults: bool) {
    let place = tempfile::tempdir().unwrap();
    let (gpu, ram, disk) = (Some(6 * MIB), Some(12 * MIB), Some(24 * MIB));
    let tiers = vec![
        tier(wrap(backend("memory", &place, gpu)), gpu),
        tier(wrap(backend("memory", &place, ram)), ram),
        tier(wrap(backend("direct", &place, disk)), disk),
    ];
    let store = Store::open(tiers, rules).unwrap();
    let events = store.listen(1 << 20);
    let served: u64 = std::thread::scope(|scope| {
        let lanes: Vec<_> = (1..=3)
            .map(|seed| {
                scope.spawn({
                    let store = &store;
                    move || storm(store, seed, faults)
                })
            })
            .collect();
        lanes.into_iter().map(|lane| lane.join().unwrap()).sum()
    });
    assert!(served > 50, "{served} reads were served");
    let mut lane = store.lane(1).unwrap();
    for key in store.keys() {
        lane.remove(key);
        lane.wait().unwrap();
    }
    assert!(store.is_empty());
    for usage in store.usage() {
        assert_eq!((usage.bytes, usage.entries), (0, 0), "what is not there takes no room");
    }
    assert_eq!(events.take().any(|event| matches!(event.fact, StoreFact::Failed { .. })), faults);
}

const SHARED_KEYS: u64 = 24;

/// An entry that says which seed made it, and of which key: whoever reads it can check it.
fn signed(number: u64, seed: u64, bytes: u64) -> Payload {
    let mut all = made(seed, bytes.max(16));
    all[..8].copy_from_slice(&number.to_le_bytes());
    all[8..16].copy_from_slice(&seed.to_le_bytes());
    Payload::Bytes(all.into())
}

fn check_signed(number: u64, data: &[u8]) {
    let word = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap());
    assert_eq!(word(0), number, "another key's bytes");
    let seed = word(8);
    assert!(Payload::Bytes(data.into()) == signed(number, seed, data.len() as u64), "torn bytes");
}

/// Many operations pending at a time, on keys that all lanes share.
fn crowd(store: &Arc<Store>, seed: u64) {
    let mut lane = store.lane(6).unwrap();
    let mut draw = seeded(seed, "crowd");
    let mut asked = HashMap::new();
    for step in 0..1500u64 {
        let number = draw.random_range(0..SHARED_KEYS);
        let op = match draw.random_range(0..10) {
            0..=3 => {
                let bytes = draw.random_range(0..5) * draw.random_range(0..500 * KIB);
                let existing = if draw.random_bool(0.5) { Existing::Keep } else { Existing::Replace };
                let payload = signed(number, seed << 32 | step, bytes);
                lane.put(Put { key: key(number), payload, tenant: 0, existing })
            }
            4..=8 => lane.get(key(number), Want::Bytes),
            _ => lane.remove(key(number)),
        };
        asked.insert(op, number);
        while lane.pending() > 8 || (step == 1499 && lane.pending() > 0) {
            let done = lane.wait().unwrap();
            let number = asked.remove(&done.op).unwrap();
            match done.outcome {
                Outcome::Hit(_) => check_signed(number, &done.data.unwrap()),
                Outcome::Failed(e) => panic!("{e}"),
                _ => {}
            }
        }
    }
}

/// Broken by: settling an entry before it is in the index, dropping a copy by its tier's number, a claim that
/// outlives a replacement, leaving an entry in the ledger whose last copy is gone.
#[test]
fn lanes_that_share_keys_leave_nothing_half_there() {
    for (policy, promotion, write) in [
        ("lru", Promotion::OnHit, WritePolicy::Back),
        ("lfu", Promotion::OnSecondHit, WritePolicy::Back),
        ("s3fifo", Promotion::OnHit, WritePolicy::Through),
        ("lru", Promotion::OnHit, WritePolicy::Around),
    ] {
        let place = tempfile::tempdir().unwrap();
        let sizes = [("memory", 3_000_001), ("memory", 6_100_000), ("direct", 12_000_000)];
        let tiers = sizes.map(|(name, capacity)| {
            let settings = eviction::Settings { capacity_bytes: Some(capacity), ..Default::default() };
            let eviction = (eviction::policy(policy).unwrap().build)(&settings).unwrap();
            Tier { backend: backend(name, &place, Some(capacity)), capacity_bytes: Some(capacity), eviction }
        });
        let store = Store::open(tiers.into(), Rules { promotion, write, ..Rules::default() }).unwrap();
        std::thread::scope(|scope| {
            for seed in 1..=3 {
                let store = &store;
                scope.spawn(move || crowd(store, seed));
            }
        });
        let mut lane = store.lane(1).unwrap();
        let mut bytes = 0;
        for key in store.keys() {
            lane.get(key.clone(), Want::Bytes);
            let done = lane.wait().unwrap();
            assert!(
                matches!(done.outcome, Outcome::Hit(_)),
                "{policy} {write:?}: {key:?} {:?}",
                done.outcome
            );
            bytes += done.bytes;
        }
        let used: u64 = store.usage().iter().map(|usage| usage.bytes).sum();
        assert!(used >= bytes && (write != WritePolicy::Back || used == bytes), "{used} booked for {bytes}");
        for key in store.keys() {
            lane.remove(key);
            lane.wait().unwrap();
        }
        assert!(store.usage().iter().all(|usage| *usage == Usage::default()), "{:?}", store.usage());
        assert_eq!(lane.unremoved(), 0);
    }
}

#[test]
fn several_lanes_on_every_tier() {
    for (promotion, write) in [
        (Promotion::Never, WritePolicy::Back),
        (Promotion::OnHit, WritePolicy::Back),
        (Promotion::OnSecondHit, WritePolicy::Through),
        (Promotion::OnHit, WritePolicy::Around),
    ] {
        storms(|backend| backend, Rules { promotion, write, ..Rules::default() }, false);
    }
}

/// Broken by: serving a torn entry, leaving a failed write in the ledger, giving a buffer back twice.
#[test]
fn several_lanes_under_faults() {
    let options = |text: &[(&str, &str)]| -> Options {
        text.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let faulty = options(&[
        ("seed", "7"),
        ("read_error", "0.02"),
        ("write_error", "0.02"),
        ("create_error", "0.02"),
        ("commit_error", "0.02"),
        ("short_read", "0.02"),
        ("bit_flip", "0.02"),
        ("torn_write", "0.02"),
    ]);
    let wrap = |backend| {
        let backend = (wrappers::wrapper("fault").unwrap().wrap)(backend, &faulty).unwrap();
        (wrappers::wrapper("verify").unwrap().wrap)(backend, &Options::default()).unwrap()
    };
    for (promotion, write) in
        [(Promotion::OnHit, WritePolicy::Back), (Promotion::OnHit, WritePolicy::Through)]
    {
        storms(wrap, Rules { promotion, write, ..Rules::default() }, true);
    }
}

/// Who did what to which key, in the order it was told.
#[derive(Default)]
struct Told(Mutex<Vec<Call>>);

impl Listener for Told {
    fn hear(&self, call: Call) {
        self.0.lock().unwrap().push(call);
    }
}

/// Broken by: an entry that is lost by one operation of a lane and leaves in the name of another.
#[test]
fn what_is_lost_leaves_in_the_name_of_who_lost_it() {
    let place = tempfile::tempdir().unwrap();
    let [faulty, exact] = [Options::from_iter([("bit_flip", "1")]), Options::default()];
    let memory = backend("memory", &place, Some(64 * MIB));
    let memory = (wrappers::wrapper("fault").unwrap().wrap)(memory, &faulty).unwrap();
    let checked = (wrappers::wrapper("verify").unwrap().wrap)(memory, &exact).unwrap();
    let store = Store::open(vec![tier(checked, Some(64 * MIB))], Rules::default()).unwrap();
    let told = Arc::new(Told::default());
    store.attach(told.clone());
    let mut lane = store.lane(4).unwrap();
    for number in 0..4 {
        assert!(matches!(put(&mut lane, number, number, MIB).outcome, Outcome::Stored(_)));
    }
    for number in 0..4 {
        lane.get(key(number), Want::Bytes);
    }
    while let Some(done) = lane.wait() {
        assert!(matches!(done.outcome, Outcome::Failed(_)), "{done:?}");
    }
    let calls = told.0.lock().unwrap();
    let caller = |deed: Deed| {
        let hash = |number: u64| key(number).hash().to_be_bytes();
        let of = |number: u64| calls.iter().find(|call| call.deed == deed && call.key == hash(number));
        (0..4).map(|number| of(number).unwrap().caller).collect::<Vec<_>>()
    };
    assert_eq!(caller(Deed::LookUp), [0, 1, 2, 3]);
    assert_eq!(caller(Deed::Leave), [0, 1, 2, 3]);
}
