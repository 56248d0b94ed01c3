//! A backend that holds nothing and takes the time of a medium.
//!
//! What was measured is how long entries take, so pieces are not timed one by one: those of an entry, or of a
//! part of it where it has more than may be under way, are one transfer and end with it.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use wavetank_model::{Operation, TierRoom};
use wavetank_sim::TransferId;
use wavetank_store::backend::{Backend, Completion, Contents, Held, NewEntry, Piece, Port, Seal};
use wavetank_store::buffer::{Buffer, PIECE, Region};

use super::timeline::{Moved, Timeline};

/// Pieces of one transfer at most: as many as the longest entry has that is usually measured, and few enough
/// that two are under way at a time.
const STRETCH_PIECES: usize = 16;

/// What stands for the device of one tier.
pub(super) struct Device {
    timeline: Arc<Timeline>,
    tier: usize,
    nature: Nature,
    used: AtomicU64,
    /// The most that was used, by what was before the first entry too.
    most_used: AtomicU64,
    /// How many entries there were.
    entries: AtomicU64,
}

/// What it has of the backend it stands for, besides time.
#[derive(Clone, Copy)]
pub(super) struct Nature {
    /// Bytes it has room for; no end of them when absent.
    pub(super) room: Option<u64>,
    /// Whether all of it is there before the first entry.
    pub(super) is_backed: bool,
    /// Whether the thread that asks moves the bytes itself.
    pub(super) is_inline: bool,
    /// Whether there is one such thread: what it spends on an entry holds up all others.
    pub(super) holds_up: bool,
}

impl Device {
    pub(super) fn new(timeline: &Arc<Timeline>, tier: usize, nature: Nature) -> Self {
        Self {
            timeline: Arc::clone(timeline),
            tier,
            nature,
            used: AtomicU64::new(0),
            most_used: AtomicU64::new(if nature.is_backed { u64::MAX } else { 0 }),
            entries: AtomicU64::new(0),
        }
    }

    /// Takes room; what is too large for all of it is refused, the rest may wait.
    fn take(self: &Arc<Self>, bytes: u64) -> io::Result<Booked> {
        let room = self.nature.room.unwrap_or(u64::MAX);
        if bytes > room {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the entry is larger than all there is"));
        }
        let fits = |used: u64| used.checked_add(bytes).filter(|after| *after <= room);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        let before = taken.map_err(|_| io::Error::new(io::ErrorKind::WouldBlock, "no room for now"))?;
        let is_new = self.most_used.fetch_max(before + bytes, Ordering::Relaxed) < before + bytes;
        let room = if is_new { TierRoom::New } else { TierRoom::Used };
        Ok(Booked { device: Arc::clone(self), bytes, room })
    }
}

impl Backend for Device {
    fn port(self: Arc<Self>, _: &Arc<Region>, depth: usize) -> io::Result<Box<dyn Port>> {
        let stretch_bytes = (STRETCH_PIECES.min(depth).max(1) * PIECE) as u64;
        Ok(Box::new(DevicePort { device: self, stretch_bytes, under_way: Vec::new() }))
    }

    fn contents(&self) -> Contents {
        Contents::Hollow
    }
}

/// Room of an entry; given back when dropped.
struct Booked {
    device: Arc<Device>,
    bytes: u64,
    /// Whether there never was as much.
    room: TierRoom,
}

