//! `wavetank serve` killed under load and started again on the same directory: what it serves then was
//! written by somebody, whole.

use std::collections::BTreeMap;
use std::io;
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::sandbox::Sandbox;
use crate::serve_client::{Redis, Server};

/// Clients that write while the server is killed.
const CLIENTS: u32 = 4;
/// Keys of each.
const KEYS: u32 = 64;
/// Kills of one directory.
const KILLS: u32 = 2;

/// When a key is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Once, before the load.
    Steady,
    /// Again and again.
    Busy,
    /// Once, under the load before this kill (or the end).
    Fresh(u32),
}

impl Kind {
    fn of(key: u32) -> Self {
        match key % KEYS {
            0..8 => Self::Steady,
            8..16 => Self::Busy,
            within => Self::Fresh((within - 16) * (KILLS + 1) / (KEYS - 16)),
        }
    }
}

/// What a key may hold.
#[derive(Clone, Debug, Default)]
struct May {
    /// The last version that was sent, and the last one that was acknowledged.
    sent: u32,
    acknowledged: u32,
    /// What it held when the server was last started; 0 for nothing. No other of before may come back.
    held: u32,
    /// The last version that was sent before that.
    before: u32,
}

/// By number of the key.
type Model = BTreeMap<u32, May>;

fn name(key: u32) -> Vec<u8> {
    format!("m@01000100@0@{key:08x}").into_bytes()
}

/// Bytes that no other key and no other version of it has, at any place of them; some come in one piece with
/// their command and some do not.
fn content(key: u32, version: u32) -> Vec<u8> {
    let seed = u64::from(key) << 32 | u64::from(version);
    let words = 1 + mixed(seed) % if key.is_multiple_of(3) { 500 } else { 5_000 };
    [seed]
        .into_iter()
        .chain((0..words).map(|place| mixed(seed ^ place << 20)))
        .flat_map(u64::to_le_bytes)
        .collect()
}

/// A step of SplitMix64 (Steele et al., 2014).
fn mixed(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Writes the next version of `key`.
fn write(client: &mut Redis, key: u32, may: &mut May) -> io::Result<()> {
    may.sent += 1;
    let told = client.ask(&[b"SET", &name(key), &content(key, may.sent)]);
    let is_refused = told.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Other);
    assert!(!is_refused, "{key}: {told:?}");
    assert_eq!(told?.as_deref(), Some(&b"OK"[..]));
    may.acknowledged = may.sent;
    Ok(())
}

/// Writes until the server is gone: all busy keys, and a fresh one, again and again.
fn load(mut client: Redis, mut keys: Model, kill: u32) -> Model {
    let of = |kind: Kind| keys.keys().copied().filter(|key| Kind::of(*key) == kind).collect::<Vec<u32>>();
    let (busy, mut fresh) = (of(Kind::Busy), of(Kind::Fresh(kill)));
    loop {
        for key in busy.iter().copied().chain(fresh.pop()) {
            let may = keys.get_mut(&key).expect("a key");
            if write(&mut client, key, may).is_err() {
                return keys;
            }
        }
    }
}

/// Clients write, each its own keys, until `signal` ends the server amid it.
fn load_all(server: &Server, model: &Model, (kill, signal): (u32, &str)) -> Model {
    let part = |client: u32| {
        let keys = model.iter().filter(|(key, _)| **key / KEYS == client);
        keys.map(|(key, may)| (*key, may.clone())).collect::<Model>()
    };
    let copied = || server.status()["tiers"][1]["copied"].as_u64().expect("a count");
    let before = copied();
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| (server.redis(), part(client)))
            .map(|(client, keys)| scope.spawn(move || load(client, keys, kill)))
            .collect();
        while copied() < before + 50 {
            thread::sleep(Duration::from_millis(1));
        }
        server.signal(signal);
        clients.into_iter().flat_map(|client| client.join().expect("a client")).collect()
    })
}

/// Waits until nothing is on its way behind memory, and nothing has been left out.
fn settle(server: &Server) {
    loop {
        let status = server.status();
        let disk = &status["tiers"][1];
        assert_eq!((&disk["skipped"], &disk["dropped"], &disk["failed"]), (&json!(0), &json!(0), &json!(0)));
        if status["in_flight"]["l2_stores"] == 0 && disk["entries"] == status["entries"] {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Every key holds one of the versions that it may hold, whole, or nothing.
fn check(server: &Server, model: &mut Model) {
    let mut client = server.redis();
    for (key, may) in model.iter_mut() {
        let found = client.ask(&[b"GET", &name(*key)]).expect("a reply");
        may.held = found.map_or(0, |bytes| {
            let version = bytes.first_chunk().map(|first| u64::from_le_bytes(*first) as u32);
            let version = version.filter(|version| content(*key, *version) == bytes);
            let version = version.unwrap_or_else(|| panic!("{key}: {} bytes of no version", bytes.len()));
            let is_allowed = version == may.held || (may.before + 1..=may.sent).contains(&version);
            assert!(is_allowed, "{key}: version {version} is back, {may:?}");
            version
        });
        may.before = may.sent;
    }
}

/// Kills a server behind whose memory is `medium`, again and again, and then ends it as it should be.
fn survive(medium: &str) {
    let sandbox = Sandbox::on_disk();
    // Everything fits: a quarter of memory holds all that can be on its way.
    let flags = format!("--l1-size-gb 1 --l2 {medium}:kv:256MiB --drain-seconds 20");
    let mut model: Model = (0..CLIENTS * KEYS).map(|key| (key, May::default())).collect();
    let mut server = Server::start(&sandbox, &flags);
    let mut client = server.redis();
    for (key, may) in model.iter_mut().filter(|(key, _)| Kind::of(**key) == Kind::Steady) {
        write(&mut client, *key, may).expect("a reply");
    }
    settle(&server);
    for kill in 0..KILLS {
        model = load_all(&server, &model, (kill, "-KILL"));
        assert_eq!(server.finish().code, None, "it did not end by itself");
        server = Server::start(&sandbox, &flags);
        check(&server, &mut model);
        let held = model.iter().filter(|(_, may)| may.held > 0).map(|(key, _)| Kind::of(*key));
        let there = |wanted: Kind| held.clone().filter(|kind| *kind == wanted).count() as u32;
        assert_eq!(there(Kind::Steady), CLIENTS * 8, "{medium}, kill {kill}: what had arrived is there");
        assert!(there(Kind::Fresh(kill)) > 0, "{medium}, kill {kill}: something of the load had arrived");
    }
    model = load_all(&server, &model, (KILLS, "-TERM"));
    assert_eq!(server.finish().code, Some(0));
    let server = Server::start(&sandbox, &flags);
    let ended = model.clone();
    check(&server, &mut model);
    for (key, may) in &ended {
        // What a kill took before is gone.
        let least = if may.acknowledged > may.before { may.acknowledged } else { may.held };
        let held = model[key].held;
        assert!(held >= least, "{medium}, {key}: an acknowledged version is gone, {held} and {may:?}");
    }
    let there = model.values().filter(|may| may.held > 0).count();
    let disk = &server.status()["tiers"][1];
    assert_eq!((&disk["recovery"]["recovered"], &disk["recovery"]["torn"]), (&json!(there), &json!(0)));
}

/// Broken by: a file that is served before all of it was written, a copy of an earlier version that is
/// written after a later one, an entry that is deleted at the start, or copies that an orderly end does not
/// wait for.
#[test]
fn what_a_killed_server_serves_again_was_written_whole() {
    survive("direct");
    survive("buffered");
}
