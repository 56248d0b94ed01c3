//! The thread that publishes: for every worker a PUB socket, and a ROUTER socket where missed batches are
//! asked for, in the frames of vLLM's `ZmqEventPublisher`.
//!
//! Nobody waits for subscribers. A batch that does not fit any more is dropped for all of them and counted;
//! its sequence number is not used again, so that they see what is missing.

use std::collections::VecDeque;
use std::net::{AddrParseError, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc as ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use wavetank_model::{Error, ErrorKind, Result};
use zeromq::{PubSocket, RouterSocket, Socket, SocketRecv, SocketSend, ZmqMessage};

use super::guard;
use super::plan::{Endpoint, KvEventsPlan};

/// What may wait for subscribers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Batches of a worker that the thread has not taken yet.
    pub(super) queued: usize,
    /// Bytes of batches that some subscriber has not got yet, of all workers together.
    pub(super) waiting_bytes: usize,
    /// Bytes of batches that are kept to be asked for, of all workers together.
    pub(super) kept_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { queued: 10_000, waiting_bytes: 256 << 20, kept_bytes: 256 << 20 }
    }
}

/// How long subscribers have to get the last batches, as in vLLM.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long what the sockets have sent may be on its way through the door.
const PASSING: Duration = Duration::from_millis(20);
/// How long someone who asked for batches may take none.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that a subscriber may say in all: what it subscribes to is kept.
const SUBSCRIPTIONS: u64 = 1 << 20;
/// Nothing is kept of questions.
const QUESTIONS: u64 = u64::MAX;
/// The sequence number after the last batch that was asked for.
const END: [u8; 8] = [0xff; 8];

/// Where events are published.
#[derive(Clone, Debug, Default)]
pub struct Endpoints {
    /// Of every worker.
    pub events: Vec<String>,
    /// Where its missed batches are asked for.
    pub replay: Vec<String>,
}

/// How many batches there were.
#[derive(Debug, Default)]
pub struct Counts {
    pub(super) published: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) unknown_blocks: AtomicU64,
}

impl Counts {
    /// Batches handed to whoever subscribed.
    pub fn published(&self) -> u64 {
        self.published.load(Ordering::Relaxed)
    }

    /// Batches that nobody got, because too many waited.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Blocks that were not told of, because their tokens were not known.
    pub fn unknown_blocks(&self) -> u64 {
        self.unknown_blocks.load(Ordering::Relaxed)
    }
}

/// The thread, from outside.
#[derive(Debug)]
pub(super) struct Publisher {
    lines: Vec<Line>,
    budget: Budget,
    counts: Arc<Counts>,
    thread: JoinHandle<()>,
}

/// The way to one worker's socket.
#[derive(Debug)]
struct Line {
    queue: mpsc::Sender<Step>,
    next: u64,
}

/// A batch under way.
#[derive(Clone, Debug)]
struct Step {
    sequence: u64,
    payload: Bytes,
}

impl Publisher {
    /// Listens for subscribers of so many workers.
    pub(super) fn start(plan: &KvEventsPlan, workers: u32, limits: Limits) -> Result<(Self, Endpoints)> {
        let (lines, queues): (Vec<_>, Vec<_>) = (0..workers)
            .map(|_| mpsc::channel(limits.queued))
            .map(|(queue, steps)| (Line { queue, next: 0 }, steps))
            .unzip();
        let kept = if plan.replay.is_some() { limits.kept_bytes } else { 0 };
        let budget = Budget { used: Arc::default(), most: limits.waiting_bytes + kept };
        let floor =
            Floor { plan: plan.clone(), kept: kept / queues.len().max(1), used: Arc::clone(&budget.used) };
        let (ready, readiness) = ready::channel();
        let life = move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(floor.live(queues, &ready)),
                Err(error) => drop(ready.send(Err(cannot(&error)))),
            }
        };
        let thread = thread::Builder::new().name("kv events".to_owned()).spawn(life);
        let thread = thread.map_err(|error| cannot(&error))?;
        let endpoints = readiness.recv().unwrap_or_else(|_| Err(cannot(&"the thread has died")))?;
        Ok((Self { lines, budget, counts: Arc::default(), thread }, endpoints))
    }

    pub(super) fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    /// Publishes a batch of a worker, or drops it.
    pub(super) fn publish(&mut self, worker: u32, payload: Vec<u8>) {
        let line = &mut self.lines[worker as usize];
        let sequence = line.next;
        line.next += 1;
        let step = self.budget.take(payload).map(|payload| Step { sequence, payload });
        let sent = step.is_some_and(|step| line.queue.try_send(step).is_ok());
        let count = if sent { &self.counts.published } else { &self.counts.dropped };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Bytes under way or kept.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.budget.used.load(Ordering::Relaxed)
    }

    /// Batches of the first worker that the thread has not taken.
    #[cfg(test)]
    pub(super) fn queued(&self) -> usize {
        self.lines[0].queue.max_capacity() - self.lines[0].queue.capacity()
    }

    /// Ends when subscribers have got everything, or have had the time for it.
    pub(super) fn end(self) {
        drop(self.lines);
        // One that has died has nothing to end.
        let _ = self.thread.join();
    }
}

