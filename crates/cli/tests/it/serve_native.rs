//! The native API and the other addresses of `wavetank serve`, over real HTTP.

use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::sandbox::Sandbox;
use crate::serve_client::{Response, Server, frame, head};

const SMALL: &str = "--l1-size-gb 0.05";
/// The index of a frame with words.
const PREAMBLE: u32 = u32::MAX;

fn tokens(count: u32) -> Vec<u32> {
    (0..count).collect()
}

/// Broken by: objects that come back otherwise, tokens hashed otherwise than said, a part of a chunk counted,
/// or a request that holds after its end.
#[test]
fn what_was_stored_is_found_and_retrieved() {
    let sandbox = Sandbox::empty();
    let server = Server::start(&sandbox, &format!("{SMALL} --chunk-size 4"));
    let ask = json!({ "request_id": "r1", "model": "org/m", "token_ids": tokens(11) });
    let first = server.post("/v1/lookup", &ask).json();
    assert_eq!((&first["found_chunks"], &first["requested_tokens"]), (&json!(0), &json!(8)));
    let hashes = first["chunk_hashes"].clone();
    // BLAKE3 of tokens 0 to 3 as four bytes each, as the Python package `blake3` has it.
    assert_eq!(hashes[0], "a54680d61eb5a5f05606dd70acfe737e79b20da5837448b4ee96eb9b8ab80617");
    let body = [frame(0, &[1; 5000]), frame(1, &[2; 70_000])].concat();
    let stored = server.request("PUT", "/v1/store?request_id=r1", &body).json();
    assert_eq!(
        (&stored["stored"], &stored["exists"], &stored["bytes"]),
        (&json!(2), &json!(0), &json!(75_000))
    );
    let again = server.request("POST", "/v1/store?request_id=r1", &body).json();
    assert_eq!((&again["stored"], &again["exists"]), (&json!(0), &json!(2)));

    let by_hash = json!({ "request_id": "r2", "model": "org/m", "chunk_hashes": hashes });
    let found = server.post("/v1/lookup", &by_hash).json();
    assert_eq!((&found["hit_tokens"], &found["l1_hit_tokens"]), (&json!(8), &json!(8)));
    assert_eq!(found["chunks"], json!(["l1", "l1"]));
    let all = server.post("/v1/retrieve", &json!({ "request_id": "r2" }));
    assert_eq!(all.frames(), [(0, vec![1; 5000]), (1, vec![2; 70_000])]);
    let one = server.post("/v1/retrieve", &json!({ "request_id": "r2", "from": 1, "to": 2 }));
    assert_eq!(one.frames(), [(1, vec![2; 70_000])]);
    let named = server.post("/v1/retrieve", &json!({ "request_id": "r2", "chunk_hashes": [hashes[0]] }));
    assert_eq!(named.frames().len(), 1);
    assert_eq!(server.post("/v1/end", &json!({ "request_id": "r2" })).json()["ended"], true);
    assert_eq!(server.post("/v1/end", &json!({ "request_id": "r2" })).json()["ended"], false);
    assert_eq!(server.request("POST", "/v1/retrieve", br#"{"request_id":"r2"}"#).status, 404);
    let lookups = &server.status()["lookups"];
    assert_eq!(
        (&lookups["objects"], &lookups["l1_hits"], &lookups["misses"]),
        (&json!(4), &json!(2), &json!(2))
    );
}

/// Broken by: tenants, models, ranks or groups that share objects, or a prefix that goes on behind a gap.
#[test]
fn objects_are_known_by_all_of_their_name() {
    let sandbox = Sandbox::empty();
    let server = Server::start(&sandbox, SMALL);
    let words = json!({
        "request_id": "w", "model": "m", "cache_salt": "alice", "chunk_hashes": ["A1", "0xb2", "c3"],
        "kv_ranks": [1, 2], "groups": [0, 1]
    });
    let objects = (0..12u32).filter(|index| *index != 4).map(|index| frame(index, &index.to_le_bytes()));
    let body: Vec<u8> =
        [frame(PREAMBLE, words.to_string().as_bytes())].into_iter().chain(objects).flatten().collect();
    let stored = server.request("PUT", "/v1/store", &body);
    assert_eq!(stored.json()["stored"], 11, "{}", stored.text());
    let looked = |change: &Value| {
        let mut ask = words.clone();
        ask.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        server.post("/v1/lookup", &ask).json()
    };
    // Index 4 is rank 2 of group 0, the second chunk.
    let found = looked(&json!({ "request_id": "p" }));
    assert_eq!((&found["found_chunks"], &found["rows"]), (&json!(1), &json!(4)));
    assert_eq!(looked(&json!({ "request_id": "q", "kv_ranks": [1] }))["found_chunks"], 3);
    assert_eq!(
        looked(&json!({ "request_id": "b", "mode": "blend" }))["chunks"],
        json!(["l1", "absent", "l1"])
    );
    for other in [json!({ "cache_salt": "bob" }), json!({ "model": "n" }), json!({ "groups": [0, 2] })] {
        assert_eq!(looked(&other)["found_chunks"], 0, "{other}");
    }
}

/// Breaks when an address, a method or a body that is wrong is not answered with its status, an error and a
/// hint.
#[test]
fn what_is_wrong_is_answered_with_a_hint() {
    let sandbox = Sandbox::empty();
    let server = Server::start(&sandbox, &format!("{SMALL} --max-value 1MiB"));
    let rows: &[(&str, &str, Vec<u8>)] = &[
        ("GET", "/nowhere", Vec::new()),
        ("DELETE", "/status", Vec::new()),
        ("GET", "/status?histori=1", Vec::new()),
        ("POST", "/v1/lookup", b"{".to_vec()),
        ("POST", "/v1/lookup", br#"{"request_id":"a","model":"m","token_ids":[1],"x":1}"#.to_vec()),
        ("POST", "/v1/lookup", br#"{"request_id":"","model":"m","token_ids":[1]}"#.to_vec()),
        ("POST", "/v1/lookup", br#"{"request_id":"a","model":"a@b","token_ids":[1]}"#.to_vec()),
        ("POST", "/v1/lookup", br#"{"request_id":"a","model":"m"}"#.to_vec()),
        ("POST", "/v1/retrieve", br#"{"request_id":"unknown"}"#.to_vec()),
        ("PUT", "/v1/store?request_id=a&model=m&chunk_hashes=ab", Vec::new()),
        ("PUT", "/v1/store?request_id=a&model=m&chunk_hashes=ab", frame(1, b"x")),
        ("PUT", "/v1/store?request_id=a&model=m&chunk_hashes=xy", frame(0, b"x")),
        ("PUT", "/v1/store?request_id=a&model=m&chunk_hashes=ab", frame(0, b"xyz")[..14].to_vec()),
        ("PUT", "/v1/store?request_id=a&model=m&chunk_hashes=ab", [&[0; 4][..], &[255; 8]].concat()),
        ("PUT", "/v1/store?colour=red", frame(0, b"x")),
    ];
    let mut text = String::new();
    for (method, path, body) in rows {
        let answer = server.request(method, path, body);
        let told = answer.json();
        let (error, hint) = (told["error"].as_str().unwrap(), told["hint"].as_str().unwrap());
        text += &format!("{method} {path} {} bytes\n{} {error}\nhint: {hint}\n\n", body.len(), answer.status);
    }
    assert_snapshot!(text);
    assert_eq!(server.status()["counters"]["http_errors"], rows.len());
    // Who announces too much is told before it is sent.
    let mut stream = server.connect();
    stream.write_all(head("POST", "/v1/lookup", &[], 17 << 20).as_bytes()).unwrap();
    let answer = Response::read(stream);
    assert_eq!((answer.status, answer.json()["hint"].as_str()), (413, Some("objects go to /v1/store")));
}

/// Broken by: an address that forgets to ask, a password that is shown, or probes that need one.
#[test]
fn nobody_is_served_without_the_password() {
    let sandbox = Sandbox::empty();
    let flags = format!("{SMALL} --user alice --l2-adapter {{\"type\":\"memory\",\"max_size_gb\":0.01}}");
    let server = Server::start_with(&sandbox, &flags, &[("WAVETANK_PASSWORD", "open-sesame")]);
    for path in ["/", "/metrics", "/status", "/config", "/v1/lookup", "/v1/retrieve", "/v1/store", "/v1/end"]
    {
        let method = if path.starts_with("/v1") { "POST" } else { "GET" };
        let answer = server.request(method, path, b"");
        assert_eq!(answer.status, 401, "{path}");
        assert!(answer.head.contains("www-authenticate: basic"), "{}", answer.head);
        let wrong = server.request_with(method, path, &[("authorization", "Bearer open")], b"");
        assert_eq!(wrong.status, 401, "{path}");
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    // alice:open-sesame
    for login in ["Bearer open-sesame", "Basic YWxpY2U6b3Blbi1zZXNhbWU="] {
        let config = server.request_with("GET", "/config", &[("authorization", login)], b"");
        assert_eq!(config.status, 200);
        assert_eq!(config.json()["login"], json!({ "password": "set", "user": "alice" }));
        assert!(!config.text().contains("sesame"));
    }
    let run = server.end();
    assert!(!(run.stderr + &run.stdout).contains("sesame"));
}

/// Broken by: a request that holds what it found for ever, or one that ends while it is in use.
#[test]
fn a_silent_request_ends_by_itself() {
    let sandbox = Sandbox::empty();
    let server = Server::start(&sandbox, &format!("{SMALL} --session-ttl-seconds 0.05"));
    server.post("/v1/lookup", &json!({ "request_id": "a", "model": "m", "chunk_hashes": ["ab"] }));
    while server.status()["requests"] != json!({ "open": 0, "expired": 1 }) {
        thread::sleep(Duration::from_millis(10));
    }
}

/// Broken by: headers, bodies or answers that are waited for without end, or connections that are not counted
/// or not given back.
#[test]
fn slow_and_surplus_clients_are_let_go() {
    let sandbox = Sandbox::empty();
    let flags =
        format!("{SMALL} --client-timeout-seconds 0.2 --idle-timeout-seconds 0.4 --http-max-connections 3");
    let server = Server::start(&sandbox, &flags);
    let mut slow: Vec<_> = (0..3).map(|_| server.connect()).collect();
    slow[0].write_all(b"GET /status HTT").unwrap();
    slow[1]
        .write_all(b"PUT /v1/store?request_id=a&model=m&chunk_hashes=ab HTTP/1.1\r\nhost: localhost\r\n")
        .unwrap();
    slow[1].write_all(b"content-length: 20\r\n\r\nxyz").unwrap();
    // The third says nothing at all. A fourth is turned away while they are there.
    let mut turned_away = Vec::new();
    let mut fourth = server.connect();
    fourth.read_to_end(&mut turned_away).unwrap();
    assert!(turned_away.is_empty() || turned_away.starts_with(b"HTTP/1.1 503"), "{turned_away:?}");
    for client in &mut slow {
        let mut rest = Vec::new();
        // Closed or reset, but over.
        let _ = client.read_to_end(&mut rest);
        assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&rest));
    }
    let told = server.status()["counters"].clone();
    assert!(told["http_connections_refused"].as_u64().unwrap() >= 1, "{told}");
    assert_eq!(server.get("/readyz").json()["ready"], true);
}

/// Broken by: a door that speaks one version only.
#[test]
fn metrics_are_text_that_prometheus_reads() {
    let sandbox = Sandbox::empty();
    let server = Server::start(&sandbox, SMALL);
    let answer = server.get("/metrics");
    assert!(answer.head.contains("content-type: text/plain; version=0.0.4"), "{}", answer.head);
    let text = answer.text();
    assert!(text.contains("# TYPE wavetank_lookups_total counter\nwavetank_lookups_total 0\n"), "{text}");
}
