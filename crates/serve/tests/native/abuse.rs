//! Clients that want too much, come from elsewhere, or take their time, over plain sockets.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wavetank_serve::Args;

use crate::{Server, frame};

/// What takes longer hangs.
const LIMIT: Duration = Duration::from_secs(20);

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.http).expect("it listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a socket");
    stream
}

/// The lines before a body of `length` bytes.
fn head(line: &str, headers: &str, length: usize) -> String {
    format!("{line} HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n")
}

/// What comes until the connection ends: its status, and its body.
fn answer(mut stream: TcpStream) -> (u16, String) {
    let mut all = Vec::new();
    // Who was refused before all was sent may see the connection reset after the answer.
    let _ = stream.read_to_end(&mut all);
    let all = String::from_utf8_lossy(&all).into_owned();
    let status = all.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, all.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned()))
}

fn ask(server: &Server, line: &str, headers: &str, body: &[u8]) -> (u16, String) {
    let mut stream = connect(server);
    stream.write_all(head(line, headers, body.len()).as_bytes()).expect("it takes a request");
    // It may have refused by now.
    let _ = stream.write_all(body);
    answer(stream)
}

fn here(server: &Server, line: &str, body: &[u8]) -> (u16, String) {
    ask(server, line, "host: localhost\r\n", body)
}

fn status(server: &Server) -> Value {
    serde_json::from_str(&here(server, "GET /status", b"").1).expect("JSON")
}

/// Broken by: a page of another site that is served, or a name for this address that somebody else gave; or
/// one's own page that is not.
#[test]
fn pages_of_other_sites_are_refused() {
    let server = Server::start();
    let at = server.http;
    let rows = [
        ("host: localhost\r\norigin: http://evil.example\r\n".to_owned(), 403),
        ("host: localhost\r\norigin: null\r\n".to_owned(), 403),
        (format!("host: {at}\r\norigin: http://localhost:3000\r\n"), 403),
        (format!("host: {at}\r\norigin: http://{at}\r\n"), 200),
        (format!("host: {at}\r\n"), 200),
        ("host: evil.example\r\n".to_owned(), 403),
        ("host: evil.example\r\norigin: http://evil.example\r\n".to_owned(), 403),
    ];
    for (headers, wanted) in rows {
        let (status, body) = ask(&server, "POST /v1/end", &headers, br#"{"request_id":"a"}"#);
        assert_eq!(status, wanted, "{headers}{body}");
        assert!(serde_json::from_str::<Value>(&body).is_ok(), "{body}");
    }
}

/// Requests of others that are answered while `body` is worked on: they begin in the second half of the time
/// between its last byte and its answer, when all of it was read.
fn answered_meanwhile(server: &Server, line: &str, body: &[u8]) -> usize {
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        let others = scope.spawn(move || {
            let mut answered = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let began = Instant::now();
                assert_eq!(here(server, "GET /healthz", b"").0, 200);
                answered.push((began, Instant::now()));
            }
            answered
        });
        let mut stream = connect(server);
        stream.write_all(head(line, "host: localhost\r\n", body.len()).as_bytes()).expect("a request");
        stream.write_all(body).expect("it reads");
        let sent = Instant::now();
        stream.read_exact(&mut [0]).expect("an answer");
        let told = Instant::now();
        is_over.store(true, Ordering::Relaxed);
        let half = sent + (told - sent) / 2;
        let answered = others.join().expect("they are answered");
        answered.iter().filter(|(began, ended)| *began >= half && *ended <= told).count()
    })
}

/// Broken by: more chunks named than were looked up, which would be searched for one by one; a list of any
/// length that is read to its end; or long bodies that leave no thread to answer others.
#[test]
fn no_request_stalls_the_door() {
    let server = Server::of(Args { http_threads: Some(1), ..Args::default() });
    let hashes: Vec<String> = (0..50_000).map(|number| format!("{number:08x}")).collect();
    let ask = |id: &str, hashes: &[String]| json!({ "request_id": id, "model": "m", "chunk_hashes": hashes });
    let (code, body) = here(&server, "POST /v1/lookup", ask("a", &hashes).to_string().as_bytes());
    assert_eq!(code, 200, "{body}");
    let wanted = json!({ "request_id": "a", "chunk_hashes": hashes }).to_string();
    assert_eq!(here(&server, "POST /v1/retrieve", wanted.as_bytes()).0, 200);
    let doubled = [&hashes[..], &hashes[..]].concat();
    let twice = json!({ "request_id": "a", "chunk_hashes": doubled }).to_string();
    let (code, body) = here(&server, "POST /v1/retrieve", twice.as_bytes());
    assert!(code == 400 && body.contains("100000 chunks are named, and 50000 were looked up"), "{body}");
    let endless = ask("b", &vec!["ab".to_owned(); 200_000]).to_string();
    let (code, body) = here(&server, "POST /v1/lookup", endless.as_bytes());
    assert!(code == 400 && body.contains("more than 131072"), "{body}");
    // One that is scheduled badly may see none.
    let most = ask("c", &(0..130_000).map(|number| format!("{number:064x}")).collect::<Vec<_>>()).to_string();
    let is_served = |_| answered_meanwhile(&server, "POST /v1/lookup", most.as_bytes()) >= 3;
    assert!((0..30).any(is_served), "others wait for a long request");
}

