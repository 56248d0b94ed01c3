//! The OpenAI-compatible door of a mock: requests of chats and completions, and whatever else comes in.

use std::net::SocketAddr;
use std::sync::LazyLock;
use std::sync::mpsc::channel;
use std::thread;

use wavetank::gauges::Gauges;
use wavetank::{KvEventsArgs, MockAddresses, MockArgs, MockCompany, ReplayArgs, mock, mock_plan};

use super::{Entry, inputs};
use crate::said::Met;
use crate::{texts, wire};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "mock",
    about: "the OpenAI-compatible door of live workers",
    samples: &["crates/fuzz/samples/http"],
    seeds,
    changed: texts::changed,
    check,
    // The vocabulary takes a third of it.
    most_memory: 512 << 20,
};

/// Every address, with bodies as clients send them.
fn seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "GET /v1/models\n",
        "GET /v1/models/wavetank-mock\n",
        "GET /metrics\n",
        "POST /tokenize\n{\"prompt\": \"hello world\"}",
        "POST /detokenize\n{\"tokens\": [1, 2, 300, 100000]}",
        "POST /v1/completions\n{\"model\": \"wavetank-mock\", \"prompt\": [1, 2, 3], \
         \"max_tokens\": 4, \"n\": 2}",
        "POST /v1/completions\n{\"prompt\": [\"a\", \"b\"], \"echo\": true, \"max_tokens\": 0, \
         \"stop\": [\"x\"]}",
        "POST /v1/completions\n{\"prompt\": \"a\", \"truncate_prompt_tokens\": -1, \
         \"logprobs\": 2, \"seed\": -3}",
        "POST /v1/chat/completions\n{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], \
         \"max_tokens\": 3,\n\
         \"stream\": true, \"stream_options\": {\"include_usage\": true, \"continuous_usage_stats\": true}}",
        "POST /v1/chat/completions\n{\"messages\": [{\"role\": \"system\", \
         \"content\": [{\"type\": \"text\",\n\
         \"text\": \"a\"}]}], \"tools\": [], \"temperature\": 0.5, \"top_p\": 0.9, \"top_k\": -1, \
         \"min_tokens\": 1,\n\
         \"ignore_eos\": true, \"stop_token_ids\": [5], \"priority\": -2, \"cache_salt\": \"s\", \
         \"user\": \"u\"}",
    ])
}

/// One for as long as the process lives: fast workers, short patience.
pub(super) static MOCK: LazyLock<MockAddresses> = LazyLock::new(|| {
    let engine = r#"{"speedup_ratio": 1000, "num_gpu_blocks": 4096, "block_size": 16}"#;
    let free = || "tcp://127.0.0.1:0".to_owned();
    let args = MockArgs {
        port: Some(0),
        max_model_len: Some(2048),
        output_tokens_mean: Some(8.0),
        client_timeout_seconds: Some(0.3),
        idle_timeout_seconds: Some(0.3),
        max_body_mib: Some(1.0),
        kv_events: Some(KvEventsArgs { endpoint: free(), replay: Some(free()), ..KvEventsArgs::default() }),
        workers: ReplayArgs { extra_engine_args: Some(engine.to_owned()), ..ReplayArgs::default() },
        ..MockArgs::default()
    };
    let plan = mock_plan(&args).expect("a plan").plan;
    let (say, said) = channel();
    let ready = Box::new(move |addresses: &MockAddresses, _: &Gauges| {
        say.send(addresses.clone()).expect("it is waited for");
    });
    thread::spawn(move || {
        let (_stop, stopped) = channel();
        mock(&plan, &stopped, MockCompany { followers: Vec::new(), ready }).expect("it serves");
    });
    said.recv().expect("it starts")
});

/// Whatever is sent, the mock ends the connection, and answers the next one.
fn check(bytes: &[u8]) -> Met {
    let door: SocketAddr = MOCK.http;
    let way = wire::ask(door, bytes).sketch();
    assert!(wire::lives(door, "/health"), "it does not answer any more");
    Met::Read(way)
}
