//! What is refused, and how.

use serde_json::{Value, json};
use wavetank_live::mock::{Login, MockPlan, Secret};

use crate::client::{get, post, posting, receive, send};
use crate::server::{Server, plan};

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";

/// Broken by: a wrong request that is served, ends the server, or is refused with another status.
#[test]
fn wrong_requests_are_refused() {
    let server = Server::start(plan());
    let long = vec![5; 5000];
    for (path, body, status, param) in [
        (COMPLETIONS, json!({}), 400, json!("prompt")),
        (COMPLETIONS, json!({ "prompt": "" }), 400, json!("prompt")),
        (COMPLETIONS, json!({ "prompt": "a", "max_tokens": "x" }), 400, json!("max_tokens")),
        (COMPLETIONS, json!({ "prompt": "a", "max_tokens": 4096 }), 400, Value::Null),
        (COMPLETIONS, json!({ "prompt": long }), 400, Value::Null),
        (COMPLETIONS, json!({ "prompt": "a", "temperature": -1 }), 400, json!("temperature")),
        (COMPLETIONS, json!({ "prompt": "a", "logprobs": 3 }), 400, json!("logprobs")),
        (COMPLETIONS, json!({ "prompt": "a", "model": "other" }), 404, json!("model")),
        (COMPLETIONS, json!({ "prompt": "a", "stop": "s".repeat(2000) }), 400, json!("stop")),
        (COMPLETIONS, json!({ "prompt": "a", "stop": vec!["s"; 20] }), 400, json!("stop")),
        (COMPLETIONS, json!({ "prompt": "a", "stop_token_ids": long }), 400, json!("stop_token_ids")),
        (COMPLETIONS, json!({ "prompt": "a", "request_id": "i".repeat(300) }), 400, json!("request_id")),
        ("/tokenize", json!({ "prompt": "a ".repeat(5000) }), 400, Value::Null),
        ("/detokenize", json!({ "tokens": long }), 400, Value::Null),
        (CHAT, json!({ "messages": "Hi" }), 400, json!("messages")),
        (CHAT, json!({ "messages": [] }), 400, json!("messages")),
        (CHAT, json!([1, 2]), 400, Value::Null),
        ("/v1/embeddings", json!({}), 404, Value::Null),
    ] {
        let got = post(server.at, path, &body);
        assert_eq!(got.status, status, "{path} {}", got.body);
        let error = got.json()["error"].take();
        assert_eq!((&error["param"], &error["code"]), (&param, &json!(status)), "{path}");
        assert!(error["message"].is_string() && error["type"].is_string());
    }
    let id = format!("{}\r\nx-request-id: {}", posting(COMPLETIONS), "i".repeat(300));
    assert_eq!(receive(send(server.at, &id, br#"{"prompt": "a"}"#)).status, 400);
    assert_eq!(receive(send(server.at, &posting(CHAT), b"{\"messages\": [")).status, 400);
    assert_eq!(receive(send(server.at, &posting(CHAT), b"\xff\xfe")).status, 400);
    assert_eq!(get(server.at, CHAT).status, 405);
    assert!(get(server.at, CHAT).head.contains("allow: POST"));
    let text = format!("POST {CHAT} HTTP/1.1\r\ncontent-type: text/plain");
    assert_eq!(receive(send(server.at, &text, b"{}")).status, 415);
    let foreign = format!("{}\r\norigin: http://evil.example", posting(CHAT));
    assert_eq!(receive(send(server.at, &foreign, b"{}")).status, 403);
    assert_eq!(server.seen().arrived, 0);
}

/// Broken by: a body without a limit, with or without its length.
#[test]
fn bodies_have_a_limit() {
    let server = Server::start(plan());
    let body = format!(r#"{{"prompt": "{}"}}"#, "a ".repeat(1 << 20));
    let got = receive(send(server.at, &posting(COMPLETIONS), body.as_bytes()));
    assert_eq!(got.status, 413, "{}", got.body);
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let head = format!("{}\r\ntransfer-encoding: chunked\r\nx: y", posting(COMPLETIONS));
    let mut stream = std::net::TcpStream::connect(server.at).unwrap();
    let head = format!("{head}\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    let _ = std::io::Write::write_all(&mut stream, chunk.as_bytes());
    assert_eq!(receive(stream).status, 413);
    // One that fits and is large is looked at beside others.
    let fits = json!({ "prompt": "a ".repeat(1000), "max_tokens": 1 });
    assert_eq!(post(server.at, COMPLETIONS, &fits).status, 200);
    let many = json!({ "prompt": "a ".repeat(20_000) });
    assert_eq!(post(server.at, COMPLETIONS, &many).status, 400);
}

/// Broken by: a key that does not matter, or that closes what says how the server is.
#[test]
fn a_key_is_needed() {
    let login = Login { user: None, password: Secret::of("open sesame") };
    let server = Server::start(MockPlan { api_key: Some(login), ..plan() });
    let body = json!({ "prompt": "a" });
    let with = |key: &str| {
        let head = format!("{}\r\nauthorization: Bearer {key}", posting(COMPLETIONS));
        receive(send(server.at, &head, body.to_string().as_bytes())).status
    };
    assert_eq!(post(server.at, COMPLETIONS, &body).status, 401);
    assert_eq!((with("open sesame"), with("open"), with("")), (200, 401, 401));
    assert_eq!(get(server.at, "/v1/models").status, 401);
    assert_eq!(post(server.at, "/tokenize", &body).status, 401);
    assert_eq!(get(server.at, "/health").status, 200);
    assert_eq!(get(server.at, "/metrics").status, 200);
}

/// Broken by: an engine's refusal that looks like an answer.
#[test]
fn what_an_engine_refuses_is_told() {
    let mut small = plan();
    small.simulation.engine.num_gpu_blocks = 8;
    let server = Server::start(small);
    let body = json!({ "prompt": vec![5; 100] });
    let whole = post(server.at, COMPLETIONS, &body);
    assert_eq!(whole.status, 400);
    assert!(whole.body.contains("KV cache"), "{}", whole.body);
    let chunks = post(server.at, COMPLETIONS, &json!({ "prompt": vec![5; 100], "stream": true })).chunks();
    assert_eq!(chunks.len(), 1);
    assert_eq!(chunks[0]["error"]["code"], 400);
}

/// Broken by: more answers under way than may be.
#[test]
fn there_are_places_for_so_many_answers() {
    let mut few = plan();
    few.limits.requests = 4;
    let server = Server::start(few);
    let body = |n: u32| json!({ "prompt": "a", "n": n });
    assert_eq!(post(server.at, COMPLETIONS, &body(5)).status, 503);
    for _ in 0..3 {
        assert_eq!(post(server.at, COMPLETIONS, &body(4)).status, 200, "places are free again");
    }
}
