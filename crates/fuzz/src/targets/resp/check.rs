//! What must hold of any bytes that a client sends.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use wavetank_calls::{
    EvictionPlan, L1Plan, LoadPolicy, Plan, QuotaPlan, Storage, StorageOptions, StorePolicy,
};
use wavetank_model::Nanos;
use wavetank_serve::resp::{Arg, Door, Fault, Limits, Parser, Settings, Step};
use wavetank_serve::{Cache, Counters};
use wavetank_telemetry::Bus;

use crate::said::Met;

/// A command: arguments that are there, and the lengths of those that were announced.
type Command = Vec<Result<Vec<u8>, u64>>;

/// Sends `bytes` whatever they are. Commands do not depend on how bytes are cut; a server answers with whole
/// replies, ends the connection, and keeps nothing. Tells what was met.
pub(super) fn check(bytes: &[u8]) -> Met {
    let limits = Limits { announced_bytes: 64, ..Limits::default() };
    let (whole, fault) = commands(bytes, usize::MAX, limits);
    for size in [1, 7, 1000] {
        assert_eq!(commands(bytes, size, limits), (whole.clone(), fault.clone()), "in parts of {size}");
    }
    let kinds = answered(bytes);
    Met::Read(format!("{:?} {fault:?} {}", whole.len().checked_ilog2(), sketch(&kinds)))
}

/// Reads commands from parts of `size`.
fn commands(bytes: &[u8], size: usize, limits: Limits) -> (Vec<Command>, Option<Fault>) {
    let mut parser = Parser::new(limits);
    let (mut inbox, mut found, mut rest) = (Vec::new(), Vec::new(), bytes);
    loop {
        match parser.step(&mut inbox) {
            Err(fault) => return (found, Some(fault)),
            Ok(Step::More) => {
                if parser.is_between() {
                    inbox.drain(..parser.take());
                }
                if rest.is_empty() {
                    return (found, None);
                }
                let (part, after) = rest.split_at(size.min(rest.len()));
                inbox.extend(part);
                rest = after;
            }
            Ok(Step::Announced(length)) => {
                let here = (inbox.len() - parser.position()).min(length as usize);
                inbox.drain(parser.position()..parser.position() + here);
                let missing = length as usize - here;
                if missing > rest.len() {
                    return (found, None);
                }
                rest = &rest[missing..];
                parser.elsewhere();
            }
            Ok(Step::Command) => {
                let arg = |arg: &Arg| match arg {
                    Arg::Here(range) => Ok(inbox[range.clone()].to_vec()),
                    Arg::Elsewhere(length) => Err(*length),
                };
                found.push(parser.args().iter().map(arg).collect());
                inbox.drain(..parser.take());
            }
        }
    }
}

/// A server with 8 MiB, of which connections have 4.
static SERVER: LazyLock<Door> = LazyLock::new(|| {
    let eviction = EvictionPlan { policy: "lru".to_owned(), trigger_watermark: 0.8, eviction_ratio: 0.2 };
    let (hour, capacity_bytes) = (Nanos(3_600_000_000_000), Some(8 << 20));
    let quotas = QuotaPlan::default();
    let plan = Plan {
        l1: L1Plan { capacity_bytes, align_bytes: 1, write_ttl: hour, read_ttl: hour, eviction, quotas },
        adapters: Vec::new(),
        store_delay: Nanos(0),
        store_policy: StorePolicy::Default,
        load_policy: LoadPolicy::Retain,
    };
    let storage = Storage::open(&plan, &StorageOptions::default(), None).expect("memory can be had");
    let (counters, patience) = (Counters::default(), Duration::from_secs(1));
    let settings = Settings {
        listen: ([127, 0, 0, 1], 0).into(),
        threads: 1,
        connection_bytes: 1 << 20,
        memory_bytes: 4 << 20,
        l1_bytes: capacity_bytes,
        is_flush_enabled: true,
        ..Settings::default()
    };
    let cache = Cache { storage, counters, bus: Bus::off(), patience };
    Door::open(settings, Arc::new(cache)).expect("a port is free")
});

/// All that a server replies.
fn answered(bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(SERVER.address()).expect("it listens");
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("sockets have timeouts");
    let mut writer = socket.try_clone().expect("sockets can be had twice");
    let sent = bytes.to_vec();
    // Apart, for a server that is not read from does not read.
    let sender = thread::spawn(move || {
        // It may hang up before the end.
        let _ = writer.write_all(&sent);
        let _ = writer.shutdown(Shutdown::Write);
    });
    let mut replies = Vec::new();
    match socket.read_to_end(&mut replies) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("no end: {error}"),
        _ => {}
    }
    sender.join().expect("nothing in it panics");
    drop(socket);
    let mut at = 0;
    while at < replies.len() {
        at = skip(&replies, at).expect("replies are whole");
    }
    let mut tries = 0;
    while SERVER.status().connections > 0 || SERVER.status().memory_bytes > 0 {
        tries += 1;
        assert!(tries < 10_000, "something is kept: {:?}", SERVER.status());
        thread::sleep(Duration::from_micros(100));
    }
    replies
}

/// Where the reply at `at` ends.
fn skip(replies: &[u8], at: usize) -> Option<usize> {
    let end = at + replies[at..].windows(2).position(|pair| pair == b"\r\n")? + 2;
    let number = || std::str::from_utf8(&replies[at + 1..end - 2]).ok()?.parse::<i64>().ok();
    match replies[at] {
        b'+' | b'-' | b':' | b'_' => Some(end),
        b'$' | b'=' => match number()? {
            -1 => Some(end),
            length => Some(end + usize::try_from(length).ok()? + 2).filter(|end| *end <= replies.len()),
        },
        kind @ (b'*' | b'~' | b'%') => {
            let count = number()? * if kind == b'%' { 2 } else { 1 };
            (0..count).try_fold(end, |at, _| (at < replies.len()).then(|| skip(replies, at))?)
        }
        _ => None,
    }
}

/// Replies by what they are, without numbers and values.
fn sketch(replies: &[u8]) -> String {
    let mut seen = std::collections::BTreeSet::new();
    for line in replies.split(|byte| *byte == b'\n') {
        if let Some(kind) = line.first().filter(|kind| b"+-:$*%~_=".contains(kind)) {
            let words = if *kind == b'-' { line } else { &line[..1] };
            let words = words.iter().take_while(|byte| **byte != b'\'').filter(|byte| !byte.is_ascii_digit());
            seen.insert(words.map(|byte| char::from(*byte)).take(60).collect::<String>());
        }
    }
    format!("{seen:?}")
}
