//! The HTTP door of the cache server: its native API, and whatever else comes in.

use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::sync::{Arc, LazyLock};
use std::thread;

use wavetank_serve::{Addresses, Args, Listener, Plan, run};

use super::{Entry, inputs};
use crate::said::Met;
use crate::{texts, wire};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "native",
    about: "the HTTP door of the cache server",
    samples: &["crates/fuzz/samples/http"],
    seeds,
    changed: texts::changed,
    check,
    // A server of 32 MiB, and its threads.
    most_memory: 256 << 20,
};

/// Every address, with bodies as clients send them.
fn seeds() -> Vec<Vec<u8>> {
    let mut all = inputs(&[
        "GET /status?history=10\n",
        "GET /metrics\n",
        "GET /config\n",
        "GET /\n",
        "POST /v1/lookup\n{\"request_id\": \"r\", \"model\": \"m\", \"chunk_hashes\": [\"00ff\", \"01\"]}",
        "POST /v1/lookup\n{\"request_id\": \"r\", \"model\": \"m\", \"tokens\": [1, 2, 3], \
         \"cache_salt\": \"s\"}",
        "POST /v1/retrieve\n{\"request_id\": \"r\"}",
        "POST /v1/end\n{\"request_id\": \"r\"}",
    ]);
    let frame = |index: u32, bytes: &[u8]| {
        [&index.to_le_bytes()[..], &(bytes.len() as u64).to_le_bytes(), bytes].concat()
    };
    let head = b"PUT /v1/store?request_id=r&model=m&chunk_hashes=00ff,01\n".to_vec();
    all.push([head, frame(0, b"first"), frame(1, &[7; 5000])].concat());
    all
}

/// A server with 32 MiB whose patience is short, for as long as the process lives.
static DOOR: LazyLock<SocketAddr> = LazyLock::new(|| {
    let args = Args {
        l1_size_gb: Some(0.03125),
        port: Some(0),
        http_port: Some(0),
        client_timeout_seconds: Some(0.3),
        idle_timeout_seconds: Some(0.3),
        session_ttl_seconds: Some(0.5),
        ..Args::default()
    };
    let plan = Plan::of(&args, None).expect("a plan");
    let (say, said) = channel();
    let ready = Box::new(move |addresses: &Addresses| say.send(addresses.http).expect("it is waited for"));
    thread::spawn(move || {
        let (_stop, stopped) = channel();
        let listener = Listener { ready, tell: Arc::new(|_| {}) };
        run(&plan, &stopped, listener).expect("it serves");
    });
    said.recv().expect("it starts")
});

/// Whatever is sent, the server ends the connection, and answers the next one.
fn check(bytes: &[u8]) -> Met {
    let way = wire::ask(*DOOR, bytes).sketch();
    assert!(wire::lives(*DOOR, "/healthz"), "it does not answer any more");
    Met::Read(way)
}
