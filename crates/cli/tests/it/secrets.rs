//! Secrets come from files and the environment, and go nowhere else: whatever runs with them, nothing of
//! them is in what it says, answers or writes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::sandbox::{Sandbox, WAVETANK};
use crate::serve_client::{Server, frame};

/// A part of every secret.
const MARK: &str = "hush-";
const PASSWORD: &str = "hush-password";
/// Where secrets come from.
const VARIABLES: [(&str, &str); 8] = [
    ("WAVETANK_PASSWORD", PASSWORD),
    ("WAVETANK_API_KEY", "hush-api-key"),
    ("REDIS_PASSWORD", "hush-redis"),
    ("AWS_ACCESS_KEY_ID", "hush-access-key"),
    ("AWS_SECRET_ACCESS_KEY", "hush-secret-key"),
    ("AWS_SESSION_TOKEN", "hush-session"),
    ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=hush-otlp"),
    ("HEADER_TOKEN", "hush-token"),
];
/// The file that is given as one.
const GIVEN: &str = "header.txt";

/// Every file below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let below = entries.flat_map(|entry| match entry.path() {
        path if path.is_dir() => files(&path),
        path => vec![path],
    });
    below.collect()
}

fn assert_none(what: &str, text: &[u8]) {
    let found = text.windows(MARK.len()).position(|part| part == MARK.as_bytes());
    let around =
        found.map(|at| String::from_utf8_lossy(&text[at.saturating_sub(80)..text.len().min(at + 40)]));
    assert!(around.is_none(), "{what} has a secret: …{}", around.unwrap_or_default());
}

fn assert_none_in_files(sandbox: &Sandbox) {
    for path in files(&sandbox.path("")).iter().filter(|path| !path.ends_with(GIVEN)) {
        assert_none(&path.display().to_string(), &fs::read(path).expect("a file"));
    }
}

/// Broken by: a plan, report, page, log or error that repeats where secrets are.
#[test]
fn commands_keep_them() {
    let sandbox = Sandbox::empty();
    sandbox.write(GIVEN, "hush-file\n");
    let load = "--input-tokens 64 --output-tokens 2 --request-count 3";
    let bench = "bench --model tiny-1b --num-users 1 --duration 2 --gpu-mem-gb 0 --generation-mode";
    let spans = "--enable-tracing --otlp-endpoint http://127.0.0.1:1";
    let away = "--duration 1 --gpu-mem-gb 0 --cpu-mem-gb 0";
    let lines = [
        (format!("replay {load} --report-json r.json --html r.html --per-request-jsonl r.jsonl"), 0),
        (format!("replay {load} --otlp-file s.jsonl --perfetto p.json --report-json r2.json"), 0),
        ("compare r.json r2.json --all".to_owned(), 0),
        ("report r.json -o page.html --timeseries points.csv".to_owned(), 0),
        (format!("{bench} deterministic --cpu-mem-gb 0.1 --io-trace-log o.csv --output b.json"), 0),
        (format!("bench {away} --backend redis --storage-location redis://127.0.0.1:1 --output c.json"), 2),
        (format!("bench {away} --backend redis --storage-location redis://u:hush-url@127.0.0.1:1/"), 2),
        ("mock --check --host 0.0.0.0".to_owned(), 0),
        ("serve --check --l1-size-gb 1 --host 0.0.0.0".to_owned(), 0),
        ("serve --check --l1-size-gb 1 --l2 redis:redis://u:hush-url@h:6379".to_owned(), 2),
        (format!("serve --check --l1-size-gb 1 {spans} --otlp-header a=@{GIVEN}"), 0),
    ];
    for (line, code) in lines {
        let mut command = Command::new(WAVETANK);
        command.envs(VARIABLES);
        let run = sandbox.spawn(command, &line, Stdio::null()).finish(Duration::from_secs(30));
        assert_eq!(run.code, Some(code), "{line}: {}{}", run.stdout, run.stderr);
        assert_none(&line, run.stdout.as_bytes());
        assert_none(&line, run.stderr.as_bytes());
    }
    assert_none_in_files(&sandbox);
}

/// Broken by: a page, a status, a metric, a span, a recording or a message of a server that shows what
/// clients log in with, rightly or wrongly, or what it logs in with elsewhere.
#[test]
fn a_server_keeps_them() {
    let sandbox = Sandbox::empty();
    sandbox.write(GIVEN, "hush-file\n");
    let flags = format!(
        "--l1-size-gb 0.01 --l2 buffered:kv --user alice --enable-tracing --otlp-file spans.jsonl \
         --otlp-endpoint http://127.0.0.1:1 --otlp-protocol http --otlp-header x-token=env:HEADER_TOKEN \
         --otlp-header y=@{GIVEN} --trace-level storage --trace-output calls.lct"
    );
    let server = Server::start_with(&sandbox, &flags, &VARIABLES);
    let mut redis = server.redis();
    for words in
        [&[&b"AUTH"[..], b"alice", b"hush-wrong"][..], &[b"HELLO", b"3", b"AUTH", b"bob", b"hush-bob"]]
    {
        let refused = redis.ask(words).expect_err("a wrong password");
        assert_none("AUTH", refused.to_string().as_bytes());
    }
    redis.ask(&[b"AUTH", b"alice", PASSWORD.as_bytes()]).expect("the password");
    for words in [&[&b"SET"[..], b"k", b"v"][..], &[b"GET", b"k"], &[b"INFO"], &[b"CLIENT", b"INFO"]] {
        assert_none("an answer", &redis.ask(words).expect("an answer").unwrap_or_default());
    }
    let login = format!("Bearer {PASSWORD}");
    for authorization in [login.as_str(), "Bearer hush-wrong", "Basic aHVzaC06aHVzaC0="] {
        let headers = [("authorization", authorization)];
        let ask = json!({ "request_id": "r", "model": "m", "chunk_hashes": ["a1"] }).to_string();
        let answers = [
            server.request_with("POST", "/v1/lookup", &headers, ask.as_bytes()),
            server.request_with("PUT", "/v1/store?request_id=r", &headers, &frame(0, b"bytes")),
            server.request_with("POST", "/v1/end", &headers, br#"{"request_id": "r"}"#),
        ];
        let pages = ["/", "/status?history=10", "/config", "/metrics"];
        let pages = pages.map(|path| server.request_with("GET", path, &headers, b""));
        for answer in answers.iter().chain(&pages) {
            assert_none("an answer", &answer.body);
            assert_none("an answer", answer.head.as_bytes());
        }
    }
    let run = server.end();
    assert_none("what it said", run.stdout.as_bytes());
    assert_none("what it said", run.stderr.as_bytes());
    assert!(sandbox.path("spans.jsonl").exists() && sandbox.path("calls.lct").exists());
    assert_none_in_files(&sandbox);
}
