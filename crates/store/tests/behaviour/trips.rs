//! What was written comes back: every size, any order of pieces, any number at once.

use std::sync::Arc;

use wavetank_store::backend::NewEntry;
use wavetank_store::{KEY_BYTES_MAX, Key};

use crate::driver::{Dice, Driver, Order, made, reads, writes};
use crate::stage::Stage;

const SIZES: [usize; 9] = [0, 1, 4095, 4096, 4097, 128 << 10, 1 << 20, (1 << 20) + 1, (10 << 20) + 13];

#[test]
fn every_size_comes_back() {
    for stage in Stage::every(|_| true) {
        let mut driver = stage.driver(4);
        for (seed, size) in (1..).zip(SIZES) {
            let (key, bytes) = (Key::new(size.to_le_bytes()), made(seed, size));
            let held = driver.put(&key, &bytes).unwrap();
            let back = driver.take(&held, size).unwrap();
            assert!(!stage.keeps() || back == bytes, "{}: {size} bytes", stage.name);
            driver.port.remove(held).unwrap();
        }
    }
}

#[test]
fn the_order_of_pieces_does_not_matter() {
    for stage in Stage::every(|_| true) {
        let mut driver = stage.driver(4);
        let bytes = made(5, (6 << 20) + 4099);
        for seed in 0..4 {
            let held = driver.put_in(Order::Shuffled(seed), &Key::from("shuffled"), &bytes).unwrap();
            let back = driver.take_in(Order::Shuffled(seed + 100), &held, bytes.len()).unwrap();
            assert!(!stage.keeps() || back == bytes, "{}: order {seed}", stage.name);
            driver.port.remove(held).unwrap();
        }
    }
}

#[test]
fn many_entries_are_in_flight_at_any_depth() {
    for stage in Stage::every(|_| true) {
        let backend = stage.open();
        for depth in [1, 4, 16] {
            let mut driver = Driver::with_buffers(&backend, depth, 72);
            at_once(&stage, &mut driver, 64);
        }
    }
}

fn at_once(stage: &Stage, driver: &mut Driver, count: u64) {
    let keys: Vec<Key> = (0..count).map(|n| Key::new(n.to_le_bytes())).collect();
    let size = |n: u64| if n.is_multiple_of(16) { (1 << 20) + 1 } else { 5000 * n as usize % 70_000 };
    let bytes: Vec<_> = (0..count).map(|n| made(n, size(n))).collect();
    let create = |(key, bytes): (&Key, &Vec<u8>)| {
        driver
            .port
            .create(&NewEntry { key, bytes: bytes.len() as u64, recipe: None, birth: Default::default() })
            .unwrap()
    };
    let held: Vec<_> = keys.iter().zip(&bytes).map(create).collect();
    // By offset: the second pieces come after all first ones, so that entries are interleaved.
    let mut work: Vec<_> = held.iter().zip(&bytes).flat_map(|(h, b)| writes(Order::Forward, h, b)).collect();
    work.sort_by_key(|work| work.offset);
    assert!(driver.drive(&work).iter().all(|outcome| outcome.result.is_ok()));
    let kept: Vec<_> = held.into_iter().map(|held| driver.port.commit(held).unwrap()).collect();
    let open: Vec<_> = kept.iter().map(|kept| driver.port.open(kept).unwrap()).collect();
    let mut work: Vec<_> =
        open.iter().zip(&bytes).flat_map(|(o, b)| reads(Order::Forward, o, b.len())).collect();
    Dice::new(count).shuffle(&mut work);
    for (work, outcome) in work.iter().zip(driver.drive(&work)) {
        outcome.result.unwrap();
        let entry = open.iter().position(|open| Arc::ptr_eq(open, &work.held)).unwrap();
        let right = outcome.bytes == bytes[entry][work.offset as usize..][..work.len];
        assert!(!stage.keeps() || right, "{}: entry {entry}", stage.name);
    }
    drop((open, work));
    kept.into_iter().for_each(|kept| driver.port.remove(kept).unwrap());
}

/// Keys that would do harm as paths, or that are hard to store.
pub(crate) fn hostile_keys() -> Vec<Key> {
    let texts: [&[u8]; 8] = [
        b"../../etc/passwd",
        b"/etc/passwd",
        b"a\0b",
        b"",
        b".",
        b"..",
        "k\u{e4}se/\u{202e}\u{1f9c0}".as_bytes(),
        b"\xff\xfe\n\r\t",
    ];
    let long = [vec![b'k'; 10_000], vec![7; KEY_BYTES_MAX - 1], vec![7; KEY_BYTES_MAX]];
    texts.into_iter().map(Key::new).chain(long.into_iter().map(Key::new)).collect()
}

#[test]
fn any_key_is_a_key() {
    for stage in Stage::every(|_| true) {
        let mut driver = stage.driver(2);
        let mut held = Vec::new();
        for (seed, key) in (0..).zip(hostile_keys()) {
            held.push((driver.put(&key, &made(seed, 5000)).unwrap(), seed));
        }
        for (held, seed) in held {
            let back = driver.take(&held, 5000).unwrap();
            assert!(!stage.keeps() || back == made(seed, 5000), "{}: key {seed}", stage.name);
            driver.port.remove(held).unwrap();
        }
    }
}

#[test]
fn a_port_dropped_in_flight_leaves_the_backend_usable() {
    for stage in Stage::every(|_| true) {
        let backend = stage.open();
        let mut driver = Driver::new(&backend, 4);
        let (key, bytes) = (Key::from("kept"), made(3, 3 << 20));
        let held = driver.put(&key, &bytes).unwrap();
        let mut other = Driver::new(&backend, 4);
        other.leave(&held, bytes.len());
        drop(other);
        assert!(!stage.keeps() || driver.take(&held, bytes.len()).unwrap() == bytes, "{}", stage.name);
        driver.port.remove(held).unwrap();
    }
}
