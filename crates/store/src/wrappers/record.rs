//! `record`: every call on the backend inside as a [`Record`], for tests, recorders and replays.
//!
//! Records go to a bounded queue and never wait: when nobody takes them fast enough the newest are dropped
//! and counted. With the option `file` a thread takes them and writes JSON lines; the last line says how
//! many there were and how many were dropped.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use wavetank_model::{Error, Result};

use super::Entry;
use crate::around::{Slots, around, within};
use crate::backend::{Backend, Completion, Found, Held, NewEntry, Piece, Port, Recovery, Seal};
use crate::buffer::{Buffer, Region};
use crate::recording::{FILE_ROOM, Ink, Queue, write_all};

pub use crate::recording::{Operation, Record, Recording};

pub(super) const ENTRY: Entry = Entry {
    name: "record",
    about: "writes down every call on the backend",
    options: &[("file", "where the records go, as JSON lines")],
    wrap: |inner, options| {
        options.only(ENTRY.name, ENTRY.options)?;
        let Some(file) = options.get("file") else {
            return Err(Error::usage("record: option file is missing").hint("say where the records go"));
        };
        to_file(inner, Path::new(file))
    },
};

/// Records into memory, at most `room` calls between two takes.
pub fn in_memory(inner: Arc<dyn Backend>, room: usize) -> (Arc<dyn Backend>, Recording) {
    let queue = Queue::new(room);
    let recording = Recording(Arc::clone(&queue));
    (Arc::new(Recorded { inner, ink: Arc::new(Ink { queue, writer: None }) }), recording)
}

/// Records into the file at `path`, which is whole once the backend and its ports are dropped.
pub fn to_file(inner: Arc<dyn Backend>, path: &Path) -> Result<Arc<dyn Backend>> {
    let refused = |e| Error::io(path, e);
    let out = BufWriter::new(File::create(path).map_err(refused)?);
    let queue = Queue::new(FILE_ROOM);
    let source = Arc::clone(&queue);
    let thread = std::thread::Builder::new().name("store-record".to_owned());
    let writer = Some(thread.spawn(move || write_all(&source, out)).map_err(refused)?);
    Ok(Arc::new(Recorded { inner, ink: Arc::new(Ink { queue, writer }) }))
}

struct Recorded {
    inner: Arc<dyn Backend>,
    ink: Arc<Ink>,
}

impl Backend for Recorded {
    fn port(self: Arc<Self>, region: &Arc<Region>, depth: usize) -> io::Result<Box<dyn Port>> {
        let inner = Arc::clone(&self.inner).port(region, depth)?;
        Ok(Box::new(RecordedPort { inner, ink: Arc::clone(&self.ink), on_way: Slots::default() }))
    }

    fn recover(self: Arc<Self>, found: &mut dyn FnMut(Found)) -> io::Result<Recovery> {
        let mut marked = |entry: Found| {
            let held = around(Arc::clone(&entry.held), Mark(entry.key.fingerprint()));
            found(Found { held, ..entry });
        };
        self.ink.call(Record::blank(Operation::Recover, 0), || Arc::clone(&self.inner).recover(&mut marked))
    }

    fn trim(&self) -> io::Result<()> {
        self.inner.trim()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.inner.notes();
        let dropped = Recording(Arc::clone(&self.ink.queue)).dropped();
        if dropped > 0 {
            notes.push(format!(
                "record: {dropped} records were dropped: calls came faster than they were taken"
            ));
        }
        notes
    }
}

/// The fingerprint of a hold's key.
struct Mark(u64);

fn marked(held: &Arc<dyn Held>) -> (&Arc<dyn Held>, u64) {
    let held = within::<Mark>(held);
    (&held.inner, held.known.0)
}

struct RecordedPort {
    inner: Box<dyn Port>,
    ink: Arc<Ink>,
    /// The caller's token and the record to be.
    on_way: Slots<(u64, Record)>,
}

impl RecordedPort {
    fn start(&mut self, operation: Operation, fingerprint: u64, piece: Piece) -> Piece {
        let bytes = piece.len as u64;
        let record = Record { offset: piece.offset, bytes, ..Record::blank(operation, fingerprint) };
        Piece { token: self.on_way.put((piece.token, record)), ..piece }
    }

    fn finish(&mut self, mut completion: Completion) -> Completion {
        let (token, record) = self.on_way.take(completion.token);
        let took = completion.finished.saturating_duration_since(completion.submitted);
        let error = completion.result.as_ref().err().map(io::Error::kind);
        self.ink.queue.add(Record { error, device_ns: took.as_nanos() as u64, ..record });
        completion.token = token;
        completion
    }
}

impl Port for RecordedPort {
    fn create(&mut self, entry: &NewEntry<'_>) -> io::Result<Arc<dyn Held>> {
        let fingerprint = entry.key.fingerprint();
        let record = Record { bytes: entry.bytes, ..Record::blank(Operation::Create, fingerprint) };
        let held = self.ink.call(record, || self.inner.create(entry))?;
        Ok(around(held, Mark(fingerprint)))
    }

    fn write(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer, seal: Option<Seal>) {
        let (inner, fingerprint) = marked(held);
        let piece = self.start(Operation::Write, fingerprint, piece);
        self.inner.write(inner, piece, buffer, seal);
    }

    fn commit(&mut self, held: Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        let (inner, fingerprint) = marked(&held);
        let record = Record::blank(Operation::Commit, fingerprint);
        let kept = self.ink.call(record, || self.inner.commit(Arc::clone(inner)))?;
        Ok(around(kept, Mark(fingerprint)))
    }

    fn open(&mut self, held: &Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        let (inner, fingerprint) = marked(held);
        let open = self.ink.call(Record::blank(Operation::Open, fingerprint), || self.inner.open(inner))?;
        Ok(around(open, Mark(fingerprint)))
    }

    fn read(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer) {
        let (inner, fingerprint) = marked(held);
        let piece = self.start(Operation::Read, fingerprint, piece);
        self.inner.read(inner, piece, buffer);
    }

    fn remove(&mut self, held: Arc<dyn Held>) -> io::Result<()> {
        let (inner, fingerprint) = marked(&held);
        let record = Record::blank(Operation::Remove, fingerprint);
        self.ink.call(record, || self.inner.remove(Arc::clone(inner)))
    }

    fn submit(&mut self) -> io::Result<()> {
        self.inner.submit()
    }

    fn reap(&mut self, deadline: Option<Instant>, done: &mut Vec<Completion>) -> io::Result<()> {
        let mut arrived = Vec::new();
        let result = self.inner.reap(deadline, &mut arrived);
        done.extend(arrived.into_iter().map(|completion| self.finish(completion)));
        result
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn is_inline(&self) -> bool {
        self.inner.is_inline()
    }
}
