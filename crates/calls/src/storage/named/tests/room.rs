//! What objects and their names take of memory, and how room is made.

use wavetank_model::{Recorded, StorageCall};

use super::*;
use crate::storage::tests::Kept;

const KIB: u64 = 1024;

/// What is used of memory, names included.
fn used(storage: &Storage) -> u64 {
    let status = storage.status();
    status.tiers[0].bytes + status.names_bytes
}

fn long(number: u32) -> Vec<u8> {
    [&number.to_le_bytes()[..], &[b'n'; 996]].concat()
}

/// Broken by: a value without bytes that takes no room, a name that takes none, or one that is never given
/// back.
#[test]
fn nothing_is_free() {
    let storage = Storage::open(&memory(16 * 4096, Vec::new()), &options(), None).unwrap();
    for number in 0..100u32 {
        put(&storage, &number.to_le_bytes(), b"");
    }
    assert_eq!((storage.len(), storage.used().0), (15, 15 * 4096), "the names take the rest");
    let mut plan = memory(64 * KIB, Vec::new());
    plan.l1.align_bytes = 1;
    let storage = Storage::open(&plan, &options(), None).unwrap();
    for number in 0..200 {
        put(&storage, &long(number), b"");
        assert!(used(&storage) <= 64 * KIB);
    }
    assert_eq!((storage.len(), used(&storage)), (65, 65 * 1001));
    put(&storage, b"large", &[1; 60 * KIB as usize]);
    assert_eq!(storage.len(), 4, "names leave with their objects, and no more than are needed");
    storage.clear();
    assert_eq!((storage.len(), used(&storage)), (0, 0));
}

/// Broken by: names of objects behind memory that take all of it, so that nothing can be written any more.
#[test]
fn tiers_behind_let_objects_go_whose_names_are_too_much() {
    let sweeping = StorageOptions { eviction_sleep: Duration::from_millis(1), ..options() };
    let storage =
        Storage::open(&memory(64 * KIB, vec![adapter(Medium::Mock, 1000)]), &sweeping, None).unwrap();
    for number in 0..200 {
        let is_written = || {
            let blank = storage.room(1);
            let set = blank.map(|blank| storage.set(&long(number), blank, SetManner::default()));
            set.is_some_and(|set| set.fate == Fate::Done)
        };
        while !is_written() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    while storage.status().names_bytes > 32 * KIB {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(storage.background().behind().evictions.evicted > 0 && storage.len() > 8);
    assert!(used(&storage) <= 64 * KIB);
}

/// Broken by: victims that leave before it is known whether all that could leave is enough: what is held,
/// being copied, being written, or promised to someone else is not.
#[test]
fn a_write_that_cannot_fit_evicts_nothing() {
    let storage = Storage::open(&plan(8, Vec::new()), &options(), None).unwrap();
    for number in 0..8u8 {
        put(&storage, &[number], &[number; 4096]);
    }
    let Hold::Here(held) = storage.hold(&[0]) else { panic!("it is in memory") };
    let blank = storage.room(4096).expect("one leaves");
    assert!(storage.room(7 * 4096).is_none());
    assert_eq!((storage.len(), storage.background().l1.evicted), (7, 1));
    drop(blank);
    assert!(storage.room(7 * 4096).is_some(), "all but what is held");
    drop(held);
    assert!(storage.room(8 * 4096).is_some());

    let stuck = directory("memory", Path::new(""), stuck(3_600_000));
    let hanging = StorageOptions { closing: Duration::from_millis(50), ..options() };
    let storage = Storage::open(&plan(8, vec![adapter(stuck, 100)]), &hanging, None).unwrap();
    for number in 0..8u8 {
        put(&storage, &[number], &[number; 4096]);
    }
    assert!(storage.room(1).is_none());
    assert_eq!((storage.len(), storage.background().l1.evicted), (8, 0), "copies keep what they copy");
    storage.close().unwrap_err();
}

/// Broken by: room that is made under one lock however many have to leave for it, and by a promise that is
/// not kept or not forgotten.
#[test]
fn room_for_a_large_object_is_made_in_steps() {
    let kept = Arc::new(Kept::default());
    let storage = Storage::open(&plan(2000, Vec::new()), &options(), Some(Arc::clone(&kept) as _)).unwrap();
    for number in 0..2000u32 {
        put(&storage, &number.to_le_bytes(), b"x");
    }
    assert!(storage.room(1500 * 4096).is_some());
    let passes: Vec<u32> = kept
        .take()
        .iter()
        .filter_map(|recorded| match recorded.call {
            StorageCall::EvictionPass { evicted, .. } => Some(evicted),
            _ => None,
        })
        .collect();
    let evicted: u32 = passes.iter().sum();
    assert!(passes.iter().all(|step| *step <= 256) && (1490..1510).contains(&evicted), "{passes:?}");
    assert_eq!(storage.shared.lock().promised, 0);
    assert!(storage.room(2004 * 4096).is_none() && storage.room(1999 * 4096).is_some());
}

/// Broken by: what comes from behind memory that makes its room under one lock, and by what leaves for it of
/// what the same lookup found.
#[test]
fn room_for_what_is_looked_up_is_made_in_steps() {
    let kept = Arc::new(Kept::default());
    let plan = plan(1000, vec![adapter(Medium::Mock, 3000)]);
    let storage = Storage::open(&plan, &options(), Some(Arc::clone(&kept) as _)).unwrap();
    let large = vec![1; 700 * 4096];
    put(&storage, b"large", &large);
    empty_memory(&storage);
    let fill = || {
        (0..1000u32).for_each(|number| put(&storage, &number.to_le_bytes(), b"x"));
        storage.settle();
        kept.take();
    };
    let passes = || {
        let evicted = |recorded: &Recorded| match recorded.call {
            StorageCall::EvictionPass { evicted, .. } => Some(evicted),
            _ => None,
        };
        kept.take().iter().filter_map(evicted).collect::<Vec<u32>>()
    };
    fill();
    let oldest = 1u32.to_le_bytes();
    let (sender, got) = channel();
    let lookup = Lookup { rows: &[vec![&oldest, b"large"]], policy: FetchPolicy::Prefix, request: "r" };
    storage.look(&lookup, Box::new(move |held| sender.send(held).unwrap()));
    assert_eq!(got.recv().unwrap().fates, [Fate::FirstTier, Fate::LowerTier]);
    let steps = passes();
    assert!(steps.len() > 2 && steps.iter().all(|step| *step <= 256), "{steps:?}");
    fill();
    assert_eq!(read(&storage, b"large").unwrap(), large);
    let steps = passes();
    assert!(steps.len() > 2 && steps.iter().all(|step| *step <= 256), "{steps:?}");
}
