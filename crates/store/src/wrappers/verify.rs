//! `verify`: entries that are read as a whole are compared with the checksum they were written with.
//!
//! Each reader's pieces are collected in the order they come back; the last one to arrive carries the
//! verdict. An entry that is read only in part is not judged. Backends that keep no bytes fail every
//! comparison.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use super::Entry;
use crate::around::{Slots, around, within};
use crate::backend::{Backend, Completion, Found, Held, NewEntry, Piece, Port, Recovery, Seal};
use crate::buffer::{Buffer, PIECE, Region};
use crate::checksum::Pieces;
use crate::key::Key;

pub(super) const ENTRY: Entry = Entry {
    name: "verify",
    about: "compares what is read with the checksum it was written with",
    options: &[],
    wrap: |inner, options| {
        options.only(ENTRY.name, ENTRY.options)?;
        Ok(wrap(inner))
    },
};

/// Puts the check around `inner`.
pub fn wrap(inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
    Arc::new(Verified { inner })
}

struct Verified {
    inner: Arc<dyn Backend>,
}

/// What one reader needs: the entry, and what of it has come back.
struct Reading {
    entry: Arc<Sealed>,
    pieces: Mutex<Pieces>,
}

struct Sealed {
    fingerprint: u64,
    bytes: u64,
    /// Known once the last piece is queued.
    checksum: OnceLock<u64>,
}

impl Sealed {
    fn new(key: &Key, bytes: u64, checksum: OnceLock<u64>) -> Arc<Self> {
        Arc::new(Self { fingerprint: key.fingerprint(), bytes, checksum })
    }

    /// As many bytes as the piece at `offset` has, if a piece begins there.
    fn piece_len(&self, offset: u64) -> Option<usize> {
        let begins = offset.is_multiple_of(PIECE as u64) && offset < self.bytes.max(1);
        begins.then(|| (self.bytes - offset).min(PIECE as u64) as usize)
    }

    /// How many pieces it has; an empty entry has one of no bytes.
    fn piece_count(&self) -> usize {
        self.bytes.div_ceil(PIECE as u64).max(1) as usize
    }
}

fn reading(inner: Arc<dyn Held>, entry: Arc<Sealed>) -> Arc<dyn Held> {
    around(inner, Reading { entry, pieces: Mutex::default() })
}

impl Reading {
    /// Adds a piece that has come back; the last one is judged with the whole.
    fn add(&self, piece: Piece, bytes: &[u8]) -> io::Result<()> {
        let Some(expected) = self.entry.checksum.get() else { return Ok(()) };
        if self.entry.piece_len(piece.offset) != Some(piece.len) {
            return Ok(());
        }
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        pieces.add((piece.offset / PIECE as u64) as usize, bytes);
        if pieces.count() < self.entry.piece_count() {
            return Ok(());
        }
        let total = pieces.total();
        if total == *expected {
            return Ok(());
        }
        let Sealed { fingerprint, bytes, .. } = *self.entry;
        let message = format!(
            "entry {fingerprint:016x} of {bytes} bytes: its checksum is {total:016x}, \
             it was written with {expected:016x}"
        );
        Err(io::Error::new(io::ErrorKind::InvalidData, message))
    }
}

impl Backend for Verified {
    fn port(self: Arc<Self>, region: &Arc<Region>, depth: usize) -> io::Result<Box<dyn Port>> {
        let inner = Arc::clone(&self.inner).port(region, depth)?;
        Ok(Box::new(VerifiedPort { inner, on_way: Slots::default() }))
    }

    fn recover(self: Arc<Self>, found: &mut dyn FnMut(Found)) -> io::Result<Recovery> {
        Arc::clone(&self.inner).recover(&mut |entry| {
            let known = Sealed::new(&entry.key, entry.bytes, OnceLock::from(entry.checksum));
            found(Found { held: reading(Arc::clone(&entry.held), known), ..entry });
        })
    }

    fn trim(&self) -> io::Result<()> {
        self.inner.trim()
    }

    fn notes(&self) -> Vec<String> {
        self.inner.notes()
    }
}

struct VerifiedPort {
    inner: Box<dyn Port>,
    on_way: Slots<OnWay>,
}

struct OnWay {
    token: u64,
    /// The reader and its piece; nothing for a write.
    read: Option<(Arc<dyn Held>, Piece)>,
}

fn known(held: &Arc<dyn Held>) -> (&Arc<dyn Held>, &Reading) {
    let held = within::<Reading>(held);
    (&held.inner, &held.known)
}

impl VerifiedPort {
    fn judge(&mut self, mut completion: Completion) -> Completion {
        let OnWay { token, read } = self.on_way.take(completion.token);
        completion.token = token;
        if let (Some((held, piece)), Ok(())) = (read, &completion.result) {
            completion.result = known(&held).1.add(piece, &completion.buffer.payload()[..piece.len]);
        }
        completion
    }
}

impl Port for VerifiedPort {
    fn create(&mut self, entry: &NewEntry<'_>) -> io::Result<Arc<dyn Held>> {
        let sealed = Sealed::new(entry.key, entry.bytes, OnceLock::new());
        Ok(reading(self.inner.create(entry)?, sealed))
    }

    fn write(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer, seal: Option<Seal>) {
        let (inner, known) = known(held);
        if let Some(Seal { checksum }) = seal {
            // A second seal would be the caller's mistake; the first one stays.
            let _ = known.entry.checksum.set(checksum);
        }
        let token = self.on_way.put(OnWay { token: piece.token, read: None });
        self.inner.write(inner, Piece { token, ..piece }, buffer, seal);
    }

    fn commit(&mut self, held: Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        let (inner, known) = known(&held);
        Ok(reading(self.inner.commit(Arc::clone(inner))?, Arc::clone(&known.entry)))
    }

    fn open(&mut self, held: &Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        let (inner, known) = known(held);
        Ok(reading(self.inner.open(inner)?, Arc::clone(&known.entry)))
    }

    fn read(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer) {
        let read = Some((Arc::clone(held), piece));
        let token = self.on_way.put(OnWay { token: piece.token, read });
        self.inner.read(known(held).0, Piece { token, ..piece }, buffer);
    }

    fn remove(&mut self, held: Arc<dyn Held>) -> io::Result<()> {
        self.inner.remove(Arc::clone(known(&held).0))
    }

    fn submit(&mut self) -> io::Result<()> {
        self.inner.submit()
    }

    fn reap(&mut self, deadline: Option<Instant>, done: &mut Vec<Completion>) -> io::Result<()> {
        let mut arrived = Vec::new();
        let result = self.inner.reap(deadline, &mut arrived);
        done.extend(arrived.into_iter().map(|completion| self.judge(completion)));
        result
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn is_inline(&self) -> bool {
        self.inner.is_inline()
    }
}
