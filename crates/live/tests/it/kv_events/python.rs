//! A subscriber with pyzmq and msgspec. Needs the Python environment that `cargo xtask peers` makes;
//! `WAVETANK_PYTHON` says where it is.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, TryRecvError};
use std::thread;

use wavetank_live::kv_events::Encoding;

use super::traffic::{Mock, Setting};

/// The interpreter with the packages; without it a test is skipped, unless that is forbidden.
fn python() -> Option<String> {
    let found = std::env::var("WAVETANK_PYTHON").ok();
    if found.is_none() {
        assert!(std::env::var_os("WAVETANK_REQUIRE_PEERS").is_none(), "WAVETANK_PYTHON is not set");
        let told =
            b"SKIPPED: `cargo xtask peers` installs the subscriber, WAVETANK_PYTHON says where it is\n";
        std::io::stderr().write_all(told).unwrap();
    }
    found
}

fn follow(setting: &Setting, shape: &str) {
    let Some(python) = python() else { return };
    let mock = Mock::start(setting);
    let mut command = Command::new(python);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/kv_events/subscriber.py")).arg(shape);
    for (events, replay) in mock.endpoints.events.iter().zip(&mock.endpoints.replay) {
        command.args([events, replay]);
    }
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let (told, heard) = mpsc::channel();
    let reading = thread::spawn(move || lines.for_each(|line| told.send(line).unwrap()));
    let view = mock.serve_while(|| match heard.try_recv() {
        Ok(line) => line == "following",
        Err(problem) => {
            assert_eq!(problem, TryRecvError::Empty, "it died");
            false
        }
    });
    reading.join().unwrap();
    let mut held: [BTreeSet<u64>; 2] = Default::default();
    for line in heard {
        let (worker, hash) = line.split_once(' ').unwrap();
        held[worker.parse::<usize>().unwrap()].insert(hash.parse().unwrap());
    }
    assert!(child.wait().unwrap().success());
    for worker in 0..2 {
        assert_eq!(held[worker as usize], view.held_by(worker).collect::<BTreeSet<_>>(), "worker {worker}");
    }
}

/// Broken by: frames or types that pyzmq and msgspec, with the structs of vLLM's example, do not take.
#[test]
fn a_subscriber_of_todays_vllm_follows() {
    follow(&Setting::default(), "map");
}

/// Broken by: the same with the structs of vLLM before it wrote maps.
#[test]
fn a_subscriber_of_earlier_vllm_follows() {
    follow(&Setting { encoding: Encoding::Array, ..Setting::default() }, "array");
}
