//! A mock in this process, and someone who follows what its workers do.

use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use wavetank_live::kv_events::Endpoints;
use wavetank_live::mock::{Addresses, Company, Follow, MockLimits, MockPlan, MockReport, OutputLengths, run};
use wavetank_model::{Nanos, ServeEvent, Sink};
use wavetank_sim::{EngineConfig, Plan};

use crate::client::LIMIT;

pub(crate) const BLOCK: u32 = 4;

/// Fast workers with blocks of a few tokens.
pub(crate) fn plan() -> MockPlan {
    let engine = EngineConfig {
        speedup_ratio: 50.0,
        block_size: BLOCK,
        max_model_len: Some(4096),
        ..EngineConfig::default()
    };
    MockPlan {
        simulation: Plan { engine, router_mode: "kv_router".to_owned(), seed: 1, ..Plan::default() },
        address: ([127, 0, 0, 1], 0).into(),
        api_key: None,
        model: "model".to_owned(),
        model_names: vec!["mock".to_owned(), "alias".to_owned()],
        tokenizer: None,
        output_tokens: OutputLengths { mean: 20.0, cv: 0.3 },
        prompt_tokens_details: true,
        limits: MockLimits {
            body_bytes: 1 << 20,
            connections: 64,
            requests: 64,
            client_timeout: Nanos::from_seconds(20.0),
            idle_timeout: Nanos::from_seconds(20.0),
        },
        http_threads: 2,
        drain: Nanos::from_seconds(20.0),
        kv_events: None,
    }
}

/// What was seen of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) arrived: u32,
    pub(crate) tokens: u32,
    pub(crate) reused: u32,
    pub(crate) completed: u32,
    pub(crate) cancelled: u32,
}

#[derive(Clone, Default)]
struct Follower(Arc<Mutex<Seen>>);

impl Sink<ServeEvent<'_>> for Follower {
    fn record(&mut self, event: &ServeEvent<'_>) {
        let mut seen = self.0.lock().expect("nobody panicked");
        match *event {
            ServeEvent::RequestArrived { .. } => seen.arrived += 1,
            ServeEvent::RequestAdmitted { reused_tokens, .. } => seen.reused += reused_tokens,
            ServeEvent::TokensEmitted { steps, requests, .. } => {
                seen.tokens += (steps.len() * requests.len()) as u32;
            }
            ServeEvent::RequestCompleted { .. } => seen.completed += 1,
            ServeEvent::RequestCancelled { .. } => seen.cancelled += 1,
            _ => {}
        }
    }
}

impl Follow for Follower {}

/// A mock while it runs.
pub(crate) struct Server {
    pub(crate) at: SocketAddr,
    pub(crate) kv_events: Endpoints,
    follower: Follower,
    stop: Sender<()>,
    thread: Option<JoinHandle<MockReport>>,
}

impl Server {
    pub(crate) fn start(plan: MockPlan) -> Self {
        let follower = Follower::default();
        let followers: Vec<Box<dyn Follow>> = vec![Box::new(follower.clone())];
        let (stop, stopped) = channel();
        let (say, ready) = channel();
        let thread = thread::spawn(move || {
            let company = Company {
                followers,
                ready: Box::new(move |at, _| say.send(at.clone()).expect("it is waited for")),
            };
            run(&plan, &stopped, company).expect("it runs")
        });
        let Addresses { http, kv_events } = ready.recv().expect("it starts");
        Self { at: http, kv_events, follower, stop, thread: Some(thread) }
    }

    pub(crate) fn seen(&self) -> Seen {
        *self.follower.0.lock().expect("nobody panicked")
    }

    /// Waits until `is_so`, which has to happen.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(Seen) -> bool) {
        let began = Instant::now();
        while !is_so(self.seen()) {
            assert!(began.elapsed() < LIMIT, "{what}: {:?}", self.seen());
            thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    /// Asks it to end.
    pub(crate) fn stop(&self) {
        self.stop.send(()).expect("it runs");
    }

    /// What it did in all.
    pub(crate) fn end(mut self) -> MockReport {
        let _ = self.stop.send(());
        self.thread.take().expect("it runs").join().expect("it ended well")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.stop.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
