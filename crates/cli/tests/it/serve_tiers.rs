//! What is behind the memory of `wavetank serve`: entries that come back, tenants, tiers that fail,
//! recordings.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::sandbox::Sandbox;
use crate::serve_client::{Server, frame};

const HASHES: [&str; 3] = ["a1", "b2", "c3"];
const DISK: &str = "--l1-size-gb 0.05 --l2 buffered:kv:64MiB";

fn object(number: u32) -> Vec<u8> {
    (0..20_000u32).map(|place| (place * 7 + number) as u8).collect()
}

fn ask(id: &str) -> Value {
    json!({ "request_id": id, "model": "m", "chunk_hashes": HASHES })
}

/// Stores three objects and waits until they are behind memory too.
fn fill(server: &Server) {
    let body: Vec<u8> = (0..3).flat_map(|number| frame(number, &object(number))).collect();
    let path = format!("/v1/store?request_id=w&model=m&chunk_hashes={}", HASHES.join(","));
    assert_eq!(server.request("PUT", &path, &body).json()["stored"], 3);
    while server.status()["tiers"][1]["copied"] != 3 {
        thread::sleep(Duration::from_millis(10));
    }
}

/// What a Redis client is answered.
fn redis(server: &Server, words: &[&[u8]]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.resp).expect("it listens");
    let mut command = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        command.extend(format!("${}\r\n", word.len()).into_bytes());
        command.extend_from_slice(word);
        command.extend(b"\r\n");
    }
    command.extend(b"*1\r\n$4\r\nQUIT\r\n");
    stream.write_all(&command).expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    answer.truncate(answer.len() - b"+OK\r\n".len());
    answer
}

/// Broken by: entries that are removed at the end or not found at the start, bytes that come back otherwise,
/// or what came back that does not stay.
#[test]
fn a_restart_brings_entries_back() {
    let sandbox = Sandbox::on_disk();
    let server = Server::start(&sandbox, DISK);
    fill(&server);
    server.end();
    let server = Server::start(&sandbox, DISK);
    let disk = server.status()["tiers"][1].clone();
    assert_eq!((&disk["recovery"]["recovered"], &disk["entries"]), (&json!(3), &json!(3)), "{disk}");
    let found = server.post("/v1/lookup", &ask("r")).json();
    assert_eq!(found["chunks"], json!(["l2", "l2", "l2"]));
    assert_eq!((&found["l1_hit_tokens"], &found["l2_hit_tokens"]), (&json!(0), &json!(768)));
    let all = server.post("/v1/retrieve", &json!({ "request_id": "r" }));
    assert!(all.frames() == [(0, object(0)), (1, object(1)), (2, object(2))], "{}", all.head);
    server.post("/v1/end", &json!({ "request_id": "r" }));
    assert_eq!(server.post("/v1/lookup", &ask("again")).json()["chunks"], json!(["l1", "l1", "l1"]));
    let lookups = server.status()["lookups"].clone();
    assert_eq!(
        (&lookups["l2_hits"], &lookups["l1_hits"], &lookups["objects"]),
        (&json!(3), &json!(3), &json!(6))
    );
}

/// Broken by: doors that call the same object by different names, or one that does not see what the other
/// wrote.
#[test]
fn both_doors_serve_the_same_objects() {
    let sandbox = Sandbox::empty();
    let server = Server::start(&sandbox, "--l1-size-gb 0.05");
    let path = "/v1/store?request_id=w&model=org/m&cache_salt=alice&chunk_hashes=0xA1";
    server.request("PUT", path, &frame(0, b"by HTTP"));
    assert_eq!(redis(&server, &[b"GET", b"org/m@01000100@0@a1@alice"]), b"$7\r\nby HTTP\r\n");
    assert_eq!(redis(&server, &[b"SET", b"org/m@01000100@0@b2@alice", b"by RESP"]), b"+OK\r\n");
    let both =
        json!({ "request_id": "r", "model": "org/m", "cache_salt": "alice", "chunk_hashes": ["a1", "b2"] });
    assert_eq!(server.post("/v1/lookup", &both).json()["found_chunks"], 2);
    let all = server.post("/v1/retrieve", &json!({ "request_id": "r" })).frames();
    assert_eq!(all, [(0, b"by HTTP".to_vec()), (1, b"by RESP".to_vec())]);
    let status = server.status();
    assert_eq!(status["counters"]["commands"].as_u64().unwrap() % 2, 0, "{}", status["counters"]);
    assert_eq!(status["tenants"]["alice"], 14, "{}", status["tenants"]);
    let run = server.end();
    assert!(run.stdout.contains("Answered: 4 commands, "), "{}", run.stdout);
}

