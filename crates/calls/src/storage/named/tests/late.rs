//! What is promised of objects that a tier behind is too slow for.

use super::*;
use crate::plan::StorePolicy;

const OBJECT: usize = 4096;

/// Two objects at a time may be on their way.
fn tight() -> StorageOptions {
    StorageOptions { under_way_bytes: Some(2 * OBJECT as u64), ..options() }
}

/// A tier that takes 5 ms for an object.
fn slow() -> AdapterPlan {
    AdapterPlan { bytes_per_second: Some(800_000.0), ..adapter(Medium::Mock, 100) }
}

fn put_all(storage: &Storage, count: u8) {
    (0..count).for_each(|number| put(storage, &[number], &[number; OBJECT]));
}

fn late(storage: &Storage) -> u64 {
    storage.status().late.iter().sum()
}

/// Broken by: a copy that is put off and never made, one that is made though its object was removed or
/// written again, and by an entry that stays when its object has gone.
#[test]
fn what_was_put_off_is_copied_later() {
    let storage = Storage::open(&plan(64, vec![slow()]), &tight(), None).unwrap();
    put_all(&storage, 12);
    assert_eq!(late(&storage), 10);
    // Of those that wait one is removed and one is written again.
    assert!(storage.remove(&[10]));
    put(&storage, &[11], b"again");
    assert_eq!(late(&storage), 9);
    storage.settle();
    let behind = storage.background().behind();
    assert_eq!((behind.copied, behind.postponed, behind.skipped, late(&storage)), (11, 11, 0, 0));
    assert_eq!(storage.used().1[0], 10 * OBJECT as u64 + 5);
    assert_eq!(empty_memory(&storage), 11);
    for number in 0..10 {
        assert_eq!(read(&storage, &[number]).unwrap(), [number; OBJECT]);
    }
    assert_eq!((read(&storage, &[10]), read(&storage, &[11]).unwrap()), (None, b"again".to_vec()));
    storage.close().unwrap();
}

/// Broken by: what waits that keeps its object in memory or outlives it, or is not counted when it is lost.
#[test]
fn what_leaves_before_its_turn_is_skipped() {
    let medium = directory("memory", Path::new(""), stuck(3_600_000));
    let hanging = StorageOptions { closing: Duration::from_millis(50), ..tight() };
    let storage = Storage::open(&plan(8, vec![adapter(medium, 100)]), &hanging, None).unwrap();
    put_all(&storage, 40);
    let behind = storage.background().behind();
    assert_eq!((behind.postponed, behind.skipped, late(&storage)), (38, 32, 6));
    storage.clear();
    assert_eq!((storage.background().behind().skipped, late(&storage)), (32, 0), "removed is not lost");
    put_all(&storage, 1);
    let error = storage.close().unwrap_err().to_string();
    assert!(error.contains("does not answer"), "{error}");
}

/// Broken by: small objects that overtake a large one for ever.
#[test]
fn the_oldest_is_the_next() {
    let storage = Storage::open(&plan(64, vec![slow()]), &tight(), None).unwrap();
    put(&storage, b"first", &[0; OBJECT]);
    put(&storage, b"large", &[0; 2 * OBJECT]);
    put(&storage, b"small", &[0; OBJECT]);
    let state = storage.shared.lock();
    let waiting: Vec<Option<&[u8]>> =
        state.engine.late(0).map(|waiting| state.names.of(waiting.key)).collect();
    assert_eq!(waiting, [Some(&b"large"[..]), Some(b"small")]);
    drop(state);
    storage.settle();
    assert_eq!(storage.background().behind().copied, 3);
}

/// Broken by: an object that leaves memory with the first of its copies though another is still to be made.
#[test]
fn an_object_that_does_not_stay_in_memory_stays_until_it_is_copied() {
    let mut plan = plan(64, vec![adapter(Medium::Mock, 100), slow()]);
    plan.store_policy = StorePolicy::SkipL1;
    let storage = Storage::open(&plan, &tight(), None).unwrap();
    put_all(&storage, 8);
    storage.settle();
    let copied: Vec<u64> = storage.background().adapters.iter().map(|tier| tier.copied).collect();
    assert_eq!((copied, storage.used().0), (vec![8, 8], 0));
}

/// Broken by: a close that leaves what was put off, and by one number for a value in one tier and another in
/// the next: the older number would be taken for an older value.
#[test]
fn closing_copies_what_was_put_off() {
    let locations = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let tier =
        |number: usize, wrappers| adapter(directory("buffered", locations[number].path(), wrappers), 100);
    let keeping = StorageOptions { keeping: Keeping::All, ..tight() };
    let plan = plan(64, vec![tier(0, Vec::new()), tier(1, stuck(2))]);
    let storage = Storage::open(&plan, &keeping, None).unwrap();
    put_all(&storage, 30);
    assert!(storage.background().adapters[1].postponed > 0);
    storage.close().unwrap();
    let storage = Storage::open(&plan, &keeping, None).unwrap();
    let recovered: Vec<u64> = storage.status().tiers.iter().map(|tier| tier.recovered).collect();
    assert_eq!(recovered, [0, 30, 30]);
    storage.close().unwrap();
}
