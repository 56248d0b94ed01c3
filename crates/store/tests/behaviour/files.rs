//! Directories of files: what is not ours is left alone, files are used again, room is given back.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wavetank_store::Key;
use wavetank_store::backend::{Held, NewEntry};
use wavetank_store::backends::{self, Site};

use crate::driver::{Driver, made};
use crate::stage::{Stage, filing};

/// Every file below the store's directory.
fn files(stage: &Stage) -> Vec<PathBuf> {
    let shards = fs::read_dir(stage.root()).unwrap().map(|item| item.unwrap().path());
    let shards: Vec<_> = shards.filter(|path| path.is_dir()).collect();
    let inside = shards.iter().flat_map(|shard| fs::read_dir(shard).unwrap());
    inside.map(|item| item.unwrap().path()).collect()
}

/// Bytes on the disk.
fn physical(stage: &Stage) -> u64 {
    files(stage).iter().map(|path| fs::metadata(path).unwrap().blocks() * 512).sum()
}

fn only_entry(stage: &Stage) -> PathBuf {
    let entries: Vec<_> = files(stage).into_iter().filter(|path| path.extension().unwrap() == "kv").collect();
    assert_eq!(entries.len(), 1);
    entries[0].clone()
}

/// A path, and what must still be there later.
#[derive(Debug, PartialEq, Eq)]
enum Trap {
    File(Vec<u8>),
    Link(PathBuf),
    Folder,
}

fn seen(path: &Path) -> Option<Trap> {
    let kind = fs::symlink_metadata(path).ok()?.file_type();
    Some(match () {
        () if kind.is_symlink() => Trap::Link(fs::read_link(path).unwrap()),
        () if kind.is_dir() => Trap::Folder,
        () => Trap::File(fs::read(path).unwrap()),
    })
}

/// Sets traps into `shard`, made from the whole entry `entry`, and files outside that links point to.
fn set_traps(shard: &Path, outside: &Path, entry: &Path) -> Vec<PathBuf> {
    let whole = fs::read(entry).unwrap();
    let hash = entry.file_name().unwrap().to_str().unwrap().split('-').next().unwrap();
    let named = |version: u64| shard.join(format!("{hash}-{version:016x}.kv"));
    let flipped = |bit: usize| {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    };
    let mut traps = vec![
        (shard.join("notes.txt"), b"mine".to_vec()),
        (shard.join("0.kv"), whole.clone()),
        (shard.join("+000000000000010.free"), whole.clone()),
        (named(2).with_extension("kv.bak"), whole.clone()),
        (named(900), whole.clone()),
        (named(901), Vec::new()),
        (named(902), whole[..100].to_vec()),
        (named(903), whole[..4096].to_vec()),
        (named(904), whole[..whole.len() - 1].to_vec()),
        (named(906), vec![0; whole.len()]),
        (named(u64::MAX), whole.clone()),
        (shard.join(format!("{:016x}.part", u64::MAX)), b"last".to_vec()),
    ];
    // In the magic number, the lengths, the version, the checksum and the key.
    traps.extend([1, 70, 130, 260, 330, 513].map(|bit| (named(910 + bit as u64), flipped(bit))));
    // Versions that the next entries would get.
    traps.extend((1..30).map(|version| (named(version), flipped(300))).filter(|(path, _)| !path.exists()));
    for (path, bytes) in &traps {
        fs::write(path, bytes).unwrap();
    }
    let secret = outside.join("secret");
    let (linked, linked_spare) = (named(950), shard.join(format!("{:016x}.free", 951)));
    fs::write(&secret, &whole).unwrap();
    symlink(&secret, &linked).unwrap();
    symlink(&secret, &linked_spare).unwrap();
    let folder = named(960);
    fs::create_dir(&folder).unwrap();
    traps.into_iter().map(|(path, _)| path).chain([secret, linked, linked_spare, folder]).collect()
}

