//! A small HTTP client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// What takes longer hangs.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// What came back.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The chunks of a stream, which has to end as streams do.
    pub(crate) fn chunks(&self) -> Vec<Value> {
        assert!(self.head.contains("text/event-stream"), "{}", self.head);
        let events = self.body.strip_suffix("data: [DONE]\n\n").unwrap_or_else(|| panic!("{}", self.body));
        let events = events.split_terminator("\n\n").map(|event| event.strip_prefix("data: "));
        events.map(|event| serde_json::from_str(event.expect("an event")).expect("JSON")).collect()
    }
}

/// A client that has sent a request and reads nothing.
pub(crate) fn send(at: SocketAddr, head: &str, body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(at).expect("it listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a socket");
    let length = body.len();
    let head = format!("{head}\r\nhost: {at}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("it reads");
    // Whoever refuses a body may not read it.
    let _ = stream.write_all(body);
    stream
}

/// All that comes back.
pub(crate) fn receive(mut stream: TcpStream) -> Got {
    let mut all = Vec::new();
    // Who was refused before all was sent may see the connection reset after the answer.
    let _ = stream.read_to_end(&mut all);
    let all = String::from_utf8(all).expect("text");
    let (head, body) = all.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {all}"));
    let status = head[9..12].parse().expect("a status");
    let is_chunked = head.contains("transfer-encoding: chunked");
    let body = if is_chunked { unchunked(body) } else { body.to_owned() };
    Got { status, head: head.to_owned(), body }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).expect("a length");
        whole.push_str(&rest[..length]);
        body = rest[length..].strip_prefix("\r\n").expect("a chunk");
        if length == 0 {
            break;
        }
    }
    whole
}

pub(crate) fn get(at: SocketAddr, path: &str) -> Got {
    receive(send(at, &format!("GET {path} HTTP/1.1"), b""))
}

/// The head of a request with a body in JSON.
pub(crate) fn posting(path: &str) -> String {
    format!("POST {path} HTTP/1.1\r\ncontent-type: application/json")
}

pub(crate) fn post(at: SocketAddr, path: &str, body: &Value) -> Got {
    receive(send(at, &posting(path), body.to_string().as_bytes()))
}

/// What has to be answered.
pub(crate) fn post_ok(at: SocketAddr, path: &str, body: &Value) -> Got {
    let got = post(at, path, body);
    assert_eq!(got.status, 200, "{}", got.body);
    got
}

/// The fields of both.
pub(crate) fn with(mut body: Value, extra: Value) -> Value {
    if let (Value::Object(body), Value::Object(extra)) = (&mut body, extra) {
        body.extend(extra);
    }
    body
}
