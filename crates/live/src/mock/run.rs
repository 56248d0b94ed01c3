//! A mock from its first line to its last: workers, door, and their end.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, SystemTime};

use tokio::sync::Semaphore;
use wavetank_http::{Door, Settings};
use wavetank_model::{Error, Nanos, Result};

use super::control::{Control, Desk, Follow};
use super::counts::Counts;
use super::front::{self, Front, Rules};
use super::job::Study;
use super::plan::MockPlan;
use super::tokens::Tokenizer;
use super::words::Words;
use crate::gauges::Gauges;
use crate::kv_events::{self, Endpoints, KvEvents};

/// Between two looks at whether the workers are well.
const LOOK: Duration = Duration::from_millis(200);
/// Bodies of full length that may come at a time.
const FULL_BODIES: usize = 16;
/// Tokens of requests under way, prompts and answers: each takes about eight bytes.
const MOST_TOKENS: usize = 128 << 20;
/// Requests that one HTTP/2 connection may have open.
const STREAMS: u32 = 1024;

/// Who takes part in a mock besides its clients.
pub struct Company {
    /// Told what the workers do.
    pub followers: Vec<Box<dyn Follow>>,
    /// Told once, when clients are served: where, and what can be seen of the workers.
    pub ready: Ready,
}

/// Hears that clients are served.
pub type Ready = Box<dyn FnOnce(&Addresses, &Gauges)>;

/// Where a mock is reached.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// By clients.
    pub http: SocketAddr,
    /// By whoever follows its caches; nowhere if nothing is published.
    pub kv_events: Endpoints,
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "listening on http://{}", self.http)?;
        let Endpoints { events, replay } = &self.kv_events;
        for (what, places) in [("KV events", events), ("missed KV events", replay)] {
            if !places.is_empty() {
                writeln!(f, "{what} on {}", places.join(" "))?;
            }
        }
        Ok(())
    }
}

/// What a mock did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MockReport {
    /// Requests answered.
    pub requests: u64,
    /// Those of them that were refused.
    pub refused: u64,
    /// Bytes of answers.
    pub sent_bytes: u64,
    /// What was published of caches, if that was asked for.
    pub kv_events: Option<KvEventsReport>,
}

/// What was published of caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvEventsReport {
    /// Batches handed to subscribers.
    pub published: u64,
    /// Batches that nobody got, because too many waited for subscribers.
    pub dropped: u64,
    /// Blocks that were not told of, because their tokens were not known.
    pub unknown_blocks: u64,
}

impl fmt::Display for MockReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = self.sent_bytes as f64 / (1u64 << 20) as f64;
        writeln!(f, "Answered: {} requests, {} of them refused", self.requests, self.refused)?;
        writeln!(f, "Sent: {mib:.1} MiB")?;
        if let Some(KvEventsReport { published, dropped, unknown_blocks }) = self.kv_events {
            writeln!(
                f,
                "KV events: {published} batches, {dropped} more dropped; {unknown_blocks} blocks unknown"
            )?;
        }
        Ok(())
    }
}

/// Serves until `stop` says so, whoever would say so is gone, or the workers fail.
pub fn run(plan: &MockPlan, stop: &Receiver<()>, company: Company) -> Result<MockReport> {
    let Company { mut followers, ready } = company;
    let gauges = Gauges::of(&plan.simulation);
    followers.push(Box::new(gauges.clone()));
    let study = study(plan)?;
    let listener = Door::listen(plan.address).map_err(|error| at_port(plan, error))?;
    let (kv_events, published) = publish(plan, &mut followers)?;
    let (control, desk) = Control::start(&plan.simulation, followers)?;
    let counts = Arc::new(Counts::default());
    let front = Arc::new(front(plan, study, desk, Arc::clone(&counts), gauges.clone()));
    let answer = move |request| Arc::clone(&front).answer(request);
    let door = Door::open(listener, settings(plan), Arc::clone(&counts.connections), answer)
        .map_err(|error| at_port(plan, error))?;
    ready(&Addresses { http: door.address(), kv_events }, &gauges);
    while stop.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) && !control.has_failed() {}
    door.drain(duration(plan.drain));
    control.end()?;
    let (requests, refused) = counts.total();
    let kv_events = published.map(|published| KvEventsReport {
        published: published.published(),
        dropped: published.dropped(),
        unknown_blocks: published.unknown_blocks(),
    });
    Ok(MockReport { requests, refused, sent_bytes: counts.sent_bytes(), kv_events })
}

/// Has what is in caches published, if that was asked for.
fn publish(
    plan: &MockPlan,
    followers: &mut Vec<Box<dyn Follow>>,
) -> Result<(Endpoints, Option<Arc<kv_events::Counts>>)> {
    let Some(wanted) = &plan.kv_events else { return Ok((Endpoints::default(), None)) };
    let (events, endpoints) = KvEvents::start(wanted, &plan.simulation)?;
    let counts = events.counts();
    followers.push(Box::new(events));
    Ok((endpoints, Some(counts)))
}

/// What answers are made with.
fn study(plan: &MockPlan) -> Result<Study> {
    let tokenizer = match &plan.tokenizer {
        Some(path) => Tokenizer::from_file(path)?,
        None => Tokenizer::embedded(),
    };
    let engine = &plan.simulation.engine;
    Ok(Study {
        words: Words::of(&tokenizer)?,
        tokenizer,
        lengths: plan.output_tokens,
        root: plan.model.clone(),
        models: plan.model_names.clone(),
        max_model_len: engine.max_model_len.unwrap_or(u32::MAX),
        block_size: engine.block_size,
    })
}

fn front(plan: &MockPlan, study: Study, desk: Desk, counts: Arc<Counts>, gauges: Gauges) -> Front {
    let limits = &plan.limits;
    Front {
        study: Arc::new(study),
        desk,
        counts,
        gauges,
        rules: Rules {
            login: plan.api_key.clone(),
            host: plan.address.ip(),
            body_bytes: limits.body_bytes,
            client_timeout: duration(limits.client_timeout),
            shows_cached: plan.prompt_tokens_details,
        },
        room: Arc::new(Semaphore::new(front::pages(limits.body_bytes).saturating_mul(FULL_BODIES))),
        answers: Arc::new(Semaphore::new(limits.requests)),
        tokens: Arc::new(Semaphore::new(MOST_TOKENS)),
        started: SystemTime::now(),
        asked: 0.into(),
    }
}

fn settings(plan: &MockPlan) -> Settings {
    Settings {
        threads: plan.http_threads,
        connections: plan.limits.connections,
        client_timeout: duration(plan.limits.client_timeout),
        idle_timeout: duration(plan.limits.idle_timeout),
        streams_per_connection: STREAMS,
    }
}

fn at_port(plan: &MockPlan, error: Error) -> Error {
    error.at(format!("--port {}", plan.address.port()))
}

fn duration(time: Nanos) -> Duration {
    Duration::from_nanos(time.0)
}
