//! What a start touches: a second server leaves alone what the first one has, whether it starts or not.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use wavetank_model::Result;
use wavetank_serve::{Addresses, Args, Listener, Plan, Recording, Report, run};

/// Where a server would record and write spans.
fn plan(folder: &Path, tier: &str, (calls, spans): (&str, &str)) -> Plan {
    let args = Args {
        l1_size_gb: Some(0.05),
        port: Some(0),
        http_port: Some(0),
        l2: Some(vec![format!("buffered:{}", folder.join(tier).display())]),
        enable_tracing: Some(true),
        otlp_file: Some(folder.join(spans)),
        ..Args::default()
    };
    let recording = Recording { path: folder.join(calls), rotate_bytes: None, cap_bytes: None };
    Plan::of(&args, Some(recording)).expect("a plan")
}

fn serve(plan: &Plan, stop: &Receiver<()>, ready: Box<dyn FnOnce(&Addresses)>) -> Result<Report> {
    run(plan, stop, Listener { ready, tell: Arc::new(|words| panic!("{words}")) })
}

/// Why a server does not start.
fn refused(plan: &Plan) -> String {
    let (_stop, stopped) = channel();
    let ready = Box::new(|_: &Addresses| panic!("it starts"));
    serve(plan, &stopped, ready).expect_err("it does not start").to_string()
}

/// A server that runs.
struct Running {
    addresses: Addresses,
    stop: Sender<()>,
    thread: JoinHandle<Report>,
}

impl Running {
    fn start(plan: Plan) -> Self {
        let (stop, stopped) = channel();
        let (say, said) = mpsc::channel();
        let ready = Box::new(move |at: &Addresses| say.send(*at).expect("a test"));
        let thread = thread::spawn(move || serve(&plan, &stopped, ready).expect("it serves"));
        Self { addresses: said.recv().expect("it starts"), stop, thread }
    }

    fn end(self) -> Report {
        drop(self.stop);
        self.thread.join().expect("it ends")
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    let mut names: Vec<String> = entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Broken by: files that are opened before ports or tiers, made anew, shared, or left by a start that failed.
#[test]
fn a_start_that_fails_leaves_what_another_server_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let second = plan(folder, "other", ("calls.lct", "more.jsonl"));
    let first = Running::start(plan(folder, "tier", ("calls.lct", "spans.jsonl")));
    let recorded = fs::read(folder.join("calls.lct")).expect("a recording");
    assert!(!recorded.is_empty());
    let before = names(folder);
    let said = refused(&second);
    assert!(said.contains("calls.lct: another recording is being written to it\nhint: record"), "{said}");
    assert_eq!(names(folder), before);
    let said = refused(&plan(folder, "tier", ("else.lct", "more.jsonl")));
    assert!(said.contains("tier"), "the tier is the first server's: {said}");
    assert_eq!(names(folder), before);
    let said = refused(&plan(folder, "third", ("else.lct", "spans.jsonl")));
    assert!(said.contains("spans.jsonl: another process writes spans to it"), "{said}");
    let mut taken = plan(folder, "fourth", ("else.lct", "more.jsonl"));
    for (port, door) in [(first.addresses.resp, "--port"), (first.addresses.http, "--http-port")] {
        (taken.resp, taken.http) = match door {
            "--port" => (port, taken.http),
            _ => ("127.0.0.1:0".parse().expect("an address"), port),
        };
        let said = refused(&taken);
        assert!(
            said.contains(&format!("{door} {}", port.port())) && said.contains("cannot listen"),
            "{said}"
        );
    }
    for name in ["fourth", "else.lct", "more.jsonl"] {
        assert!(!names(folder).contains(&name.to_owned()), "{name} was made");
    }
    assert_eq!(fs::read(folder.join("calls.lct")).expect("a recording"), recorded);
    let report = first.end();
    assert_eq!((report.recorded.expect("a recording").lost, report.warnings), (0, Vec::new()));
}

/// Broken by: a recording that is appended to, so that it is none, or one that keeps a server from starting.
#[test]
fn a_recording_that_nobody_writes_is_made_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("calls.lct");
    fs::write(&path, "of before ".repeat(1000)).expect("a file");
    let report = Running::start(plan(folder.path(), "tier", ("calls.lct", "spans.jsonl"))).end();
    assert_eq!(report.recorded.expect("a recording").files, std::slice::from_ref(&path));
    let recorded = fs::read(path).expect("a recording");
    assert!(!recorded.is_empty() && !recorded.windows(9).any(|nine| nine == b"of before"));
}
