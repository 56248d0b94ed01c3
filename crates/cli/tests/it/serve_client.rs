//! A server under test, and the least of an HTTP client.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::sandbox::{Run, Sandbox, WAVETANK};

/// What takes longer hangs.
const LIMIT: Duration = Duration::from_secs(20);

/// A server that runs; it is killed if the test ends first.
pub(crate) struct Server {
    child: Child,
    /// By Redis clients.
    pub(crate) resp: SocketAddr,
    /// By HTTP.
    pub(crate) http: SocketAddr,
    stderr: Option<JoinHandle<String>>,
}

impl Server {
    /// Starts one on ports of its own with the words of `flags`.
    pub(crate) fn start(sandbox: &Sandbox, flags: &str) -> Self {
        Self::start_with(sandbox, flags, &[])
    }

    /// The same with variables in its environment.
    pub(crate) fn start_with(sandbox: &Sandbox, flags: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(WAVETANK);
        command.args("serve --port 0 --http-port 0".split(' ')).args(flags.split_whitespace());
        command.current_dir(sandbox.path("")).env("TMPDIR", sandbox.path("")).env("NO_COLOR", "1");
        command.env_remove("WAVETANK_PASSWORD").envs(variables.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut first = String::new();
        stderr.read_line(&mut first).expect("a line");
        let addresses = address(&first, "redis://").zip(address(&first, "http://"));
        let (resp, http) = addresses.unwrap_or_else(|| {
            let mut rest = String::new();
            let _ = stderr.read_to_string(&mut rest);
            panic!("{flags}: {first}{rest}")
        });
        let stderr = thread::spawn(move || {
            let mut rest = String::new();
            stderr.read_to_string(&mut rest).expect("output in UTF-8");
            rest
        });
        Self { child, resp, http, stderr: Some(stderr) }
    }

    pub(crate) fn request(&self, method: &str, path: &str, body: &[u8]) -> Response {
        self.request_with(method, path, &[], body)
    }

    pub(crate) fn request_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        let mut stream = self.connect();
        let head = head(method, path, headers, body.len());
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).expect("it takes a request");
        Response::read(stream)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.http).expect("it listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a socket");
        stream
    }

    /// A Redis client of it.
    pub(crate) fn redis(&self) -> Redis {
        let stream = TcpStream::connect(self.resp).expect("it listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a socket");
        Redis(BufReader::new(stream))
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.request("GET", path, b"")
    }

    /// Posts JSON; the answer must be right.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Response {
        let answer = self.request("POST", path, body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{path} {body}: {}", answer.text());
        answer
    }

    pub(crate) fn status(&self) -> Value {
        self.get("/status?history=600").json()
    }

    pub(crate) fn signal(&self, name: &str) {
        let kill = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(kill.expect("kill runs").success());
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Run {
        let deadline = Instant::now() + LIMIT;
        let status = loop {
            match self.child.try_wait().expect("a child") {
                Some(status) => break status,
                None => assert!(Instant::now() < deadline, "it has not ended in {LIMIT:?}"),
            }
            thread::sleep(Duration::from_millis(2));
        };
        let mut stdout = String::new();
        self.child.stdout.take().expect("a pipe").read_to_string(&mut stdout).expect("output in UTF-8");
        let stderr = self.stderr.take().expect("it ends once").join().expect("output in UTF-8");
        Run { stdout, stderr, code: status.code() }
    }

    /// Ends it as a system does.
    pub(crate) fn end(self) -> Run {
        self.signal("-TERM");
        let run = self.finish();
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        run
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address after `mark` in the line that says where the server is.
fn address(line: &str, mark: &str) -> Option<SocketAddr> {
    line.split_once(mark)?.1.split([' ', ',', '\n']).next()?.parse().ok()
}

/// A connection of a Redis client.
pub(crate) struct Redis(BufReader<TcpStream>);

impl Redis {
    /// The answer to a command, without its type; nothing for nil. An error is one, as is a server
    /// that is gone.
    pub(crate) fn ask(&mut self, words: &[&[u8]]) -> io::Result<Option<Vec<u8>>> {
        let mut command = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            command.extend(format!("${}\r\n", word.len()).into_bytes());
            command.extend_from_slice(word);
            command.extend(b"\r\n");
        }
        self.0.get_mut().write_all(&command)?;
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let line = line.strip_suffix("\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        match line.split_at(1) {
            ("$", "-1") | ("_", "") => Ok(None),
            ("$", length) => {
                let mut bytes = vec![0; length.parse::<usize>().map_err(io::Error::other)? + 2];
                self.0.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Ok(Some(bytes))
            }
            ("+" | ":", rest) => Ok(Some(rest.as_bytes().to_vec())),
            _ => Err(io::Error::other(line.to_owned())),
        }
    }
}

/// The lines before a body.
pub(crate) fn head(method: &str, path: &str, headers: &[(&str, &str)], length: usize) -> String {
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let first = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    format!("{first}content-length: {length}\r\n{more}\r\n")
}

/// What a server answered.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// Reads to the end of the connection.
    pub(crate) fn read(mut stream: TcpStream) -> Self {
        let mut all = Vec::new();
        // Who was refused before all was sent may see the connection reset after the answer.
        let ended = stream.read_to_end(&mut all);
        let split = all.windows(4).position(|four| four == b"\r\n\r\n");
        let split = split.unwrap_or_else(|| panic!("no answer: {ended:?}"));
        let head = String::from_utf8_lossy(&all[..split]).to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        Self { status, head, body: all[split + 4..].to_vec() }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The objects of a body, by index.
    pub(crate) fn frames(&self) -> Vec<(u32, Vec<u8>)> {
        let (mut frames, mut rest) = (Vec::new(), &self.body[..]);
        while !rest.is_empty() {
            let index = u32::from_le_bytes(rest[..4].try_into().expect("four bytes"));
            let length = u64::from_le_bytes(rest[4..12].try_into().expect("eight bytes")) as usize;
            frames.push((index, rest[12..12 + length].to_vec()));
            rest = &rest[12 + length..];
        }
        frames
    }
}

/// An object as it travels.
pub(crate) fn frame(index: u32, bytes: &[u8]) -> Vec<u8> {
    [&index.to_le_bytes()[..], &(bytes.len() as u64).to_le_bytes(), bytes].concat()
}
