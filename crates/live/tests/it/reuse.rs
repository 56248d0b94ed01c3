//! Prefixes that are shared are found in the caches of the workers.

use serde_json::{Value, json};

use crate::client::post_ok;
use crate::server::{BLOCK, Server, plan};

const CHAT: &str = "/v1/chat/completions";

/// Broken by: a next turn that does not find what was sent and answered before it.
#[test]
fn a_conversation_finds_all_that_was_said() {
    let server = Server::start(plan());
    let mut messages = vec![json!({ "role": "system", "content": "You are a wave tank." })];
    let mut before = 0;
    for turn in 0..4 {
        messages.push(json!({ "role": "user", "content": format!("Turn {turn}: how are the waves?") }));
        let reused = server.seen().reused;
        let told = post_ok(server.at, CHAT, &json!({ "messages": messages })).json();
        let (usage, answer) = (&told["usage"], &told["choices"][0]["message"]["content"]);
        let cached = usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
        server.until("it has ended", |seen| seen.completed == turn + 1);
        assert_eq!(u64::from(server.seen().reused - reused), cached);
        // The last token that was generated is not in the cache: nothing came after it.
        let whole_blocks = |tokens: u64| tokens.saturating_sub(1) / u64::from(BLOCK) * u64::from(BLOCK);
        assert_eq!(cached, whole_blocks(before), "turn {turn}");
        assert_eq!(told["choices"][0]["finish_reason"], "stop");
        before = usage["total_tokens"].as_u64().unwrap();
        messages.push(json!({ "role": "assistant", "content": answer }));
    }
}

/// Broken by: prompts that share their beginning as texts and not as blocks, or the other way round.
#[test]
fn equal_beginnings_are_shared_and_others_are_not() {
    let server = Server::start(plan());
    let cached = |prompt: Value, salt: Option<&str>| {
        let body = json!({ "prompt": prompt, "max_tokens": 1, "cache_salt": salt });
        let told = post_ok(server.at, "/v1/completions", &body).json();
        told["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap()
    };
    let tokens = |from: u32| (0..40).map(|token| token + from).collect::<Vec<u32>>();
    assert_eq!(cached(json!(tokens(0)), None), 0);
    let mut half = tokens(0);
    half[22] = 9999;
    assert_eq!(cached(json!(half), None), 20);
    assert_eq!(cached(json!(tokens(1)), None), 0);
    assert_eq!(cached(json!(tokens(0)), Some("salt")), 0);
    assert!(cached(json!(tokens(0)), Some("salt")) >= 36);
}
