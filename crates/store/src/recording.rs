//! Records of calls on a backend, and the bounded queue that takes them without ever waiting.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Records between the data path and the thread that writes them: 3 MiB, a second of 65 000 calls.
pub(crate) const FILE_ROOM: usize = 64 * 1024;
/// How often the thread looks, unless half of the room is taken.
const PAUSE: Duration = Duration::from_millis(20);

/// What was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Operation {
    Create,
    Write,
    Commit,
    Open,
    Read,
    Remove,
    Recover,
}

impl Operation {
    /// The word in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Write => "write",
            Self::Commit => "commit",
            Self::Open => "open",
            Self::Read => "read",
            Self::Remove => "remove",
            Self::Recover => "recover",
        }
    }
}

/// One call and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Counts calls as they end, dropped ones too, over all ports.
    pub sequence: u64,
    /// What was called.
    pub operation: Operation,
    /// Of the entry's key; zero for `recover`.
    pub fingerprint: u64,
    /// Of the piece; zero for whole entries.
    pub offset: u64,
    /// Of the piece; for `create` of the entry.
    pub bytes: u64,
    /// What kind of error it ended with.
    pub error: Option<io::ErrorKind>,
    /// How long the device took.
    pub device_ns: u64,
}

impl Record {
    /// What is known before the call.
    pub(crate) fn blank(operation: Operation, fingerprint: u64) -> Self {
        Self { sequence: 0, operation, fingerprint, offset: 0, bytes: 0, error: None, device_ns: 0 }
    }

    fn write_line(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { sequence, operation, fingerprint, offset, bytes, error, device_ns } = self;
        let operation = operation.name();
        write!(out, r#"{{"sequence":{sequence},"operation":"{operation}","key":"{fingerprint:016x}","#)?;
        write!(out, r#""offset":{offset},"bytes":{bytes},"error":"#)?;
        match error {
            Some(kind) => write!(out, "\"{kind:?}\"")?,
            None => write!(out, "null")?,
        }
        writeln!(out, r#","device_ns":{device_ns}}}"#)
    }
}

/// Takes what was recorded.
#[derive(Clone)]
pub struct Recording(pub(crate) Arc<Queue>);

impl Recording {
    /// Everything recorded since the last time.
    pub fn take(&self) -> Vec<Record> {
        std::mem::take(&mut self.0.lock().records)
    }

    /// How many records found no room.
    pub fn dropped(&self) -> u64 {
        self.0.lock().dropped
    }
}

/// Records that nobody has taken yet.
pub(crate) struct Queue {
    room: usize,
    state: Mutex<State>,
    /// Rung when half of the room is taken, and at the end.
    bell: Condvar,
}

#[derive(Default)]
struct State {
    records: Vec<Record>,
    next: u64,
    dropped: u64,
    closed: bool,
}

impl Queue {
    /// A queue with room for `room` records.
    pub(crate) fn new(room: usize) -> Arc<Self> {
        Arc::new(Self { room, state: Mutex::default(), bell: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a record, or counts it as dropped.
    pub(crate) fn add(&self, mut record: Record) {
        let mut state = self.lock();
        record.sequence = state.next;
        state.next += 1;
        if state.records.len() >= self.room {
            state.dropped += 1;
            return;
        }
        state.records.push(record);
        if state.records.len() == self.room / 2 {
            self.bell.notify_one();
        }
    }
}

/// Writes records until the queue is closed. What cannot be written counts as dropped.
pub(crate) fn write_all(queue: &Queue, mut out: impl Write) {
    loop {
        let state = queue.lock();
        let waiting = |state: &mut State| !state.closed && state.records.len() < queue.room / 2;
        let (mut state, _) =
            queue.bell.wait_timeout_while(state, PAUSE, waiting).unwrap_or_else(PoisonError::into_inner);
        let (records, closed) = (std::mem::take(&mut state.records), state.closed);
        drop(state);
        let lost = records.iter().filter(|record| record.write_line(&mut out).is_err()).count() as u64;
        let mut state = queue.lock();
        state.dropped += lost;
        if closed {
            let State { next, dropped, .. } = *state;
            // Nobody is left to be told of an error here.
            let _ = writeln!(out, r#"{{"calls":{next},"dropped":{dropped}}}"#).and_then(|()| out.flush());
            return;
        }
    }
}

/// Where records go; closed with the last port.
pub(crate) struct Ink {
    /// The queue they go through.
    pub(crate) queue: Arc<Queue>,
    /// The thread that takes them from there.
    pub(crate) writer: Option<JoinHandle<()>>,
}

impl Ink {
    /// Calls, and records how it went.
    pub(crate) fn call<T>(&self, blank: Record, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let start = Instant::now();
        let result = call();
        self.queue.add(Record {
            error: result.as_ref().err().map(io::Error::kind),
            device_ns: start.elapsed().as_nanos() as u64,
            ..blank
        });
        result
    }
}

impl Drop for Ink {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.bell.notify_one();
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}
