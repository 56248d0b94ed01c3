//! Drives a port as a lane of the store does: windows of buffers, pieces in any order, a reap loop.
//!
//! It checks on the way what every port promises: each piece completes once, no more than `depth` are with
//! the device, nothing is left over. A port that stops making progress fails the test instead of hanging
//! it.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wavetank_store::backend::{Backend, Completion, Held, NewEntry, Piece, Port, Seal};
use wavetank_store::buffer::{Mover, PIECE, Region};
use wavetank_store::{Key, checksum, payload};

/// After this long without a completion a port counts as hung.
const PATIENCE: Duration = Duration::from_secs(30);
/// Tokens a port gets are all alike in their lower bits: a port must not take them for its own numbers.
const TOKEN_STEP: u64 = 1 << 32;

/// The order of an entry's pieces.
#[derive(Clone, Copy)]
pub(crate) enum Order {
    Forward,
    Shuffled(u64),
}

/// A piece to write or read.
pub(crate) struct Work<'a> {
    pub(crate) held: Arc<dyn Held>,
    pub(crate) offset: u64,
    pub(crate) len: usize,
    pub(crate) way: Way<'a>,
}

/// What is done with it.
#[derive(Clone, Copy)]
pub(crate) enum Way<'a> {
    Read,
    Write(&'a [u8], Option<Seal>),
}

/// What came of it.
pub(crate) struct Outcome {
    pub(crate) result: io::Result<()>,
    /// What was read.
    pub(crate) bytes: Vec<u8>,
    pub(crate) submitted: Instant,
    pub(crate) finished: Instant,
}

/// A port and its buffers.
pub(crate) struct Driver {
    pub(crate) port: Box<dyn Port>,
    region: Arc<Region>,
    depth: usize,
}

impl Driver {
    pub(crate) fn new(backend: &Arc<dyn Backend>, depth: usize) -> Self {
        Self::with_buffers(backend, depth, 2 * depth.min(8))
    }

    /// A driver that keeps up to `buffers` pieces in flight.
    pub(crate) fn with_buffers(backend: &Arc<dyn Backend>, depth: usize, buffers: usize) -> Self {
        let region = Region::new(buffers).unwrap();
        let port = Arc::clone(backend).port(&region, depth).unwrap();
        Self { port, region, depth }
    }

