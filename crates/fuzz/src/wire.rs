//! A client of our HTTP doors that sends whatever it is given.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

/// Longer than every patience of a server under test.
const PATIENCE: Duration = Duration::from_secs(9);

/// What came back.
pub(crate) struct Answered {
    pub(crate) bytes: Vec<u8>,
    /// Whether the request was framed as HTTP wants it, so that one whole answer is due.
    pub(crate) is_framed: bool,
}

/// Sends `input` to a door. `METHOD PATH` in the first line and a body behind it go as one request;
/// everything else goes as it is.
pub(crate) fn ask(door: SocketAddr, input: &[u8]) -> Answered {
    match framed(input) {
        Some(request) => Answered { bytes: exchanged(door, &request, After::Listen), is_framed: true },
        None => Answered { bytes: exchanged(door, input, After::Leave), is_framed: false },
    }
}

/// The request that an input is short for.
fn framed(input: &[u8]) -> Option<Vec<u8>> {
    let end = input.iter().position(|byte| *byte == b'\n')?;
    let (line, body) = (std::str::from_utf8(&input[..end]).ok()?, &input[end + 1..]);
    let (method, path) = line.split_once(' ')?;
    let is_word = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_word(method) || !is_word(path) || !path.starts_with('/') {
        return None;
    }
    let length = body.len();
    let head = format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    Some([head.as_bytes(), body].concat())
}

/// What a client does when it has sent all it has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Listen,
    Leave,
}

/// All that a server says until it ends the connection, which it has to.
fn exchanged(door: SocketAddr, bytes: &[u8], after: After) -> Vec<u8> {
    let mut socket = TcpStream::connect(door).expect("it listens");
    socket.set_read_timeout(Some(PATIENCE)).expect("sockets have timeouts");
    let mut writer = socket.try_clone().expect("sockets can be had twice");
    let sent = bytes.to_vec();
    // Apart, for a server that is not read from does not read.
    let sender = thread::spawn(move || {
        // It may hang up before the end.
        let _ = writer.write_all(&sent);
        if after == After::Leave {
            let _ = writer.shutdown(Shutdown::Write);
        }
    });
    let mut answer = Vec::new();
    match socket.read_to_end(&mut answer) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("no end: {error}"),
        _ => {}
    }
    sender.join().expect("nothing in it panics");
    answer
}

/// Whether a server still answers `GET path` with success.
pub(crate) fn lives(door: SocketAddr, path: &str) -> bool {
    let answer = ask(door, format!("GET {path}\n").as_bytes());
    answer.bytes.starts_with(b"HTTP/1.1 200 ")
}

impl Answered {
    /// What kind of answer it is; panics where one is due and not whole.
    pub(crate) fn sketch(&self) -> String {
        let Some(end) = self.bytes.windows(4).position(|part| part == b"\r\n\r\n") else {
            assert!(!self.is_framed || self.bytes.is_empty(), "half an answer: {:?}", self.text());
            return format!("{} bytes", self.bytes.len().min(1));
        };
        let head = String::from_utf8_lossy(&self.bytes[..end]).to_ascii_lowercase();
        let body = &self.bytes[end + 4..];
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        if let (true, Some(length)) = (self.is_framed, field("content-length:")) {
            let length: usize = length.parse().expect("a length is a number");
            assert!(body.is_empty() || body.len() == length, "{} of {length} bytes", body.len());
        }
        let is_refused = head.starts_with("http/1.1 4") || head.starts_with("http/1.1 5");
        let is_json = field("content-type:").is_some_and(|kind| kind.starts_with("application/json"));
        if self.is_framed && is_refused && is_json && !body.is_empty() {
            serde_json::from_slice::<serde_json::Value>(body).expect("a refusal is JSON");
        }
        assert!(!head.starts_with("http/1.1 500"), "{}", self.text());
        let kind = field("transfer-encoding:").or(field("content-type:")).unwrap_or_default();
        let said = String::from_utf8_lossy(body);
        let said: String =
            if is_refused { crate::said::sketch(&said.replace('"', "")) } else { String::new() };
        format!("{} {kind} {said}", &head[..head.len().min(13)])
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.bytes.len().min(2000)]).into_owned()
    }
}