impl Drop for Booked {
    fn drop(&mut self) {
        self.device.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// An entry.
struct Entry {
    /// No other has it.
    number: u64,
    booked: Booked,
}

impl Held for Entry {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct DevicePort {
    device: Arc<Device>,
    /// An entry is moved in stretches of this length.
    stretch_bytes: u64,
    under_way: Vec<Stretch>,
}

/// Consecutive pieces of an entry, moved together.
struct Stretch {
    held: Arc<dyn Held>,
    operation: Operation,
    id: TransferId,
    /// When the device was done with them, if it is.
    ended: Option<Instant>,
    /// Where the next piece begins, and where the last one ends.
    next: u64,
    end: u64,
    waiting: Vec<Waiting>,
}

/// A piece that ends with its stretch.
struct Waiting {
    token: u64,
    buffer: Buffer,
    submitted: Instant,
}

impl Stretch {
    /// Whether `piece` is its next one.
    fn goes_on_with(&self, held: &Arc<dyn Held>, operation: Operation, piece: Piece) -> bool {
        let is_same = Arc::ptr_eq(&self.held, held) && self.operation == operation;
        is_same && self.next == piece.offset && self.next < self.end
    }

    fn is_over(&self) -> bool {
        self.next >= self.end && self.waiting.is_empty()
    }
}

impl DevicePort {
    fn take(&mut self, held: &Arc<dyn Held>, operation: Operation, (piece, buffer): (Piece, Buffer)) {
        let goes_on = |stretch: &Stretch| stretch.goes_on_with(held, operation, piece);
        let at = self.under_way.iter().position(goes_on).unwrap_or_else(|| {
            let stretch = self.begin(held, operation, piece.offset);
            self.under_way.push(stretch);
            self.under_way.len() - 1
        });
        let submitted = self.device.timeline.now();
        let stretch = &mut self.under_way[at];
        // One of no length is a piece all the same.
        stretch.next = (piece.offset + piece.len as u64).max(stretch.next + u64::from(piece.len == 0));
        stretch.waiting.push(Waiting { token: piece.token, buffer, submitted });
    }

    /// Begins with the stretch of an entry that has a piece at `offset`.
    fn begin(&self, held: &Arc<dyn Held>, operation: Operation, offset: u64) -> Stretch {
        let Device { timeline, tier, nature, .. } = &*self.device;
        let entry: &Entry = held.as_any().downcast_ref().expect("an entry of this device");
        let whole = offset - offset % self.stretch_bytes + self.stretch_bytes;
        let end = entry.booked.bytes.min(whole);
        let (what, room) = ((entry.number, offset), entry.booked.room);
        let (id, spent) = timeline.begin(*tier, operation, Moved { what, bytes: end - offset, room });
        if nature.is_inline {
            timeline.pass(id);
        } else if nature.holds_up {
            timeline.spend(spent);
        }
        Stretch { held: Arc::clone(held), operation, id, ended: None, next: offset, end, waiting: Vec::new() }
    }

    fn take_ended(&mut self, done: &mut Vec<Completion>) {
        for stretch in &mut self.under_way {
            stretch.ended = stretch.ended.or_else(|| self.device.timeline.take_end(stretch.id));
            let Some(ended) = stretch.ended else { continue };
            done.extend(stretch.waiting.drain(..).map(|waiting| {
                let Waiting { token, buffer, submitted } = waiting;
                Completion { token, buffer, result: Ok(()), submitted, finished: ended.max(submitted) }
            }));
        }
        self.under_way.retain(|stretch| !stretch.is_over());
    }
}

impl Port for DevicePort {
    fn create(&mut self, entry: &NewEntry<'_>) -> io::Result<Arc<dyn Held>> {
        let booked = self.device.take(entry.bytes)?;
        let number = self.device.entries.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Entry { number, booked }))
    }

    fn write(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer, _: Option<Seal>) {
        self.take(held, Operation::Write, (piece, buffer));
    }

    fn commit(&mut self, held: Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        Ok(held)
    }

    fn read(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer) {
        self.take(held, Operation::Read, (piece, buffer));
    }

    fn remove(&mut self, _: Arc<dyn Held>) -> io::Result<()> {
        Ok(())
    }

    fn submit(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn reap(&mut self, deadline: Option<Instant>, done: &mut Vec<Completion>) -> io::Result<()> {
        let before = done.len();
        self.take_ended(done);
        if let Some(deadline) = deadline.filter(|_| done.len() == before && self.in_flight() > 0) {
            self.device.timeline.go_on(deadline);
            self.take_ended(done);
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.under_way.iter().map(|stretch| stretch.waiting.len()).sum()
    }

    fn is_inline(&self) -> bool {
        self.device.nature.is_inline
    }
}
