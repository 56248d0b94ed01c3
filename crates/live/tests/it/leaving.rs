//! Clients that leave, and a server that ends.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;

use serde_json::json;
use wavetank_live::mock::MockPlan;
use wavetank_model::Nanos;

use crate::client::{post_ok, posting, receive, send};
use crate::server::{Server, plan};

const COMPLETIONS: &str = "/v1/completions";

/// Reads until a part of the answer itself has come.
fn begin(stream: &mut TcpStream) {
    let mut all = Vec::new();
    while !String::from_utf8_lossy(&all).contains("data: ") {
        let mut some = [0; 512];
        let read = stream.read(&mut some).expect("more comes");
        assert!(read > 0, "{}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&some[..read]);
    }
}

/// Workers on which a long answer takes a minute.
fn slow() -> MockPlan {
    let mut slow = plan();
    slow.simulation.engine.speedup_ratio = 1.0;
    slow
}

/// Broken by: an answer that is generated to its end though nobody waits for it.
#[test]
fn who_leaves_gives_the_answer_up() {
    let server = Server::start(slow());
    let streamed = json!({ "prompt": "a", "max_tokens": 4000, "ignore_eos": true, "stream": true });
    let whole = json!({ "prompt": "b", "max_tokens": 4000, "ignore_eos": true, "n": 3 });
    let mut stream = send(server.at, &posting(COMPLETIONS), streamed.to_string().as_bytes());
    begin(&mut stream);
    let waiting = send(server.at, &posting(COMPLETIONS), whole.to_string().as_bytes());
    server.until("all are there", |seen| seen.arrived == 4);
    stream.shutdown(Shutdown::Both).unwrap();
    server.until("the stream is given up", |seen| seen.cancelled == 1);
    drop(waiting);
    server.until("the others are too", |seen| seen.cancelled == 4);
    assert_eq!(server.seen().completed, 0);
    // The worker goes on with others.
    post_ok(server.at, COMPLETIONS, &json!({ "prompt": "c", "max_tokens": 3 }));
}

/// Broken by: a reader that is slow and loses something.
#[test]
fn who_reads_slowly_gets_everything() {
    let server = Server::start(plan());
    let body = json!({ "prompt": "a", "max_tokens": 3000, "ignore_eos": true, "stream": true });
    let stream = send(server.at, &posting(COMPLETIONS), body.to_string().as_bytes());
    server.until("all is generated", |seen| seen.completed == 1);
    assert_eq!(receive(stream).chunks().len(), 3000);
}

/// Broken by: answers that are cut off though there was time for them.
#[test]
fn an_end_waits_for_answers() {
    let server = Server::start(plan());
    let body = json!({ "prompt": "a", "max_tokens": 2000, "ignore_eos": true, "stream": true });
    let mut stream = send(server.at, &posting(COMPLETIONS), body.to_string().as_bytes());
    server.until("it has begun", |seen| seen.tokens > 0);
    server.stop();
    let reading = thread::spawn(move || {
        let mut all = String::new();
        stream.read_to_string(&mut all).unwrap();
        all
    });
    let all = reading.join().unwrap();
    assert!(all.contains("data: [DONE]"), "{}", &all[all.len() - 500..]);
    assert_eq!(server.end().requests, 1);
}

/// Broken by: an end that never comes, or a connection that stays open after it.
#[test]
fn an_end_does_not_wait_for_ever() {
    let server = Server::start(MockPlan { drain: Nanos(1_000_000), ..slow() });
    let body = json!({ "prompt": "a", "max_tokens": 4000, "ignore_eos": true, "stream": true });
    let mut stream = send(server.at, &posting(COMPLETIONS), body.to_string().as_bytes());
    begin(&mut stream);
    let at = server.at;
    server.end();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("[DONE]"));
    let refused = TcpStream::connect(at).and_then(|mut stream| {
        stream.write_all(b"GET /health HTTP/1.1\r\n\r\n")?;
        stream.read(&mut [0; 1])
    });
    assert!(!matches!(refused, Ok(1)));
}
