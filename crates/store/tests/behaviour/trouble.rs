//! Disks that are full, turn read-only or vanish: errors, no panic, and what was there is still there.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;
use wavetank_store::Key;
use wavetank_store::backend::Held;
use wavetank_store::backends::{self, Site};

use crate::driver::{Driver, Order, made};
use crate::stage::{Stage, filing, no_forks, skipped};

const DISK_BYTES: u64 = 32 << 20;

/// A small ext4 of its own, mounted; unmounted when dropped.
struct Disk {
    folder: TempDir,
}

impl Disk {
    /// Nothing, with a printed reason, where file systems cannot be made and mounted.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (image, mount) = (folder.path().join("image"), folder.path().join("mount"));
        File::create(&image).unwrap().set_len(DISK_BYTES).unwrap();
        fs::create_dir(&mount).unwrap();
        let made = run("mkfs.ext4", &["-q", "-F", "-m", "0", image.to_str().unwrap()]);
        let options = "loop,errors=remount-ro";
        let mounted = made
            .and_then(|()| run("mount", &["-o", options, image.to_str().unwrap(), mount.to_str().unwrap()]));
        match mounted {
            Ok(()) => Some(Self { folder }),
            Err(why) => skipped("a disk of its own", &why),
        }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("mount")
    }

    /// A site of `stage` on this disk.
    fn site(&self, stage: &Stage) -> Site {
        Site { location: self.path().to_str().unwrap().to_owned(), ..stage.site.clone() }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a failed test may still have files open.
        let _ = run("umount", &["-l", self.path().to_str().unwrap()]);
    }
}

fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let output = {
        let _alone = no_forks();
        Command::new(program).args(args).output().map_err(|e| format!("{program}: {e}"))?
    };
    let told = || format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim());
    if output.status.success() { Ok(()) } else { Err(told()) }
}

type Entries = Vec<(u64, Arc<dyn Held>)>;

/// Puts entries of 1 MiB until there is no room, which must say so.
fn fill(driver: &mut Driver, held: &mut Entries) {
    loop {
        let seed = held.last().map_or(0, |(seed, _)| seed + 1);
        match driver.put(&Key::new(seed.to_le_bytes()), &made(seed, 1 << 20)) {
            Ok(entry) => held.push((seed, entry)),
            Err(e) => {
                assert_eq!(e.kind(), io::ErrorKind::StorageFull, "{e}");
                return;
            }
        }
        assert!(held.len() < 100, "the disk has an end");
    }
}

fn check(driver: &mut Driver, held: &Entries, name: &str) {
    for (seed, entry) in held {
        assert!(driver.take(entry, 1 << 20).unwrap() == made(*seed, 1 << 20), "{name}: entry {seed}");
    }
}

#[test]
fn a_full_disk_says_so_and_works_again_when_there_is_room() {
    for stage in Stage::every(filing) {
        let Some(disk) = Disk::new() else { return };
        let site = disk.site(&stage);
        let backend = stage.open_at(&site);
        let mut driver = Driver::new(&backend, 2);
        let mut held = Entries::new();
        for _ in 0..3 {
            fill(&mut driver, &mut held);
            let count = held.len();
            assert!(count > 10, "{}: {count} entries", stage.name);
            check(&mut driver, &held, &stage.name);
            for (_, entry) in held.drain(..4) {
                driver.port.remove(entry).unwrap();
            }
            // Of another size: spare files have to give their room to one of them.
            let large = driver.put(&Key::from("large"), &made(7, 3 << 20)).unwrap();
            assert!(driver.take(&large, 3 << 20).unwrap() == made(7, 3 << 20), "{}", stage.name);
            driver.port.remove(large).unwrap();
        }
        let kept = held.len();
        drop((backend, driver, held));
        let backend = stage.open_at(&site);
        let mut count = 0;
        let recovery = Arc::clone(&backend).recover(&mut |_| count += 1).unwrap();
        assert_eq!((count, recovery.torn, recovery.foreign), (kept, 0, 0), "{}", stage.name);
    }
}

