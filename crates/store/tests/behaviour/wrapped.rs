//! Wrappers: around any backend and each other nothing changes but what they are for.

use std::fs;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wavetank_store::backend::Backend;
use wavetank_store::backends::{self, Site};
use wavetank_store::wrappers::record::{self, Operation, Record};
use wavetank_store::wrappers::throttle::{self, Bandwidth, Limits};
use wavetank_store::wrappers::{self, verify, wrapper};
use wavetank_store::{Key, Options};

use crate::driver::{Driver, Order, Outcome, made, reads};
use crate::stage::{Stage, filing, keeping, surviving};

fn memory() -> Arc<dyn Backend> {
    backends::open("memory", &Site::default()).unwrap()
}

/// Every row of the table in every order.
fn orders() -> Vec<Vec<&'static wrappers::Entry>> {
    let mut orders = vec![Vec::new()];
    for entry in wrappers::ALL {
        let longer = |order: Vec<_>| {
            (0..=order.len()).map(move |at| {
                let mut order = order.clone();
                order.insert(at, entry);
                order
            })
        };
        orders = orders.into_iter().flat_map(longer).collect();
    }
    orders
}

#[test]
fn wrappers_nest_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.jsonl").to_str().unwrap().to_owned();
    for order in orders() {
        let wrap = |inner, entry: &&wrappers::Entry| {
            let mut options = Options::default();
            if entry.name == "record" {
                options = Options::from_iter([("file", file.as_str())]);
            }
            (entry.wrap)(inner, &options).unwrap()
        };
        let backend = order.iter().fold(memory(), wrap);
        let mut driver = Driver::new(&backend, 2);
        for size in [0, 5000, (2 << 20) + 1] {
            let held = driver.put_in(Order::Shuffled(1), &Key::from("key"), &made(1, size)).unwrap();
            let names: Vec<_> = order.iter().map(|entry| entry.name).collect();
            assert!(driver.take_in(Order::Shuffled(2), &held, size).unwrap() == made(1, size), "{names:?}");
            driver.port.remove(held).unwrap();
        }
    }
}

#[test]
fn options_that_are_wrong_are_refused() {
    let wrong = [
        ("fault", "read_error", "1.5"),
        ("fault", "seed", "many"),
        ("record", "path", "x"),
        ("throttle", "gbps", "0"),
        ("throttle", "latency_us", "-1"),
        ("verify", "checksum", "crc"),
    ];
    for (name, option, value) in wrong {
        let options = Options::from_iter([(option, value)]);
        let refusal = (wrapper(name).unwrap().wrap)(memory(), &options).err().unwrap().to_string();
        assert!(refusal.contains(option), "{name}: {refusal}");
    }
    let both = Options::from_iter([("gbps", "1"), ("read_gbps", "1")]);
    assert!((wrapper("throttle").unwrap().wrap)(memory(), &both).is_err());
    assert!((wrapper("record").unwrap().wrap)(memory(), &Options::default()).is_err());
    assert!(wrapper("verfy").is_err());
}

#[test]
fn every_row_says_what_it_takes() {
    assert!(wrappers::ALL.is_sorted_by_key(|entry| entry.name));
    for entry in wrappers::ALL {
        assert!(!entry.about.is_empty() && entry.options.iter().all(|(_, about)| !about.is_empty()));
    }
}

#[test]
fn damage_on_the_disk_is_seen_by_the_reader_of_the_whole() {
    for stage in Stage::every(filing) {
        let backend = verify::wrap(stage.open());
        let mut driver = Driver::new(&backend, 1);
        let (key, bytes) = (Key::from("damaged"), made(1, (2 << 20) + 9));
        let held = driver.put(&key, &bytes).unwrap();
        let fine = driver.put(&Key::from("fine"), &bytes).unwrap();
        damage(&stage, &key);
        judged(&mut driver, &held, &key, bytes.len());
        assert!(driver.take(&fine, bytes.len()).unwrap() == bytes);
        drop((backend, driver, held, fine));

        let backend = verify::wrap(stage.open());
        let mut found = Vec::new();
        Arc::clone(&backend).recover(&mut |entry| found.push(entry)).unwrap();
        let mut driver = Driver::new(&backend, 1);
        assert_eq!(found.len(), 2);
        for found in found {
            if found.key == key {
                judged(&mut driver, &found.held, &key, bytes.len());
            } else {
                assert!(driver.take(&found.held, bytes.len()).unwrap() == bytes, "{}", stage.name);
            }
        }
    }
}