/// Broken by: a request that waits for a device without end, an answer that is wrong instead of missing,
/// objects that are counted twice or not at all, or an end that hangs.
#[test]
fn a_tier_that_fails_or_hangs_is_a_miss() {
    let sandbox = Sandbox::on_disk();
    for (fault, drain) in [("\"read_error\":1", 5), ("\"spike\":1,\"spike_ms\":20000", 1)] {
        // What cannot be read leaves its tier, so each fault finds a full one.
        let server = Server::start(&sandbox, DISK);
        fill(&server);
        server.end();
        let adapter = format!(
            "{{\"type\":\"buffered\",\"location\":\"kv\",\"max_size_gb\":0.0625,\
             \"wrappers\":[{{\"type\":\"fault\",{fault}}}]}}"
        );
        let flags =
            format!("--l1-size-gb 0.05 --l2-adapter {adapter} --l2-timeout-ms 100 --drain-seconds {drain}");
        let server = Server::start(&sandbox, &flags);
        assert_eq!(server.post("/v1/lookup", &ask("r")).json()["found_chunks"], 3, "{fault}");
        let nothing = server.post("/v1/retrieve", &json!({ "request_id": "r" }));
        assert!(nothing.head.contains("wavetank-missing: 3"), "{fault}: {}", nothing.head);
        let lookups = server.status()["lookups"].clone();
        assert_eq!(
            (&lookups["l2_failures"], &lookups["objects"]),
            (&json!(3), &json!(3)),
            "{fault}: {lookups}"
        );
        server.end();
    }
}

/// Broken by: tenants that share a quota, or one that takes another's; a row of metrics that is another's, or
/// one for whatever clients call themselves.
#[test]
fn tenants_have_their_quotas() {
    let sandbox = Sandbox::empty();
    let flags = "--l1-size-gb 0.05 --eviction-policy isolated_lru --quota alice=64KiB --default-quota 1MiB";
    let server = Server::start(&sandbox, flags);
    for number in 0..40u8 {
        for salt in ["alice", "bob"] {
            let path = format!(
                "/v1/store?request_id=w{number}{salt}&model=m&cache_salt={salt}&chunk_hashes=0a{number:02x}"
            );
            server.request("PUT", &path, &frame(0, &[number; 4000]));
        }
    }
    let tenants = server.status()["tenants"].clone();
    let bytes = |salt: &str| tenants[salt].as_u64().unwrap();
    assert!(bytes("alice") <= 64 << 10 && bytes("alice") > 0, "{tenants}");
    assert_eq!(bytes("bob"), 40 * 4000, "{tenants}");
    // Salts are the clients' to choose: those without a quota share a row.
    let path = "/v1/store?request_id=c&model=m&cache_salt=carol&chunk_hashes=0a";
    server.request("PUT", path, &frame(0, &[1; 4000]));
    let metrics = server.get("/metrics").text();
    let rows = metrics.lines().filter_map(|line| line.strip_prefix("wavetank_tenant_used_bytes{cache_salt="));
    let rows: Vec<&str> = rows.collect();
    let expected = [format!("\"alice\"}} {}", bytes("alice")), format!("\"(others)\"}} {}", 41 * 4000)];
    assert_eq!(rows, expected, "{metrics}");
}

/// Broken by: a recording that is not closed, or that lacks calls.
#[test]
fn a_recording_is_whole_after_the_end() {
    let sandbox = Sandbox::empty();
    let server = Server::start(&sandbox, "--l1-size-gb 0.05 --trace-output calls.lct.zst");
    let body: Vec<u8> = (0..3).flat_map(|number| frame(number, &object(number))).collect();
    server.post("/v1/lookup", &ask("r"));
    server.request("PUT", "/v1/store?request_id=r", &body);
    server.post("/v1/lookup", &ask("r"));
    server.post("/v1/retrieve", &json!({ "request_id": "r" }));
    let run = server.end();
    assert!(run.stdout.contains("Recorded in calls.lct.zst: "), "{}", run.stdout);
    let info = sandbox.run("trace info calls.lct.zst");
    assert_eq!(info.code, Some(0), "{}", info.stderr);
    for call in ["submit_prefetch_task", "reserve_write", "finish_write"] {
        assert!(info.stdout.contains(call), "{call}: {}", info.stdout);
    }
}

/// Broken by: a verb that writes over what another process records, or says so in words of its own.
#[test]
fn a_recording_that_is_being_written_is_left_alone_by_every_verb() {
    let sandbox = Sandbox::empty();
    let server = Server::start(&sandbox, "--l1-size-gb 0.05 --trace-output calls.lct");
    redis(&server, &[b"SET", b"k", b"value"]);
    while server.status()["recording"]["calls"] != 2 {
        thread::sleep(Duration::from_millis(5));
    }
    let recorded = std::fs::read(sandbox.path("calls.lct")).expect("a recording");
    sandbox.write("copy.lct", &recorded);
    let said = "error: calls.lct: another recording is being written to it\n\
                hint: record to another name, or end the one that runs first\n";
    for line in [
        "serve --l1-size-gb 0.05 --check",
        "serve --l1-size-gb 0.05 --port 0 --http-port 0",
        "bench --model tiny-1b --num-users 1 --duration 1 --gpu-mem-gb 0 --cpu-mem-gb 0.05 --backend null",
        "trace replay copy.lct",
    ] {
        let run = sandbox.run(&format!("{line} --trace-output calls.lct"));
        assert_eq!((run.code, run.stderr.as_str()), (Some(2), said), "{line}");
    }
    assert_eq!(std::fs::read(sandbox.path("calls.lct")).expect("a recording"), recorded);
    server.end();
    let again = sandbox.run("trace replay copy.lct --trace-output calls.lct --output r.json");
    assert_eq!(again.code, Some(0), "{}", again.stderr);
}

