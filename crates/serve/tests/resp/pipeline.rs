//! Many commands at a time, in any pieces.

use std::io::Write;
use std::thread;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::client::{Client, command};
use crate::server::Server;

/// Broken by: replies in another order than commands, or one that is lost when buffers are full.
#[test]
fn ten_thousand_commands_have_ten_thousand_replies_in_order() {
    const COUNT: usize = 10_000;
    let server = Server::usual();
    let mut client = server.client();
    let mut writer = client.stream.try_clone().unwrap();
    let sender = thread::spawn(move || {
        let value = |number: usize| format!("{number}").repeat(number % 300 + 1);
        let sent: Vec<u8> = (0..COUNT)
            .flat_map(|number| match number % 3 {
                0 => command(&["SET", "k", &value(number)]),
                1 => command(&["GET", "k"]),
                _ => command(&["ECHO", &number.to_string()]),
            })
            .collect();
        writer.write_all(&sent).unwrap();
    });
    for number in 0..COUNT {
        let reply = String::from_utf8(client.reply().unwrap()).unwrap();
        let bulk = |text: String| format!("${}\r\n{text}\r\n", text.len());
        let expected = match number % 3 {
            0 => "+OK\r\n".to_owned(),
            1 => bulk(format!("{}", number - 1).repeat((number - 1) % 300 + 1)),
            _ => bulk(number.to_string()),
        };
        assert_eq!(reply, expected, "{number}");
    }
    sender.join().unwrap();
    assert_eq!(server.cache.counters.commands.total(), COUNT as u64);
}

/// Sends `bytes` in two pieces that arrive apart, and gives all replies.
fn cut(server: &Server, bytes: &[u8], at: usize) -> Vec<u8> {
    let mut client = server.client();
    client.send(&bytes[..at]);
    // The first piece is read before the second comes: the server says so by answering somebody else later.
    thread::yield_now();
    client.send(&bytes[at..]);
    client.finish();
    client.rest()
}

/// Broken by: a state that forgets where it was between two reads, in the inbox or in a value.
#[test]
fn commands_may_be_cut_anywhere() {
    let server = Server::usual();
    let large = "v".repeat(20_000);
    let bytes: Vec<u8> = [
        command(&["SET", "a", "1"]),
        command(&["SET", "large", &large]),
        command(&["MSET", "x", &large, "y", "2", "z", &large]),
        b"get a\r\n".to_vec(),
        command(&["ECHO", &large]),
        command(&["STRLEN", "z"]),
        command(&["MGET", "y", "a"]),
    ]
    .concat();
    let whole = cut(&server, &bytes, bytes.len());
    assert!(whole.starts_with(b"+OK\r\n+OK\r\n+OK\r\n$1\r\n1\r\n-ERR "), "{whole:?}");
    assert!(whole.ends_with(b":20000\r\n*2\r\n$1\r\n2\r\n$1\r\n1\r\n"));
    let interesting =
        (0..bytes.len()).filter(|at| at % 509 == 0 || bytes[at.saturating_sub(40)..*at].contains(&b'\n'));
    for at in interesting {
        assert_eq!(cut(&server, &bytes, at), whole, "cut at {at}");
    }
}

/// Broken by: pieces of any number and size that are put together differently.
#[test]
fn commands_may_come_in_any_pieces() {
    let server = Server::usual();
    let mut runner = TestRunner::deterministic();
    let plan = (
        prop::collection::vec(
            (0_u8..4, prop_oneof![0_usize..100, 16_000_usize..17_000, 60_000_usize..70_000]),
            1..12,
        ),
        prop::collection::vec(1_usize..40_000, 1..6),
    );
    for _ in 0..60 {
        let (commands, pieces) = plan.new_tree(&mut runner).unwrap().current();
        let mut client = server.client();
        let mut writer = client.stream.try_clone().unwrap();
        let sent: Vec<u8> = commands.iter().flat_map(|(key, len)| pair(*key, *len)).collect();
        let sender = thread::spawn(move || {
            let mut rest = &sent[..];
            for size in pieces.iter().cycle() {
                let (piece, after) = rest.split_at((*size).min(rest.len()));
                writer.write_all(piece).unwrap();
                rest = after;
                if rest.is_empty() {
                    return;
                }
            }
        });
        for (key, len) in commands {
            expect_pair(&mut client, key, len);
        }
        sender.join().unwrap();
    }
}

fn content(key: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at as u8).wrapping_mul(31) ^ key).collect()
}

fn pair(key: u8, len: usize) -> Vec<u8> {
    let name = [b'k', key];
    [command(&[b"SET".as_slice(), &name, &content(key, len)]), command(&[b"GET".as_slice(), &name])].concat()
}

fn expect_pair(client: &mut Client, key: u8, len: usize) {
    assert_eq!(client.reply().unwrap(), b"+OK\r\n");
    let reply = client.reply().unwrap();
    let head = format!("${len}\r\n");
    assert_eq!(&reply[..head.len()], head.as_bytes());
    assert!(reply[head.len()..reply.len() - 2] == content(key, len), "{len} bytes");
}
