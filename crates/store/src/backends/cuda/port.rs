//! One thread's way to a device: a stream in each direction, so that both copy engines work, and an event
//! after every piece.

use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Cuda;
use super::driver::{Event, Pinned, Stream};
use crate::backend::{Completion, Held, NewEntry, Piece, Port, Seal};
use crate::blocks::Extent;
use crate::buffer::{Buffer, Region};

/// A piece takes about 20 µs (1 MiB over PCIe 5.0): shorter than it takes to be woken from a sleep.
const SPIN: Duration = Duration::from_micros(100);
/// Between looks at a device that other ports keep busy.
const NAP: Duration = Duration::from_micros(50);

/// An entry in the device's memory.
struct Kept {
    extent: Extent,
    cuda: Arc<Cuda>,
}

impl Held for Kept {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn kept(held: &Arc<dyn Held>) -> &Kept {
    held.as_any().downcast_ref().expect("an entry of this backend")
}

/// A piece on its way. Without an event the device is done with it.
struct Pending {
    token: u64,
    buffer: Buffer,
    event: Option<Event>,
    error: Option<io::Error>,
    submitted: Instant,
    /// Keeps its blocks from being handed out again.
    _held: Arc<dyn Held>,
}

/// One direction; what is on its way arrives in order.
struct Way {
    stream: Stream,
    pending: VecDeque<Pending>,
}

/// The port. It is dropped on its own thread: streams, events and pins are of the context entered in `drop`.
pub(super) struct CudaPort {
    into: Way,
    out_of: Way,
    spare: Vec<Event>,
    cuda: Arc<Cuda>,
    /// After the ways: the buffers are unpinned when no copy is on its way.
    _pinned: Option<Pinned>,
}

impl CudaPort {
    /// A port, with its buffers pinned where that works, and if not why.
    pub(super) fn new(cuda: Arc<Cuda>, region: &Arc<Region>) -> io::Result<(Self, Option<io::Error>)> {
        cuda.context.enter()?;
        let way = || -> io::Result<Way> {
            Ok(Way { stream: Stream::new(&cuda.context)?, pending: VecDeque::new() })
        };
        let (into, out_of) = (way()?, way()?);
        let (pinned, why) = match Pinned::new(&cuda.context, region) {
            Ok(pinned) => (Some(pinned), None),
            Err(why) => (None, Some(why)),
        };
        let port = Self { into, out_of, spare: Vec::new(), cuda, _pinned: pinned };
        Ok((port, why))
    }

    /// An event for the end of a piece's copies.
    fn event(&mut self) -> io::Result<Event> {
        self.spare.pop().map_or_else(|| Event::new(&self.cuda.context), Ok)
    }

    fn collect(&mut self, done: &mut Vec<Completion>) {
        for way in [&mut self.into, &mut self.out_of] {
            while let Some(outcome) = way.pending.front().and_then(Pending::outcome) {
                let pending = way.pending.pop_front().expect("its front was just seen");
                let Pending { token, buffer, event, error, submitted, .. } = pending;
                self.spare.extend(event);
                let result = error.map_or(outcome, Err);
                done.push(Completion { token, buffer, result, submitted, finished: Instant::now() });
            }
        }
    }
}

impl Pending {
    /// How the device's part ended, if it did.
    fn outcome(&self) -> Option<io::Result<()>> {
        self.event.as_ref().map_or(Some(Ok(())), Event::passed)
    }
}

impl Way {
    /// Ends a piece whose copies were queued, as far as `queued` says, and keeps it until they are done.
    fn close(&mut self, event: io::Result<Event>, queued: io::Result<()>, mut pending: Pending) {
        let marked = event.and_then(|event| self.stream.mark(&event).map(|()| event));
        match marked {
            Ok(event) => (pending.event, pending.error) = (Some(event), queued.err()),
            Err(e) => {
                // With no mark to look at, the copies that were queued are waited for here.
                let _ = self.stream.drain();
                pending.error = queued.err().or(Some(e));
            }
        }
        self.pending.push_back(pending);
    }
}

impl Port for CudaPort {
    fn create(&mut self, entry: &NewEntry<'_>) -> io::Result<Arc<dyn Held>> {
        let extent = self.cuda.blocks.take(entry.bytes)?;
        Ok(Arc::new(Kept { extent, cuda: Arc::clone(&self.cuda) }))
    }

    fn write(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer, _: Option<Seal>) {
        let submitted = Instant::now();
        let (entry, bytes) = (kept(held), &buffer.payload()[..piece.len]);
        let queued = self.cuda.context.enter().and_then(|()| {
            entry.extent.parts(piece.offset, piece.len).try_for_each(|part| {
                let from = &bytes[part.at..part.at + part.len];
                // SAFETY: buffer and entry are kept in `pending` until the event after the copy has passed,
                // and the entry's blocks are its own; a dropped port waits for its copies.
                unsafe { self.into.stream.copy_in(&entry.cuda.memory, part.place, from) }
            })
        });
        let event = self.event();
        let (token, _held) = (piece.token, Arc::clone(held));
        let pending = Pending { token, buffer, event: None, error: None, submitted, _held };
        self.into.close(event, queued, pending);
    }

    fn commit(&mut self, held: Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        Ok(held)
    }

    fn read(&mut self, held: &Arc<dyn Held>, piece: Piece, mut buffer: Buffer) {
        let submitted = Instant::now();
        let (entry, bytes) = (kept(held), &mut buffer.payload_mut()[..piece.len]);
        let queued = self.cuda.context.enter().and_then(|()| {
            entry.extent.parts(piece.offset, piece.len).try_for_each(|part| {
                let to = &mut bytes[part.at..part.at + part.len];
                // SAFETY: as in `write`; nobody writes to a committed entry.
                unsafe { self.out_of.stream.copy_out(&entry.cuda.memory, part.place, to) }
            })
        });
        let event = self.event();
        let (token, _held) = (piece.token, Arc::clone(held));
        let pending = Pending { token, buffer, event: None, error: None, submitted, _held };
        self.out_of.close(event, queued, pending);
    }

    fn remove(&mut self, _: Arc<dyn Held>) -> io::Result<()> {
        Ok(())
    }

    /// The driver has the copies already.
    fn submit(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn reap(&mut self, deadline: Option<Instant>, done: &mut Vec<Completion>) -> io::Result<()> {
        self.cuda.context.enter()?;
        let before = done.len();
        self.collect(done);
        let Some(deadline) = deadline else { return Ok(()) };
        let start = Instant::now();
        while done.len() == before && self.in_flight() > 0 {
            let now = Instant::now();
            if now >= deadline {
                break;
            }
            if now - start < SPIN {
                std::thread::yield_now();
            } else {
                std::thread::sleep(NAP.min(deadline - now));
            }
            self.collect(done);
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.into.pending.len() + self.out_of.pending.len()
    }
}

impl Drop for CudaPort {
    /// The device may still write into buffers: they are given back only after it is done with them.
    fn drop(&mut self) {
        let _ = self.cuda.context.enter();
        for way in [&mut self.into, &mut self.out_of] {
            let _ = way.stream.drain();
            way.pending.clear();
        }
    }
}
