//! What is in the caches of a mock, as a subscriber learns it.

use serde_json::json;
use wavetank_live::kv_events::{KvEventsArgs, KvEventsPlan};
use wavetank_live::mock::{KvEventsReport, MockPlan};
use zeromq::{DealerSocket, Socket, SocketRecv, SocketSend, ZmqMessage};

use super::message_pack::Value;
use crate::client::post_ok;
use crate::server::{BLOCK, Server, plan};

/// All batches so far.
async fn published(endpoint: &str) -> Vec<Value> {
    let mut socket = DealerSocket::new();
    socket.connect(endpoint).await.unwrap();
    let mut question = ZmqMessage::from(Vec::new());
    question.push_back(0u64.to_be_bytes().to_vec().into());
    socket.send(question).await.unwrap();
    let mut batches = Vec::new();
    loop {
        let answer = socket.recv().await.unwrap().into_vec();
        let payload = &answer[3];
        if payload.is_empty() {
            return batches;
        }
        batches.push(Value::of(payload));
    }
}

/// Broken by: a plan whose events nobody publishes, or tokens that are not those of prompt and answer.
#[test]
fn what_was_asked_and_answered_is_published() {
    let free = "tcp://127.0.0.1:0".to_owned();
    let args = KvEventsArgs { endpoint: free.clone(), replay: Some(free), ..KvEventsArgs::default() };
    let kv_events = Some(KvEventsPlan::of(&args, 1).unwrap());
    let server = Server::start(MockPlan { kv_events, ..plan() });
    let prompt: Vec<u64> = (100..140).collect();
    let body = json!({ "prompt": prompt, "max_tokens": 30, "ignore_eos": true });
    let told = post_ok(server.at, "/v1/completions", &body).json();
    let tokens = told["usage"]["total_tokens"].as_u64().unwrap();
    assert_eq!(tokens, 70);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut stored = Vec::new();
    // The last token that was generated is not in the cache: nothing came after it.
    let whole = (tokens - 1) / u64::from(BLOCK) * u64::from(BLOCK);
    while (stored.len() as u64) < whole {
        let batches = runtime.block_on(published(&server.kv_events.replay[0]));
        let events = batches.iter().flat_map(|batch| batch.list()[1].list());
        stored = events.flat_map(|event| event.field("token_ids").naturals()).collect();
    }
    assert_eq!(stored.len() as u64, whole);
    assert_eq!(stored[..prompt.len()], prompt);
    let KvEventsReport { published, dropped, unknown_blocks } = server.end().kv_events.unwrap();
    assert!(published > 2 && (dropped, unknown_blocks) == (0, 0));
}
