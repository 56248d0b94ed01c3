//! Values: large ones, many at a time, parts of them, those that end.

use std::thread;
use std::time::{Duration, Instant};

use crate::client::command;
use crate::server::{Server, eventually};

fn content(seed: u64, len: usize) -> Vec<u8> {
    let words =
        (0..len as u64 / 8 + 1).flat_map(|at| (at ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
    words.take(len).collect()
}

/// Up to 64 MiB, or what `WAVETANK_TEST_VALUE_MIB` says.
/// Broken by: a byte that is lost or doubled where a value goes from the inbox to its place, or between two
/// parts of a reply.
#[test]
fn values_come_back_as_they_went() {
    let most = std::env::var("WAVETANK_TEST_VALUE_MIB").map_or(64, |text| text.parse::<usize>().unwrap());
    let server = Server::usual();
    let mut client = server.client();
    for len in [0, 1, 1023, 1024, 16_383, 16_384, 65_536, 1 << 20, (4 << 20) + 1, most << 20] {
        let value = content(len as u64, len);
        client.send(&format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${len}\r\n").into_bytes());
        client.send(&value);
        client.send(b"\r\n");
        assert_eq!(client.reply().unwrap(), b"+OK\r\n", "{len}");
        let reply = client.ask(&["GET", "k"]);
        let head = format!("${len}\r\n").into_bytes();
        assert!(reply[..head.len()] == head && reply[head.len()..reply.len() - 2] == value, "{len}");
        assert_eq!(client.say("STRLEN k"), format!(":{len}\r\n"));
    }
    assert_eq!(client.say("DEL k"), ":1\r\n");
    eventually("nothing is held for the connection", || server.door.status().memory_bytes == 0);
}

/// Broken by: parts of one writev beyond those that go at a time, or a value of the wrong key.
#[test]
fn many_large_values_go_in_one_reply() {
    let server = Server::usual();
    let mut client = server.client();
    let names: Vec<String> = (0..200).map(|number| format!("key-{number}")).collect();
    let value = |number: usize| content(number as u64, 20_000 + number);
    let mut set = vec![b"MSET".to_vec()];
    for (number, name) in names.iter().enumerate() {
        set.extend([name.clone().into_bytes(), value(number)]);
    }
    assert_eq!(client.ask(&set), b"+OK\r\n");
    let mut expected = format!("*{}\r\n", names.len()).into_bytes();
    for number in 0..names.len() {
        expected.extend(format!("${}\r\n", 20_000 + number).bytes());
        expected.extend(value(number));
        expected.extend(b"\r\n");
    }
    let ask: Vec<&str> = ["MGET"].into_iter().chain(names.iter().map(String::as_str)).collect();
    assert!(client.ask(&ask) == expected);
}

/// Broken by: a range that is counted from the wrong end of a value that is not copied.
#[test]
fn parts_of_large_values_are_given() {
    let server = Server::usual();
    let mut client = server.client();
    let value = content(7, 3 << 20);
    assert_eq!(client.ask(&[b"SET", b"k".as_slice(), &value]), b"+OK\r\n");
    for (first, last) in [(0_i64, -1_i64), (100, 200_000), (-50_000, -1), (1 << 20, 2 << 20), (5, 5)] {
        let reply = client.ask(&["GETRANGE", "k", &first.to_string(), &last.to_string()]);
        let place = |at: i64| (if at < 0 { at + value.len() as i64 } else { at }) as usize;
        let part = &value[place(first)..=place(last)];
        assert!(reply == command(&[part])[4..], "{first} {last}");
    }
}

/// Who reads a value goes on reading it when it is written anew or removed.
/// Broken by: a reply that takes its bytes from where the key is now.
#[test]
fn a_reply_is_what_was_there_when_it_was_asked_for() {
    let server = Server::usual();
    let (mut reader, mut writer) = (server.client(), server.client());
    let (old, new) = (content(1, 32 << 20), content(2, 32 << 20));
    assert_eq!(writer.ask(&[b"SET", b"k".as_slice(), &old]), b"+OK\r\n");
    reader.send(&command(&["GET", "k"]));
    eventually("the reply is under way", || server.cache.counters.l1_hits.total() == 1);
    assert_eq!(writer.ask(&[b"SET", b"k".as_slice(), &new]), b"+OK\r\n");
    assert_eq!(writer.say("DEL k"), ":1\r\n");
    let reply = reader.reply().unwrap();
    assert!(reply[reply.len() - 2 - old.len()..reply.len() - 2] == old);
}

/// Broken by: a value that is there after its time, or not before.
#[test]
fn values_end_when_their_time_is_over() {
    let server = Server::usual();
    let mut client = server.client();
    assert_eq!(client.say("SET long 1 EX 1000"), "+OK\r\n");
    assert_eq!(client.say("SET short 1 PX 30"), "+OK\r\n");
    assert_eq!(client.say("SET kept 1 PX 30"), "+OK\r\n");
    assert_eq!(client.say("SET kept 2"), "+OK\r\n");
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(60) {
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(client.say("MGET long short kept"), "*3\r\n$1\r\n1\r\n$-1\r\n$1\r\n2\r\n");
    assert_eq!(client.say("EXISTS long short kept"), ":2\r\n");
    assert_eq!(client.say("SET short 3 NX"), "+OK\r\n");
}

/// Broken by: a time that is counted from the wrong end or in the wrong unit, one that stays when a value is
/// written anew without, or keys that end and are not counted as such.
#[test]
fn clients_are_told_how_long_values_stay() {
    let server = Server::usual();
    let mut client = server.client();
    assert_eq!(client.say("INFO keyspace"), "$12\r\n# Keyspace\r\n\r\n");
    client.say("SET a 1 EX 1000");
    client.say("SET b 1 PX 5000400");
    client.say("SET c 1");
    let told = |client: &mut crate::client::Client, line: &str| {
        client.say(line).trim_start_matches(':').trim_end().parse::<i64>().unwrap()
    };
    assert_eq!(["TTL c", "PTTL c", "TTL d", "PTTL d"].map(|line| told(&mut client, line)), [-1, -1, -2, -2]);
    let left = told(&mut client, "PTTL a");
    assert!((900_001..=1_000_000).contains(&left), "{left}");
    // Seconds are the nearest ones, of what is left now.
    let (first, seconds, last) =
        (told(&mut client, "PTTL b"), told(&mut client, "TTL b"), told(&mut client, "PTTL b"));
    assert!(
        first <= 5_000_400 && ((last + 500) / 1000..=(first + 500) / 1000).contains(&seconds),
        "{seconds}"
    );
    assert!(client.say("INFO").ends_with("db0:keys=3,expires=2,avg_ttl=0\r\n\r\n"));
    client.say("SET a 2");
    assert_eq!(told(&mut client, "TTL a"), -1);
    assert!(client.say("INFO keyspace").contains("keys=3,expires=1,"));
    client.say("DEL b");
    assert!(client.say("INFO keyspace").contains("keys=2,expires=0,"));
}
