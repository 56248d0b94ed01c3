//! Chats, whole and streamed.

use serde_json::{Value, json};

use crate::client::{get, post_ok, with};
use crate::server::{Server, plan};

const CHAT: &str = "/v1/chat/completions";

fn chat(extra: Value) -> Value {
    let message = json!({ "role": "user", "content": "How are the waves?" });
    with(json!({ "model": "mock", "messages": [message] }), extra)
}

/// Broken by: a stream that tells something else than a whole answer, or in other chunks than vLLM's.
#[test]
fn a_stream_is_the_whole_answer_in_chunks() {
    let server = Server::start(plan());
    for extra in [json!({}), json!({ "seed": 5, "n": 3 }), json!({ "max_tokens": 7 }), json!({ "stop": "e" })]
    {
        let whole = post_ok(server.at, CHAT, &chat(extra.clone())).json();
        let mut streamed = extra.clone();
        streamed["stream"] = json!(true);
        streamed["stream_options"] = json!({ "include_usage": true });
        let chunks = post_ok(server.at, CHAT, &chat(streamed)).chunks();
        let (last, chunks) = chunks.split_last().unwrap();
        assert_eq!(last["choices"], json!([]));
        assert_eq!(last["usage"]["total_tokens"], whole["usage"]["total_tokens"]);
        for choice in whole["choices"].as_array().unwrap() {
            let of_choice = |chunk: &&Value| chunk["choices"][0]["index"] == choice["index"];
            let told: Vec<&Value> =
                chunks.iter().filter(of_choice).map(|chunk| &chunk["choices"][0]).collect();
            assert_eq!(told[0]["delta"], json!({ "role": "assistant", "content": "" }));
            let text: String = told.iter().map(|chunk| chunk["delta"]["content"].as_str().unwrap()).collect();
            assert_eq!(choice["message"]["content"], json!(text));
            let (end, before) = told.split_last().unwrap();
            assert!(before.iter().all(|chunk| chunk["finish_reason"].is_null()));
            assert_eq!(end["finish_reason"], choice["finish_reason"]);
            assert_eq!(end["stop_reason"], choice["stop_reason"]);
        }
        let tokens = chunks.len() - whole["choices"].as_array().unwrap().len();
        assert_eq!(whole["usage"]["completion_tokens"], json!(tokens), "a chunk for each token");
        assert!(chunks.iter().all(|chunk| chunk["id"] == chunks[0]["id"] && chunk.get("usage").is_none()));
    }
    let seen = server.seen();
    assert_eq!((seen.arrived, seen.completed, seen.cancelled), (12, 12, 0));
}

/// Broken by: an answer of another length or reason than was asked for.
#[test]
fn answers_are_as_long_as_wanted() {
    let server = Server::start(plan());
    let mut generated = 0;
    for (extra, tokens, finish) in [
        (json!({ "max_tokens": 1 }), Some(1), "length"),
        (json!({ "max_completion_tokens": 300, "ignore_eos": true }), Some(300), "length"),
        (json!({ "min_tokens": 200, "max_tokens": 400 }), Some(201), "stop"),
        (json!({ "min_tokens": 200, "max_tokens": 200 }), Some(200), "length"),
        (json!({}), None, "stop"),
    ] {
        let whole = post_ok(server.at, CHAT, &chat(extra)).json();
        let used = whole["usage"]["completion_tokens"].as_u64().unwrap();
        assert!(tokens.is_none_or(|tokens| tokens == used) && used > 0, "{used} of {tokens:?}");
        assert_eq!(whole["choices"][0]["finish_reason"], finish);
        assert_eq!(whole["model"], "mock");
        generated += used;
    }
    let all = post_ok(server.at, CHAT, &chat(json!({ "ignore_eos": true }))).json();
    assert_eq!(all["usage"]["total_tokens"], 4096, "what is left of the model's length");
    generated += all["usage"]["completion_tokens"].as_u64().unwrap();
    assert_eq!(u64::from(server.seen().tokens), generated, "what was used was generated");
}

/// Broken by: usage that does not come with every chunk, or does not grow.
#[test]
fn usage_may_come_throughout() {
    let server = Server::start(plan());
    let options = json!({ "include_usage": true, "continuous_usage_stats": true });
    let body =
        chat(json!({ "stream": true, "stream_options": options, "max_tokens": 4, "return_token_ids": true }));
    let chunks = post_ok(server.at, CHAT, &body).chunks();
    let used: Vec<u64> =
        chunks.iter().map(|chunk| chunk["usage"]["completion_tokens"].as_u64().unwrap()).collect();
    assert_eq!(used, [0, 1, 2, 3, 4, 4]);
    let prompt = chunks[0]["prompt_token_ids"].as_array().unwrap().len() as u64;
    assert_eq!(chunks[5]["usage"]["prompt_tokens"], prompt);
    assert!(chunks[1..5].iter().all(|chunk| chunk["choices"][0]["token_ids"].as_array().unwrap().len() == 1));
}

/// Broken by: what is said about the server that is not so.
#[test]
fn the_server_says_what_it_is() {
    let server = Server::start(plan());
    let models = get(server.at, "/v1/models").json();
    let names: Vec<&Value> = models["data"].as_array().unwrap().iter().map(|card| &card["id"]).collect();
    assert_eq!(names, ["mock", "alias"]);
    assert_eq!(models["data"][0]["max_model_len"], 4096);
    assert_eq!(get(server.at, "/v1/models/alias").json()["root"], "model");
    assert_eq!(get(server.at, "/health").status, 200);
    assert!(get(server.at, "/version").json()["version"].is_string());
    let tokens = post_ok(server.at, "/tokenize", &json!({ "prompt": "Hello, sea" })).json();
    assert_eq!(tokens["count"], 3);
    let text = post_ok(server.at, "/detokenize", &json!({ "tokens": tokens["tokens"] })).json();
    assert_eq!(text["prompt"], "Hello, sea");
    let messages = post_ok(server.at, "/tokenize", &chat(json!({}))).json();
    let used = post_ok(server.at, CHAT, &chat(json!({}))).json();
    assert_eq!(messages["count"], used["usage"]["prompt_tokens"]);
    let metrics = get(server.at, "/metrics").body;
    assert!(metrics.contains("handler=\"/v1/chat/completions\",status=\"200\"} 1\n"), "{metrics}");
    let used = &used["usage"];
    for (name, count) in [("prompt", &used["prompt_tokens"]), ("generation", &used["completion_tokens"])] {
        let row = format!("vllm:{name}_tokens_total{{model_name=\"mock\",engine=\"0\"}} {count}\n");
        assert!(metrics.contains(&row), "{row} is not in {metrics}");
    }
    assert_eq!(server.end().requests, 9);
}
