//! One entry on its way: from a payload or a tier, to a tier, a caller, or both, in pieces.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wavetank_cache::TierId;
use wavetank_model::{IoTimes, Nanos};

use crate::backend::{Held, Seal};
use crate::buffer::{Buffer, PIECE};
use crate::checksum::Pieces;
use crate::index::Stored;
use crate::payload::Payload;

/// Where an entry's bytes come from.
pub(crate) enum Source {
    /// Made as they are written.
    Payload(Payload),
    /// Read from a tier.
    Tier {
        tier: TierId,
        /// Open.
        held: Arc<dyn Held>,
        /// The copy it is a view of.
        origin: Arc<dyn Held>,
    },
}

/// Where they go, besides a caller.
pub(crate) struct Target {
    pub(crate) tier: TierId,
    pub(crate) held: Arc<dyn Held>,
}

/// What a caller gets of an entry that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Nothing: the bytes have come as far as this process's memory.
    Nothing,
    /// The bytes.
    Bytes,
}

/// What a transfer moves.
pub(crate) struct Load {
    pub(crate) entry: Arc<Stored>,
    /// The entry's, unless it is only booked.
    pub(crate) bytes: u64,
    /// Whether pieces have nothing in them.
    pub(crate) is_hollow: bool,
}

/// The state of a transfer.
pub(crate) struct Transfer {
    pub(crate) entry: Arc<Stored>,
    pub(crate) source: Source,
    pub(crate) target: Option<Target>,
    /// What the caller gets.
    pub(crate) collected: Option<Vec<u8>>,
    /// Why the bytes did not come, or did not reach their target.
    pub(crate) failed: Option<io::Error>,
    /// Why the target did not take them, where a caller gets them all the same.
    pub(crate) target_failed: Option<io::Error>,
    pub(crate) watch: Stopwatch,
    bytes: u64,
    is_hollow: bool,
    pieces: u64,
    issued: u64,
    writes: u64,
    landed: u64,
    in_flight: u64,
    sums: Option<Pieces>,
    serves: bool,
}

/// A part of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) index: u64,
    pub(crate) offset: u64,
    pub(crate) len: usize,
}

impl Transfer {
    /// A transfer of `load` that begins now; with a `want` for a caller, whom a failing target does not
    /// concern.
    pub(crate) fn new(
        load: Load,
        source: Source,
        target: Option<Target>,
        want: Option<Want>,
        now: Instant,
    ) -> Self {
        let Load { entry, bytes, is_hollow } = load;
        let sums = matches!(source, Source::Payload(_)) || !entry.is_trusted();
        Self {
            source,
            target,
            collected: None,
            failed: None,
            target_failed: None,
            serves: want.is_some(),
            watch: Stopwatch::start(now),
            bytes,
            is_hollow,
            pieces: bytes.div_ceil(PIECE as u64).max(1),
            issued: 0,
            writes: 0,
            landed: 0,
            in_flight: 0,
            sums: sums.then(Pieces::default),
            entry,
        }
    }

    /// The next piece to begin with, if there is one.
    pub(crate) fn next_part(&mut self) -> Option<Part> {
        if self.failed.is_some() || self.issued == self.pieces {
            return None;
        }
        self.issued += 1;
        self.in_flight += 1;
        Some(self.part(self.issued - 1))
    }

    /// Piece number `index`.
    pub(crate) fn part(&self, index: u64) -> Part {
        let offset = index * PIECE as u64;
        Part { index, offset, len: (self.bytes - offset).min(PIECE as u64) as usize }
    }