/// The last piece says that the entry is wrong, and whose it is; those before it say nothing.
fn judged(driver: &mut Driver, held: &Arc<dyn wavetank_store::backend::Held>, key: &Key, len: usize) {
    for order in [Order::Forward, Order::Shuffled(4)] {
        let open = driver.port.open(held).unwrap();
        let work = reads(order, &open, len);
        let (last, first) = work.split_last().unwrap();
        assert!(driver.drive(first).iter().all(|outcome| outcome.result.is_ok()), "a part is not judged");
        let error = driver.drive(std::slice::from_ref(last)).remove(0).result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(error.to_string().contains(&format!("{:016x}", key.fingerprint())), "{error}");
    }
}

/// Flips a bit in the middle of an entry's file.
fn damage(stage: &Stage, key: &Key) {
    use std::os::unix::fs::FileExt;
    let name = format!("{:032x}-", key.hash());
    let shards = fs::read_dir(stage.root()).unwrap().map(|item| item.unwrap().path());
    let mut files = shards.filter(|path| path.is_dir()).flat_map(|shard| fs::read_dir(shard).unwrap());
    let path = files.find_map(|item| {
        let item = item.unwrap();
        item.file_name().to_str().unwrap().starts_with(&name).then(|| item.path())
    });
    let file = fs::OpenOptions::new().read(true).write(true).open(path.unwrap()).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, 1 << 20).unwrap();
    byte[0] ^= 0x10;
    file.write_all_at(&byte, 1 << 20).unwrap();
    file.sync_all().unwrap();
}

/// When each piece was done, in that order.
fn finished(outcomes: &[Outcome]) -> Vec<Instant> {
    let mut times: Vec<_> = outcomes.iter().map(|outcome| outcome.finished).collect();
    times.sort();
    times
}

fn spaced(times: &[Instant], by: Duration) -> bool {
    times.windows(2).all(|pair| pair[1] - pair[0] >= by)
}

#[test]
fn pieces_are_spaced_as_the_link_carries_them() {
    let len = 8 << 20;
    let bytes = made(1, len);
    // A mebibyte at 0.5 GB/s takes 2.097 ms.
    let (piece, latency) = (Duration::from_nanos(2_097_152), Duration::from_millis(4));
    let limits = Limits { bandwidth: Bandwidth::Shared(Some(0.5)), latency, ..Limits::default() };
    for stage in Stage::every(keeping) {
        let backend = throttle::wrap(stage.open(), limits);
        let mut driver = Driver::new(&backend, 8);
        let held = driver.put(&Key::from("key"), &bytes).unwrap();
        let open = driver.port.open(&held).unwrap();
        let start = Instant::now();
        let outcomes = driver.drive(&reads(Order::Forward, &open, len));
        // However slow the device is, a piece is never earlier than the link carries it.
        for (n, time) in (1..).zip(finished(&outcomes)) {
            assert!(time - start >= n * piece + latency, "{}: piece {n}: {:?}", stage.name, time - start);
        }
        // Memory is faster than the link, so what is left is the link.
        assert!(stage.entry.name != "memory" || spaced(&finished(&outcomes), piece));
        assert!(outcomes.iter().flat_map(|outcome| &outcome.bytes).eq(&bytes), "{}", stage.name);
    }
}

#[test]
fn ports_of_two_threads_share_the_link() {
    let rate = Some(500.0);
    let limits = Limits { operations_per_second: rate, ..Limits::default() };
    let backend = throttle::wrap(memory(), limits);
    let times = std::thread::scope(|scope| {
        let port = |name: u8| {
            let backend = &backend;
            scope.spawn(move || {
                let mut driver = Driver::new(backend, 3);
                let held = driver.put(&Key::new([name]), &made(1, 6 << 20)).unwrap();
                let open = driver.port.open(&held).unwrap();
                finished(&driver.drive(&reads(Order::Forward, &open, 6 << 20)))
            })
        };
        let threads = [port(1), port(2)];
        let mut times: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        times.sort();
        times
    });
    assert!(times.len() == 12 && spaced(&times, Duration::from_millis(2)));
}

