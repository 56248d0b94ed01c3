//! Spans of `wavetank serve` as a receiver on the official messages gets them, over gRPC and HTTP.
//!
//! Needs the Python environment that `cargo xtask peers` makes; `WAVETANK_PYTHON` says where it is.

#[path = "../../../telemetry/tests/traceql/mod.rs"]
mod traceql;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::clients::python;
use crate::sandbox::{Sandbox, repository};
use crate::serve_client::{Server, frame};

/// The receiver, as a process; it is killed if the test ends first.
struct Receiver {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    ports: Value,
}

impl Receiver {
    fn start(sandbox: &Sandbox) -> Option<Self> {
        let script = repository().join("crates/telemetry/tests/otlp_receiver.py");
        let mut command = Command::new(python()?);
        command.arg(script).arg(sandbox.path("")).arg("take").env("GRPC_VERBOSITY", "NONE");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line");
        let ports = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        Some(Self { child, stdout, ports })
    }

    /// Spans that it got, each as it prints them.
    fn finish(mut self) -> Vec<Value> {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).expect("output in UTF-8");
        let batches = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        batches.flat_map(|batch| batch["spans"].as_array().expect("spans").clone()).collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Requests of every kind, and a Redis client.
fn play(server: &Server) {
    let store = |place: &str, indices: &[u32]| {
        let body: Vec<u8> = indices.iter().flat_map(|index| frame(*index, &[7; 1000])).collect();
        let told = server.request("PUT", &format!("/v1/store?{place}"), &body);
        assert_eq!(told.status, 200, "{}", told.text());
    };
    let look = |id: &str, hashes: &[&str], mode: &str| {
        let mut asked = json!({ "request_id": id, "model": "m", "cache_salt": "t", "chunk_hashes": hashes });
        asked["mode"] = mode.into();
        server.post("/v1/lookup", &asked);
    };
    let retrieve = |id: &str| {
        server.post("/v1/retrieve", &json!({ "request_id": id, "device": "cuda:0", "engine_id": 7 }));
    };
    let end = |id: &str| drop(server.post("/v1/end", &json!({ "request_id": id })));

    let names = "model=m&cache_salt=t&chunk_hashes=a1,b2&device=cuda:1&engine_id=7";
    store(&format!("request_id=store-only&{names}"), &[0, 1]);
    end("store-only");
    look("full-hit", &["a1", "b2"], "prefix");
    retrieve("full-hit");
    end("full-hit");
    look("partial", &["a1", "c3", "d4", "e5"], "prefix");
    retrieve("partial");
    store("request_id=partial&device=cuda:0&engine_id=7", &[1, 2]);
    end("partial");
    look("miss", &["f6", "a1"], "prefix");
    end("miss");
    // Less than a chunk.
    server.post("/v1/lookup", &json!({ "request_id": "short", "model": "m", "token_ids": [1, 2, 3] }));
    end("short");
    look("blend", &["a1", "f6", "b2", "c3"], "blend");
    retrieve("blend");
    end("blend");

    let mut client = server.redis();
    for words in [&[&b"SET"[..], b"k", b"value"][..], &[b"GET", b"k"], &[b"GET", b"nothing"], &[b"QUIT"]] {
        client.ask(words).expect("a reply");
    }
}

/// What is the same in every run: each root with what is under it in the order of time, and attributes with
/// their types.
fn told(spans: &[Value]) -> String {
    let mut spans: Vec<&Value> = spans.iter().collect();
    spans.sort_by_key(|span| (span["start"].as_u64(), span["end"].as_u64()));
    let mut text = String::new();
    for root in spans.iter().filter(|span| span["parent"] == "") {
        text += &line(root);
        for child in spans.iter().filter(|span| span["parent"] == root["id"]) {
            assert_eq!(child["trace"], root["trace"]);
            let times = |name: &str| (root[name].as_u64(), child[name].as_u64());
            assert!(times("start").0 <= times("start").1 && times("end").1 <= times("end").0, "{child}");
            text += &format!("  {}", line(child));
        }
    }
    assert_eq!(text.lines().count(), spans.len(), "nothing is left out: {text}");
    text
}

fn line(span: &Value) -> String {
    let attributes = span["attributes"].as_object().expect("attributes").iter();
    let attributes = attributes.map(|(name, value)| {
        let (kind, value) = (value[0].as_str().expect("a type"), &value[1]);
        let kind = kind.trim_end_matches("_value");
        // Times, and a client's port.
        let is_chance = ["queued_ns", "peer"].contains(&name.as_str());
        if is_chance { format!("{name}={kind} …") } else { format!("{name}={kind} {value}") }
    });
    let attributes: Vec<String> = attributes.collect();
    let scope = span["scope"].as_str().expect("a scope");
    format!("{} ({scope}): {}\n", span["name"].as_str().expect("a name"), attributes.join(", "))
}

/// The product text's queries, and what they find.
const QUERIES: [(&str, &[&str]); 3] = [
    (r#"{ name = "request" && span.hit_rate < 0.5 }"#, &["partial", "miss", "short"]),
    (r#"{ name = "request" && span.hit_rate = 1.0 }"#, &["full-hit"]),
    (r#"{ name = "request" && span.requested_tokens > 0 && span.hit_tokens = 0 }"#, &["miss"]),
];

/// Broken by: a fact that the server does not tell or tells of another request, a child without its root, a
/// number that is text, a rate where nothing was looked up, or spans that are lost when the server ends.
#[test]
fn an_official_receiver_gets_the_spans_of_requests_and_commands() {
    for door in ["grpc", "http"] {
        let sandbox = Sandbox::empty();
        let Some(receiver) = Receiver::start(&sandbox) else { return };
        let flags = format!(
            "--l1-size-gb 0.05 --chunk-size 4 --enable-tracing --otlp-endpoint http://localhost:{} \
             --otlp-protocol {door} --command-sample-ratio 1",
            receiver.ports[door]
        );
        let server = Server::start(&sandbox, &flags);
        play(&server);
        let run = server.end();
        let spans = receiver.finish();
        assert!(run.stdout.contains(&format!("Spans: {} sent, 0 lost", spans.len())), "{}", run.stdout);
        assert_snapshot!("spans_of_requests_and_commands", told(&spans));
        for (query, expected) in QUERIES {
            let mut found: Vec<&Value> = spans.iter().filter(|span| traceql::matches(query, span)).collect();
            found.sort_by_key(|span| span["start"].as_u64());
            let found: Vec<&Value> = found.iter().map(|span| &span["attributes"]["session_id"][1]).collect();
            assert_eq!(found, *expected, "{door}: {query}");
        }
    }
}