    /// What there is of a piece in its buffer.
    pub(crate) fn contents<'b>(&self, part: Part, buffer: &'b Buffer) -> &'b [u8] {
        &buffer.payload()[..if self.is_hollow { 0 } else { part.len }]
    }

    /// Makes the bytes of a piece that come from a payload.
    pub(crate) fn fill(&self, part: Part, buffer: &mut Buffer) {
        if let (Source::Payload(payload), false) = (&self.source, self.is_hollow) {
            payload.fill(part.offset, &mut buffer.payload_mut()[..part.len]);
        }
    }

    pub(crate) fn has_more(&self) -> bool {
        self.failed.is_none() && self.issued < self.pieces
    }

    /// A piece's bytes are here: they are summed and given to the caller. An error when they are the last and
    /// wrong.
    pub(crate) fn arrived(&mut self, part: Part, bytes: &[u8]) -> io::Result<()> {
        if let Some(sums) = &mut self.sums {
            sums.add(part.index as usize, bytes);
        }
        if let Some(collected) = &mut self.collected {
            collected[part.offset as usize..part.offset as usize + bytes.len()].copy_from_slice(bytes);
        }
        let from_tier = matches!(self.source, Source::Tier { .. });
        match &self.sums {
            Some(sums) if from_tier && sums.count() as u64 == self.pieces => {
                if sums.total() != self.entry.checksum() {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "the entry's checksum does not match",
                    ));
                }
                self.entry.trust();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Counts a write; the last one comes with the seal.
    pub(crate) fn next_seal(&mut self) -> Option<Seal> {
        self.writes += 1;
        if self.writes < self.pieces {
            return None;
        }
        if let (Source::Payload(_), Some(sums)) = (&self.source, &self.sums) {
            self.entry.seal(sums.total());
        }
        Some(Seal { checksum: self.entry.checksum() })
    }

    /// Whether pieces that were read are written on.
    pub(crate) fn goes_on(&self) -> bool {
        self.target.is_some() && self.failed.is_none() && self.target_failed.is_none()
    }

    /// A piece is where it should be, or was not read.
    pub(crate) fn landed(&mut self, result: io::Result<()>) {
        self.in_flight -= 1;
        match result {
            Ok(()) => self.landed += 1,
            Err(e) => {
                self.failed.get_or_insert(e);
            }
        }
    }

    /// A piece was written, or was not.
    pub(crate) fn written(&mut self, result: io::Result<()>) {
        match result {
            Err(e) if self.serves => {
                self.target_failed.get_or_insert(e);
                self.landed(Ok(()));
            }
            result => self.landed(result),
        }
    }

    /// No more pieces begin: if there are any, it has failed for this reason.
    pub(crate) fn give_up(&mut self, why: io::Error) {
        if self.issued < self.pieces {
            self.failed.get_or_insert(why);
        }
    }

    /// Nothing is on its way and nothing more will be.
    pub(crate) fn is_over(&self) -> bool {
        self.in_flight == 0 && (self.failed.is_some() || self.landed == self.pieces)
    }
}

/// Where a step's time goes.
pub(crate) struct Stopwatch {
    begun: Instant,
    host: Duration,
    device: Duration,
    at_device: u32,
    since: Instant,
}

impl Stopwatch {
    fn start(now: Instant) -> Self {
        Self { begun: now, host: Duration::ZERO, device: Duration::ZERO, at_device: 0, since: now }
    }

    /// This process worked for so long.
    pub(crate) fn worked(&mut self, span: Duration) {
        self.host += span;
    }

    /// A piece goes to a device.
    pub(crate) fn sent(&mut self, now: Instant) {
        if self.at_device == 0 {
            self.since = now;
        }
        self.at_device += 1;
    }

    /// A piece came back from a device.
    pub(crate) fn came_back(&mut self, finished: Instant) {
        self.at_device -= 1;
        if self.at_device == 0 {
            self.device += finished.saturating_duration_since(self.since);
        }
    }

    /// The times of the step, which ends now.
    pub(crate) fn times(&self, now: Instant) -> IoTimes {
        let nanos = |span: Duration| Nanos(span.as_nanos() as u64);
        IoTimes {
            queue: Nanos::ZERO,
            host: nanos(self.host),
            device: nanos(self.device),
            total: nanos(now - self.begun),
        }
    }
}