#[test]
fn reads_and_writes_have_links_of_their_own() {
    // Writes are not limited: had they to wait for the reads' link, they would take a day.
    let limits = |read, write| Limits { bandwidth: Bandwidth::Apart { read, write }, ..Limits::default() };
    let backend = throttle::wrap(memory(), limits(Some(0.000_01), None));
    let mut driver = Driver::new(&backend, 4);
    let held = driver.put(&Key::from("key"), &made(1, 4 << 20)).unwrap();
    // A reap that may not wait does not.
    let open = driver.port.open(&held).unwrap();
    driver.leave(&open, 1 << 20);
    let mut done = Vec::new();
    driver.port.reap(Some(Instant::now()), &mut done).unwrap();
    assert!(done.len() <= 1 && driver.port.in_flight() > 0);
    let backend = throttle::wrap(memory(), limits(None, Some(1.0)));
    let mut driver = Driver::new(&backend, 4);
    let held = driver.put(&Key::from("key"), &made(1, 4 << 20)).unwrap();
    driver.take(&held, 4 << 20).unwrap();
}

#[test]
fn every_call_is_recorded() {
    for stage in Stage::every(|_| true) {
        let (backend, recording) = record::in_memory(stage.open(), 1000);
        let mut driver = Driver::new(&backend, 4);
        let (key, bytes) = (Key::from("key"), made(1, (2 << 20) + 5));
        let held = driver.put(&key, &bytes).unwrap();
        driver.take(&held, bytes.len()).unwrap();
        driver.port.remove(held).unwrap();
        let records = recording.take();
        use Operation::{Commit, Create, Open, Read, Remove, Write};
        let called: Vec<_> = records.iter().map(|record| record.operation).collect();
        assert_eq!(called, [Create, Write, Write, Write, Commit, Open, Read, Read, Read, Remove]);
        assert!((0..).zip(&records).all(|(n, record)| record.sequence == n), "{}", stage.name);
        assert!(records.iter().all(|r| r.fingerprint == key.fingerprint() && r.error.is_none()));
        let moved = |way| records.iter().filter(|r| r.operation == way).map(|r| r.bytes).sum::<u64>();
        assert_eq!([moved(Write), moved(Read), moved(Create)], [bytes.len() as u64; 3]);
        let mut offsets: Vec<_> = records.iter().filter(|r| r.operation == Read).map(|r| r.offset).collect();
        offsets.sort_unstable();
        assert_eq!(offsets, [0, 1 << 20, 2 << 20]);
        assert_eq!((recording.dropped(), recording.take().len()), (0, 0));
    }
}

#[test]
fn errors_are_recorded_and_so_are_recoveries() {
    for stage in Stage::every(surviving) {
        let fault =
            (wrapper("fault").unwrap().wrap)(stage.open(), &Options::from_iter([("create_error", "1")]));
        let (backend, recording) = record::in_memory(fault.unwrap(), 10);
        Arc::clone(&backend).recover(&mut |_| ()).unwrap();
        assert!(Driver::new(&backend, 1).put(&Key::from("key"), &[1]).is_err());
        let calls: Vec<_> = recording.take().iter().map(|r| (r.operation, r.error.is_some())).collect();
        assert_eq!(calls, [(Operation::Recover, false), (Operation::Create, true)], "{}", stage.name);
    }
}

#[test]
fn a_full_recording_drops_and_counts() {
    let (backend, recording) = record::in_memory(memory(), 4);
    let mut driver = Driver::new(&backend, 1);
    for n in 0..5_u8 {
        driver.put(&Key::new([n]), &[n]).unwrap();
    }
    let records: Vec<Record> = recording.take();
    assert_eq!((records.len(), recording.dropped()), (4, 11));
    assert!(backend.notes()[0].contains("11 records were dropped"));
    driver.put(&Key::from("more"), &[1]).unwrap();
    assert_eq!(recording.take()[0].sequence, 15, "dropped calls are counted in the numbers");
}

#[test]
fn a_recording_is_written_to_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    let options = Options::from_iter([("file", path.to_str().unwrap())]);
    let backend = (wrapper("record").unwrap().wrap)(memory(), &options).unwrap();
    let mut driver = Driver::new(&backend, 2);
    for n in 0..50_u8 {
        let bytes = made(1, 100);
        let held = driver.put(&Key::new([n]), &bytes).unwrap();
        driver.port.remove(held).unwrap();
    }
    drop((backend, driver));
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 201);
    let key = Key::new([0]).fingerprint();
    let called = format!(r#"{{"sequence":0,"operation":"create","key":"{key:016x}","#);
    let first = format!(r#"{called}"offset":0,"bytes":100,"error":null,"device_ns":"#);
    assert!(lines[0].starts_with(&first), "{}", lines[0]);
    assert_eq!(lines[200], r#"{"calls":200,"dropped":0}"#);
}
