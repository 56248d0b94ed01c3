//! Files of entries that an earlier process left, or somebody who can compute a checksum.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use wavetank_cache::{Rules, eviction};
use wavetank_store::backends::{self, Site};
use wavetank_store::{Existing, Key, Lane, Outcome, Payload, Put, Store, Tier, Want, checksum};

use super::Entry;
use crate::blind::{LONGEST, blind};
use crate::said::Met;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "entries",
    about: "files of entries in the folder of a store",
    samples: &[],
    seeds,
    changed,
    check,
    most_memory: 256 << 20,
};

/// Where the header has numbers, and how long it is at least.
const NUMBERS: [usize; 8] = [8, 12, 16, 24, 32, 48, 56, 60];
const LEAST: usize = 64;
const CHECKSUM: std::ops::Range<usize> = 40..48;
/// Values of numbers that are not usual.
const FAR: [u64; 8] = [0, 1, 4096, 1 << 31, 1 << 32, 1 << 62, i64::MAX as u64, u64::MAX];
/// Where the store has its files.
const FOLDER: &str = "wavetank.store/0";

/// A folder in memory, where there is one: a store has many.
fn folder() -> TempDir {
    let memory = tempfile::tempdir_in("/dev/shm");
    memory.or_else(|_| tempfile::tempdir()).expect("there is room for a folder")
}

fn open(place: &Path) -> Arc<Store> {
    let site = Site {
        location: place.display().to_string(),
        options: [("durable", "false")].into_iter().collect(),
        ..Site::default()
    };
    let backend = backends::open("buffered", &site).expect("a folder");
    let lru = eviction::policy("lru").expect("a policy");
    let eviction = (lru.build)(&eviction::Settings::default()).expect("it needs nothing");
    let tier = Tier { backend, capacity_bytes: None, eviction };
    Store::open(vec![tier], Rules::default()).expect("files are found or left alone")
}

fn put(lane: &mut Lane, key: &Key, bytes: &[u8]) -> Outcome {
    let payload = Payload::Bytes(bytes.into());
    lane.put(Put { key: key.clone(), payload, tenant: 0, existing: Existing::Replace });
    lane.wait().expect("one was asked").outcome
}

/// Entries as they are written: nothing in them, something, a long name.
fn seeds() -> Vec<Vec<u8>> {
    let place = folder();
    let mut lane = open(place.path()).lane(1).expect("a lane");
    for (name, bytes) in [(&b"key"[..], 5), (b"", 0), (&[b'k'; 5000], 9000), (b"../../x", 4096)] {
        assert!(matches!(put(&mut lane, &Key::new(name), &vec![7; bytes]), Outcome::Stored(_)));
    }
    let shards = fs::read_dir(place.path().join("wavetank.store")).expect("it is there").flatten();
    let files = shards.flat_map(|shard| fs::read_dir(shard.path()).into_iter().flatten().flatten());
    let mut paths: Vec<_> = files
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|end| end == "kv"))
        .collect();
    paths.sort_by_key(|path| path.file_name().map(std::ffi::OsStr::to_owned));
    paths.iter().filter_map(|path| fs::read(path).ok()).collect()
}

/// Numbers of the header, or bytes anywhere.
fn changed(bytes: &[u8], other: &[u8], draw: &mut wavetank_model::Draw) -> Vec<u8> {
    use rand::RngExt;
    let mut bytes = bytes.to_vec();
    for _ in 0..draw.random_range(1..4_u32) {
        if bytes.len() >= LEAST && draw.random_bool(0.5) {
            let (at, far) = (draw.random_range(0..NUMBERS.len()), draw.random_range(0..FAR.len()));
            let at = NUMBERS[at];
            let width = if [16, 24, 32, 48].contains(&at) { 8 } else { 4 };
            bytes[at..at + width].copy_from_slice(&FAR[far].to_le_bytes()[..width]);
        } else if !bytes.is_empty() {
            blind(&mut bytes, other, b"WTENTRY1\x00\x10\xff", draw);
        }
        bytes.truncate(LONGEST);
    }
    bytes
}

fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    let mut number = [0; 8];
    number[..width].copy_from_slice(&bytes[at..at + width]);
    u64::from_le_bytes(number)
}

/// The same with a header whose checksum is right.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.len() >= LEAST {
        let len = (number(&bytes, 8, 4) as usize).min(bytes.len());
        bytes[CHECKSUM].fill(0);
        let own = checksum::of(&bytes[..len]);
        bytes[CHECKSUM].copy_from_slice(&own.to_le_bytes());
    }
    bytes
}

/// The name that a file with this header has, as far as it can be read.
fn name(bytes: &[u8]) -> String {
    let (mut key, mut version) = (&[][..], 1);
    if bytes.len() >= LEAST {
        let end = LEAST + number(bytes, 12, 4) as usize;
        (key, version) = (bytes.get(LEAST..end).unwrap_or_default(), number(bytes, 32, 8));
    }
    format!("{:032x}-{version:016x}.kv", Key::new(key).hash())
}

/// As it is, and as somebody would make it who wants it to be believed.
fn check(bytes: &[u8]) -> Met {
    let ways = [bytes.to_vec(), sealed(bytes)].map(|bytes| found(&bytes));
    match ways {
        [None, None] => Met::Refused("left alone".to_owned()),
        ways => Met::Read(format!("{ways:?}")),
    }
}

/// What a store serves of a file is what its header says, and the store goes on as before. Nothing where it
/// is no entry.
fn found(bytes: &[u8]) -> Option<&'static str> {
    let place = folder();
    fs::create_dir_all(place.path().join(FOLDER)).expect("there is room for a folder");
    fs::write(place.path().join(FOLDER).join(name(bytes)), bytes).expect("there is room for an input");
    let store = open(place.path());
    let recovery = store.recovery();
    let left = recovery.torn + recovery.foreign;
    assert_eq!(store.len() as u64 + left, 1, "an entry or none: {recovery:?}");
    let mut lane = store.lane(1).expect("a lane");
    let served = store.keys().pop().map(|key| served(&mut lane, &key, bytes));
    for key in [Key::new(&b"key"[..]), Key::new(&b"new"[..])] {
        assert!(matches!(put(&mut lane, &key, b"later"), Outcome::Stored(_)));
        lane.get(key, Want::Bytes);
        assert_eq!(lane.wait().and_then(|done| done.data).as_deref(), Some(&b"later"[..]));
    }
    drop((lane, store));
    // Of two entries of one key the later is found, whatever the first said of itself.
    let store = open(place.path());
    let mut lane = store.lane(1).expect("a lane");
    lane.get(Key::new(&b"key"[..]), Want::Bytes);
    assert_eq!(lane.wait().and_then(|done| done.data).as_deref(), Some(&b"later"[..]));
    served
}

fn served(lane: &mut Lane, key: &Key, file: &[u8]) -> &'static str {
    lane.get(key.clone(), Want::Bytes);
    let done = lane.wait().expect("one was asked");
    let Some(data) = done.data else { return "not served" };
    let start = number(file, 8, 4) as usize;
    assert!(file.get(start..start + data.len()) == Some(&data[..]), "other bytes than there are");
    assert_eq!(checksum::of(&data), number(file, 24, 8), "what is served was checked");
    "served"
}
