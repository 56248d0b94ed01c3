//! An empty directory to run the command in, with nothing of the caller's environment that changes output.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::report::Report;

/// A run that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(2);

/// The command.
pub(crate) const WAVETANK: &str = env!("CARGO_BIN_EXE_wavetank");
/// A row that is right in every respect.
pub(crate) const GOOD_ROW: &str = r#"{"timestamp":0,"input_length":64,"output_length":2,"hash_ids":[1]}"#;

/// A directory of one test; commands run in it.
pub(crate) struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    pub(crate) fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary directory") }
    }

    /// On the drive that the build is on: a temporary directory may be memory.
    pub(crate) fn on_disk() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"));
        Self { folder: folder.expect("a temporary directory") }
    }

    /// With a copy of the repository's examples in `examples/`.
    pub(crate) fn with_examples() -> Self {
        let sandbox = Self::empty();
        for example in examples() {
            let content = fs::read(repository().join(&example)).expect("an example");
            sandbox.write(&example, content);
        }
        sandbox
    }

    /// With `trace.jsonl` made of `rows`.
    pub(crate) fn with_trace(rows: &[&str]) -> Self {
        let sandbox = Self::empty();
        sandbox.write("trace.jsonl", rows.join("\n") + "\n");
        sandbox
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, content).expect("a file");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Names of everything in `folder`, sorted.
    pub(crate) fn names_in(&self, folder: &str) -> Vec<String> {
        names(&self.path(folder))
    }

    pub(crate) fn report(&self, name: &str) -> Report {
        Report::of(self.read(name))
    }

    /// Runs `wavetank` with the words of `line`.
    pub(crate) fn run(&self, line: &str) -> Run {
        self.start(line, Stdio::null()).finish(LIMIT)
    }

    /// The same with a file of the directory as standard input.
    pub(crate) fn run_reading(&self, line: &str, file: &str) -> Run {
        let input = File::open(self.path(file)).expect("a file");
        self.start(line, Stdio::from(input)).finish(LIMIT)
    }

    /// Runs a replay that must succeed and returns its report.
    pub(crate) fn replay(&self, arguments: &str) -> Report {
        let run = self.run(&format!("replay {arguments} --report-json replayed.json"));
        assert_eq!(run.code, Some(0), "{arguments}: {}", run.stderr);
        self.report("replayed.json")
    }

    /// Runs a replay that must be refused before anything is written; what it said, ready for a snapshot.
    pub(crate) fn refuse(&self, arguments: &str) -> String {
        let before = self.names_in("");
        let run = self.run(&format!("replay {arguments}"));
        assert_eq!(run.code, Some(2), "{arguments}: {}", run.stderr);
        assert_eq!(run.stdout, "", "{arguments}");
        assert_eq!(self.names_in(""), before, "{arguments}: nothing is left behind");
        self.steady(&run.stderr)
    }

    pub(crate) fn start(&self, line: &str, input: Stdio) -> Running {
        self.spawn(Command::new(WAVETANK), line, input)
    }

    /// The same, however it is started: `command` is the program and what comes before `line`.
    pub(crate) fn spawn(&self, mut command: Command, line: &str, input: Stdio) -> Running {
        command.args(line.split_whitespace()).current_dir(self.folder.path());
        command.env("COLUMNS", "100").env("NO_COLOR", "1").env_remove("CLICOLOR_FORCE");
        command.env("TMPDIR", self.folder.path());
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        let stdout = drain(child.stdout.take().expect("a pipe"));
        let stderr = drain(child.stderr.take().expect("a pipe"));
        Running { line: line.to_owned(), child, output: Some((stdout, stderr)) }
    }

    /// `text` without this directory's name, wall times and timestamps.
    pub(crate) fn steady(&self, text: &str) -> String {
        let folder = self.folder.path().to_str().expect("a name in UTF-8");
        steady(&text.replace(folder, "[DIR]"))
    }
}

/// What a command did.
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// Without it, a signal ended the command.
    pub(crate) code: Option<i32>,
}

/// A command that has not ended; it is killed if the test ends first.
pub(crate) struct Running {
    line: String,
    child: Child,
    output: Option<(JoinHandle<String>, JoinHandle<String>)>,
}

impl Running {
    /// Waits for the end, at most `limit`.
    pub(crate) fn finish(mut self, limit: Duration) -> Run {
        let deadline = Instant::now() + limit;
        let status = loop {
            match self.child.try_wait().expect("a child") {
                Some(status) => break status,
                None => assert!(Instant::now() < deadline, "`{}` has not ended in {limit:?}", self.line),
            }
            thread::sleep(POLL);
        };
        let (stdout, stderr) = self.output.take().expect("it ends once");
        let text = |thread: JoinHandle<String>| thread.join().expect("output in UTF-8");
        Run { stdout: text(stdout), stderr: text(stderr), code: status.code() }
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_some()
    }

    /// Waits until `condition` holds.
    pub(crate) fn wait_for(&mut self, what: &str, mut condition: impl FnMut() -> bool) {
        let deadline = Instant::now() + LIMIT;
        while !condition() {
            assert!(!self.has_ended(), "`{}` ended before {what}", self.line);
            assert!(Instant::now() < deadline, "`{}`: no {what} in {LIMIT:?}", self.line);
            thread::sleep(POLL);
        }
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// As Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        self.signal("-INT");
    }

    /// As a system that shuts down does.
    pub(crate) fn terminate(&self) {
        self.signal("-TERM");
    }

    /// As a terminal that goes away does.
    pub(crate) fn hang_up(&self) {
        self.signal("-HUP");
    }

    fn signal(&self, name: &str) {
        let kill = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(kill.expect("kill runs").success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn drain(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).expect("output in UTF-8");
        text
    })
}

pub(crate) fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The repository's example traces, as typed from its root.
pub(crate) fn examples() -> Vec<String> {
    let names = names(&repository().join("examples"));
    let traces: Vec<String> = names.into_iter().filter(|name| name.ends_with(".jsonl")).collect();
    assert!(!traces.is_empty(), "examples/ has traces");
    traces.into_iter().map(|name| format!("examples/{name}")).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name in UTF-8"))
        .collect();
    names.sort();
    names
}

/// `text` with `…` for wall times and for the timestamps of report names.
pub(crate) fn steady(text: &str) -> String {
    let digit = |c: char| c.is_ascii_digit();
    let wall = skipped(text, "Wall Time (ms): ", |c| digit(c) || c == '.' || c == ',');
    skipped(&wall, "wavetank_replay_report_", |c| digit(c) || c == '_')
}

/// Replaces what `skip` accepts after every `mark`.
fn skipped(text: &str, mark: &str, skip: impl Fn(char) -> bool) -> String {
    let mut parts = text.split(mark);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |done, part| {
        let rest = part.trim_start_matches(&skip).trim_start_matches('…');
        format!("{done}{mark}…{rest}")
    })
}

#[test]
fn only_what_changes_between_runs_is_hidden() {
    let text = "Wall Time (ms): 1,234.50\nSaved to: d/wavetank_replay_report_20260101_235959.json 7\n";
    let hidden = "Wall Time (ms): …\nSaved to: d/wavetank_replay_report_….json 7\n";
    assert_eq!(steady(text), hidden);
    assert_eq!(steady(hidden), hidden);
}
