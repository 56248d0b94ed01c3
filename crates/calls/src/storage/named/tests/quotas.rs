//! What a tenant at its quota is promised.

use super::*;
use crate::plan::QuotaPlan;

const QUOTA: u64 = 3 * 4096;

/// Memory where a tenant may have three objects of 4 KiB.
fn tight(objects: u64, adapters: Vec<AdapterPlan>) -> Plan {
    let mut plan = plan(objects, adapters);
    plan.l1.quotas = QuotaPlan { default_bytes: None, by_salt: [("a".to_owned(), QUOTA)].into() };
    plan.l1.eviction = eviction("isolated_lru", 1.0, 0.2);
    plan
}

fn name(number: u8) -> Vec<u8> {
    format!("m@01000100@0@{number:02x}@a").into_bytes()
}

fn set(storage: &Storage, number: u8, bytes: usize) -> Fate {
    write(storage, &name(number), &vec![number; bytes], SetManner::default()).fate
}

fn has(storage: &Storage) -> u64 {
    storage.status().tenants.iter().find(|(salt, _)| salt == "a").map_or(0, |(_, bytes)| *bytes)
}

fn hold(storage: &Storage, number: u8) -> Held {
    match storage.hold(&name(number)) {
        Hold::Here(held) => held,
        Hold::Behind | Hold::Absent => panic!("it is in memory"),
    }
}

/// Broken by: a write that removes what was there before it is known whether the new one has room, and by a
/// check that takes what is replaced for a victim, or does not count it as gone.
#[test]
fn what_is_there_stays_if_the_new_one_cannot_be_written() {
    let storage = Storage::open(&tight(16, Vec::new()), &options(), None).unwrap();
    (0..3).for_each(|number| assert_eq!(set(&storage, number, 4096), Fate::Done));
    let held = (hold(&storage, 0), hold(&storage, 1));
    assert_eq!(set(&storage, 2, 2 * 4096), Fate::NoMemory);
    assert_eq!(read(&storage, &name(2)).unwrap(), [2; 4096]);
    assert_eq!(set(&storage, 2, 4000), Fate::Done, "its own room is its to write into again");
    drop(held.1);
    assert_eq!(set(&storage, 2, 2 * 4096), Fate::Done, "now another can leave for it");
    assert!(matches!(storage.get(&name(1)), Got::Absent));
    assert_eq!((has(&storage), read(&storage, &name(2)).unwrap()), (QUOTA, vec![2; 2 * 4096]));
    assert_eq!(set(&storage, 0, 4 * 4096), Fate::NoMemory);
    assert_eq!(read(&storage, &name(0)).unwrap(), [0; 4096]);
}

/// Broken by: counting only what passes take out.
#[test]
fn what_a_tenant_gives_up_is_counted() {
    let storage = Storage::open(&tight(16, Vec::new()), &options(), None).unwrap();
    (0..8).for_each(|number| assert_eq!(set(&storage, number, 4096), Fate::Done));
    let l1 = storage.background().l1;
    assert_eq!((l1.evicted, l1.passes, storage.len()), (5, 0, 3));
}

/// Broken by: copies under way that count against a quota, or a quota that nothing counts against any more.
#[test]
fn a_tenant_is_not_refused_because_its_own_is_being_copied() {
    let slow = AdapterPlan { bytes_per_second: Some(20_000.0), ..adapter(Medium::Mock, 100) };
    let storage = Storage::open(&tight(16, vec![slow]), &options(), None).unwrap();
    // 200 ms each: nothing has arrived yet.
    (0..6).for_each(|number| assert_eq!(set(&storage, number, 4096), Fate::Done));
    assert_eq!(has(&storage), 2 * QUOTA);
    let held: Vec<Held> = (0..3).map(|number| hold(&storage, number)).collect();
    assert_eq!(set(&storage, 6, 4096), Fate::NoMemory, "who reads counts");
    drop(held);
    storage.settle();
    assert_eq!(set(&storage, 6, 4096), Fate::Done);
    assert_eq!(has(&storage), QUOTA, "the next write brings it back");
    assert_eq!(read(&storage, &name(0)).unwrap(), [0; 4096], "nothing is lost by it");
}
