//! Objects by name: what clients are promised.

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::*;
use crate::bytes::Keeping;
use crate::plan::{AdapterPlan, Medium, Plan};
use crate::storage::StorageOptions;
use crate::storage::tests::{adapter, directory, eviction, memory};

/// Memory for `objects` of 4 KiB, and what is behind it.
pub(super) fn plan(objects: u64, adapters: Vec<AdapterPlan>) -> Plan {
    memory(objects * 4096, adapters)
}

/// No loop looks by itself.
pub(super) fn options() -> StorageOptions {
    StorageOptions {
        eviction_sleep: Duration::from_secs(3600),
        under_way_bytes: Some(u64::MAX),
        closing: Duration::from_secs(10),
        ..StorageOptions::default()
    }
}

pub(super) fn write(storage: &Storage, name: &[u8], bytes: &[u8], manner: SetManner) -> Set {
    let mut blank = storage.room(bytes.len() as u64).expect("there is room");
    blank.bytes_mut().copy_from_slice(bytes);
    storage.set(name, blank, manner)
}

pub(super) fn put(storage: &Storage, name: &[u8], bytes: &[u8]) {
    assert_eq!(write(storage, name, bytes, SetManner::default()).fate, Fate::Done);
}

/// What a client reads, wherever it is.
pub(super) fn read(storage: &Storage, name: &[u8]) -> Option<Vec<u8>> {
    match storage.get(name) {
        Got::Here(object) => Some(object.to_vec()),
        Got::Absent => None,
        Got::Behind => {
            let (sender, got) = channel();
            storage.fetch(name, Box::new(move |object| sender.send(object).unwrap()));
            got.recv().unwrap().map(|object| object.to_vec())
        }
    }
}

/// Everything that can leave memory does.
fn empty_memory(storage: &Storage) -> u64 {
    storage.settle();
    let mut state = storage.shared.lock();
    let left = state.engine.pass_up_to(0, Some(u32::MAX)).unwrap();
    state.follow(&mut Incoming::default());
    left
}

/// Broken by: a value that is seen before all of it is there, an old one that stays behind, conditions that
/// look at memory only.
#[test]
fn the_last_value_is_read_wherever_it_is() {
    let location = tempfile::tempdir().unwrap();
    for medium in [Medium::Mock, directory("direct", location.path(), Vec::new())] {
        let storage = Storage::open(&plan(16, vec![adapter(medium, 100)]), &options(), None).unwrap();
        put(&storage, b"a", b"first");
        put(&storage, b"empty", b"");
        assert_eq!(empty_memory(&storage), 2);
        assert!(matches!(storage.get(b"a"), Got::Behind));
        assert_eq!(
            (storage.size(b"a"), storage.size(b"empty"), storage.size(b"b")),
            (Some(5), Some(0), None)
        );
        assert_eq!(read(&storage, b"empty").as_deref(), Some(&b""[..]));
        let absent = SetManner { only: Only::Absent, ..SetManner::default() };
        let present = SetManner { only: Only::Present, ..SetManner::default() };
        assert_eq!(write(&storage, b"a", b"second", absent).fate, Fate::Resident);
        assert_eq!(write(&storage, b"b", b"second", present).fate, Fate::Absent);
        assert_eq!(read(&storage, b"a").unwrap(), b"first");
        let set = write(&storage, b"a", b"second, and longer", present);
        assert_eq!(set.fate, Fate::Done);
        assert_eq!(read(&storage, b"a").unwrap(), b"second, and longer");
        let again = write(&storage, b"a", b"third", SetManner::default());
        assert_eq!(&**again.before.unwrap(), b"second, and longer");
        empty_memory(&storage);
        assert_eq!(read(&storage, b"a").unwrap(), b"third");
        assert!(storage.remove(b"a") && !storage.remove(b"a"));
        assert_eq!(read(&storage, b"a"), None);
        storage.settle();
        assert!(!storage.shared.depots[0].contains(b"a") && storage.shared.depots[0].contains(b"empty"));
        storage.clear();
        storage.settle();
        assert_eq!((storage.len(), storage.used()), (0, (0, vec![0])));
        storage.close().unwrap();
    }
}

/// Broken by: a hold that ends with another object of its name, or leaves nothing behind when it ends.
#[test]
fn what_is_held_stays_until_it_is_given_back() {
    let storage = Storage::open(&plan(4, vec![adapter(Medium::Mock, 100)]), &options(), None).unwrap();
    put(&storage, b"a", &[1; 4096]);
    let Hold::Here(held) = storage.hold(b"a") else { panic!("it is in memory") };
    assert_eq!(empty_memory(&storage), 0);
    put(&storage, b"a", &[2; 4096]);
    let Hold::Here(newer) = storage.hold(b"a") else { panic!("it is in memory") };
    assert_eq!((held.object(0).unwrap()[0], newer.object(0).unwrap()[0]), (1, 2));
    drop(held);
    assert_eq!(empty_memory(&storage), 0, "the newer one is held still");
    drop(newer);
    assert_eq!(empty_memory(&storage), 1);
    assert!(matches!(storage.hold(b"a"), Hold::Behind) && matches!(storage.hold(b"b"), Hold::Absent));
    let (sender, got) = channel();
    let rows = [vec![&b"a"[..], b"b"], vec![b"a", b"a"]];
    let lookup = Lookup { rows: &rows, policy: FetchPolicy::Prefix, request: "r" };
    let fates = storage.look(&lookup, Box::new(move |held| sender.send(held).unwrap()));
    let (came, absent) = (Fate::LowerTier, Fate::Absent);
    assert_eq!(fates, [came, absent, came, absent]);
    let held = got.recv().unwrap();
    assert_eq!((held.count(), held.fates.clone()), (2, fates));
    assert_eq!(empty_memory(&storage), 0);
    drop(held);
    assert_eq!(storage.used().0, 0, "what came from behind leaves with its last reader");
    storage.close().unwrap();
}

/// Broken by: room that is taken twice or never given back, victims that are held.
#[test]
fn others_leave_for_what_is_written_unless_they_are_held() {
    let storage = Storage::open(&plan(4, Vec::new()), &options(), None).unwrap();
    for name in 0..10u8 {
        put(&storage, &[name], &[name; 4000]);
    }
    assert_eq!(storage.used().0, 4 * 4096);
    assert!((0..6u8).all(|name| read(&storage, &[name]).is_none()));
    let held: Vec<Held> = (6..10u8)
        .map(|name| match storage.hold(&[name]) {
            Hold::Here(held) => held,
            Hold::Behind | Hold::Absent => panic!("the last ones are there"),
        })
        .collect();
    assert!(storage.room(1).is_none() && storage.room(1 << 40).is_none());
    drop(held);
    let blanks: Vec<Blank> = (0..4).map(|_| storage.room(4096).unwrap()).collect();
    assert_eq!((storage.used().0, storage.len(), storage.status().staged_bytes), (16384, 0, 16384));
    assert!(storage.room(1).is_none());
    drop(blanks);
    assert_eq!(storage.used().0, 0);
}
