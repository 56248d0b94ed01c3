//! An entry's life: readers outlast its removal, room comes back, only what was committed survives.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use wavetank_store::backend::{Held, NewEntry};
use wavetank_store::backends::{Entry, Site};
use wavetank_store::{Key, checksum};

use crate::driver::{Driver, Order, made, reads};
use crate::stage::{Stage, keeping, surviving};
use crate::trips::hostile_keys;

#[test]
fn a_reader_outlasts_removal_and_what_is_written_after() {
    for stage in Stage::every(keeping) {
        let backend = stage.open();
        let (mut reader, mut writer) = (Driver::new(&backend, 2), Driver::new(&backend, 2));
        for round in 0..4 {
            let bytes = made(round, (2 << 20) + 100);
            let held = writer.put(&Key::from("read"), &bytes).unwrap();
            let open = reader.port.open(&held).unwrap();
            let work = reads(Order::Forward, &open, bytes.len());
            let first = reader.drive(&work[..1]).remove(0);
            writer.port.remove(held).unwrap();
            // Of the same size, so that a file or block given back too early is what they would take.
            let others: Vec<_> = (0..4)
                .map(|n| writer.put(&Key::new([n]), &made(1000 + u64::from(n), bytes.len())).unwrap())
                .collect();
            let rest = reader.drive(&work[1..]);
            let back: Vec<u8> = [first].into_iter().chain(rest).flat_map(|outcome| outcome.bytes).collect();
            assert!(back == bytes, "{}: round {round}", stage.name);
            drop((open, work));
            for (n, other) in (0..).zip(others) {
                assert!(writer.take(&other, bytes.len()).unwrap() == made(1000 + n, bytes.len()));
                writer.port.remove(other).unwrap();
            }
        }
    }
}

#[test]
fn removal_frees_room_once_nobody_reads() {
    let bounded = |entry: &Entry| keeping(entry) && !surviving(entry);
    for stage in Stage::every(bounded) {
        let site = Site { capacity_bytes: Some(4 << 20), ..stage.site.clone() };
        let mut driver = Driver::new(&stage.open_at(&site), 2);
        let bytes = made(1, 1 << 20);
        let mut held: Vec<Arc<dyn Held>> = Vec::new();
        let full = loop {
            match driver.put(&Key::new(held.len().to_le_bytes()), &bytes) {
                Ok(entry) => held.push(entry),
                Err(e) => break e,
            }
            assert!(held.len() <= 4, "{}: no end to its room", stage.name);
        };
        assert_eq!((held.len(), full.kind()), (4, io::ErrorKind::WouldBlock), "{}: {full}", stage.name);
        let open = driver.port.open(&held[0]).unwrap();
        driver.port.remove(held.remove(0)).unwrap();
        let refused = driver.put(&Key::from("more"), &bytes).err().map(|e| e.kind());
        assert_eq!(refused, Some(io::ErrorKind::WouldBlock), "{}: still being read", stage.name);
        assert!(driver.read(Order::Forward, &open, bytes.len()).unwrap() == bytes);
        drop(open);
        let more = driver.put(&Key::from("more"), &bytes).unwrap();
        assert!(driver.take(&more, bytes.len()).unwrap() == bytes);
        // Nothing will ever make room for this: waiting for it would hang.
        let never = driver.put(&Key::from("never"), &made(2, 5 << 20)).err().map(|e| e.kind());
        assert!(never.is_some_and(|kind| kind != io::ErrorKind::WouldBlock), "{}: {never:?}", stage.name);
    }
}

#[test]
fn what_was_begun_can_be_removed() {
    for stage in Stage::every(|_| true) {
        let mut driver = stage.driver(2);
        for round in 0..8_u64 {
            let (key, bytes) = (Key::new(round.to_le_bytes()), made(round, 100_000));
            let begun = driver
                .port
                .create(&NewEntry {
                    key: &key,
                    bytes: bytes.len() as u64,
                    recipe: None,
                    birth: Default::default(),
                })
                .unwrap();
            if round.is_multiple_of(2) {
                driver.write(Order::Forward, &begun, &bytes).unwrap();
            }
            driver.port.remove(begun).unwrap();
            let held = driver.put(&key, &bytes).unwrap();
            assert!(!stage.keeps() || driver.take(&held, bytes.len()).unwrap() == bytes, "{}", stage.name);
            driver.port.remove(held).unwrap();
        }
    }
}