fn cannot(why: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Io, format!("cannot publish KV events: {why}")).at("--kv-events")
}

/// How many bytes are under way or kept.
#[derive(Debug)]
struct Budget {
    used: Arc<AtomicUsize>,
    most: usize,
}

impl Budget {
    /// Bytes that count until the last one who has them lets go; `None` if they would be too many.
    fn take(&self, payload: Vec<u8>) -> Option<Bytes> {
        let used = self.used.fetch_add(payload.len(), Ordering::Relaxed) + payload.len();
        let counted = Counted { payload, used: Arc::clone(&self.used) };
        (used <= self.most).then(|| Bytes::from_owner(counted))
    }
}

struct Counted {
    payload: Vec<u8>,
    used: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.payload
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.used.fetch_sub(self.payload.len(), Ordering::Relaxed);
    }
}

/// What the thread works with.
struct Floor {
    plan: KvEventsPlan,
    /// Bytes a worker's batches may take that are kept.
    kept: usize,
    used: Arc<AtomicUsize>,
}

impl Floor {
    async fn live(self, queues: Vec<mpsc::Receiver<Step>>, ready: &ready::Sender<Result<Endpoints>>) {
        let mut endpoints = Endpoints::default();
        let mut publishing = Vec::new();
        for (worker, steps) in (0..).zip(queues) {
            match self.open(worker, &mut endpoints).await {
                Ok(desk) => publishing.push(tokio::spawn(desk.publish(steps))),
                Err(error) => return drop(ready.send(Err(error))),
            }
        }
        // Who started it waits for this.
        let _ = ready.send(Ok(endpoints));
        let mut sockets = Vec::new();
        for task in publishing {
            sockets.extend(task.await);
        }
        self.flush().await;
        // Until here subscribers were connected.
        drop(sockets);
        sleep(PASSING).await;
    }

    async fn open(&self, worker: u32, endpoints: &mut Endpoints) -> Result<Desk> {
        let mut socket = PubSocket::new();
        let endpoint = self.plan.endpoint.of_worker(worker);
        endpoints.events.push(listen(&mut socket, ("--kv-events", &endpoint), SUBSCRIPTIONS).await?);
        let topic = Bytes::from(self.plan.topic.clone().into_bytes());
        let kept =
            Kept { steps: VecDeque::new(), bytes: 0, most: self.plan.buffer_steps, most_bytes: self.kept };
        let kept = Arc::new(Mutex::new(kept));
        if let Some(replay) = &self.plan.replay {
            let mut asked = RouterSocket::new();
            let endpoint = replay.of_worker(worker);
            endpoints.replay.push(listen(&mut asked, ("--kv-events-replay", &endpoint), QUESTIONS).await?);
            tokio::spawn(answer(asked, Arc::clone(&kept), topic.clone()));
        }
        Ok(Desk { socket, topic, kept })
    }

