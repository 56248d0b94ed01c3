//! What is not the protocol: an error, and the end of the connection; never more.

use crate::peer::Peer;
use crate::server::{Server, eventually, settings};

/// Bytes, and what the error says.
const CORPUS: &[(&[u8], &str)] = &[
    (b"*2147483648\r\n", "invalid multibulk length"),
    (b"*9223372036854775807\r\n", "invalid multibulk length"),
    (b"*x\r\n", "invalid multibulk length"),
    (b"*+1\r\n", "invalid multibulk length"),
    (b"*1 \r\n", "invalid multibulk length"),
    (b"*1\r\n$2147483648\r\n", "invalid bulk length"),
    (b"*1\r\n$-1\r\n", "invalid bulk length"),
    (b"*1\r\n$x\r\n", "invalid bulk length"),
    (b"*1\r\n$536870913\r\n", "invalid bulk length"),
    (b"*1\r\n:1\r\n", "expected '$', got ':'"),
    (b"*1\r\n*1\r\n*1\r\n*1\r\n", "expected '$', got '*'"),
    (b"*2\r\n$3\r\nGET\r\n+a\r\n", "expected '$', got '+'"),
    (b"*1\r\n%1\r\n", "expected '$', got '%'"),
    (b"*1\r\n_\r\n", "expected '$', got '_'"),
    (b"set a \"b\r\n", "unbalanced quotes in request"),
    (b"set a 'b\r\n", "unbalanced quotes in request"),
    (b"set a \"b\"c\r\n", "unbalanced quotes in request"),
    (b"set a \"b\\\"\r\n", "unbalanced quotes in request"),
];

/// What only we refuse: other servers read on and take it for the next command.
const OURS: &[(&[u8], &str)] = &[
    (b"*1\r\n$4\r\nPINGxx", "expected CRLF after an argument"),
    (b"*1\r\n$4\r\nPING\n\n", "expected CRLF after an argument"),
    (b"*11111111111111111111111111111111", "invalid bulk length"),
    (b"*1\n", "invalid bulk length"),
];

/// Broken by: a fault that is taken for something else, an answer that is lost because the rest was not read,
/// or a connection that stays.
#[test]
fn what_is_malformed_is_answered_and_the_connection_closed() {
    let server = Server::usual();
    for (bytes, why) in CORPUS.iter().chain(OURS) {
        for more in [&b""[..], &[b'x'; 100_000]] {
            let mut client = server.client();
            client.send(b"PING\r\n");
            client.send(bytes);
            client.send(more);
            let told = String::from_utf8(client.rest()).unwrap();
            assert_eq!(told, format!("+PONG\r\n-ERR Protocol error: {why}\r\n"), "{}", bytes.escape_ascii());
        }
    }
    let count = 2 * (CORPUS.len() + OURS.len()) as u64;
    eventually("all are gone", || server.cache.counters.connections_closed.total() == count);
    assert_eq!(server.cache.counters.protocol_errors.total(), count);
    assert_eq!(server.door.status().memory_bytes, 0);
}

/// Broken by: an error that is worded differently.
#[test]
fn what_is_malformed_is_answered_as_redis_does() {
    let Some(peer) = Peer::start(&[]) else { return };
    for (bytes, why) in CORPUS {
        let mut client = peer.client();
        client.send(bytes);
        let told = String::from_utf8(client.rest()).unwrap();
        assert_eq!(told, format!("-ERR Protocol error: {why}\r\n"), "{}", bytes.escape_ascii());
    }
}

/// What a page makes a browser send: commands in the body of a request, or in a header.
const WEB: &[&[u8]] = &[
    b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET web 1\r\n",
    b"post /\r\nSET web 1\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: y\r\n\r\nSET web 1\r\n",
    b"PUT / HTTP/1.1\r\nhost: localhost\r\n\r\nSET web 1\r\n",
    b"*1\r\n$4\r\nPOST\r\nSET web 1\r\n",
];

/// Broken by: a web request that is taken for commands that nobody knows, with one after it that is done.
#[test]
fn web_requests_end_the_connection() {
    let server = Server::usual();
    for bytes in WEB {
        let mut client = server.client();
        client.send(bytes);
        let told = String::from_utf8(client.rest()).unwrap();
        assert!(!told.contains("+OK"), "{}: {told}", bytes.escape_ascii());
    }
    assert_eq!(server.client().say("EXISTS web"), ":0\r\n");
    eventually("they are counted", || server.cache.counters.protocol_errors.total() == WEB.len() as u64);
    let Some(peer) = Peer::start(&[]) else { return };
    for bytes in WEB {
        let mut client = peer.client();
        client.send(bytes);
        client.rest();
        assert_eq!(peer.client().say("EXISTS web"), ":0\r\n", "{}", bytes.escape_ascii());
    }
}

/// Broken by: a line without end that is kept, or arguments of one command that are.
#[test]
fn what_never_ends_is_cut_off() {
    let server = Server::with(wavetank_serve::resp::Settings { connection_bytes: 1 << 20, ..settings() });
    let mut client = server.client();
    client.send(&vec![b'a'; 70_000]);
    assert_eq!(client.rest(), b"-ERR Protocol error: too big inline request\r\n");
    let mut client = server.client();
    client.send(b"*1000000\r\n$4\r\nMSET\r\n");
    for _ in 0..200 {
        client.send(&[&b"$10000\r\n"[..], &[b'x'; 10_000], b"\r\n"].concat());
    }
    assert_eq!(client.rest(), b"-ERR Protocol error: too big request\r\n");
    eventually("nothing is kept", || server.door.status().memory_bytes == 0);
}

/// Lines and counts of nothing are no commands; a client may send any number of them.
/// Broken by: keeping them.
#[test]
fn nothing_is_not_kept() {
    let server = Server::with(wavetank_serve::resp::Settings { connection_bytes: 1 << 16, ..settings() });
    let mut client = server.client();
    for _ in 0..100 {
        client.send(&b"\r\n*0\r\n*-1\r\n   \r\n".repeat(1000));
    }
    assert_eq!(client.say("PING"), "+PONG\r\n");
}

/// Commands typed by hand.
#[test]
fn people_can_type_commands() {
    let server = Server::usual();
    let mut client = server.client();
    client.send(
        b"set greeting \"hello world\"\r\nget greeting\nGET 'greeting'\r\n\r\nquit\r\nget greeting\r\n",
    );
    let hello = "$11\r\nhello world\r\n";
    let told = String::from_utf8(client.rest()).unwrap();
    assert_eq!(told, format!("+OK\r\n{hello}{hello}+OK\r\n"), "and nothing after the end");
    let mut client = server.client();
    client.send(b"SET a \"b\\n\\x41\"\r\nGET a\r\n");
    assert_eq!(client.reply().unwrap(), b"+OK\r\n");
    assert_eq!(client.reply().unwrap(), b"$3\r\nb\nA\r\n");
}