/// Puts entries whose names are right, and damages each in its own way.
fn damaged_entries(driver: &mut Driver, stage: &Stage) -> Vec<PathBuf> {
    type Damage = fn(&mut Vec<u8>);
    let damages: [Damage; 8] = [
        // The entry's length, its checksum, its version and the header's checksum.
        |bytes| bytes[17] ^= 1,
        |bytes| bytes[24] ^= 0x80,
        |bytes| bytes[39] ^= 1,
        |bytes| bytes[40] ^= 2,
        // What is zero, and the key.
        |bytes| bytes[4000] ^= 4,
        |bytes| bytes[64] ^= 8,
        |bytes| bytes.truncate(bytes.len() - 4096),
        |bytes| bytes.truncate(4095),
    ];
    let paths = damages.iter().enumerate().map(|(n, damage)| {
        let key = Key::from(format!("victim {n}").as_str());
        driver.put(&key, &made(n as u64, 9000)).unwrap();
        let name = format!("{:032x}-", key.hash());
        let path =
            files(stage).into_iter().find(|p| p.file_name().unwrap().to_str().unwrap().starts_with(&name));
        let path = path.unwrap();
        let mut bytes = fs::read(&path).unwrap();
        damage(&mut bytes);
        fs::write(&path, bytes).unwrap();
        path
    });
    paths.collect()
}

#[test]
fn what_is_not_ours_is_counted_and_left_alone() {
    for stage in Stage::every(filing) {
        let mut driver = stage.driver(2);
        let (key, bytes) = (Key::from("whole"), made(1, 100_000));
        driver.put(&key, &bytes).unwrap();
        let entry = only_entry(&stage);
        let damaged = damaged_entries(&mut driver, &stage);
        drop(driver);
        let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut traps = set_traps(entry.parent().unwrap(), outside.path(), &entry);
        traps.extend(damaged);
        let before: Vec<_> = traps.iter().map(|path| seen(path)).collect();

        let (backend, found, recovery) = stage.reopen();
        let ours: Vec<_> = found.iter().map(|found| found.key.clone()).collect();
        assert_eq!(ours, std::slice::from_ref(&key), "{}", stage.name);
        // All but the secret are in the directory.
        assert_eq!(recovery.foreign + recovery.torn, traps.len() as u64 - 1, "{}: {recovery:?}", stage.name);
        assert_eq!(recovery.spare, 0, "{}: {recovery:?}", stage.name);
        let mut driver = Driver::new(&backend, 2);
        assert!(driver.take(&found[0].held, bytes.len()).unwrap() == bytes);
        for round in 0..40 {
            let held = driver.put(&key, &made(round, 100_000)).unwrap();
            assert!(driver.take(&held, 100_000).unwrap() == made(round, 100_000), "{}", stage.name);
            driver.port.remove(held).unwrap();
        }
        let after: Vec<_> = traps.iter().map(|path| seen(path)).collect();
        for ((path, before), after) in traps.iter().zip(before).zip(after) {
            assert!(before == after, "{}: {} was changed", stage.name, path.display());
        }
    }
}

#[test]
fn a_second_handle_is_refused() {
    for stage in Stage::every(filing) {
        let first = stage.open();
        let refusal = backends::open(stage.entry.name, &stage.site).err().unwrap().to_string();
        assert!(refusal.contains("another process uses this store"), "{refusal}");
        drop(first);
        stage.open();
    }
}

#[test]
fn entries_are_recovered_once_and_before_any_other() {
    for stage in Stage::every(filing) {
        let mut driver = stage.driver(2);
        driver.put(&Key::from("one"), &made(1, 5000)).unwrap();
        let spare = driver.put(&Key::from("two"), &made(2, 5000)).unwrap();
        driver.port.remove(spare).unwrap();
        drop(driver);
        // A spare file handed out twice would be two entries in one file.
        let (backend, found, _) = stage.reopen();
        assert_eq!(found.len(), 1);
        assert!(Arc::clone(&backend).recover(&mut |_| panic!("found again")).is_err(), "{}", stage.name);
        drop((backend, found));
        let backend = stage.open();
        Driver::new(&backend, 2).put(&Key::from("three"), &made(3, 5000)).unwrap();
        assert!(Arc::clone(&backend).recover(&mut |_| panic!("found late")).is_err(), "{}", stage.name);
    }
}

