//! Completions.

use serde_json::{Value, json};

use crate::client::{post_ok, with};
use crate::server::{Server, plan};

const COMPLETIONS: &str = "/v1/completions";

fn complete(server: &Server, body: &Value) -> Value {
    post_ok(server.at, COMPLETIONS, body).json()
}

fn texts(whole: &Value) -> Vec<String> {
    let choices = whole["choices"].as_array().expect("choices");
    choices.iter().map(|choice| choice["text"].as_str().expect("a text").to_owned()).collect()
}

/// Broken by: prompts whose answers are mixed up, lost or counted once.
#[test]
fn every_prompt_is_answered() {
    let server = Server::start(plan());
    let hello = complete(&server, &json!({ "prompt": "Hello", "ignore_eos": true }));
    assert_eq!(hello["usage"]["completion_tokens"], 16);
    assert_eq!(hello["usage"]["prompt_tokens"], 1);
    assert_eq!(hello["choices"][0]["finish_reason"], "length");
    let body = json!({ "prompt": ["Hello", "Hello, sea"], "n": 2, "ignore_eos": true });
    let both = complete(&server, &body);
    assert_eq!(both["usage"]["prompt_tokens"], 4);
    assert_eq!(both["usage"]["completion_tokens"], 64);
    let told = texts(&both);
    assert_eq!((told.len(), &told[0]), (4, &texts(&hello)[0]));
    assert!(told[1..].iter().all(|text| *text != told[0]));
    let tokens =
        complete(&server, &json!({ "prompt": [[9906], [9906, 11, 9581]], "n": 2, "ignore_eos": true }));
    assert_eq!(texts(&tokens), told, "the same in tokens");
    let mut streamed = body;
    streamed["stream"] = json!(true);
    let chunks = post_ok(server.at, COMPLETIONS, &streamed).chunks();
    assert_eq!(chunks.len(), 64);
    for (index, text) in told.iter().enumerate() {
        let of_choice = chunks.iter().filter(|chunk| chunk["choices"][0]["index"] == index);
        let whole: String = of_choice.map(|chunk| chunk["choices"][0]["text"].as_str().unwrap()).collect();
        assert_eq!(whole, *text);
    }
}

/// Broken by: an echo that is not there, comes twice, or costs tokens of an answer.
#[test]
fn a_prompt_may_come_back() {
    let server = Server::start(plan());
    let plain = texts(&complete(&server, &json!({ "prompt": "\"Hello\"\n", "max_tokens": 5 })));
    let echo = json!({ "prompt": "\"Hello\"\n", "max_tokens": 5, "echo": true });
    let told = complete(&server, &echo);
    assert_eq!(texts(&told)[0], format!("\"Hello\"\n{}", plain[0]));
    assert_eq!(told["usage"]["completion_tokens"], 5);
    let mut streamed = echo.clone();
    streamed["stream"] = json!(true);
    let chunks = post_ok(server.at, COMPLETIONS, &streamed).chunks();
    let text: String = chunks.iter().map(|chunk| chunk["choices"][0]["text"].as_str().unwrap()).collect();
    assert_eq!(text, texts(&told)[0]);
    let only = json!({ "prompt": "Hello", "max_tokens": 0, "echo": true });
    assert_eq!(texts(&complete(&server, &only)), ["Hello"]);
}

/// Broken by: a stop that does not end, ends elsewhere, or is not told.
#[test]
fn stops_end_an_answer() {
    let server = Server::start(plan());
    let long = json!({ "prompt": "Hello", "max_tokens": 100, "ignore_eos": true, "return_token_ids": true });
    let whole = complete(&server, &long);
    let text = &texts(&whole)[0];
    let fifth = text.split(' ').nth(5).unwrap();
    let with = |extra: Value| complete(&server, &with(long.clone(), extra));
    let stopped = with(json!({ "stop": [format!(" {fifth}")] }));
    assert_eq!(stopped["choices"][0]["stop_reason"], format!(" {fifth}"));
    assert_eq!(stopped["choices"][0]["finish_reason"], "stop");
    let before = &text[..text.find(&format!(" {fifth}")).unwrap()];
    assert_eq!(texts(&stopped)[0], before);
    let kept = with(json!({ "stop": [format!(" {fifth}")], "include_stop_str_in_output": true }));
    assert_eq!(texts(&kept)[0], format!("{before} {fifth}"));
    let token = &whole["choices"][0]["token_ids"][5];
    let by_token = with(json!({ "stop_token_ids": [token] }));
    assert_eq!(&by_token["choices"][0]["stop_reason"], token);
    assert_eq!(texts(&by_token)[0], before);
    assert!(by_token["usage"]["completion_tokens"].as_u64().unwrap() <= 6);
}
