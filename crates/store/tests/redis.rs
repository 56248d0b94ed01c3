//! The `redis` backend against a real `redis-server`; skipped where that is not installed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod peers;

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use peers::server::{Peer, at_redis, installed, redis, redis_command, site};
use peers::{Lane, all, check_life, open, recovered, refusal, seeded};
use wavetank_store::Key;
use wavetank_store::buffer::PIECE;

const MIB: u64 = PIECE as u64;

/// Sends one line, and gives what comes back at once.
fn tell(peer: &Peer, line: &str) -> String {
    let mut stream = TcpStream::connect(peer.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    let mut answer = vec![0; 65536];
    let len = stream.read(&mut answer).unwrap();
    String::from_utf8_lossy(&answer[..len]).trim().to_owned()
}

#[test]
fn entries_live_and_leave_nothing_behind() {
    let Some((peer, _)) = redis() else { return };
    tell(&peer, "SET wavetank:notes mine");
    tell(&peer, "LPUSH wavetank:0123456789abcdef0123456789abcdef:0000000000000001 mine");
    tell(&peer, "SET other mine");
    check_life("redis", &at_redis(&peer), 2);
    assert_eq!(tell(&peer, "DBSIZE"), ":3", "foreign keys only");
}

#[test]
fn what_a_killed_process_left_is_deleted_and_damage_is_never_served() {
    let Some((peer, _)) = redis() else { return };
    let backend = open("redis", &at_redis(&peer));
    let mut lane = Lane::new(&backend);
    let kept = lane.put(&Key::from("kept"), &seeded(1, 2 * MIB)).unwrap();
    let torn = lane.put(&Key::from("torn"), &seeded(2, 3 * MIB)).unwrap();
    let begun = lane.create(&Key::from("begun"), 5 * MIB).unwrap();
    let e = lane.commit(std::sync::Arc::clone(&begun)).err().unwrap();
    assert_eq!(e.kind(), io::ErrorKind::InvalidInput, "nothing is written: {e}");
    lane.write(&begun, &seeded(3, 5 * MIB)).unwrap();
    // A killed process does not clean up.
    std::mem::forget(begun);
    let names = tell(&peer, &format!("KEYS wavetank:{:032x}:*:1", Key::from("torn").hash()));
    tell(&peer, &format!("DEL {}", names.lines().last().unwrap()));
    drop((kept, torn));
    let (found, counts) = recovered(&open("redis", &at_redis(&peer)));
    assert_eq!((counts.torn, counts.foreign, found.len()), (2, 0, 1));
    assert_eq!(tell(&peer, "DBSIZE"), ":3", "a manifest and two pieces");
}

#[test]
fn readers_finish_after_a_removal() {
    let Some((peer, _)) = redis() else { return };
    let backend = open("redis", &at_redis(&peer));
    let mut lane = Lane::new(&backend);
    let payload = seeded(1, 2 * MIB + 1);
    let held = lane.put(&Key::from("read"), &payload).unwrap();
    let reader = std::sync::Arc::clone(&held);
    lane.remove(held).unwrap();
    assert_eq!(tell(&peer, "DBSIZE"), ":3", "no manifest");
    assert!(lane.read(&reader, payload.bytes()).unwrap() == all(&payload));
    drop(reader);
    assert_eq!(tell(&peer, "DBSIZE"), ":0");
}

#[test]
fn a_server_that_goes_away_is_an_error_and_one_that_comes_back_is_used() {
    let Some((peer, program)) = redis() else { return };
    let backend = open("redis", &at_redis(&peer));
    let mut lane = Lane::new(&backend);
    let held = lane.put(&Key::from("lost"), &seeded(1, 4 * MIB)).unwrap();
    let half = lane.create(&Key::from("half"), 4 * MIB).unwrap();
    peer.signal("-STOP");
    let start = Instant::now();
    let e = lane.read(&held, MIB).unwrap_err();
    assert_eq!(e.kind(), io::ErrorKind::TimedOut, "{e}");
    assert!(lane.write(&half, &seeded(2, 4 * MIB)).is_err());
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    peer.signal("-CONT");
    assert!(lane.read(&held, 4 * MIB).unwrap() == all(&seeded(1, 4 * MIB)), "the connections are in step");
    let peer = peer.restart(redis_command(program, None));
    let e = lane.read(&held, MIB).unwrap_err();
    assert_eq!(e.kind(), io::ErrorKind::NotFound, "it kept nothing: {e}");
    let again = lane.put(&Key::from("again"), &seeded(3, 2 * MIB)).unwrap();
    assert!(lane.read(&again, 2 * MIB).unwrap() == all(&seeded(3, 2 * MIB)));
    drop(peer);
    let start = Instant::now();
    let e = lane.read(&again, MIB).unwrap_err();
    assert_eq!(e.kind(), io::ErrorKind::ConnectionRefused, "{e}");
    assert!(lane.put(&Key::from("never"), &seeded(4, MIB)).is_err());
    assert!(lane.remove(again).is_err());
    drop((half, lane));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert!(backend.notes()[0].contains("could not be deleted"), "{:?}", backend.notes());
}

#[test]
fn a_full_server_says_so_and_an_evicting_one_is_noted() {
    let Some((peer, _)) = redis() else { return };
    tell(&peer, "CONFIG SET maxmemory 8mb");
    let backend = open("redis", &at_redis(&peer));
    let e = Lane::new(&backend).put(&Key::from("big"), &seeded(1, 16 * MIB)).err().unwrap();
    assert_eq!(e.kind(), io::ErrorKind::StorageFull, "{e}");
    tell(&peer, "CONFIG SET maxmemory-policy allkeys-lru");
    assert!(open("redis", &at_redis(&peer)).notes()[0].contains("allkeys-lru"));
}

#[test]
fn passwords_open_and_are_never_printed() {
    let Some(program) = installed("redis-server", None) else { return };
    let peer = Peer::start(redis_command(program, Some("hunter2")));
    let file = |text: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    };
    let location = format!("redis://127.0.0.1:{}", peer.port);
    let (right, wrong) = (file("hunter2\n"), file("hunter3"));
    let with = |file: &Path| site(location.clone(), &[("password_file", file.to_str().unwrap())]);
    let backend = open("redis", &with(right.path()));
    let held = Lane::new(&backend).put(&Key::from("key"), &seeded(1, 10)).unwrap();
    assert!(Lane::new(&backend).read(&held, 10).unwrap() == all(&seeded(1, 10)));
    for site in [
        with(wrong.path()),
        site(location.clone(), &[]),
        site(format!("redis://:hunter2@127.0.0.1:{}", peer.port), &[]),
        site("rediss://:hunter2@127.0.0.1".to_owned(), &[]),
        site(location.clone(), &[("prefix", "a:*")]),
    ] {
        let told = refusal("redis", &site);
        assert!(!told.contains("hunter"), "{told}");
        println!("{told}");
    }
    assert!(refusal("redis", &with(wrong.path())).contains("password"));
}