#[test]
fn a_store_that_found_no_room_to_begin_with_opens_later() {
    for stage in Stage::every(filing) {
        let Some(disk) = Disk::new() else { return };
        let site = disk.site(&stage);
        let ballast = disk.path().join("ballast");
        fs::create_dir_all(disk.path().join("wavetank.store")).unwrap();
        let mut file = File::create(&ballast).unwrap();
        for chunk in [4096, 1024, 1] {
            while io::Write::write_all(&mut file, &vec![1; chunk]).is_ok() {}
        }
        assert!(backends::open(stage.entry.name, &site).is_err(), "{}: there is no room", stage.name);
        drop(file);
        fs::remove_file(&ballast).unwrap();
        let mut driver = Driver::new(&stage.open_at(&site), 2);
        driver.put(&Key::from("now"), &made(1, 5000)).unwrap();
    }
}

#[test]
fn a_disk_that_turns_read_only_can_still_be_read() {
    for stage in Stage::every(filing) {
        let Some(disk) = Disk::new() else { return };
        let mut driver = Driver::new(&stage.open_at(&disk.site(&stage)), 2);
        let mut held = Entries::new();
        for seed in 0..6 {
            held.push((seed, driver.put(&Key::new(seed.to_le_bytes()), &made(seed, 1 << 20)).unwrap()));
        }
        // What a kernel does when a device fails under its journal.
        if let Err(why) = run("mount", &["-o", "remount,abort", disk.path().to_str().unwrap()]) {
            return skipped("a read-only disk", &why).unwrap_or_default();
        }
        for n in 0..3_u64 {
            assert!(driver.put(&Key::from("new"), &made(n, 5000)).is_err(), "{}", stage.name);
        }
        check(&mut driver, &held, &stage.name);
        let (_, entry) = held.pop().unwrap();
        assert!(driver.port.remove(entry).is_err(), "{}: the name is still there", stage.name);
        check(&mut driver, &held, &stage.name);
    }
}

#[test]
fn a_directory_that_vanishes_is_an_error_and_can_be_made_again() {
    for stage in Stage::every(filing) {
        let mut driver = stage.driver(2);
        let bytes = made(1, 100_000);
        let [read, gone, spare] =
            ["read", "gone", "spare"].map(|key| driver.put(&Key::from(key), &bytes).unwrap());
        let open = driver.port.open(&read).unwrap();
        driver.port.remove(spare).unwrap();
        remove(&stage.root());
        assert!(driver.read(Order::Forward, &open, bytes.len()).unwrap() == bytes, "{}", stage.name);
        // A file that was kept open is still there for its reader.
        assert!(driver.take(&gone, bytes.len()).map_or(true, |read| read == bytes), "{}", stage.name);
        for _ in 0..3 {
            assert!(driver.put(&Key::from("new"), &bytes).is_err(), "{}", stage.name);
        }
        assert!(driver.port.remove(gone).is_err(), "{}", stage.name);
        drop((open, driver, read));
        let mut driver = stage.driver(2);
        let held = driver.put(&Key::from("again"), &bytes).unwrap();
        assert!(driver.take(&held, bytes.len()).unwrap() == bytes, "{}", stage.name);
    }
}

#[test]
fn files_that_vanish_take_only_themselves() {
    for stage in Stage::every(filing) {
        let mut driver = stage.driver(2);
        let bytes = made(1, 100_000);
        let held: Vec<_> = (0..6_u8).map(|n| driver.put(&Key::new([n]), &bytes).unwrap()).collect();
        for (n, entry) in held.into_iter().enumerate() {
            if n % 2 == 0 {
                driver.port.remove(entry).unwrap();
            }
        }
        // Spares and entries alike; the directories stay.
        for shard in 0..16 {
            let shard = stage.root().join(format!("{shard:x}"));
            remove(&shard);
            fs::create_dir(shard).unwrap();
        }
        drop(driver);
        let mut driver = stage.driver(2);
        for n in 0..6_u8 {
            let held = driver.put(&Key::new([n]), &bytes).unwrap();
            assert!(driver.take(&held, bytes.len()).unwrap() == bytes, "{}", stage.name);
        }
    }
}

fn remove(path: &Path) {
    fs::remove_dir_all(path).unwrap();
}
