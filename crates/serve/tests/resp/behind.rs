//! What is behind memory: it comes, or it is a miss in time.

use std::collections::BTreeMap;
use std::time::Duration;

use wavetank_calls::{AdapterPlan, Medium, QuotaPlan, Wrapping};
use wavetank_serve::resp::Settings;

use crate::client::{Client, command};
use crate::server::{Server, cache, eventually, settings};

const MIB: usize = 1 << 20;
/// More than memory holds.
const COUNT: usize = 12;
const PATIENT: Duration = Duration::from_secs(20);

fn value(number: usize) -> Vec<u8> {
    (0..MIB + number).map(|at| (at / 7 + number) as u8).collect()
}

fn bulk(bytes: &[u8]) -> Vec<u8> {
    command(&[bytes]).split_off(4)
}

fn tier(wrappers: Vec<Wrapping>) -> AdapterPlan {
    let (name, location, options) = ("memory".to_owned(), String::new(), BTreeMap::new());
    AdapterPlan {
        medium: Medium::Backend { name, location, options, wrappers },
        capacity_bytes: Some(256 * MIB as u64),
        bytes_per_second: None,
        eviction: None,
        quotas: QuotaPlan::default(),
    }
}

/// A tier that does `what` to every read and write.
fn trouble(what: &[(&str, &str)]) -> Vec<Wrapping> {
    let options = what.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    vec![Wrapping { name: "fault".to_owned(), options }]
}

/// Memory for four values, with a tier behind it that holds all; the first are in that tier alone.
fn filled(wrappers: Vec<Wrapping>, patience: Duration, settings: Settings) -> Server {
    let cache = cache(4 * MIB as u64 + 4096, vec![tier(wrappers)], patience);
    let server = Server::over(cache, settings);
    let mut client = server.client();
    for number in 0..COUNT {
        let reply = client.ask(&[b"SET", number.to_string().as_bytes(), &value(number)]);
        assert_eq!(reply, b"+OK\r\n", "{number}");
        server.cache.storage.settle();
    }
    assert_eq!(client.say("DBSIZE"), format!(":{COUNT}\r\n"));
    server
}

/// Broken by: a value of another key, a reply out of order, or a command that is not done after the wait.
#[test]
fn values_behind_memory_come_back_in_order() {
    let server = filled(Vec::new(), PATIENT, settings());
    let mut client = server.client();
    let all: Vec<u8> = (0..COUNT).flat_map(|number| command(&["GET", &number.to_string()])).collect();
    client.send(&[all, command(&["PING"])].concat());
    for number in 0..COUNT {
        assert!(client.reply().unwrap() == bulk(&value(number)), "{number}");
    }
    assert_eq!(client.reply().unwrap(), b"+PONG\r\n");
    let brought = server.cache.counters.l2_hits.total();
    assert!(brought >= COUNT as u64 - 4, "{brought}");

    let expected =
        [b"*4\r\n".to_vec(), bulk(&value(0)), bulk(&value(9)), b"$-1\r\n".to_vec(), bulk(&value(1))];
    assert!(client.ask(&["MGET", "0", "9", "none", "1"]) == expected.concat());
    assert!(client.ask(&["GETRANGE", "2", "100", "300000"]) == bulk(&value(2)[100..=300_000]));
    assert_eq!(client.say("STRLEN 5"), format!(":{}\r\n", MIB + 5));
    assert!(client.ask(&["SET", "3", "x", "GET"]) == bulk(&value(3)), "what was there before");
    assert_eq!(client.say("GET 3"), "$1\r\nx\r\n");
    let counters = &server.cache.counters;
    let hits = counters.l1_hits.total() + counters.l2_hits.total();
    assert_eq!(counters.lookups.total(), hits + counters.misses.total());
    assert_eq!((counters.misses.total(), counters.l2_failures.total()), (1, 0));
}