/// Broken by: a recording of which nothing is told while it runs, or that ends early without a word.
#[test]
fn a_recording_is_told_of_while_it_runs() {
    let sandbox = Sandbox::empty();
    let server = Server::start(&sandbox, "--l1-size-gb 0.05 --trace-output calls.lct --trace-cap-mb 0.02");
    let recording = || server.status()["recording"].clone();
    redis(&server, &[b"SET", b"k", b"value"]);
    while recording()["calls"] != 2 {
        thread::sleep(Duration::from_millis(5));
    }
    let bytes = std::fs::metadata(sandbox.path("calls.lct")).expect("a file").len();
    let expected =
        json!({ "files": ["calls.lct"], "calls": 2, "bytes": bytes, "lost": 0, "ended_early": null });
    assert_eq!(recording(), expected);
    let metrics = server.get("/metrics").text();
    for line in
        ["recorded_calls_total 2", &format!("recorded_bytes_total {bytes}"), "recording_ended_early 0"]
    {
        assert!(metrics.contains(&format!("\nwavetank_{line}\n")), "{line}: {metrics}");
    }
    let mut client = server.redis();
    while recording()["ended_early"].is_null() {
        client.ask(&[b"SET", b"k", b"value"]).expect("a reply");
    }
    let told = recording();
    assert_eq!(told["ended_early"], "its largest size was reached", "{told}");
    assert!(told["bytes"].as_u64() <= Some(20_000) && told["lost"].as_u64() > Some(0), "{told}");
    assert!(server.get("/metrics").text().contains("\nwavetank_recording_ended_early 1\n"));
    // The log says it once, in a second or so, or at the end.
    thread::sleep(Duration::from_millis(1100));
    let run = server.end();
    let said = "the recording ended early: its largest size was reached";
    assert_eq!(run.stderr.matches(&format!("warning: {said}\n")).count(), 1, "{}", run.stderr);
    assert!(run.stdout.ends_with(&format!("Warning: {said}\n")), "{}", run.stdout);
    assert!(!run.stdout.contains(" 0 lost"), "{}", run.stdout);
    assert_eq!(run.stderr.matches("calls are missing in the recording\n").count(), 1, "{}", run.stderr);
}

/// Broken by: a server that looks at its recording only now and then, so that what is found at its end is in
/// the summary alone.
#[test]
fn what_its_end_finds_wrong_with_a_recording_is_in_the_log() {
    let sandbox = Sandbox::empty();
    let server = Server::start(&sandbox, "--l1-size-gb 0.05 --trace-output calls.lct --trace-cap-mb 0.01");
    let mut client = server.redis();
    for _ in 0..500 {
        client.ask(&[b"SET", b"k", b"value"]).expect("a reply");
    }
    drop(client);
    let run = server.end();
    for said in
        ["calls are missing in the recording", "the recording ended early: its largest size was reached"]
    {
        assert_eq!(run.stderr.matches(said).count(), 1, "{}", run.stderr);
        assert_eq!(run.stdout.matches(said).count(), 1, "{}", run.stdout);
    }
}

/// Broken by: spans that are not made, lack what the lookup found, or are lost at the end.
#[test]
fn requests_are_spans() {
    let sandbox = Sandbox::empty();
    let server = Server::start(&sandbox, "--l1-size-gb 0.05 --enable-tracing --otlp-file spans.jsonl");
    let parent = [("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")];
    server.request_with("POST", "/v1/lookup", &parent, ask("r").to_string().as_bytes());
    let body: Vec<u8> = (0..3).flat_map(|number| frame(number, &object(number))).collect();
    server.request("PUT", "/v1/store?request_id=r&device=cuda:0", &body);
    server.post("/v1/lookup", &ask("r"));
    server.post("/v1/retrieve", &json!({ "request_id": "r" }));
    server.post("/v1/end", &json!({ "request_id": "r" }));
    let run = server.end();
    assert!(run.stdout.contains(" sent, 0 lost"), "{}", run.stdout);
    let spans = sandbox.read("spans.jsonl");
    for word in ["\"request\"", "mp.lookup_prefetch", "mp.store", "mp.retrieve", "hit_rate", "cuda:0"] {
        assert!(spans.contains(word), "{word}: {spans}");
    }
    assert!(spans.contains("4bf92f3577b34da6a3ce929d0e0e4736"), "it belongs to the caller's trace: {spans}");
}
