//! `replay --live` in a real terminal, which `script` makes: the view comes and goes, keys and signals end
//! the run as Ctrl-C does, and the terminal is afterwards as it was.
//!
//! Breaks when the terminal is not given back on one of these ways, when raw mode swallows Ctrl-C, or when
//! the report is not written after a view.

use std::fs;
use std::io::{PipeWriter, Write};
use std::process::Command;
use std::time::Duration;

use crate::sandbox::{Run, Running, Sandbox, WAVETANK};

const SOON: Duration = Duration::from_secs(30);
const TAKEN: &str = "\x1b[?1049h";
const GIVEN_BACK: &str = "\x1b[?1049l";
const CLEARED: &str = "\x1b[2J";
const WORKERS: &str = "2 live workers";

const SHORT: &str = "--input-tokens 100 --output-tokens 20 --request-count 40 --arrival-interval-ms 25";
const LONG: &str = "--input-tokens 100 --output-tokens 20 --request-count 1000000 --arrival-interval-ms 25";

/// A replay on a terminal, whose modes before and after are kept.
struct OnTerminal {
    sandbox: Sandbox,
    running: Running,
    keys: PipeWriter,
}

impl OnTerminal {
    /// Starts a replay of `load`; `beside` is what happens to the terminal meanwhile.
    fn start(load: &str, beside: &str) -> Self {
        let sandbox = Sandbox::empty();
        sandbox.write(
            "run.sh",
            format!(
                "stty rows 24 cols 100\nstty -g > before\n{beside}\n\
                 sh -c 'echo $$ > pid; exec {WAVETANK} replay {load} --num-workers 2 \
                 --replay-mode online --live --report-json r.json' 2> said\n\
                 echo $? > code\nstty -g > after\n"
            ),
        );
        let (typed, keys) = std::io::pipe().expect("a pipe");
        let mut script = Command::new("script");
        script.args(["-q", "-f", "-c", "sh run.sh"]);
        let running = sandbox.spawn(script, "typescript", typed.into());
        Self { sandbox, running, keys }
    }

    /// Waits until `text` is written.
    fn seen(mut self, text: &str) -> Self {
        let typescript = self.sandbox.path("typescript");
        let is_written = || {
            let seen = fs::read(&typescript).unwrap_or_default();
            String::from_utf8_lossy(&seen).contains(text)
        };
        self.running.wait_for(text, is_written);
        self
    }

    fn press(&mut self, key: &[u8]) {
        self.keys.write_all(key).expect("a terminal that listens");
    }

    fn finish(self) -> (Sandbox, Run) {
        let Self { sandbox, running, keys } = self;
        let run = running.finish(SOON);
        drop(keys);
        assert_eq!(sandbox.read("after"), sandbox.read("before"), "modes of the terminal");
        let taken = run.stdout.find(TAKEN).expect("the screen is taken");
        let given_back = run.stdout.rfind(GIVEN_BACK).expect("the screen is given back");
        assert!(taken < given_back);
        let after = &run.stdout[given_back..];
        assert!(after.contains("Saved full report to: r.json"), "{after:?}");
        (sandbox, run)
    }
}

#[test]
fn a_view_comes_and_goes() {
    let (sandbox, run) = OnTerminal::start(SHORT, "").seen(WORKERS).finish();
    assert_eq!(sandbox.read("code"), "0\n", "{}", sandbox.read("said"));
    let report = sandbox.report("r.json");
    assert_eq!((report.count("/counts/completed"), &report.json()["partial"]), (40, &false.into()));
    assert_eq!(run.stdout.matches(TAKEN).count(), 1);
    assert_eq!(run.stdout.matches(GIVEN_BACK).count(), 1);
}

#[test]
fn a_view_is_as_large_as_its_terminal() {
    let shrink = "(until [ -e shrink ]; do sleep 0.05; done; stty rows 9 cols 44 < /dev/tty) &";
    let terminal = OnTerminal::start(LONG, shrink).seen(WORKERS);

    terminal.sandbox.write("shrink", "");
    let mut terminal = terminal.seen(CLEARED);
    terminal.press(b"q");
    let (_, run) = terminal.finish();
    let after = run.stdout.rsplit(CLEARED).next().expect("it was cleared");
    let view = after.split(GIVEN_BACK).next().expect("there is always a first");
    assert!(!view.contains("\x1b[10;"), "nothing is drawn below: {view:?}");
}

#[test]
fn keys_end_the_run_as_ctrl_c_does() {
    for key in [b"q", b"\x03"] {
        let mut terminal = OnTerminal::start(LONG, "").seen(WORKERS);
        terminal.press(key);
        let (sandbox, _) = terminal.finish();
        assert_eq!(sandbox.read("code"), "130\n", "{key:?}");
        assert!(sandbox.read("said").starts_with("interrupted: writing what there is\n"), "{key:?}");
        assert_eq!(sandbox.report("r.json").json()["partial"], true, "{key:?}");
    }
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let terminal = OnTerminal::start(LONG, "").seen(WORKERS);
    let pid = terminal.sandbox.read("pid");
    let kill = Command::new("kill").args(["-TERM", pid.trim()]).status();
    assert!(kill.expect("kill runs").success());
    let (sandbox, _) = terminal.finish();
    assert_eq!(sandbox.read("code"), "130\n");
    assert!(sandbox.read("said").starts_with("interrupted: writing what there is\n"));
}

#[test]
fn without_a_terminal_or_live_workers_there_is_nothing_to_see() {
    let sandbox = Sandbox::empty();
    let short = "--input-tokens 100 --output-tokens 2 --request-count 4 --live";
    let run = sandbox.run(&format!("replay {short} --replay-mode online --report-json r.json"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.starts_with("note: --live is left out: standard output is no terminal\n"));
    assert!(!run.stdout.contains('\x1b'), "{:?}", run.stdout);
    assert_eq!(sandbox.report("r.json").count("/counts/completed"), 4);
    insta::assert_snapshot!(Sandbox::empty().refuse(short), @r"
    error: --live: simulated time is over before it could be watched
    hint: add --replay-mode online to run the workers on the wall clock
    ");
}
