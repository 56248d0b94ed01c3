//! Clients that exist, on servers as users start them: Redis' own tools and Python package on the cache
//! server, OpenAI's package on the mock.
//!
//! They are installed by `cargo xtask peers`; `WAVETANK_REQUIRE_PEERS=1` says that they have to be there.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::sandbox::{Running, Sandbox};

const SOON: Duration = Duration::from_secs(30);
/// What a Python client of every protocol does.
const PYTHON: &str = include_str!("clients/redis_client.py");
/// What OpenAI's package does.
const OPENAI: &str = include_str!("clients/openai_client.py");

/// Whether a program is there; it has to be where peers are required.
#[allow(clippy::print_stderr, reason = "what is skipped is said")]
pub(crate) fn is_there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success());
    let is_required = std::env::var_os("WAVETANK_REQUIRE_PEERS").is_some_and(|value| value == "1");
    assert!(found || !is_required, "{program} is not installed, and WAVETANK_REQUIRE_PEERS is 1");
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

/// The Python that has the clients' packages.
pub(crate) fn python() -> Option<PathBuf> {
    let named = std::env::var_os("WAVETANK_PYTHON").map(PathBuf::from);
    let usual =
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/clients/bin/python"));
    let python = named.unwrap_or_else(usual);
    is_there(&python.display().to_string()).then_some(python)
}

/// A server in a sandbox, and where it listens.
struct Served {
    sandbox: Sandbox,
    running: Running,
    port: String,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

impl Served {
    fn start(flags: &str) -> Self {
        Self::start_verb(&format!("serve --eviction-policy LRU --http-port 0 {flags}"))
    }

    fn start_verb(line: &str) -> Self {
        let sandbox = Sandbox::empty();
        let port = free_port();
        let line = format!("{line} --port {port}");
        let mut running = sandbox.start(&line, Stdio::null());
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if running.has_ended() {
                panic!("the server ended: {}", running.finish(SOON).stderr);
            }
            assert!(begun.elapsed() < SOON, "the server does not start");
            thread::sleep(Duration::from_millis(20));
        }
        Self { sandbox, running, port: port.to_string() }
    }

    fn cli(&self, words: &[&str]) -> String {
        said(Command::new("redis-cli").args(["-p", &self.port]).args(words))
    }

    fn end(self) {
        self.running.interrupt();
        let run = self.running.finish(SOON);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
    }
}

fn said(command: &mut Command) -> String {
    let output = command.output().expect("the client starts");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{error}");
    out.trim_end().to_owned()
}

/// Broken by: replies that only look like the protocol.
#[test]
fn redis_cli_works_as_with_redis() {
    if !is_there("redis-cli") {
        return;
    }
    let served = Served::start("--l1-size-gb 0.1");
    assert_eq!(served.cli(&["ping"]), "PONG");
    assert_eq!(served.cli(&["set", "a", "one two"]), "OK");
    assert_eq!(served.cli(&["get", "a"]), "one two");
    assert_eq!(served.cli(&["-3", "mget", "a", "b"]), "one two");
    assert_eq!(served.cli(&["exists", "a", "a", "b"]), "2");
    assert_eq!(served.cli(&["getrange", "a", "-3", "-1"]), "two");
    assert_eq!(served.cli(&["del", "a"]), "1");
    assert!(served.cli(&["flushall"]).contains("ERR"), "it is off unless enabled");
    assert!(served.cli(&["incr", "a"]).starts_with("ERR unknown command 'incr'"));
    assert!(served.cli(&["info"]).contains("redis_version:"));
    let policy = served.cli(&["config", "get", "maxmemory-policy"]);
    assert!(policy.ends_with("allkeys-lru"), "{policy}");
    // Of a file, by standard input: bytes that are no text.
    let bytes: Vec<u8> = (0..200_000u32).map(|at| (at % 251) as u8).collect();
    served.sandbox.write("value", &bytes);
    let input = std::fs::File::open(served.sandbox.path("value")).expect("a file");
    let stored = said(Command::new("redis-cli").args(["-p", &served.port, "-x", "set", "big"]).stdin(input));
    assert_eq!(stored, "OK");
    assert_eq!(served.cli(&["strlen", "big"]), "200000");
    let got = Command::new("redis-cli").args(["-p", &served.port, "--raw", "get", "big"]).output();
    assert_eq!(got.expect("a reply").stdout[..bytes.len()], bytes);
    served.end();
}

/// Broken by: an order of replies, or a reply left out, under pipelining.
#[test]
fn redis_benchmark_works_as_with_redis() {
    if !is_there("redis-benchmark") {
        return;
    }
    let served = Served::start("--l1-size-gb 0.1");
    let bench = |words: &[&str]| {
        said(Command::new("redis-benchmark").args(["-p", &served.port, "--csv"]).args(words))
    };
    for words in [
        &["-t", "ping,set,get,mset", "-n", "5000", "-r", "100"][..],
        &["-t", "set,get", "-n", "5000", "-P", "32", "-c", "20", "-r", "100"],
        &["-t", "set,get", "-n", "200", "-d", "300000", "-c", "5", "-r", "10"],
        &["-t", "get", "-n", "2000", "-3", "--threads", "2"],
    ] {
        let told = bench(words);
        let rates =
            told.lines().skip(1).map(|line| line.split(',').nth(1).expect("a rate").trim_matches('"'));
        let rates: Vec<f64> = rates.map(|rate| rate.parse().expect("a number")).collect();
        assert!(!rates.is_empty() && rates.iter().all(|rate| *rate > 0.0), "{told}");
    }
    served.end();
}

/// Broken by: a reply of a type that the package does not turn into what its users know.
#[test]
fn the_python_package_works_as_with_redis() {
    let Some(python) = python() else { return };
    let served = Served::start("--l1-size-gb 0.3 --enable-flushall");
    let told = said(Command::new(python).args(["-c", PYTHON, &served.port]));
    assert_eq!(told, "protocol 2: as expected\nprotocol 3: as expected");
    served.end();
}

/// Broken by: an answer, a chunk or an error that the package does not turn into what its users know.
#[test]
fn the_openai_package_works_as_with_vllm() {
    let Some(python) = python() else { return };
    let flags = "--model tank --api-key sesame --max-model-len 8192 --num-workers 2 --router-mode kv_router";
    let served = Served::start_verb(&format!("mock {flags}"));
    let base = format!("http://127.0.0.1:{}", served.port);
    assert_eq!(said(Command::new(python).args(["-c", OPENAI, &base, "sesame"])), "all as expected");
    served.end();
}
