//! Trace formats beside Mooncake's, from file to report.
//!
//! Breaks when a reader loses turns or rows, skipped things are not told, or lengths are counted otherwise.

use crate::sandbox::Sandbox;

const SHAREGPT: &str = r#"[
  {"id": "a", "conversations": [
    {"from": "human", "value": "tiktoken is great!"}, {"from": "gpt", "value": "tiktoken is great!"},
    {"from": "human", "value": "tiktoken is great!"}, {"from": "gpt", "value": "tiktoken is great!"}]},
  {"id": "b", "conversations": [
    {"from": "human", "value": "tiktoken is great!"}, {"from": "gpt", "value": "tiktoken is great!"},
    {"from": "human", "value": "and alone"}]},
  {"id": "c", "text": "no conversation"}
]"#;

#[test]
fn conversations_in_a_closed_loop() {
    let sandbox = Sandbox::empty();
    sandbox.write("talk.json", SHAREGPT);
    let line = "replay talk.json --trace-format sharegpt --replay-concurrency 2 --report-json r.json \
                --per-request-jsonl q.jsonl";
    let run = sandbox.run(line);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(
        run.stderr,
        "warning: 2 conversations with 3 turns, tokens counted by tiktoken cl100k_base\n\
         warning: 1 object skipped: without a question and its answer\n\
         warning: 1 turn skipped: the last one, without an answer\n"
    );
    let report = sandbox.report("r.json");
    assert_eq!(report.count("/completed_requests"), 3);
    // 6 tokens each: 6 in a and b, then 6 + 6 + 6 in a's second turn.
    assert_eq!(report.count("/total_input_tokens"), 6 + 6 + 18);
    assert_eq!(report.count("/total_output_tokens"), 18);
    assert_eq!(report.json()["warnings"].as_array().unwrap().len(), 3);
    assert!(sandbox.read("q.jsonl").contains(r#""session_id":"a""#));
}

#[test]
fn conversations_have_no_schedule() {
    let sandbox = Sandbox::empty();
    sandbox.write("talk.json", SHAREGPT);
    let message = sandbox.refuse("talk.json --trace-format sharegpt");
    let expected = "error: talk.json: there are no times in this format\nhint: --replay-concurrency ";
    assert!(message.starts_with(expected), "{message}");
}

const BURSTGPT: &str = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\r\n\
                        6,ChatGPT,300,20,320,Conversation log\r\n\
                        5,GPT-4,200,10,210,API log\r\n\
                        7,GPT-4,100,0,100,API log\r\n";

#[test]
fn bursts_on_schedule() {
    let sandbox = Sandbox::empty();
    sandbox.write("burst.csv", BURSTGPT);
    let line = "replay burst.csv --trace-format burstgpt --arrival-speedup-ratio 2 --clamp-input \
                --report-json r.json --per-request-jsonl q.jsonl";
    let run = sandbox.run(line);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(
        run.stderr,
        "warning: --clamp-input has no effect: burstgpt has no hash ids\n\
         warning: 1 row skipped: no response tokens, a failed request\n\
         warning: 2 requests without block ids: every prompt is like no other (--fill hash=unique)\n"
    );
    let report = sandbox.report("r.json");
    assert_eq!(report.count("/completed_requests"), 2);
    assert_eq!(report.count("/total_input_tokens"), 500);
    assert_eq!(report.count("/total_output_tokens"), 30);
    let records = sandbox.read("q.jsonl");
    let arrivals: Vec<f64> = records
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["arrival_time_ms"].as_f64().unwrap()
        })
        .collect();
    assert_eq!(arrivals, [0.0, 500.0]);
}

#[test]
fn a_broken_row_is_named() {
    let sandbox = Sandbox::empty();
    sandbox.write("burst.csv", BURSTGPT.replace("200", "many"));
    let message = sandbox.refuse("burst.csv --trace-format burstgpt");
    let expected = "error: burst.csv:3: \"Request tokens\" is \"many\"\nhint: ";
    assert!(message.starts_with(expected), "{message}");
}
