//! Processes under torture: started in a folder, signalled, waited for within a limit, and ended with the
//! round whatever happens.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use std::os::unix::process::ExitStatusExt as _;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const POLL: Duration = Duration::from_millis(2);
/// What a command says about itself when it is the command that is wrong.
const BROKEN: [&str; 4] = [
    "panicked at",
    "has overflowed its stack",
    "memory allocation of",
    "internal error: entered unreachable",
];
/// How much of a text a problem shows.
const SHOWN: usize = 1500;

/// A process that runs; it is killed if it is dropped first.
pub(super) struct Running {
    child: Child,
    /// As a person would type it.
    line: String,
    output: [PathBuf; 2],
}

/// How a process ended.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) stdout: String,
    pub(super) stderr: String,
    line: String,
}

impl Running {
    /// Starts `command`; what it says goes to files of this name in `folder`.
    pub(super) fn start(
        command: &mut Command,
        line: String,
        folder: &Path,
        name: &str,
    ) -> Result<Self, String> {
        let output = ["stdout", "stderr"].map(|stream| folder.join(format!("{name}.{stream}")));
        let create = |path: &PathBuf| File::create(path).map_err(|e| format!("{}: {e}", path.display()));
        command.stdin(Stdio::null()).stdout(create(&output[0])?).stderr(create(&output[1])?);
        let child = command.spawn().map_err(|e| format!("{line}: {e}"))?;
        Ok(Self { child, line, output })
    }

    /// Sends a signal; to one that has ended, nothing.
    pub(super) fn signal(&mut self, signal: Signal) -> Result<(), String> {
        if self.has_ended()? {
            return Ok(());
        }
        let id = Pid::from_raw(i32::try_from(self.child.id()).map_err(|e| e.to_string())?);
        kill(id, signal).map_err(|e| format!("{signal} to {}: {e}", self.line))
    }

    /// What it has said so far on standard error.
    pub(super) fn said(&self) -> String {
        text(&self.output[1])
    }

    /// Whether it has ended; it stays to be waited for.
    pub(super) fn has_ended(&mut self) -> Result<bool, String> {
        Ok(self.child.try_wait().map_err(|e| format!("{}: {e}", self.line))?.is_some())
    }

    /// Waits for its end; one that takes longer than `limit` hangs, which is a problem.
    pub(super) fn finish(mut self, limit: Duration) -> Result<Ended, String> {
        let status = self.wait(limit)?;
        let status = status
            .ok_or_else(|| format!("it has not ended in {limit:?}: {}\n{}", self.line, cut(&self.said())))?;
        let [stdout, stderr] = self.output.each_ref().map(|path| text(path));
        Ok(Ended { status, stdout, stderr, line: self.line.clone() })
    }

    /// Waits for its end as long as `limit`.
    pub(super) fn wait(&mut self, limit: Duration) -> Result<Option<ExitStatus>, String> {
        let deadline = Instant::now() + limit;
        loop {
            let ended = self.child.try_wait().map_err(|e| format!("{}: {e}", self.line))?;
            if ended.is_some() || Instant::now() >= deadline {
                return Ok(ended);
            }
            thread::sleep(POLL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(path: &Path) -> String {
    fs::read(path).map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

impl Ended {
    /// Ended by itself with one of `codes`, and said nothing that only a broken program says.
    pub(super) fn with(self, codes: &[i32]) -> Result<Self, String> {
        self.is_sound()?;
        match self.status.code() {
            Some(code) if codes.contains(&code) => Ok(self),
            _ => Err(self.problem(&format!("{}, not one of the codes {codes:?}", self.status))),
        }
    }

    /// No panic, no abort, no crash.
    pub(super) fn is_sound(&self) -> Result<(), String> {
        if let Some(said) = BROKEN.iter().find(|said| self.stderr.contains(**said)) {
            return Err(self.problem(&format!("it says `{said}`")));
        }
        let crashes = [Signal::SIGABRT, Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGILL, Signal::SIGFPE];
        match self.status.signal() {
            Some(signal) if crashes.iter().any(|crash| *crash as i32 == signal) => {
                Err(self.problem(&format!("it crashed: {}", self.status)))
            }
            _ => Ok(()),
        }
    }

    /// Ended by a kill and by nothing before it.
    pub(super) fn was_killed(self) -> Result<Self, String> {
        self.is_sound()?;
        match self.status.signal() {
            Some(signal) if signal == Signal::SIGKILL as i32 => Ok(self),
            _ => Err(self.problem(&format!("it ended before it was killed: {}", self.status))),
        }
    }

    pub(super) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// A problem with this run, with the command and what it said.
    pub(super) fn problem(&self, what: &str) -> String {
        format!("{what}\n  command: {}\n  standard error: {}", self.line, cut(&self.stderr))
    }
}

/// The beginning and the end of a long text.
fn cut(text: &str) -> String {
    let text = text.trim();
    let count = text.chars().count();
    if count <= SHOWN {
        return text.to_owned();
    }
    let first: String = text.chars().take(SHOWN / 2).collect();
    let last: String = text.chars().skip(count - SHOWN / 2).collect();
    format!("{first} [… {} characters …] {last}", count - SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(script: &str) -> Ended {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        let running = Running::start(command.args(["-c", script]), script.to_owned(), folder.path(), "sh");
        running.unwrap().finish(Duration::from_secs(20)).unwrap()
    }

    /// Broken by: an exit code that is taken for granted, a panic that is overlooked, a crash that counts as
    /// an end.
    #[test]
    fn only_an_orderly_end_is_one() {
        assert!(ended("exit 2").with(&[0, 2]).is_ok());
        assert!(ended("exit 3").with(&[0, 2]).is_err_and(|problem| problem.contains("exit 3")));
        assert!(ended("echo thread main panicked at x >&2").with(&[0]).is_err());
        assert!(ended("kill -ABRT $$").is_sound().is_err());
        assert!(ended("kill -TERM $$").is_sound().is_ok());
    }

    #[test]
    fn what_hangs_is_a_problem_and_ends() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sleep");
        let running =
            Running::start(command.arg("60"), "sleep 60".to_owned(), folder.path(), "sleep").unwrap();
        let id = running.child.id();
        assert!(running.finish(Duration::from_millis(50)).is_err());
        assert!(!Path::new(&format!("/proc/{id}")).exists());
    }
}