/// Broken by: bodies in JSON or names of requests that take memory beyond the limit, or an object that comes
/// twice, of which as much is told as a client likes.
#[test]
fn memory_has_a_limit_for_words_too() {
    let server = Server::of(Args { max_memory: Some("1MiB".to_owned()), ..Args::default() });
    let (code, body) = here(&server, "POST /v1/lookup", &vec![b' '; 2 << 20]);
    assert!(code == 413 && body.contains("may be under way"), "{code} {body}");
    let hashes: Vec<String> = (0..2_000).map(|number| format!("{number:08x}")).collect();
    let look = |id: u32| {
        let words = json!({ "request_id": id.to_string(), "model": "m", "chunk_hashes": hashes });
        here(&server, "POST /v1/lookup", words.to_string().as_bytes())
    };
    let refused = (0..20).map(look).find(|(code, _)| *code != 200).expect("a limit");
    assert!(refused.0 == 503 && refused.1.contains("/v1/end"), "{refused:?}");
    assert!(status(&server)["in_flight"]["named_bytes"].as_u64().unwrap() <= 1 << 20);
    assert_eq!(here(&server, "POST /v1/end", br#"{"request_id":"0"}"#).0, 200);
    assert_eq!(look(99).0, 200);

    let body = [frame(0, b"x"), frame(0, b"x")].concat();
    let (code, body) = here(&server, "PUT /v1/store?request_id=s&model=m&chunk_hashes=ab,cd", &body);
    assert!(code == 400 && body.contains("object 0 comes twice"), "{body}");
}

/// Broken by: a client that sends a byte now and then and so holds what it announced, and all others with it.
#[test]
fn a_store_that_trickles_is_given_up() {
    let limits =
        Args { max_memory: Some("1MiB".to_owned()), client_timeout_seconds: Some(0.3), ..Args::default() };
    let server = Server::of(limits);
    let line = "PUT /v1/store?request_id=s&model=m&chunk_hashes=ab";
    let mut slow = connect(&server);
    slow.set_read_timeout(Some(Duration::from_millis(20))).expect("a socket");
    slow.write_all(head(line, "host: localhost\r\n", (1 << 20) + 12).as_bytes()).unwrap();
    slow.write_all(&frame(0, &vec![0; 1 << 20])[..20]).unwrap();
    let (began, mut all) = (Instant::now(), [0; 12]);
    loop {
        assert!(began.elapsed() < LIMIT, "it trickles for ever");
        let _ = slow.write_all(b"x");
        match slow.read(&mut all) {
            Ok(12) => break,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(&all, b"HTTP/1.1 408");
    let object = frame(0, &vec![7; 1 << 20]);
    let (code, body) = here(&server, "PUT /v1/store?request_id=t&model=m&chunk_hashes=cd", &object);
    assert_eq!(code, 200, "{body}");
}

/// Broken by: a connection that is closed between requests as if it were in the middle of one, or a reader
/// that takes nothing and is waited for as long as one that asks nothing.
#[test]
fn pauses_are_longer_than_stalls() {
    let times = Args {
        client_timeout_seconds: Some(0.2),
        idle_timeout_seconds: Some(LIMIT.as_secs_f64()),
        max_memory: Some("64MiB".to_owned()),
        ..Args::default()
    };
    let server = Server::of(times);
    let mut paused = connect(&server);
    let mut first = [0; 12];
    for _ in 0..2 {
        paused.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        paused.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        // The rest of the answer, which ends with its body.
        let mut last = [0; 3];
        while &last != b"ok\n" {
            last.rotate_left(1);
            paused.read_exact(&mut last[2..]).unwrap();
        }
        // Twice the time of a stall.
        thread::sleep(Duration::from_millis(400));
    }
    let object = frame(0, &vec![7; 24 << 20]);
    assert_eq!(here(&server, "PUT /v1/store?request_id=s&model=m&chunk_hashes=ab", &object).0, 200);
    let words = br#"{"request_id":"r","model":"m","chunk_hashes":["ab"]}"#;
    assert_eq!(here(&server, "POST /v1/lookup", words).0, 200);
    let mut stalled = connect(&server);
    let words = br#"{"request_id":"r"}"#;
    stalled.write_all(head("POST /v1/retrieve", "host: localhost\r\n", words.len()).as_bytes()).unwrap();
    stalled.write_all(words).unwrap();
    // It was given up when only the client that pauses and the one that asks are there.
    let began = Instant::now();
    while status(&server)["http"]["connections"] != 2 {
        assert!(began.elapsed() < LIMIT / 2, "it is waited for as long as a client that asks nothing");
        thread::sleep(Duration::from_millis(20));
    }
}
