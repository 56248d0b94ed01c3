//! Real servers as child processes on free loopback ports.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    dead_code,
    reason = "a test fails by panicking, says what it skips, and not every one needs every server"
)]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tempfile::{NamedTempFile, TempDir};
use wavetank_store::backends::Site;

const START: Duration = Duration::from_secs(20);
pub(crate) const SECRET: &str = "hunter2hunter2hunter2";

/// A server; it ends with this.
pub(crate) struct Peer {
    child: Child,
    /// Where it listens.
    pub(crate) port: u16,
    folder: Arc<TempDir>,
}

/// `program` if it is there. Else the test is skipped, unless this run has to have it.
pub(crate) fn installed(program: &str, place: Option<PathBuf>) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = place.or_else(|| {
        std::env::split_paths(&paths).map(|folder| folder.join(program)).find(|path| path.is_file())
    });
    if found.is_none() {
        let required = std::env::var_os("WAVETANK_REQUIRE_PEERS").is_some_and(|value| value == "1");
        assert!(!required, "{program} is not installed, and WAVETANK_REQUIRE_PEERS is 1");
        println!("skipped: {program} is not installed");
    }
    found
}

impl Peer {
    /// Starts a server in a folder of its own; `command` gets the port and that folder.
    pub(crate) fn start(command: impl Fn(u16, &Path) -> Command) -> Self {
        Self::start_in(Arc::new(tempfile::tempdir().unwrap()), free_port(), command)
    }

    /// Starts a server again where one was, with what it left there.
    pub(crate) fn restart(self, command: impl Fn(u16, &Path) -> Command) -> Self {
        let (folder, port) = (Arc::clone(&self.folder), self.port);
        drop(self);
        Self::start_in(folder, port, command)
    }

    fn start_in(folder: Arc<TempDir>, port: u16, command: impl Fn(u16, &Path) -> Command) -> Self {
        let log = File::create(folder.path().join("log")).unwrap();
        let mut command = command(port, folder.path());
        command.current_dir(folder.path()).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let mut peer = Self { child: command.spawn().unwrap(), port, folder };
        let deadline = Instant::now() + START;
        while TcpStream::connect(peer.address()).is_err() {
            let log = || std::fs::read_to_string(peer.folder.path().join("log")).unwrap_or_default();
            assert!(peer.child.try_wait().unwrap().is_none(), "it ended: {}", log());
            assert!(Instant::now() < deadline, "it does not listen: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
        peer
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Stops it (`-STOP`): it takes connections and does not answer, the worst case. `-CONT` ends that.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nothing listens on, and that no other test of this process was given: the system may give one
/// twice before anyone listens on it.
pub(crate) fn free_port() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        if GIVEN.lock().unwrap_or_else(PoisonError::into_inner).insert(port) {
            return port;
        }
    }
}

/// A site with these options.
pub(crate) fn site(location: String, options: &[(&str, &str)]) -> Site {
    let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Site { location, capacity_bytes: None, options }
}

pub(crate) fn redis_command(
    program: PathBuf,
    password: Option<&'static str>,
) -> impl Fn(u16, &Path) -> Command {
    move |port, _| {
        let mut command = Command::new(&program);
        let port = port.to_string();
        command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        if let Some(password) = password {
            command.args(["--requirepass", password]);
        }
        command
    }
}

pub(crate) fn redis() -> Option<(Peer, PathBuf)> {
    let program = installed("redis-server", None)?;
    Some((Peer::start(redis_command(program.clone(), None)), program))
}

pub(crate) fn at_redis(peer: &Peer) -> Site {
    site(format!("redis://127.0.0.1:{}/0", peer.port), &[("timeout_s", "2")])
}

/// A server with a bucket, and who may use it.
pub(crate) struct S3 {
    pub(crate) peer: Peer,
    pub(crate) credentials: NamedTempFile,
}

pub(crate) type Variables = &'static [(&'static str, &'static str)];

pub(crate) fn moto_command(program: PathBuf, environment: Variables) -> impl Fn(u16, &Path) -> Command {
    move |port, _| {
        let mut command = Command::new(&program);
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]).envs(environment.iter().copied());
        command
    }
}

pub(crate) fn moto() -> Option<PathBuf> {
    installed("moto_server", std::env::var_os("WAVETANK_MOTO_SERVER").map(Into::into))
}

pub(crate) fn s3(environment: Variables) -> Option<S3> {
    let peer = Peer::start(moto_command(moto()?, environment));
    let s3 = S3 { peer, credentials: NamedTempFile::new().unwrap() };
    let text = format!("[default]\naws_access_key_id = somebody\naws_secret_access_key = {SECRET}\n");
    std::fs::write(s3.credentials.path(), text).unwrap();
    assert!(s3.tell("PUT", "/bucket", "").contains(" 200 "));
    Some(s3)
}

impl S3 {
    pub(crate) fn at(&self, location: &str) -> Site {
        let endpoint = format!("http://127.0.0.1:{}", self.peer.port);
        self.at_endpoint(location, &endpoint)
    }

    pub(crate) fn at_endpoint(&self, location: &str, endpoint: &str) -> Site {
        let credentials = self.credentials.path().to_str().unwrap();
        let options = [("endpoint", endpoint), ("credentials_file", credentials), ("timeout_s", "3")];
        site(location.to_owned(), &options)
    }

    /// Sends a request without a signature, which this server does not need, and gives the whole answer.
    pub(crate) fn tell(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.peer.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n");
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }
}
