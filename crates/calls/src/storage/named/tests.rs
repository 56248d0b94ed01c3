//! Objects by name: what clients are promised.

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::*;
use crate::bytes::Keeping;
use crate::plan::{AdapterPlan, Medium, Plan};
use crate::storage::StorageOptions;
use crate::storage::tests::{adapter, directory, eviction, memory};

mod late;
mod quotas;
mod room;

/// Memory for `objects` of 4 KiB and their names, and what is behind it.
pub(super) fn plan(objects: u64, adapters: Vec<AdapterPlan>) -> Plan {
    memory(objects * 4096 + 4095.max(8 * objects), adapters)
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

/// Broken by: deadlines that are looked at in memory only, or lost with the process, or names that stay.
#[test]
fn what_has_had_its_time_is_nowhere() {
    let location = tempfile::tempdir().unwrap();
    let plan = plan(16, vec![adapter(directory("direct", location.path(), Vec::new()), 100)]);
    let keeping = StorageOptions { keeping: Keeping::All, ..options() };
    let storage = Storage::open(&plan, &keeping, None).unwrap();
    let until = |seconds| SetManner {
        expires: Some(SystemTime::now() + Duration::from_secs(seconds)),
        ..SetManner::default()
    };
    let over = SetManner { expires: Some(SystemTime::now()), ..SetManner::default() };
    for (name, manner) in [(b"a", over), (b"b", over), (b"c", over), (b"d", until(3600)), (b"e", until(2))] {
        assert_eq!(write(&storage, name, b"bytes", manner).fate, Fate::Done);
    }
    assert_eq!((read(&storage, b"a"), storage.size(b"b")), (None, None));
    let present = SetManner { only: Only::Present, ..SetManner::default() };
    assert_eq!(write(&storage, b"c", b"bytes", present).fate, Fate::Absent);
    assert!(read(&storage, b"d").is_some() && read(&storage, b"e").is_some());
    // A value that is written again stays as long as the new one is to.
    put(&storage, b"f", b"x");
    assert_eq!(write(&storage, b"f", b"bytes", over).fate, Fate::Done);
    put(&storage, b"f", b"stays");
    storage.settle();
    assert_eq!(storage.len(), 3, "the other names are forgotten");
    storage.close().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let storage = Storage::open(&plan, &keeping, None).unwrap();
    assert_eq!(read(&storage, b"d").as_deref(), Some(&b"bytes"[..]));
    assert_eq!(read(&storage, b"f").as_deref(), Some(&b"stays"[..]));
    assert_eq!((read(&storage, b"e"), storage.len()), (None, 2));
    let kept: Vec<u64> = storage.shared.lock().deadlines.due_by(u64::MAX);
    assert_eq!(kept.len(), 1, "only one has a deadline");
    storage.close().unwrap();
}

/// Broken by: a deadline that is told for an object that stays or is nowhere, or that is not told, and by a
/// count that goes on counting what is gone or was written again to stay.
#[test]
fn until_when_it_is_there_is_told() {
    let storage = Storage::open(&plan(16, Vec::new()), &options(), None).unwrap();
    let until = SystemTime::UNIX_EPOCH + Duration::from_millis(9_000_000_000_123);
    let later = SetManner { expires: Some(until), ..SetManner::default() };
    let over = SetManner { expires: Some(SystemTime::now()), ..SetManner::default() };
    for (name, manner) in [(b"a", later), (b"b", SetManner::default()), (b"c", over), (b"d", later)] {
        assert_eq!(write(&storage, name, b"bytes", manner).fate, Fate::Done);
    }
    assert_eq!(storage.status().expiring, 3);
    let told = [b"a", b"b", b"c", b"e"].map(|name| storage.expires(name));
    assert_eq!(told, [Some(Some(until)), Some(None), None, None]);
    assert_eq!(storage.status().expiring, 2);
    put(&storage, b"a", b"stays");
    assert!(storage.remove(b"d"));
    assert_eq!((storage.expires(b"a"), storage.status().expiring), (Some(None), 0));
}

/// Broken by: objects that found no room in a tier that count as those it was too slow for.
#[test]
fn what_finds_no_room_behind_is_dropped() {
    let storage = Storage::open(&plan(16, vec![adapter(Medium::Mock, 1)]), &options(), None).unwrap();
    for name in [b"a", b"b", b"c"] {
        put(&storage, name, &[1; 4096]);
    }
    storage.settle();
    let behind = storage.background().behind();
    assert_eq!((behind.copied, behind.dropped, behind.postponed), (1, 2, 0));
}

/// Broken by: a sweep that looks at names and not at times, or leaves what nobody asks for.
#[test]
fn what_nobody_asks_for_is_swept_away() {
    let sweeping = StorageOptions { eviction_sleep: Duration::from_millis(1), ..options() };
    let storage = Storage::open(&plan(16, Vec::new()), &sweeping, None).unwrap();
    let over = SetManner { expires: Some(SystemTime::now()), ..SetManner::default() };
    assert_eq!(write(&storage, b"a", b"bytes", over).fate, Fate::Done);
    put(&storage, b"b", b"bytes");
    while storage.len() > 1 {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!((storage.used().0, read(&storage, b"b").as_deref()), (4096, Some(&b"bytes"[..])));
}

/// Broken by: a number that is not given back, a miss that is given one, anything kept of an object that is
/// nowhere.
#[test]
fn numbers_are_used_again() {
    let bounded = StorageOptions { under_way_bytes: None, ..options() };
    let storage = Storage::open(&plan(64, vec![adapter(Medium::Mock, 20)]), &bounded, None).unwrap();
    let (mut high, mut sizes) = (0, Vec::new());
    for round in 0..20u32 {
        for number in 0..500u32 {
            let name = (round * 500 + number).to_le_bytes();
            put(&storage, &name, &name);
            assert!(matches!(storage.get(b"nobody"), Got::Absent) && storage.size(b"nobody").is_none());
            assert!(matches!(storage.hold(b"nobody"), Hold::Absent) && !storage.remove(b"nobody"));
            if number % 2 == 0 {
                storage.remove(&name);
            }
        }
        storage.settle();
        storage.clear();
        storage.settle();
        let state = storage.shared.lock();
        assert_eq!((state.names.len(), state.engine.used()), (0, (0, vec![0])), "round {round}");
        sizes.push(state.names.numbers());
        high = high.max(state.names.numbers());
    }
    // Copies under way keep numbers for a while, so there are more than fit into memory; not many more.
    assert!(high <= 1001, "{sizes:?}");
}

/// Broken by: entries of another process that are taken in without their names or lengths, an older value in
/// one tier that wins over a newer one in another, bytes that are served though they are damaged.
#[test]
fn a_restart_brings_entries_back() {
    let locations = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let tier = |number: usize| adapter(directory("buffered", locations[number].path(), Vec::new()), 100);
    let keeping = StorageOptions { keeping: Keeping::All, ..options() };
    let both = plan(16, vec![tier(0), tier(1)]);
    let storage = Storage::open(&both, &keeping, None).unwrap();
    put(&storage, b"both", b"first");
    put(&storage, b"m@01000100@0@00@salt", b"salted");
    storage.close().unwrap();
    // Only the first tier hears of the newer value.
    let storage = Storage::open(&plan(16, vec![tier(0)]), &keeping, None).unwrap();
    assert_eq!(storage.status().tiers[1].recovered, 2);
    put(&storage, b"both", b"second");
    storage.close().unwrap();
    let storage = Storage::open(&both, &keeping, None).unwrap();
    let recovered: Vec<u64> = storage.status().tiers.iter().map(|tier| tier.recovered).collect();
    assert_eq!((recovered, storage.len()), (vec![0, 2, 1], 2));
    assert_eq!(read(&storage, b"both").unwrap(), b"second");
    assert_eq!(read(&storage, b"m@01000100@0@00@salt").unwrap(), b"salted");
    assert!(!storage.shared.depots[1].contains(b"both"), "the older one is removed");
    put(&storage, b"both", b"third");
    storage.close().unwrap();
    let damaged = damage(locations[0].path()) + damage(locations[1].path());
    assert_eq!(damaged, 4);
    let storage = Storage::open(&both, &keeping, None).unwrap();
    assert_eq!(storage.len(), 2);
    for name in [&b"both"[..], b"m@01000100@0@00@salt"] {
        // A tier that cannot be read is asked once, then the next.
        assert_eq!((read(&storage, name), read(&storage, name), read(&storage, name)), (None, None, None));
    }
    storage.settle();
    assert_eq!((storage.len(), storage.background().behind().failed), (0, 4));
    storage.close().unwrap();
}

/// Spoils the last bytes of every entry's payload; how many there are.
fn damage(folder: &Path) -> usize {
    use std::os::unix::fs::FileExt;
    let mut damaged = 0;
    for item in std::fs::read_dir(folder).unwrap().map(|item| item.unwrap().path()) {
        if item.is_dir() {
            damaged += damage(&item);
        } else if item.extension().is_some_and(|ending| ending == "kv") {
            let file = std::fs::OpenOptions::new().write(true).open(&item).unwrap();
            file.write_all_at(b"\xff", 4096).unwrap();
            damaged += 1;
        }
    }
    damaged
}

/// Broken by: one tenant's writes that take another's room, a quota that counts others, a tenant that is
/// refused though it has something to give up.
#[test]
fn a_tenant_at_its_quota_gives_up_its_own() {
    let mut plan = plan(16, vec![adapter(Medium::Mock, 20)]);
    let quotas = crate::plan::QuotaPlan { default_bytes: None, by_salt: [("a".to_owned(), 3 * 4096)].into() };
    (plan.l1.quotas, plan.l1.eviction) = (quotas.clone(), eviction("isolated_lru", 1.0, 0.2));
    plan.adapters[0].quotas = crate::plan::QuotaPlan { by_salt: [("a".to_owned(), 9000)].into(), ..quotas };
    plan.adapters[0].eviction = Some(eviction("isolated_lru", 1.0, 0.2));
    let storage = Storage::open(&plan, &options(), None).unwrap();
    let name = |salt: &str, number: u8| format!("m@01000100@0@{number:02x}@{salt}").into_bytes();
    for number in 0..6 {
        put(&storage, &name("b", number), &[number; 4096]);
    }
    for number in 0..8 {
        put(&storage, &name("a", number), &[number; 4096]);
        storage.settle();
    }
    let tenants = |state: &Storage| state.status().tenants;
    let expected = [("".to_owned(), 0), ("a".to_owned(), 3 * 4096), ("b".to_owned(), 6 * 4096)];
    assert_eq!(tenants(&storage), expected);
    assert!((0..6).all(|number| matches!(storage.get(&name("b", number)), Got::Here(_))));
    let here = |number| matches!(storage.get(&name("a", number)), Got::Here(_));
    assert!((0..5).all(|number| !here(number)) && (5..8).all(here));
    assert_eq!(storage.used().1[0], 8 * 4096, "two of its own and all of the other's behind");
    assert!(read(&storage, &name("a", 5)).is_some() && read(&storage, &name("a", 4)).is_none());
    let large = write(&storage, &name("a", 9), &[0; 4 * 4096], SetManner::default());
    assert_eq!(large.fate, Fate::NoMemory);
    assert!(here(7), "what can never fit takes nothing along");
    storage.clear();
    storage.settle();
    assert_eq!(tenants(&storage), [("".to_owned(), 0), ("a".to_owned(), 0)], "others are forgotten");
}

/// Broken by: room for what comes from behind that is taken from what the same lookup found and does not
/// hold yet.
#[test]
fn a_lookup_at_its_quota_keeps_what_it_found() {
    let mut plan = plan(16, vec![adapter(Medium::Mock, 20)]);
    plan.l1.quotas = crate::plan::QuotaPlan { default_bytes: Some(3 * 4096), by_salt: [].into() };
    plan.l1.eviction = eviction("isolated_lru", 1.0, 0.2);
    let storage = Storage::open(&plan, &options(), None).unwrap();
    for name in [b"d", b"a", b"b", b"c"] {
        put(&storage, name, &[name[0]; 4096]);
        storage.settle();
    }
    assert!(matches!(storage.get(b"d"), Got::Behind), "it left for the last one");
    let (sender, got) = channel();
    let rows = [vec![&b"a"[..], b"d"]];
    let lookup = Lookup { rows: &rows, policy: FetchPolicy::Prefix, request: "r" };
    storage.look(&lookup, Box::new(move |held| sender.send(held).unwrap()));
    let held = got.recv().unwrap();
    assert_eq!(held.fates, [Fate::FirstTier, Fate::LowerTier]);
    assert!(matches!(storage.get(b"b"), Got::Behind), "another one left");
    drop(held);
    assert_eq!(storage.shared.lock().engine.held(), 0);
}

/// A device that takes its time.
fn stuck(ms: u64) -> Vec<crate::plan::Wrapping> {
    let options = [("spike", "1".to_owned()), ("spike_ms", ms.to_string())];
    let options = options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    vec![crate::plan::Wrapping { name: "fault".to_owned(), options }]
}

/// Broken by: callers that wait for a device, copies that pile up behind it, closing that waits for ever.
#[test]
fn a_device_that_hangs_holds_nobody_up() {
    let medium = directory("memory", Path::new(""), stuck(3_600_000));
    let hanging =
        StorageOptions { closing: Duration::from_millis(50), under_way_bytes: Some(2 * 4096), ..options() };
    let storage = Storage::open(&plan(8, vec![adapter(medium, 100)]), &hanging, None).unwrap();
    for number in 0..40u8 {
        put(&storage, &[number], &[number; 4096]);
        assert_eq!(read(&storage, &[number]).unwrap(), [number; 4096]);
    }
    let status = storage.status();
    assert_eq!(status.storing_bytes, 2 * 4096);
    let behind = status.background.behind();
    assert_eq!((behind.postponed, behind.skipped), (38, 32), "what it is too slow for is not copied");
    let error = storage.close().unwrap_err().to_string();
    assert!(error.contains("does not answer"), "{error}");
}

/// Broken by: a panic that ends the thread, or leaves what it was to do under way for ever.
#[test]
fn what_breaks_down_in_the_background_is_a_failure() {
    let plan = plan(8, vec![adapter(Medium::Mock, 100)]);
    let storage = Storage::open(&plan, &options(), None).unwrap();
    put(&storage, b"a", b"bytes");
    empty_memory(&storage);
    let (sender, got) = channel();
    let then = move |object: Option<Arc<Object>>| {
        sender.send(object.is_some()).unwrap();
        panic!("a caller that breaks down");
    };
    storage.fetch(b"a", Box::new(then));
    assert!(got.recv().unwrap());
    storage.settle();
    assert_eq!(read(&storage, b"a").unwrap(), b"bytes", "loads go on");
    storage.close().unwrap();
}

/// Broken by: copies and loads of what was removed or written again that are taken for what is there now.
#[test]
fn what_is_under_way_never_wins_over_what_was_written_since() {
    let slow = AdapterPlan { bytes_per_second: Some(200_000.0), ..adapter(Medium::Mock, 100) };
    let storage = Storage::open(&plan(64, vec![slow]), &options(), None).unwrap();
    for name in [b"a", b"b", b"c"] {
        put(&storage, name, &[1; 4096]);
    }
    // 20 ms each: nothing has arrived yet.
    put(&storage, b"a", &[2; 100]);
    storage.remove(b"b");
    storage.settle();
    assert_eq!(storage.used().1[0], 100 + 4096);
    empty_memory(&storage);
    // A load of the old value is under way when it is removed, or written again.
    let (sender, got) = channel();
    let then = |sender: std::sync::mpsc::Sender<Option<usize>>| {
        move |object: Option<Arc<Object>>| sender.send(object.map(|object| object.len())).unwrap()
    };
    storage.fetch(b"a", Box::new(then(sender.clone())));
    storage.fetch(b"c", Box::new(then(sender)));
    storage.remove(b"a");
    put(&storage, b"c", &[3; 7]);
    assert_eq!((got.recv().unwrap(), got.recv().unwrap()), (None, None));
    storage.settle();
    assert_eq!((read(&storage, b"a"), read(&storage, b"b")), (None, None));
    assert_eq!(read(&storage, b"c").unwrap(), [3; 7]);
    empty_memory(&storage);
    assert_eq!((read(&storage, b"c").unwrap(), storage.used().1[0]), (vec![3; 7], 7));
    storage.remove(b"c");
    storage.settle();
    assert_eq!((storage.len(), storage.used()), (0, (0, vec![0])));
}

/// Broken by: taking the copy that ends next for the one that was never begun.
#[test]
fn a_copy_that_is_put_off_is_the_last_one() {
    let slow = AdapterPlan { bytes_per_second: Some(200_000.0), ..adapter(Medium::Mock, 100) };
    let tight = StorageOptions { under_way_bytes: Some(4096), ..options() };
    let storage = Storage::open(&plan(64, vec![slow]), &tight, None).unwrap();
    put(&storage, b"a", &[1; 4096]);
    put(&storage, b"a", &[2; 4096]);
    let behind = storage.background().behind();
    assert_eq!((behind.postponed, behind.copied), (1, 0));
    storage.settle();
    let behind = storage.background().behind();
    assert_eq!((behind.postponed, behind.skipped, behind.copied), (1, 0, 1));
    empty_memory(&storage);
    assert_eq!((read(&storage, b"a").unwrap(), storage.used().1[0]), (vec![2; 4096], 4096));
}

/// Broken by: names that count as objects though there is none of them any more, or objects behind memory
/// that do not count.
#[test]
fn what_is_nowhere_does_not_count() {
    let slow = AdapterPlan { bytes_per_second: Some(200_000.0), ..adapter(Medium::Mock, 100) };
    let storage = Storage::open(&plan(16, vec![slow]), &options(), None).unwrap();
    put(&storage, b"a", &[1; 4096]);
    put(&storage, b"b", &[1; 4096]);
    assert!(storage.remove(b"a"));
    // Its copy is still under way.
    let status = storage.status();
    assert_eq!((storage.len(), status.objects, status.names), (1, 1, 2));
    assert_eq!((empty_memory(&storage), storage.len()), (1, 1), "it is behind");
    assert_eq!(storage.status().names, 1);
    put(&storage, b"b", b"again");
    assert!(storage.len() == 1 && storage.remove(b"b") && storage.is_empty());
}

/// Broken by: all objects that are removed under one lock.
#[test]
fn all_is_removed_in_steps() {
    let storage = Storage::open(&plan(1000, Vec::new()), &options(), None).unwrap();
    (0..1000u32).for_each(|number| put(&storage, &number.to_le_bytes(), b"x"));
    let steps = storage.shared.lock().written;
    storage.clear();
    assert_eq!((storage.len(), storage.used().0), (0, 0));
    assert_eq!(storage.shared.lock().written - steps, 4, "so often was the lock taken for it");
}

/// Broken by: a load for each of those who ask for one object, and by a load of what was removed since that
/// someone waits for who asks for what is there now.
#[test]
fn what_is_on_its_way_is_not_loaded_again() {
    let slow = AdapterPlan { bytes_per_second: Some(200_000.0), ..adapter(Medium::Mock, 100) };
    let kept = Arc::new(crate::storage::tests::Kept::default());
    let plan = plan(16, vec![slow]);
    let storage = Storage::open(&plan, &options(), Some(Arc::clone(&kept) as _)).unwrap();
    put(&storage, b"a", &[1; 4096]);
    empty_memory(&storage);
    let (sender, got) = channel();
    let fetch = || {
        let sender = sender.clone();
        storage.fetch(b"a", Box::new(move |object| sender.send(object.map(|it| it[0])).unwrap()));
    };
    (0..3).for_each(|_| fetch());
    assert_eq!(storage.status().loads_in_flight, 1);
    assert!((0..3).all(|_| got.recv().unwrap() == Some(1)));
    assert_eq!(storage.background().behind().loaded, 1);
    let hits = kept
        .take()
        .iter()
        .flat_map(|recorded| recorded.outcome.clone())
        .flatten()
        .filter(|fate| matches!(fate, Fate::FirstTier | Fate::LowerTier))
        .count();
    assert_eq!(hits, 3, "each of them is recorded");
    // A load of what was removed brings nothing; who asks for what was written since does not wait for it.
    put(&storage, b"a", &[1; 40_000]);
    empty_memory(&storage);
    let copied = storage.background().behind().copied;
    fetch();
    put(&storage, b"a", &[2; 4]);
    while storage.background().behind().copied == copied {
        std::thread::sleep(Duration::from_micros(100));
    }
    let mut state = storage.shared.lock();
    state.engine.pass_up_to(0, Some(u32::MAX)).unwrap();
    state.follow(&mut Incoming::default());
    drop(state);
    fetch();
    let mut both = [got.recv().unwrap(), got.recv().unwrap()];
    both.sort_unstable();
    assert_eq!(both, [None, Some(2)]);
}