#[test]
fn a_process_that_died_while_it_opened_does_no_harm() {
    for stage in Stage::every(filing) {
        stage.open();
        for version in 1..20_u64 {
            let part = stage.root().join(format!("{:x}/{version:016x}.part", version % 16));
            fs::write(part, b"").unwrap();
        }
        let mut driver = stage.driver(2);
        let held = driver.put(&Key::from("after"), &made(1, 5000)).unwrap();
        assert!(driver.take(&held, 5000).unwrap() == made(1, 5000), "{}", stage.name);
    }
}

#[test]
fn files_are_used_again() {
    for stage in Stage::every(filing) {
        let mut driver = stage.driver(2);
        let size = |round: usize| 100_000 + 997 * (round % 7);
        let mut held: Vec<Arc<dyn Held>> = Vec::new();
        let mut fill = |driver: &mut Driver, round: usize| {
            held.drain(..).for_each(|held| driver.port.remove(held).unwrap());
            let keys = (0..10).map(|n| Key::from(format!("{round}/{n}").as_str()));
            held.extend(keys.map(|key| driver.put(&key, &made(round as u64, size(round))).unwrap()));
        };
        fill(&mut driver, 0);
        let count = files(&stage).len();
        for round in 1..12 {
            fill(&mut driver, round);
            // What was begun and not finished gives its file back, too.
            let key = Key::from("begun");
            let entry = NewEntry { key: &key, bytes: 1000, recipe: None, birth: Default::default() };
            let begun = driver.port.create(&entry).unwrap();
            driver.port.remove(begun).unwrap();
            drop(driver.port.create(&entry).unwrap());
        }
        assert_eq!(files(&stage).len(), count + 1, "{}", stage.name);
    }
}

#[test]
fn room_on_the_disk_stays_below_the_limit() {
    const LIMIT: u64 = 8 << 20;
    for stage in Stage::every(filing) {
        let site = Site { capacity_bytes: Some(LIMIT), ..stage.site.clone() };
        let backend = stage.open_at(&site);
        let mut driver = Driver::new(&backend, 2);
        let mut most = 0;
        for (round, size) in
            [1_200_000, 1 << 20, 60_000, 1 << 20, 900_000, 8192, 7 << 20].into_iter().enumerate()
        {
            let keys = (0..LIMIT as usize / size).map(|n| Key::from(format!("{round}/{n}").as_str()));
            let held: Vec<_> = keys.map(|key| driver.put(&key, &made(1, size)).unwrap()).collect();
            // A header and the rest of a block for each entry; what the file system adds to a file.
            let around = held.len() as u64 * (4096 + 4096 + 4096);
            let taken = physical(&stage);
            assert!(taken <= LIMIT + around, "{}: {taken} bytes for entries of {size}", stage.name);
            most = most.max(taken);
            held.into_iter().for_each(|held| driver.port.remove(held).unwrap());
        }
        assert!(most > LIMIT / 2, "{}: the disk was filled", stage.name);
    }
}

#[test]
fn a_key_too_long_is_refused() {
    for stage in Stage::every(filing) {
        let mut driver = stage.driver(2);
        let key = Key::new(vec![1; wavetank_store::KEY_BYTES_MAX + 1]);
        assert!(driver.put(&key, &made(1, 100)).is_err(), "{}", stage.name);
        let held = driver.put(&Key::from("short"), &made(1, 100)).unwrap();
        assert!(driver.take(&held, 100).unwrap() == made(1, 100), "{}", stage.name);
    }
}
