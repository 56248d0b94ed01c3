//! A server under measurement: started, asked what it has spent, ended.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::FOLDER;
use crate::process::release_binary;

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Redis,
    Ours,
    OursWithSpans,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Redis, Self::Ours, Self::OursWithSpans];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis-server",
            Self::Ours => "wavetank",
            Self::OursWithSpans => "wavetank, spans",
        }
    }

    fn command(self, port: u16) -> Command {
        let port = port.to_string();
        let mut command = pinned(Side::Server);
        match self {
            Self::Redis => command.arg("redis-server"),
            Self::Ours | Self::OursWithSpans => command.arg(release_binary()),
        };
        match self {
            Self::Redis => command.args(["--port", &port, "--save", "", "--appendonly", "no"]),
            Self::Ours | Self::OursWithSpans => command.args([
                "serve",
                "--l1-size-gb",
                "4",
                "--eviction-policy",
                "LRU",
                "--port",
                &port,
                "--http-port",
                "0",
                // As many as Redis has, and its client.
                "--resp-threads",
                "1",
            ]),
        };
        if self == Self::OursWithSpans {
            command.args(["--enable-tracing", "--otlp-file", &format!("{FOLDER}/spans.jsonl")]);
        }
        command
    }
}

/// Who of the two a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// A program, to be named, on its own CPUs: the client has the first and the server the others, where there
/// are some. Otherwise the kernel has both on one now and then, and that is what is measured.
pub(super) fn pinned(side: Side) -> Command {
    let last = thread::available_parallelism().map_or(0, |count| count.get() - 1);
    let cpus = match side {
        Side::Client => "0".to_owned(),
        Side::Server => format!("{}-{last}", last.min(1)),
    };
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &cpus]);
    command
}

/// CPU seconds of a process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spent {
    pub(super) user_s: f64,
    pub(super) kernel_s: f64,
}

impl Spent {
    pub(super) fn all(self) -> f64 {
        self.user_s + self.kernel_s
    }

    pub(super) fn since(self, earlier: Self) -> Self {
        Self { user_s: self.user_s - earlier.user_s, kernel_s: self.kernel_s - earlier.kernel_s }
    }
}

/// A server that runs; dropping it ends it.
pub(super) struct Server {
    child: Child,
    port: u16,
}

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(20);
/// Ticks of /proc: `getconf CLK_TCK` says so on every Linux of today.
const TICKS_PER_S: f64 = 100.0;

impl Server {
    pub(super) fn start(kind: Kind) -> Result<Self, String> {
        fs::create_dir_all(FOLDER).map_err(|e| format!("{FOLDER}: {e}"))?;
        let port = free_port()?;
        let mut command = kind.command(port);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut server = Self { child: child.map_err(|e| format!("{}: {e}", kind.name()))?, port };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = server.child.try_wait().map_err(|e| e.to_string())?;
            if ended.is_some() || begun.elapsed() > PATIENCE {
                return Err(format!("{} does not start: {}", kind.name(), server.complaint()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn spent(&self) -> Result<Spent, String> {
        let text = self.proc("stat")?;
        ticks(&text).ok_or_else(|| format!("no times in {text}"))
    }

    /// Bytes of memory it has touched and not given back.
    pub(super) fn resident_bytes(&self) -> Result<u64, String> {
        let text = self.proc("status")?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        kib.map(|kib| kib * 1024).ok_or_else(|| "no VmRSS".to_owned())
    }

    fn proc(&self, name: &str) -> Result<String, String> {
        let path = format!("/proc/{}/{name}", self.child.id());
        fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))
    }

    /// Its last words.
    fn complaint(&mut self) -> String {
        let _ = self.child.kill();
        let lines = self.child.stderr.take().into_iter().flat_map(|out| BufReader::new(out).lines());
        lines.map_while(Result::ok).last().unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// User and kernel time: fields 14 and 15, counted after the name, which may hold anything.
fn ticks(stat: &str) -> Option<Spent> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11).map(|field| field.parse::<f64>().ok());
    Some(Spent { user_s: fields.next()?? / TICKS_PER_S, kernel_s: fields.next()?? / TICKS_PER_S })
}

/// A port that nobody has right now.
fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|e| format!("no port: {e}"))?;
    listener.local_addr().map(|address| address.port()).map_err(|e| format!("no port: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_after_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 250 125 0 0 20 0 1 0 5 6";
        assert_eq!(ticks(stat), Some(Spent { user_s: 2.5, kernel_s: 1.25 }));
        assert_eq!(ticks("nothing"), None);
    }
}
