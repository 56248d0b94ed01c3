//! The door where subscribers ask for KV events they missed: ZeroMQ's frames, and whatever else comes in.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use rand::RngExt;
use wavetank_model::Draw;

use super::Entry;
use super::mock::MOCK;
use crate::blind::{LONGEST, blind};
use crate::said::Met;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "kv_events",
    about: "questions of subscribers to KV events, as ZeroMQ frames",
    samples: &[],
    seeds,
    changed,
    check,
    most_memory: 512 << 20,
};

/// Bytes that mean something: flags and lengths of frames.
const TELLING: &[u8] = &[0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x08, 0x40, 0x7f, 0x80, 0xff];
/// The sequence number after the last batch.
const END: [u8; 9] = [8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
const PATIENCE: Duration = Duration::from_secs(5);

/// How a client introduces itself: version 3.0, no security, a DEALER.
fn greeting() -> Vec<u8> {
    let mut bytes = vec![0; 64];
    (bytes[0], bytes[9], bytes[10]) = (0xff, 0x7f, 3);
    bytes[12..16].copy_from_slice(b"NULL");
    bytes.extend(b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER");
    bytes
}

/// Asks for everything from `first` on.
fn question(first: u64) -> Vec<u8> {
    [&b"\x01\x00\x00\x08"[..], &first.to_be_bytes()].concat()
}

fn seeds() -> Vec<Vec<u8>> {
    let long = b"\x01\x00\x02\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x01";
    let parts: [Vec<u8>; 4] =
        [Vec::new(), question(0), [question(0), question(u64::MAX)].concat(), long.to_vec()];
    parts.map(|part| [greeting(), part].concat()).to_vec()
}

fn changed(bytes: &[u8], other: &[u8], draw: &mut Draw) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 << draw.random_range(0..4_u32) {
        if bytes.is_empty() {
            bytes.push(0xff);
        }
        blind(&mut bytes, other, TELLING, draw);
        bytes.truncate(LONGEST);
    }
    bytes
}

/// Whatever is sent, the next one who asks is answered.
fn check(bytes: &[u8]) -> Met {
    let answer = exchanged(bytes, Manner::Leaves);
    let asked = exchanged(&[greeting(), question(0)].concat(), Manner::Waits);
    assert!(is_ended(&asked), "nobody is answered any more: {asked:?}");
    Met::Read(format!("{:?} {}", answer.len().checked_ilog2(), is_ended(&answer)))
}

fn is_ended(answer: &[u8]) -> bool {
    answer.windows(END.len()).any(|part| part == END)
}

/// How long a client listens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Until nothing came for a moment.
    Leaves,
    /// Until it has its answer.
    Waits,
}

/// What comes back.
fn exchanged(bytes: &[u8], manner: Manner) -> Vec<u8> {
    let door = MOCK.kv_events.replay[0].trim_start_matches("tcp://").to_owned();
    let mut socket = TcpStream::connect(door).expect("it listens");
    socket.set_read_timeout(Some(Duration::from_millis(10))).expect("sockets have timeouts");
    // It may hang up before the end.
    let _ = socket.write_all(bytes);
    if manner == Manner::Leaves {
        let _ = socket.shutdown(Shutdown::Write);
    }
    let (mut answer, mut part, started) = (Vec::new(), [0; 4096], Instant::now());
    while started.elapsed() < PATIENCE && !(manner == Manner::Waits && is_ended(&answer)) {
        match socket.read(&mut part) {
            Ok(0) => break,
            Ok(length) => answer.extend_from_slice(&part[..length]),
            Err(_) if manner == Manner::Waits => {}
            Err(_) => break,
        }
    }
    answer
}
