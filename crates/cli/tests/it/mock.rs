//! `wavetank mock` as operators see it: what is refused, what is checked, how it serves and ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::Value;

use crate::sandbox::{Sandbox, WAVETANK};

/// What takes longer hangs.
const LIMIT: Duration = Duration::from_secs(30);

/// Breaks when a rule of the plan is dropped or is not reached from the command line, or a message loses its
/// place or hint.
#[test]
fn what_cannot_be_mocked_is_refused() {
    let sandbox = Sandbox::empty();
    sandbox.write("not.json", "{}");
    let rows = [
        "--host example.org",
        "--host 0.0.0.0",
        "--host 0.0.0.0 --api-key=",
        "--tokenizer nowhere.json",
        "--tokenizer not.json --port 0",
        "--num-workers 5000",
        "--router-mode best",
        "--extra-engine-args {\"block_size\":1}",
        "--extra-engine-args {\"worker_type\":\"prefill\"}",
        "--timing sundial",
        "--max-model-len 0",
        "--output-tokens-mean 0",
        "--output-tokens-cv -1",
        "--max-body-mib 0",
        "--max-connections 0",
        "--drain-seconds -1",
    ];
    let mut text = String::new();
    for row in rows {
        let run = sandbox.run(&format!("mock {row}"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{row}: {}", run.stderr);
        text += &format!("$ wavetank mock {row}\n{}\n", sandbox.steady(&run.stderr));
    }
    assert_snapshot!(text);
}

/// Breaks when a plan is opened instead of printed, or shows its key.
#[test]
fn a_check_prints_the_plan_without_its_key() {
    let sandbox = Sandbox::empty();
    let run =
        sandbox.run("mock --check --host 0.0.0.0 --api-key sesame --served-model-name a b --num-workers 3");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let plan: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(plan["model_names"], serde_json::json!(["a", "b"]));
    assert_eq!(plan["simulation"]["num_workers"], 3);
    assert_eq!(plan["api_key"]["password"], "set");
    assert!(!run.stdout.contains("sesame"));
}

/// A mock, and where it is.
pub(crate) struct Mock {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    at: String,
}

impl Mock {
    pub(crate) fn start(flags: &str) -> Self {
        let mut command = Command::new(WAVETANK);
        command.args("mock --port 0".split(' ')).args(flags.split_whitespace());
        command.env("WAVETANK_API_KEY", "sesame").stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut first = String::new();
        stdout.read_line(&mut first).expect("a line");
        let at = first.trim().strip_prefix("listening on http://").expect("an address").to_owned();
        Self { child, stdout, at }
    }

    /// What it answers at an address that needs no key.
    pub(crate) fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.at).expect("it listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a socket");
        let head = format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.at);
        stream.write_all(head.as_bytes()).expect("it reads");
        all(stream)
    }

    fn send(&self, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.at).expect("it listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a socket");
        let (at, length) = (&self.at, body.len());
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {at}\r\nauthorization: Bearer sesame\r\n\
             content-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("it reads");
        stream.write_all(body.as_bytes()).expect("it reads");
        stream
    }

    /// Asks it to terminate and waits until it has: its exit code and the rest of what it said.
    fn terminate(mut self) -> (Option<i32>, String) {
        let id = self.child.id().to_string();
        let signal = Command::new("kill").args(["-s", "TERM", &id]).status().expect("kill is there");
        assert!(signal.success());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("output in UTF-8");
        (self.child.wait().expect("it ends").code(), rest)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn all(mut stream: TcpStream) -> String {
    let mut all = String::new();
    stream.read_to_string(&mut all).expect("an answer in UTF-8");
    all
}

/// Breaks when flags of engines or models do not reach what serves, or an answer under way is cut off by a
/// request to terminate.
#[test]
fn a_mock_serves_and_lets_clients_finish() {
    let mock = Mock::start("--served-model-name tank --extra-engine-args {\"speedup_ratio\":20.0}");
    let ask =
        |rest: &str| format!(r#"{{"model":"tank","messages":[{{"role":"user","content":"Hi"}}]{rest}}}"#);
    let whole = all(mock.send(&ask(r#","max_tokens":3,"ignore_eos":true"#)));
    assert!(whole.starts_with("HTTP/1.1 200") && whole.contains(r#""completion_tokens":3"#), "{whole}");
    let mut stream = mock.send(&ask(r#","max_tokens":1500,"ignore_eos":true,"stream":true"#));
    let mut begun = [0; 64];
    stream.read_exact(&mut begun).unwrap();
    let (code, said) = mock.terminate();
    assert_eq!(code, Some(0));
    assert!(said.starts_with("Answered: 2 requests, 0 of them refused\n"), "{said}");
    assert!(all(stream).contains("data: [DONE]"));
}
