//! `wavetank serve` under torture: started on ports of its own, asked over both doors.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::child::{Ended, Running};
use super::redis::Redis;
use super::round::{LIMIT, Round};

const POLL: Duration = Duration::from_millis(5);
/// The longest answer of `/status` takes less.
const ANSWER: Duration = Duration::from_secs(20);

/// A server that runs.
pub(super) struct Server {
    pub(super) running: Running,
    resp: SocketAddr,
    http: SocketAddr,
}

impl Server {
    /// Starts one with these flags.
    pub(super) fn start(round: &mut Round, flags: &[String]) -> Result<Self, String> {
        let ports = ["serve", "--port", "0", "--http-port", "0"].map(str::to_owned);
        let words: Vec<String> = ports.into_iter().chain(flags.iter().cloned()).collect();
        let command = round.command(&words);
        Self::await_doors(round, command)
    }

    /// The same, however it is started.
    pub(super) fn await_doors(round: &mut Round, command: Command) -> Result<Self, String> {
        let mut running = round.start(command)?;
        let deadline = Instant::now() + LIMIT;
        loop {
            let said = running.said();
            let doors = address(&said, "redis://").zip(address(&said, "http://"));
            if let Some((resp, http)) = doors.filter(|_| said.contains('\n')) {
                return Ok(Self { running, resp, http });
            }
            if running.has_ended()? || Instant::now() > deadline {
                let ended = running.finish(Duration::ZERO)?;
                return Err(ended.problem(&format!("it does not serve: {}", ended.status)));
            }
            thread::sleep(POLL);
        }
    }

    pub(super) fn redis(&self) -> Result<Redis, String> {
        Redis::connect(self.resp).map_err(|e| format!("redis://{}: {e}", self.resp))
    }

    /// What `/status` says.
    pub(super) fn status(&self) -> Result<Value, String> {
        let body = self.get("/status").map_err(|e| format!("/status: {e}"))?;
        serde_json::from_str(&body).map_err(|e| format!("/status: {e}"))
    }

    fn get(&self, path: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(self.http)?;
        stream.set_read_timeout(Some(ANSWER))?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.split_once("\r\n\r\n").map_or_else(String::new, |(_, body)| body.to_owned()))
    }

    /// Waits until nothing is on its way to the tier behind memory, which has all then. An error says that
    /// it does not come to that.
    pub(super) fn settle(&self) -> Result<(), String> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let status = self.status()?;
            let tier = &status["tiers"][1];
            if status["in_flight"]["l2_stores"] == 0 && tier["entries"] == status["entries"] {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("the tier behind memory does not settle: {status}"));
            }
            thread::sleep(POLL);
        }
    }

    /// Ends it without a warning; nothing else may have ended it.
    pub(super) fn kill(mut self) -> Result<Ended, String> {
        self.running.signal(Signal::SIGKILL)?;
        self.running.finish(LIMIT)?.was_killed()
    }

    /// Ends it as a system does; it must end well.
    pub(super) fn end(mut self) -> Result<Ended, String> {
        self.running.signal(Signal::SIGTERM)?;
        self.running.finish(LIMIT)?.with(&[0])
    }
}

/// The address after `mark` in what a server says first.
fn address(said: &str, mark: &str) -> Option<SocketAddr> {
    said.split_once(mark)?.1.split([' ', ',', '\n']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that is no more than a script.
    fn server(script: &str) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        let running = Running::start(command.args(["-c", script]), script.to_owned(), folder.path(), "sh");
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        Server { running: running.unwrap(), resp: nowhere, http: nowhere }
    }

    /// Broken by: a server that crashed or ended by itself and is taken for one that was killed.
    #[test]
    fn who_ended_before_was_not_killed() {
        assert!(server("exec sleep 60").kill().is_ok());
        let killed_by_hand = || {
            let mut server = server("exec sleep 60");
            server.running.signal(Signal::SIGKILL)?;
            server.running.wait(LIMIT)?;
            server.kill()
        };
        assert!(killed_by_hand().is_ok());
        for script in ["exit 0", "kill -ABRT $$", "kill -TERM $$"] {
            let mut ended = server(script);
            ended.running.wait(LIMIT).unwrap();
            assert!(ended.kill().is_err_and(|problem| problem.contains(script)), "{script}");
        }
    }
}