/// Memory takes only some at a time from behind; who comes too early asks again.
/// Broken by: a miss because others are being served.
#[test]
fn many_clients_have_what_is_behind_memory() {
    let slow = trouble(&[("spike", "1"), ("spike_ms", "3")]);
    let server = filled(slow, PATIENT, settings());
    let mut clients: Vec<Client> = (0..2 * COUNT).map(|_| server.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&command(&["GET", &(number % COUNT).to_string()]));
    }
    for (number, client) in clients.iter_mut().enumerate() {
        assert!(client.reply().unwrap() == bulk(&value(number % COUNT)), "{number}");
    }
    assert_eq!(server.cache.counters.misses.total(), 0);
}

/// Broken by: a wait that has no end, one that holds up other clients, or one that is not counted.
#[test]
fn what_does_not_come_in_time_is_a_miss() {
    let slow = trouble(&[("spike", "1"), ("spike_ms", "300")]);
    let server = filled(slow, Duration::from_millis(40), settings());
    let (mut waiting, mut other) = (server.client(), server.client());
    waiting.send(&[command(&["GET", "0"]), command(&["MGET", "1", "none"]), command(&["PING"])].concat());
    assert_eq!(other.say("PING"), "+PONG\r\n", "others are served");
    assert_eq!(server.cache.counters.misses.total(), 0, "while one waits");
    assert_eq!(waiting.reply().unwrap(), b"$-1\r\n");
    assert_eq!(waiting.reply().unwrap(), b"*2\r\n$-1\r\n$-1\r\n");
    assert_eq!(waiting.reply().unwrap(), b"+PONG\r\n");
    eventually("it is counted", || server.cache.counters.l2_failures.total() == 2);
    assert_eq!(server.cache.counters.misses.total(), 3);
    // What came too late is in memory now.
    eventually("it came", || other.ask(&["GET", "0"]) == bulk(&value(0)));
}

/// Broken by: an error of the tier that reaches the client as anything but a miss.
#[test]
fn what_cannot_be_read_is_a_miss() {
    let server = filled(trouble(&[("read_error", "1")]), PATIENT, settings());
    let mut client = server.client();
    assert_eq!(client.say("GET 0"), "$-1\r\n");
    assert_eq!(client.say("GETRANGE 1 0 -1"), "$0\r\n\r\n");
    assert!(client.ask(&["GET", &(COUNT - 1).to_string()]) == bulk(&value(COUNT - 1)), "memory is well");
    assert_eq!(server.cache.counters.l2_failures.total(), 2);
}

/// A client that goes while it waits is gone.
/// Broken by: an answer to whoever has its place now.
#[test]
fn clients_may_go_while_they_wait() {
    let slow = trouble(&[("spike", "1"), ("spike_ms", "100")]);
    let server = filled(slow, PATIENT, settings());
    for round in 0..8 {
        let mut client = server.client();
        client.send(&command(&["GET", &round.to_string()]));
        drop(client);
    }
    eventually("they are gone", || server.door.status().connections == 0);
    let mut client: Client = server.client();
    assert_eq!(client.say("PING"), "+PONG\r\n");
    assert!(client.ask(&["GET", "9"]) == bulk(&value(9)));
}

/// Broken by: a key that is seen and not there any more when it is read a moment later.
#[test]
fn what_was_seen_is_brought_and_stays() {
    let lease = Duration::from_secs(100);
    let seen = Settings { lease, l1_bytes: Some(4 * MIB as u64), lease_share: 0.3, ..settings() };
    let server = filled(Vec::new(), PATIENT, seen);
    let (mut client, mut other) = (server.client(), server.client());
    assert_eq!(client.say("EXISTS 0"), ":1\r\n");
    server.cache.storage.settle();
    // Others fill memory again and again.
    for number in COUNT..3 * COUNT {
        other.ask(&[b"SET", number.to_string().as_bytes(), &value(number)]);
    }
    let before = server.cache.counters.l1_hits.total();
    assert!(client.ask(&["GET", "0"]) == bulk(&value(0)));
    eventually("it was in memory", || server.cache.counters.l1_hits.total() == before + 1);
    assert_eq!(server.door.status().leased_bytes, 0);
}
