//! kill -9 at random points, again and again on one directory: what had reached the tier behind is there
//! after a restart, and nothing is served but the last value a name had, or one that was on its way.
//!
//! Broken by: a copy of an older value that is written after a newer one, a tier that is emptied when it is
//! opened, entries of an earlier process that are served unchecked, names that are lost on the way.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use rand::RngExt;
use wavetank_calls::{
    AdapterPlan, EvictionPlan, Got, Keeping, L1Plan, LoadPolicy, Plan, QuotaPlan, SetManner, Storage,
    StorageOptions, StorePolicy,
};
use wavetank_model::{Nanos, seeded};
use wavetank_store::payload;

const KILLS: u64 = 40;
const NAMES: u64 = 24;
const DIRECTORY: &str = "WAVETANK_CRASH_DIRECTORY";
const SEED: &str = "WAVETANK_CRASH_SEED";

/// What a name may hold: seeds of values, and possibly nothing.
#[derive(Clone, Debug, Default)]
struct May {
    seeds: Vec<u64>,
    be_absent: bool,
}

/// Memory for few objects, and a directory behind it.
fn open(directory: &Path) -> Storage {
    let adapter = format!(r#"{{"type": "direct", "location": "{}"}}"#, directory.display());
    let plan = Plan {
        l1: L1Plan {
            capacity_bytes: Some(64 << 20),
            align_bytes: 4096,
            write_ttl: Nanos::from_seconds(600.0),
            read_ttl: Nanos::from_seconds(300.0),
            eviction: EvictionPlan::typed("lru", None, None, [""; 3]).unwrap(),
            quotas: QuotaPlan::default(),
        },
        adapters: vec![AdapterPlan::typed(&adapter).unwrap()],
        store_delay: Nanos::ZERO,
        store_policy: StorePolicy::Default,
        load_policy: LoadPolicy::Default,
    };
    let options = StorageOptions { keeping: Keeping::All, ..StorageOptions::default() };
    Storage::open(&plan, &options, None).unwrap()
}

fn name(number: u64) -> Vec<u8> {
    format!("m@01000100@0@{number:08x}").into_bytes()
}

fn content(seed: u64) -> Vec<u8> {
    let bytes = if seed.is_multiple_of(8) { 1 + seed % (3 << 20) } else { seed % 150_000 };
    let mut content = vec![0; bytes as usize];
    payload::fill(seed, 0, &mut content);
    content
}

/// The process to be killed. It says what it is about to do, and when all of it has reached the tier behind.
#[test]
#[ignore = "the child of `what_reached_the_tier_behind_survives_kill_9`"]
fn child() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let mut draw = seeded(std::env::var(SEED).unwrap().parse().unwrap(), "crash");
    let storage = open(Path::new(&directory));
    let say = |line: String| std::io::stderr().write_all(line.as_bytes()).unwrap();
    loop {
        let number = draw.random_range(0..NAMES);
        match draw.random_range(0..12) {
            0 => {
                storage.settle();
                say("settled 0 0\n".to_owned());
            }
            1 | 2 => {
                say(format!("remove {number} 0\n"));
                storage.remove(&name(number));
            }
            _ => {
                let seed = draw.random_range(1..u64::MAX);
                say(format!("put {number} {seed}\n"));
                let content = content(seed);
                let mut blank = storage.room(content.len() as u64).unwrap();
                blank.bytes_mut().copy_from_slice(&content);
                storage.set(&name(number), blank, SetManner::default());
            }
        }
    }
}

fn run_and_kill(directory: &Path, seed: u64) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env(SEED, seed.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said: Vec<String> = lines.next().into_iter().map(Result::unwrap).collect();
    std::thread::sleep(Duration::from_micros(seeded(seed, "kill").random_range(0..60_000)));
    child.kill().unwrap();
    said.extend(lines.map_while(Result::ok));
    child.wait().unwrap();
    said
}

/// What names may hold after what a child said; how often all of it was settled.
fn follow(model: &mut HashMap<u64, May>, said: &[String]) -> u64 {
    let mut settled = 0;
    for line in said {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, number, seed] = words.as_slice() else { panic!("the child says: {line}") };
        // The last line may be cut short by the kill.
        let (Ok(number), Ok(seed)) = (number.parse::<u64>(), seed.parse::<u64>()) else { continue };
        let may = model.entry(number).or_default();
        match *what {
            "put" => {
                may.seeds.push(seed);
                may.be_absent = true;
            }
            "remove" => {
                may.seeds.push(0);
                may.be_absent = true;
            }
            "settled" => {
                settled += 1;
                for may in model.values_mut() {
                    may.seeds = may.seeds.last().copied().into_iter().collect();
                    may.be_absent = may.seeds.last().is_none_or(|last| *last == 0);
                }
            }
            _ => panic!("the child says: {line}"),
        }
    }
    settled
}

fn read(storage: &Storage, name: &[u8]) -> Option<Vec<u8>> {
    match storage.get(name) {
        Got::Here(_) => panic!("nothing is in memory after a restart"),
        Got::Absent => None,
        Got::Behind => {
            let (sender, got) = channel();
            storage.fetch(name, Box::new(move |object| drop(sender.send(object))));
            Some(got.recv().unwrap().expect("what was found can be read").to_vec())
        }
    }
}

/// Every name holds what it may hold; what it does hold is all it may from here on.
fn check(directory: &Path, model: &mut HashMap<u64, May>) -> u64 {
    let storage = open(directory);
    for number in 0..NAMES {
        let may = model.entry(number).or_insert(May { seeds: Vec::new(), be_absent: true });
        let found = read(&storage, &name(number)).map(|bytes| {
            let is_it = |seed: &&u64| **seed > 0 && content(**seed) == bytes;
            *may.seeds.iter().find(is_it).unwrap_or_else(|| panic!("{number}: an old value, or other bytes"))
        });
        assert!(found.is_some() || may.be_absent, "{number} had settled and is lost: {may:?}");
        *may = May { seeds: found.into_iter().collect(), be_absent: found.is_none() };
    }
    let recovered = storage.status().tiers[1].recovered;
    storage.close().unwrap();
    recovered
}

#[test]
fn what_reached_the_tier_behind_survives_kill_9() {
    let directory = tempfile::tempdir().unwrap();
    let (mut model, mut settled, mut recovered) = (HashMap::new(), 0, 0);
    for seed in 0..KILLS {
        let said = run_and_kill(directory.path(), seed);
        settled += follow(&mut model, &said);
        recovered += check(directory.path(), &mut model);
    }
    assert!(settled > KILLS / 2 && recovered > KILLS, "settled {settled} times, {recovered} recovered");
}
