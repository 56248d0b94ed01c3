//! A backend that holds nothing and takes the time of a medium.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use wavetank_model::Operation;
use wavetank_sim::TransferId;
use wavetank_store::backend::{Backend, Completion, Contents, Held, NewEntry, Piece, Port, Seal};
use wavetank_store::buffer::{Buffer, Region};

use super::timeline::Timeline;

/// What stands for the device of one tier.
pub(super) struct Device {
    timeline: Arc<Timeline>,
    tier: usize,
    /// Bytes it has room for; no end of them when absent.
    room: Option<u64>,
    used: AtomicU64,
}

impl Device {
    pub(super) fn new(timeline: &Arc<Timeline>, tier: usize, room: Option<u64>) -> Self {
        Self { timeline: Arc::clone(timeline), tier, room, used: AtomicU64::new(0) }
    }

    /// Takes room; what is too large for all of it is refused, the rest may wait.
    fn take(self: &Arc<Self>, bytes: u64) -> io::Result<Booked> {
        let room = self.room.unwrap_or(u64::MAX);
        if bytes > room {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the entry is larger than all there is"));
        }
        let fits = |used: u64| used.checked_add(bytes).filter(|after| *after <= room);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        taken.map_err(|_| io::Error::new(io::ErrorKind::WouldBlock, "no room for now"))?;
        Ok(Booked { device: Arc::clone(self), bytes })
    }
}

impl Backend for Device {
    fn port(self: Arc<Self>, _: &Arc<Region>, _: usize) -> io::Result<Box<dyn Port>> {
        Ok(Box::new(DevicePort { device: self, under_way: Vec::new() }))
    }

    fn contents(&self) -> Contents {
        Contents::Hollow
    }
}

/// Room of an entry; given back when dropped.
struct Booked {
    device: Arc<Device>,
    bytes: u64,
}

impl Drop for Booked {
    fn drop(&mut self) {
        self.device.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// An entry.
struct Entry {
    _booked: Booked,
}

impl Held for Entry {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct DevicePort {
    device: Arc<Device>,
    under_way: Vec<Moving>,
}

/// A piece on its way.
struct Moving {
    id: TransferId,
    token: u64,
    buffer: Buffer,
    submitted: Instant,
}

impl DevicePort {
    fn begin(&mut self, operation: Operation, piece: Piece, buffer: Buffer) {
        let Device { timeline, tier, .. } = &*self.device;
        let submitted = timeline.now();
        let id = timeline.begin(*tier, operation, piece.len as u64);
        self.under_way.push(Moving { id, token: piece.token, buffer, submitted });
    }

    fn take_ended(&mut self, done: &mut Vec<Completion>) {
        let timeline = &self.device.timeline;
        let mut at = 0;
        while at < self.under_way.len() {
            match timeline.take_end(self.under_way[at].id) {
                None => at += 1,
                Some(finished) => {
                    let Moving { token, buffer, submitted, .. } = self.under_way.remove(at);
                    done.push(Completion { token, buffer, result: Ok(()), submitted, finished });
                }
            }
        }
    }
}

impl Port for DevicePort {
    fn create(&mut self, entry: &NewEntry<'_>) -> io::Result<Arc<dyn Held>> {
        let booked = self.device.take(entry.bytes)?;
        Ok(Arc::new(Entry { _booked: booked }))
    }

    fn write(&mut self, _: &Arc<dyn Held>, piece: Piece, buffer: Buffer, _: Option<Seal>) {
        self.begin(Operation::Write, piece, buffer);
    }

    fn commit(&mut self, held: Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        Ok(held)
    }

    fn read(&mut self, _: &Arc<dyn Held>, piece: Piece, buffer: Buffer) {
        self.begin(Operation::Read, piece, buffer);
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
        if let Some(deadline) = deadline.filter(|_| done.len() == before && !self.under_way.is_empty()) {
            self.device.timeline.go_on(deadline);
            self.take_ended(done);
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.under_way.len()
    }
}