    /// Waits until subscribers have everything.
    async fn flush(&self) {
        let end = Instant::now() + LAST_WORDS;
        while self.used.load(Ordering::Relaxed) > 0 && Instant::now() < end {
            sleep(Duration::from_millis(5)).await;
        }
        // What is counted no more may stand in the buffer of a socket.
        sleep(PASSING).await;
    }
}

/// Opens a port, and behind it the socket on one of its own. A guest may say `most_bytes`.
async fn listen(
    socket: &mut impl Socket,
    (flag, endpoint): (&str, &Endpoint),
    most_bytes: u64,
) -> Result<String> {
    let cannot = |error: &dyn std::fmt::Display| {
        let why = format!("cannot listen on {endpoint}: {error}");
        Error::new(ErrorKind::Io, why).at(flag).hint("every worker takes the next port")
    };
    let door = TcpListener::bind(endpoint.address()).await.map_err(|error| cannot(&error))?;
    let address = door.local_addr().map_err(|error| cannot(&error))?;
    let inner = socket.bind("tcp://127.0.0.1:0").await.map_err(|error| cannot(&error))?.to_string();
    let inner: SocketAddr =
        inner.trim_start_matches("tcp://").parse().map_err(|error: AddrParseError| cannot(&error))?;
    tokio::spawn(guard::watch(door, inner, most_bytes));
    Ok(format!("tcp://{address}"))
}

/// Where one worker's batches are published.
struct Desk {
    socket: PubSocket,
    topic: Bytes,
    kept: Arc<Mutex<Kept>>,
}

impl Desk {
    /// Publishes until nothing comes any more; nothing is kept then.
    async fn publish(mut self, mut steps: mpsc::Receiver<Step>) -> PubSocket {
        while let Some(step) = steps.recv().await {
            lock(&self.kept).keep(&step);
            // A socket without subscribers drops it.
            let _ = self.socket.send(step.into_message([self.topic.clone()])).await;
        }
        lock(&self.kept).steps.clear();
        self.socket
    }
}

impl Step {
    /// Its frames, after others.
    fn into_message<const N: usize>(self, before: [Bytes; N]) -> ZmqMessage {
        let sequence = Bytes::copy_from_slice(&self.sequence.to_be_bytes());
        message(before.into_iter().chain([sequence, self.payload]))
    }
}

fn message(frames: impl IntoIterator<Item = Bytes>) -> ZmqMessage {
    let frames: Vec<Bytes> = frames.into_iter().collect();
    ZmqMessage::try_from(frames).expect("there are frames")
}

/// The last batches of a worker.
struct Kept {
    steps: VecDeque<Step>,
    bytes: usize,
    most: usize,
    most_bytes: usize,
}

impl Kept {
    fn keep(&mut self, step: &Step) {
        self.bytes += step.payload.len();
        self.steps.push_back(step.clone());
        while self.steps.len() > self.most || self.bytes > self.most_bytes {
            let Some(oldest) = self.steps.pop_front() else { break };
            self.bytes -= oldest.payload.len();
        }
    }

    fn since(&self, first: u64) -> Vec<Step> {
        self.steps.iter().filter(|step| step.sequence >= first).cloned().collect()
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers those who ask for batches: what is kept from a sequence number on, one message each, then the end.
async fn answer(mut socket: RouterSocket, kept: Arc<Mutex<Kept>>, topic: Bytes) {
    while let Ok(asked) = socket.recv().await {
        // As vLLM: what is not a question is passed over.
        let Ok([who, nothing, first]) = <[Bytes; 3]>::try_from(asked.into_vec()) else { continue };
        let Ok(first) = <[u8; 8]>::try_from(&first[..]) else { continue };
        let steps = lock(&kept).since(u64::from_be_bytes(first));
        let batches = steps.into_iter();
        let batches = batches.map(|step| step.into_message([who.clone(), nothing.clone(), topic.clone()]));
        let last = [who.clone(), nothing.clone(), Bytes::new(), Bytes::from_static(&END), Bytes::new()];
        for answer in batches.chain([message(last)]) {
            // Someone who went away, or takes nothing, gets nothing more.
            match timeout(PATIENCE, socket.send(answer)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => break,
            }
        }
    }
}
