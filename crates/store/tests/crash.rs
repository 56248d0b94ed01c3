//! kill -9 at random points, again and again in one directory: what was acknowledged is there, nothing
//! corrupt is served.
//!
//! Broken by: naming a file before its bytes are written, using a file again before its old name is gone.
//! That an entry of an earlier process is checked before it is served has a test of its own (`store`).

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use wavetank_cache::{Rules, eviction};
use wavetank_model::seeded;
use wavetank_store::backends::{self, Site};
use wavetank_store::{Existing, Key, Outcome, Payload, Put, Store, Tier, Want};

const KILLS: u64 = 200;
const KEYS: u64 = 40;
const DIRECTORY: &str = "WAVETANK_CRASH_DIRECTORY";
const SEED: &str = "WAVETANK_CRASH_SEED";

/// What a key may hold: seeds of payloads, and possibly nothing.
#[derive(Clone, Debug, Default, PartialEq)]
struct May {
    seeds: Vec<u64>,
    be_absent: bool,
}

fn open(directory: &Path) -> Arc<Store> {
    let site = Site { location: directory.display().to_string(), ..Site::default() };
    let backend = backends::open("direct", &site).unwrap();
    let eviction = (eviction::policy("lru").unwrap().build)(&eviction::Settings::default()).unwrap();
    Store::open(vec![Tier { backend, capacity_bytes: None, eviction }], Rules::default()).unwrap()
}

fn key(number: u64) -> Key {
    Key::from(format!("crash/{number}").as_str())
}

/// Mostly small entries, some of several pieces; the seed says which.
fn payload(seed: u64) -> Payload {
    let bytes = if seed.is_multiple_of(8) { 1 + seed % (3 << 20) } else { 1 + seed % 150_000 };
    Payload::Seeded { seed, bytes }
}

/// The process to be killed. It says what it is about to do and what was acknowledged.
#[test]
#[ignore = "the child of `acknowledged_entries_survive_kill_9`"]
fn child() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let mut draw = seeded(std::env::var(SEED).unwrap().parse().unwrap(), "crash");
    let store = open(Path::new(&directory));
    let mut lane = store.lane(4).unwrap();
    let mut asked = HashMap::new();
    let mut busy = [false; KEYS as usize];
    let say = |line: String| std::io::stderr().write_all(line.as_bytes()).unwrap();
    loop {
        let number = draw.random_range(0..KEYS);
        if !std::mem::replace(&mut busy[number as usize], true) {
            if draw.random_range(0..4) == 0 {
                say(format!("remove {number} 0\n"));
                asked.insert(lane.remove(key(number)), (number, 0));
            } else {
                let seed = draw.random_range(1..u64::MAX);
                say(format!("put {number} {seed}\n"));
                let (key, payload, existing) = (key(number), payload(seed), Existing::Replace);
                asked.insert(lane.put(Put { key, payload, tenant: 0, existing }), (number, seed));
            }
        }
        while lane.pending() >= 6 {
            let done = lane.wait().unwrap();
            let (number, seed) = asked.remove(&done.op).unwrap();
            busy[number as usize] = false;
            match done.outcome {
                Outcome::Stored(_) => say(format!("stored {number} {seed}\n")),
                Outcome::Removed(_) => say(format!("removed {number} 0\n")),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Runs a child and kills it after a random time; gives what it said.
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
    let pause = seeded(seed, "kill").random_range(0..40_000);
    std::thread::sleep(Duration::from_micros(pause));
    child.kill().unwrap();
    said.extend(lines.map_while(Result::ok));
    child.wait().unwrap();
    said
}

fn follow(model: &mut HashMap<u64, May>, said: &[String]) -> u64 {
    let mut acknowledged = 0;
    for line in said {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, number, seed] = words.as_slice() else { panic!("the child says: {line}") };
        // The last line may be cut short by the kill.
        let (Ok(number), Ok(seed)) = (number.parse(), seed.parse()) else { continue };
        let may = model.entry(number).or_insert(May { seeds: Vec::new(), be_absent: true });
        match *what {
            "put" => may.seeds.push(seed),
            "remove" => may.be_absent = true,
            "stored" => *may = May { seeds: vec![seed], be_absent: false },
            "removed" => *may = May { seeds: Vec::new(), be_absent: true },
            _ => panic!("the child says: {line}"),
        }
        acknowledged += u64::from(*what == "stored");
    }
    acknowledged
}

/// Every key holds what it may hold; what it does hold is all it may from here on.
fn check(directory: &Path, model: &mut HashMap<u64, May>) {
    let store = open(directory);
    let mut lane = store.lane(4).unwrap();
    for number in 0..KEYS {
        lane.get(key(number), Want::Bytes);
        let done = lane.wait().unwrap();
        let may = model.get(&number).cloned().unwrap_or(May { seeds: Vec::new(), be_absent: true });
        let found = match done.outcome {
            Outcome::Hit(_) => {
                let data = done.data.unwrap();
                let matches = |seed: &&u64| {
                    let mut expected = vec![0; payload(**seed).bytes() as usize];
                    payload(**seed).fill(0, &mut expected);
                    expected == data
                };
                Some(*may.seeds.iter().find(matches).unwrap_or_else(|| panic!("key {number}: other bytes")))
            }
            Outcome::Missed => {
                assert!(may.be_absent, "key {number} was acknowledged and is lost: {may:?}");
                None
            }
            other => panic!("key {number}: {other:?}"),
        };
        model.insert(number, May { seeds: found.into_iter().collect(), be_absent: found.is_none() });
    }
}

#[test]
fn acknowledged_entries_survive_kill_9() {
    let directory = tempfile::tempdir().unwrap();
    let mut model = HashMap::new();
    let mut acknowledged = 0;
    for seed in 0..KILLS {
        let said = run_and_kill(directory.path(), seed);
        acknowledged += follow(&mut model, &said);
        check(directory.path(), &mut model);
    }
    assert!(acknowledged > KILLS, "{acknowledged} writes were acknowledged before the kills");
    println!("{KILLS} kills, {acknowledged} acknowledged writes");
}
