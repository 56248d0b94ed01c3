//! One block, run by bash in the clone, within a limit, with an end to whatever it started.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::checkout::Checkout;

const POLL: Duration = Duration::from_millis(20);
/// What servers that a block started have to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// What is shown of a block that failed.
const SHOWN_LINES: usize = 30;

/// Runs a script; an error says how it ended and what it printed last.
pub(super) fn run(checkout: &Checkout, script: &str, limit: Duration) -> Result<(), String> {
    let mut child = start(checkout, script).map_err(|error| format!("bash: {error}"))?;
    let status = wait(&mut child, limit);
    end_group(&mut child);
    let problem = match status {
        Ok(Some(status)) if status.success() => return Ok(()),
        Ok(Some(status)) => status.to_string(),
        Ok(None) => format!("not over after {} s", limit.as_secs()),
        Err(error) => error.to_string(),
    };
    let _ = child.wait();
    let printed = fs::read(&checkout.log).unwrap_or_default();
    Err(format!("{problem}\n{}", last_lines(&String::from_utf8_lossy(&printed))))
}

/// In a process group of its own, so that all it starts can be ended.
fn start(checkout: &Checkout, script: &str) -> std::io::Result<Child> {
    // A file and not a pipe: who stays in the background would hold it open.
    let log = File::create(&checkout.log)?;
    let path = std::env::var("PATH").unwrap_or_default();
    let mut bash = Command::new("bash");
    bash.args(["-e", "-c", script]).current_dir(&checkout.tree).process_group(0);
    bash.env("PATH", format!("{}:{path}", checkout.programs.display()));
    bash.env("NO_COLOR", "1").env_remove("CARGO_TARGET_DIR");
    bash.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()
}

fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + limit;
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(Some(status)),
            None if Instant::now() >= deadline => return Ok(None),
            None => thread::sleep(POLL),
        }
    }
}

/// Asks everything that is left to end, and ends what does not.
fn end_group(child: &mut Child) {
    let Ok(id) = i32::try_from(child.id()) else { return };
    let group = Pid::from_raw(id);
    let deadline = Instant::now() + PATIENCE;
    let mut alive = killpg(group, Signal::SIGTERM).is_ok();
    while alive && Instant::now() < deadline {
        thread::sleep(POLL);
        // Whoever ended and was not waited for counts as alive.
        let _ = child.try_wait();
        alive = killpg(group, None).is_ok();
    }
    if alive {
        let _ = killpg(group, Signal::SIGKILL);
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(SHOWN_LINES);
    lines[from..].iter().map(|line| format!("    {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkout(folder: &tempfile::TempDir) -> Checkout {
        let path = folder.path().to_owned();
        Checkout { tree: path.clone(), programs: path.clone(), log: path.join("output.txt") }
    }

    fn ran(script: &str, seconds: u64) -> Result<(), String> {
        run(&checkout(&tempfile::tempdir().unwrap()), script, Duration::from_secs(seconds))
    }

    #[test]
    fn the_first_failure_ends_a_block_and_is_told() {
        assert_eq!(ran("a=1\ntest $a = 1\n", 60), Ok(()));
        let told = ran("echo before\nfalse\necho after\n", 60).unwrap_err();
        assert!(told.contains("exit status: 1") && told.contains("    before\n"), "{told}");
        assert!(!told.contains("after"), "{told}");
    }

    #[test]
    fn a_block_that_does_not_end_is_ended() {
        let told = ran("echo waiting\nsleep 600\n", 1).unwrap_err();
        assert!(told.starts_with("not over after 1 s") && told.contains("waiting"), "{told}");
    }

    /// Broken by: a group that is not ended, or a wait for everybody who holds the output.
    #[test]
    fn what_a_block_started_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let script = "sleep 600 &\necho $! > started\n";
        assert_eq!(run(&checkout(&folder), script, Duration::from_secs(60)), Ok(()));
        let started: i32 = fs::read_to_string(folder.path().join("started")).unwrap().trim().parse().unwrap();
        let state = fs::read_to_string(format!("/proc/{started}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
    }

    #[test]
    fn programs_of_the_clone_come_first() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("wavetank");
        fs::write(&program, "#!/bin/sh\necho ours > seen\n").unwrap();
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(run(&checkout(&folder), "wavetank\n", Duration::from_secs(60)), Ok(()));
        assert_eq!(fs::read_to_string(folder.path().join("seen")).unwrap(), "ours\n");
    }
}
