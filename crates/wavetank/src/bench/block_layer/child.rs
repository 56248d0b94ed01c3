//! bpftrace as a child: started before the run, ended by SIGINT after it, what it printed.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::script::ATTACHED;

/// How long it may take to look at everything: it compiles its program first.
const START: Duration = Duration::from_secs(60);
/// How long it may take to print what it has.
const END: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(10);
/// Its maps hold this many keys: as many requests may be under way.
const KEYS: &str = "16384";

/// A bpftrace that looks.
pub(super) struct Child {
    process: std::process::Child,
    printed: JoinHandle<String>,
    said: JoinHandle<String>,
}

impl Child {
    /// Runs `script`, and waits until it looks; an error says why it does not.
    pub(super) fn start(bpftrace: &Path, script: &str) -> Result<Self, String> {
        let mut process = Command::new(bpftrace)
            // It ends when this process does, however that comes about.
            .args(["-B", "line", "-p", &std::process::id().to_string(), "-e", script])
            // Before and after 0.20.
            .env("BPFTRACE_MAP_KEYS_MAX", KEYS)
            .env("BPFTRACE_MAX_MAP_KEYS", KEYS)
            // Ctrl-C is for us: it goes on until it is told.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", bpftrace.display()))?;
        let (attached, wait) = channel();
        let out = process.stdout.take().expect("it is piped");
        let mut err = process.stderr.take().expect("it is piped");
        let printed = std::thread::spawn(move || lines(out, &attached));
        let said = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = err.read_to_string(&mut text);
            text
        });
        let child = Self { process, printed, said };
        match wait.recv_timeout(START) {
            Ok(()) => Ok(child),
            Err(_) => Err(child.give_up("it did not begin")),
        }
    }

    /// Ends it and gives what it printed.
    pub(super) fn finish(mut self) -> Result<String, String> {
        if let Some(pid) = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::INT);
        }
        match self.wait(END) {
            Some(status) if status.success() => Ok(self.printed.join().unwrap_or_default()),
            Some(status) => Err(self.give_up(&format!("it ended with {status}"))),
            None => Err(self.give_up("it did not end")),
        }
    }

    fn wait(&mut self, most: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + most;
        loop {
            match self.process.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < until => std::thread::sleep(POLL),
                _ => return None,
            }
        }
    }

    /// Makes sure that it is gone; gives what it complained about.
    fn give_up(mut self, why: &str) -> String {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let said = self.said.join().unwrap_or_default();
        let said: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if said.is_empty() { why.to_owned() } else { format!("{why}: {}", said.join("; ")) }
    }
}

/// All that is printed; `attached` is told when it says so.
fn lines(out: ChildStdout, attached: &Sender<()>) -> String {
    let mut text = String::new();
    let mut out = BufReader::new(out);
    loop {
        let before = text.len();
        match out.read_line(&mut text) {
            Ok(0) | Err(_) => return text,
            Ok(_) if text[before..].trim() == ATTACHED => drop(attached.send(())),
            Ok(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_program::write_program;

    /// A program that is no bpftrace. A shell cannot trap what was ignored when it began, and in the
    /// background of another shell the interrupt is.
    fn stand_in(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bpftrace");
        write_program(&path, &format!("#!/usr/bin/env -S --default-signal=INT sh\n{text}\n"));
        (folder, path)
    }

    /// Broken by: another signal, an end that is not waited for, output that is read only before it.
    #[test]
    fn what_it_prints_when_it_is_told_to_end() {
        let script = "trap 'echo \"@phase: 2\"; exit 0' INT; echo attached; while :; do sleep 0.01; done";
        let (_folder, path) = stand_in(script);
        let text = Child::start(&path, "BEGIN { }").and_then(Child::finish).unwrap();
        assert_eq!(text, "attached\n@phase: 2\n");
    }

    #[test]
    fn what_it_complains_about_is_told() {
        let (_folder, path) = stand_in("echo 'no such probe' >&2; exit 1");
        let told = Child::start(&path, "").err().unwrap();
        assert_eq!(told, "it did not begin: no such probe");
        let (_folder, path) =
            stand_in("trap 'echo lost >&2; exit 3' INT; echo attached; while :; do sleep 0.01; done");
        let told = Child::start(&path, "").and_then(Child::finish).unwrap_err();
        assert_eq!(told, "it ended with exit status: 3: lost");
        let gone = Child::start(Path::new("/nowhere/bpftrace"), "").err().unwrap();
        assert!(gone.starts_with("cannot start /nowhere/bpftrace: "), "{gone}");
    }
}