#[test]
fn what_was_not_committed_is_gone() {
    for stage in Stage::every(surviving) {
        let backend = stage.open();
        let mut driver = Driver::new(&backend, 2);
        let bytes = made(1, (1 << 20) + 7);
        let kept = driver.put(&Key::from("committed"), &bytes).unwrap();
        let key = Key::from("begun");
        let entry =
            NewEntry { key: &key, bytes: bytes.len() as u64, recipe: None, birth: Default::default() };
        let (written, empty) = (driver.port.create(&entry).unwrap(), driver.port.create(&entry).unwrap());
        driver.write(Order::Forward, &written, &bytes).unwrap();
        let gone = driver.put(&Key::from("removed"), &bytes).unwrap();
        driver.port.remove(gone).unwrap();
        drop((backend, driver, kept, written, empty));
        let (backend, found, _) = stage.reopen();
        let keys: Vec<_> = found.iter().map(|found| found.key.clone()).collect();
        assert_eq!(keys, [Key::from("committed")], "{}", stage.name);
        let mut driver = Driver::new(&backend, 2);
        assert!(driver.take(&found[0].held, bytes.len()).unwrap() == bytes);
    }
}

#[test]
fn what_was_committed_comes_back_with_key_checksum_and_version() {
    for stage in Stage::every(surviving) {
        let mut expected = HashMap::new();
        let mut driver = stage.driver(4);
        let sizes = [0, 1, 4096, 70_000, (2 << 20) + 5];
        for (seed, key) in (0..).zip(hostile_keys()) {
            let bytes = made(seed, sizes[seed as usize % sizes.len()]);
            driver.put(&key, &bytes).unwrap();
            expected.insert(key, bytes);
        }
        drop(driver);
        let (backend, found, recovery) = stage.reopen();
        let mut driver = Driver::new(&backend, 4);
        assert_eq!((found.len(), recovery.torn, recovery.foreign), (expected.len(), 0, 0), "{}", stage.name);
        assert!(found.is_sorted_by(|a, b| a.version < b.version), "{}: a version each", stage.name);
        for found in found {
            let bytes = expected.remove(&found.key).unwrap();
            assert_eq!((found.bytes, found.checksum), (bytes.len() as u64, checksum::of(&bytes)));
            assert!(
                driver.take(&found.held, bytes.len()).unwrap() == bytes,
                "{}: {:?}",
                stage.name,
                found.key
            );
            driver.port.remove(found.held).unwrap();
        }
        drop((backend, driver));
        assert_eq!(stage.reopen().1.len(), 0, "{}: all were removed", stage.name);
    }
}

#[test]
fn the_latest_of_two_wins_however_often_it_is_opened() {
    for stage in Stage::every(surviving) {
        let key = Key::from("twice");
        let mut latest = 0;
        for round in 1..6 {
            // Only every other process looks at what is there before it writes.
            let backend = if round % 2 == 0 { stage.reopen().0 } else { stage.open() };
            let mut driver = Driver::new(&backend, 2);
            for n in 0..round {
                driver.put(&key, &made(100 * round + n, 50_000)).unwrap();
            }
            drop((backend, driver));
            let (backend, found, _) = stage.reopen();
            assert_eq!(found.len(), 1, "{}: round {round}", stage.name);
            assert!(found[0].version > latest, "{}: versions grow", stage.name);
            latest = found[0].version;
            let back = Driver::new(&backend, 2).take(&found[0].held, 50_000).unwrap();
            assert!(back == made(100 * round + round - 1, 50_000), "{}: round {round}", stage.name);
        }
    }
}
