//! `faults`: the directory behind a cache server's small memory fails now and then, the same way for the
//! same seed: errors, torn writes, wrong bits, late answers. What is read is right or not there; after a
//! kill and without the faults, too.

use std::thread;
use std::time::Duration;

use serde_json::json;

use super::Entry;
use crate::torture::keys::{self, Load, Promise};
use crate::torture::round::{Round, words};
use crate::torture::server::Server;

pub(super) const ENTRY: Entry =
    Entry { name: "faults", about: "what is behind a cache server's memory fails now and then", run };

/// Directories of a round.
const CASES: u64 = 2;
/// What may go wrong, and how often in a thousand at most.
const KINDS: [(&str, u64); 8] = [
    ("read_error", 200),
    ("write_error", 200),
    ("create_error", 200),
    ("commit_error", 200),
    ("short_read", 100),
    ("torn_write", 100),
    ("bit_flip", 100),
    ("spike", 50),
];

fn run(round: &mut Round) -> Result<(), String> {
    (0..CASES).try_for_each(|_| suffer(round))
}

/// The tier behind memory with these things around it.
fn flags(medium: &str, around: &serde_json::Value) -> Vec<String> {
    let tier = json!({
        "type": medium,
        "location": "kv",
        "max_size_gb": 1,
        "wrappers": around,
    });
    // Memory is as small as it can be, so that what is read comes from behind it.
    let line = "--l1-size-gb 0.02 --l2-timeout-ms 20000 --drain-seconds 20 --l2-adapter";
    words(line).into_iter().chain([tier.to_string()]).collect()
}

/// A wrapper with drawn chances, and one outside of it that compares what is read with what was written.
fn faulty(round: &mut Round) -> serde_json::Value {
    let mut faults = json!({ "type": "fault", "seed": round.draw.below(1 << 32), "spike_ms": 20 });
    for (kind, most) in KINDS {
        if round.draw.chance(1, 2) {
            faults[kind] = json!(round.draw.below(most) as f64 / 1000.0);
        }
    }
    json!([faults, { "type": "verify" }])
}

fn suffer(round: &mut Round) -> Result<(), String> {
    round.remove(&["kv"]);
    let medium = round.draw.pick(&["direct", "buffered"]);
    let faulty = flags(medium, &faulty(round));
    let load = Load { clients: 3, keys: 60, promise: Promise::KeptOrGone, bytes: 30_000, deadlines: Some(4) };
    let mut keys = load.keys();
    let mut server = Server::start(round, &faulty)?;
    for is_killed in [true, true, false] {
        let moment = Duration::from_millis(round.draw.within(100, 700));
        let wait = |_: &mut Server| {
            thread::sleep(moment);
            Ok(())
        };
        let ((), done) = keys::work(&mut server, (load, &mut round.draw), &mut keys, wait)?;
        if is_killed {
            server.kill()?;
        } else {
            server.end()?;
        }
        // The device is repaired, and then fails again.
        server = Server::start(round, &flags(medium, &json!([])))?;
        round.cases += done + keys::check_after_kill(&server, load, &mut keys)?;
        server.end()?;
        server = Server::start(round, &faulty)?;
    }
    server.end()?;
    Ok(())
}
