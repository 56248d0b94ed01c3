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

/// Broken by: a fill that is not said on standard error, or not in the report.
#[test]
fn fills_are_told() {
    let sandbox = Sandbox::empty();
    let rows = "2023-11-16 18:17:03.9799600,480,10\r\n2023-11-16 18:17:04.4799600,318,8\r\n";
    sandbox.write("a.csv", format!("TIMESTAMP,ContextTokens,GeneratedTokens\r\n{rows}"));
    let header =
        "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n";
    sandbox.write("b.csv", format!("{header}5,s,1,m,480,10,490,x\n5.5,s,1,m,318,8,326,x\n"));
    let filled = "2 requests without block ids: every prompt is like no other (--fill hash=unique)";
    let follows =
        "1 request follow a turn of their session: they come after its end by the difference of their times";
    for (trace, notes) in
        [("azure:a.csv", vec![filled]), ("a.csv", vec![filled]), ("burstgpt:b.csv", vec![filled, follows])]
    {
        let run = sandbox.run(&format!("replay {trace} --report-json r.json --per-request-jsonl q.jsonl"));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let told: String = notes.iter().map(|note| format!("warning: {note}\n")).collect();
        assert_eq!(run.stderr, told, "{trace}");
        let report = sandbox.report("r.json");
        assert_eq!(report.json()["warnings"], serde_json::json!(notes), "{trace}");
        assert_eq!(report.count("/completed_requests"), 2);
        assert_eq!((report.count("/total_input_tokens"), report.count("/total_output_tokens")), (798, 18));
        assert_eq!(sandbox.read("q.jsonl").lines().count(), 2);
    }
    let run = sandbox.run("replay burstgpt:b.csv --fill hash=session --report-json r.json");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("begins with all that was said before in its session (--fill hash=session)"));
}

/// Broken by: storage calls that are taken for requests, or a message that leads nowhere.
#[test]
fn storage_calls_are_led_elsewhere() {
    let sandbox = Sandbox::empty();
    let rows = "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\n1,Write,5,Tier-0,a,Prefill\n";
    sandbox.write("calls.csv", rows);
    let message = sandbox.refuse("calls.csv");
    let expected =
        "error: calls.csv: is a trace of storage calls, not of requests\nhint: `wavetank trace replay`";
    assert!(message.starts_with(expected), "{message}");
}
