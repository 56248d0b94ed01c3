//! One scenario with one seed: its draws, its folder, and the command it tortures.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::child::{Ended, Running};
use super::draw::Draw;
use crate::process::quoted;

/// A run that takes longer hangs: the longest takes some seconds, also where other work is done.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// What a scenario works with.
pub(super) struct Round {
    pub(super) draw: Draw,
    /// Its own, empty at the beginning, absolute.
    pub(super) folder: PathBuf,
    /// Things that were checked.
    pub(super) cases: u64,
    /// What could not be done on this machine.
    pub(super) notes: Vec<String>,
    binary: PathBuf,
    started: u64,
}

impl Round {
    /// In a folder that is made for it.
    pub(super) fn begin(seed: u64, name: &str, binary: &Path, folder: PathBuf) -> Result<Self, String> {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("tmp")).map_err(|e| format!("{}: {e}", folder.display()))?;
        let draw = Draw::of(seed, name);
        Ok(Self { draw, folder, cases: 0, notes: Vec::new(), binary: binary.to_owned(), started: 0 })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<(), String> {
        fs::write(self.path(name), content).map_err(|e| format!("{name}: {e}"))
    }

    pub(super) fn read(&self, name: &str) -> Result<String, String> {
        fs::read_to_string(self.path(name)).map_err(|e| format!("{name}: {e}"))
    }

    pub(super) fn json(&self, name: &str) -> Result<Value, String> {
        serde_json::from_str(&self.read(name)?).map_err(|e| format!("{name}: {e}"))
    }

    /// Removes what earlier cases left under these names.
    pub(super) fn remove(&self, names: &[&str]) {
        for name in names {
            let path = self.path(name);
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
    }

    /// The command in the round's folder, with nothing of this environment that changes what it does.
    pub(super) fn command(&self, words: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(&self.binary);
        self.settle(&mut command);
        command.args(words);
        command
    }

    /// The same through a shell's `prefix`, such as limits.
    pub(super) fn limited(&self, prefix: &str, words: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new("sh");
        self.settle(&mut command);
        command.arg("-c").arg(format!("{prefix}; exec \"$0\" \"$@\"")).arg(&self.binary).args(words);
        command
    }

    /// The same, hearing every signal, whoever ignores some here: `nohup` hangups, a shell's `&` Ctrl-C.
    pub(super) fn hearing(&self, words: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new("env");
        self.settle(&mut command);
        command.arg("--default-signal").arg(&self.binary).args(words);
        command
    }

    fn settle(&self, command: &mut Command) {
        command.current_dir(&self.folder).env("TMPDIR", self.path("tmp")).env("NO_COLOR", "1");
        for name in ["WAVETANK_PASSWORD", "WAVETANK_API_KEY", "RUST_BACKTRACE", "RUST_MIN_STACK"] {
            command.env_remove(name);
        }
    }

    pub(super) fn start(&mut self, mut command: Command) -> Result<Running, String> {
        self.started += 1;
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let line = words.map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ");
        let folder = self.path("tmp");
        Running::start(&mut command, line, &folder, &format!("run{}", self.started))
    }

    /// Runs the command with these words to its end.
    pub(super) fn run(&mut self, words: &[impl AsRef<OsStr>]) -> Result<Ended, String> {
        let command = self.command(words);
        self.start(command)?.finish(LIMIT)
    }

    /// Runs one that must succeed.
    pub(super) fn done(&mut self, words: &[impl AsRef<OsStr>]) -> Result<Ended, String> {
        self.run(words)?.with(&[0])
    }
}

/// Whether something that should hold does; what does not is said by `problem`.
pub(super) fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem()) }
}

/// The words of a line, for flags without spaces.
pub(super) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}