    /// Does all of `work`, as much at a time as there are buffers; outcomes come in its order.
    pub(crate) fn drive(&mut self, work: &[Work<'_>]) -> Vec<Outcome> {
        let mut outcomes: Vec<Option<Outcome>> = work.iter().map(|_| None).collect();
        let (mut next, mut left) = (0, work.len());
        let mut progress = Instant::now();
        let mut done = Vec::new();
        while left > 0 {
            next += self.queue(work, next);
            self.port.submit().unwrap();
            assert_eq!(self.port.in_flight(), next - (work.len() - left), "what is queued is in flight");
            self.port.reap(Some(Instant::now() + Duration::from_millis(200)), &mut done).unwrap();
            if !done.is_empty() {
                progress = Instant::now();
            }
            assert!(progress.elapsed() < PATIENCE, "{left} of {} pieces do not come back", work.len());
            left -= done.len();
            for completion in done.drain(..) {
                let (index, outcome) = outcome(work, completion);
                let before = outcomes[index].replace(outcome);
                assert!(before.is_none(), "piece {index} completed twice");
            }
        }
        self.port.reap(None, &mut done).unwrap();
        assert!(done.is_empty() && self.port.in_flight() == 0, "nothing is left over");
        let outcomes: Vec<Outcome> = outcomes.into_iter().flatten().collect();
        assert_eq!(outcomes.len(), work.len());
        assert!(overlap(&outcomes) <= self.depth, "more than {} pieces were with the device", self.depth);
        outcomes
    }

    fn queue(&mut self, work: &[Work<'_>], from: usize) -> usize {
        let mut queued = 0;
        for (index, Work { held, offset, len, way }) in work.iter().enumerate().skip(from) {
            let Some(mut buffer) = self.region.take(Mover::Thread) else { break };
            let piece = Piece { token: index as u64 * TOKEN_STEP, offset: *offset, len: *len };
            match way {
                Way::Read => {
                    // What an earlier piece left behind must not pass for what was read.
                    buffer.payload_mut()[..*len].fill(0xee);
                    self.port.read(held, piece, buffer);
                }
                Way::Write(bytes, seal) => {
                    buffer.payload_mut()[..*len].copy_from_slice(bytes);
                    self.port.write(held, piece, buffer, *seal);
                }
            }
            queued += 1;
        }
        queued
    }

    /// Writes an entry; when that fails, what was begun is removed.
    pub(crate) fn put(&mut self, key: &Key, bytes: &[u8]) -> io::Result<Arc<dyn Held>> {
        self.put_in(Order::Forward, key, bytes)
    }

    pub(crate) fn put_in(&mut self, order: Order, key: &Key, bytes: &[u8]) -> io::Result<Arc<dyn Held>> {
        let held = self.port.create(&NewEntry {
            key,
            bytes: bytes.len() as u64,
            recipe: None,
            birth: Default::default(),
        })?;
        let written = self.write(order, &held, bytes);
        if let Err(e) = written {
            self.port.remove(held).unwrap();
            return Err(e);
        }
        self.port.commit(held)
    }

    /// Writes an entry's pieces; the first error is what came of it.
    pub(crate) fn write(&mut self, order: Order, held: &Arc<dyn Held>, bytes: &[u8]) -> io::Result<()> {
        let work = writes(order, held, bytes);
        self.drive(&work).into_iter().try_for_each(|outcome| outcome.result)
    }

    /// Reads an entry of `len` bytes.
    pub(crate) fn take(&mut self, held: &Arc<dyn Held>, len: usize) -> io::Result<Vec<u8>> {
        self.take_in(Order::Forward, held, len)
    }

    pub(crate) fn take_in(&mut self, order: Order, held: &Arc<dyn Held>, len: usize) -> io::Result<Vec<u8>> {
        let open = self.port.open(held)?;
        self.read(order, &open, len)
    }

    /// Begins to read an entry and to write another, and does not wait for either.
    pub(crate) fn leave(&mut self, held: &Arc<dyn Held>, len: usize) {
        let open = self.port.open(held).unwrap();
        let bytes = made(1, len);
        let key = Key::from("left");
        let begun = self
            .port
            .create(&NewEntry { key: &key, bytes: len as u64, recipe: None, birth: Default::default() })
            .unwrap();
        let mut work = reads(Order::Forward, &open, len);
        work.extend(writes(Order::Forward, &begun, &bytes));
        assert!(self.queue(&work, 0) > 1);
        self.port.submit().unwrap();
    }

    /// Reads all of an open entry.
    pub(crate) fn read(&mut self, order: Order, open: &Arc<dyn Held>, len: usize) -> io::Result<Vec<u8>> {
        let work = reads(order, open, len);
        let outcomes = self.drive(&work);
        let mut whole = vec![0; len];
        for (Work { offset, len, .. }, outcome) in work.iter().zip(outcomes) {
            outcome.result?;
            whole[*offset as usize..][..*len].copy_from_slice(&outcome.bytes);
        }
        Ok(whole)
    }
}

fn outcome(work: &[Work<'_>], completion: Completion) -> (usize, Outcome) {
    let Completion { token, buffer, result, submitted, finished } = completion;
    assert_eq!(token % TOKEN_STEP, 0, "the token is the one given");
    assert!(submitted <= finished, "it is done after it began");
    let index = (token / TOKEN_STEP) as usize;
    let Work { len, way, .. } = &work[index];
    let bytes = match way {
        Way::Read => buffer.payload()[..*len].to_vec(),
        Way::Write(bytes, _) => {
            assert!(buffer.payload()[..*len] == **bytes, "a written buffer comes back as it was");
            Vec::new()
        }
    };
    (index, Outcome { result, bytes, submitted, finished })
}

/// The most pieces that were with the device at once.
fn overlap(outcomes: &[Outcome]) -> usize {
    let mut ends: Vec<(Instant, i32)> = Vec::new();
    for Outcome { submitted, finished, .. } in outcomes {
        if submitted < finished {
            ends.extend([(*submitted, 1), (*finished, -1)]);
        }
    }
    // What ends when another begins does not overlap with it.
    ends.sort();
    let counts = ends.iter().scan(0, |now, (_, step)| {
        *now += step;
        Some(*now)
    });
    counts.max().unwrap_or(0) as usize
}

/// The pieces of an entry: offset and length. An empty one has one of no bytes.
pub(crate) fn pieces(order: Order, len: usize) -> Vec<(usize, usize)> {
    let count = len.div_ceil(PIECE).max(1);
    let mut pieces: Vec<_> = (0..count).map(|n| (n * PIECE, (len - n * PIECE).min(PIECE))).collect();
    if let Order::Shuffled(seed) = order {
        Dice::new(seed).shuffle(&mut pieces);
    }
    pieces
}

/// An entry's pieces to write, the last one with the seal.
pub(crate) fn writes<'a>(order: Order, held: &Arc<dyn Held>, bytes: &'a [u8]) -> Vec<Work<'a>> {
    let pieces = pieces(order, bytes.len());
    let last = pieces.len() - 1;
    let work = pieces.into_iter().enumerate().map(|(n, (offset, len))| {
        let seal = (n == last).then(|| Seal { checksum: checksum::of(bytes) });
        let way = Way::Write(&bytes[offset..offset + len], seal);
        Work { held: Arc::clone(held), offset: offset as u64, len, way }
    });
    work.collect()
}

/// An entry's pieces to read.
pub(crate) fn reads(order: Order, open: &Arc<dyn Held>, len: usize) -> Vec<Work<'static>> {
    let pieces = pieces(order, len).into_iter();
    pieces
        .map(|(offset, len)| Work { held: Arc::clone(open), offset: offset as u64, len, way: Way::Read })
        .collect()
}

/// Bytes of a seed.
pub(crate) fn made(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    payload::fill(seed, 0, &mut bytes);
    bytes
}

/// SplitMix64: draws for tests.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}
