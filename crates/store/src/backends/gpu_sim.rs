//! `gpu_sim`: a GPU's memory without a GPU. The bytes are real, the time they take is modelled.
//!
//! Each direction is a link shared by all ports: a piece starts when the link is free, holds it for its
//! length over the bandwidth, and is done the latency later; a completion's times are those of the model.
//! Entries made from a seed take room but no RAM: what is read of them is made again.

use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wavetank_model::{Error, Result};

use super::{Entry, Site};
use crate::arena::{Arena, Room};
use crate::backend::{Backend, Caps, Completion, Held, Location, NewEntry, Piece, Port, Seal};
use crate::buffer::{Buffer, Region};
use crate::payload;

pub(super) const ENTRY: Entry = Entry {
    name: "gpu_sim",
    about: "a modelled GPU: real bytes, modelled bandwidth and latency",
    caps: Caps { keeps_bytes: true, survives: false, location: Location::None },
    options: &[
        ("gbps", "GB/s in each direction, 54 unless given"),
        ("latency_us", "microseconds of every piece besides its transfer, 10 unless given"),
    ],
    open,
};

/// Pinned copies on an H200 (PCIe 5.0 x16).
const GBPS: f64 = 54.0;
/// A round figure for queueing a copy and seeing its event.
const LATENCY_US: f64 = 10.0;
const BLOCK_BYTES: usize = 64 * 1024;
/// Without a limit the address space for this much is reserved; memory is taken only as it is used.
const UNLIMITED_BYTES: u64 = 1 << 40;
/// Linux wakes a sleeper up to 50 µs late (timer slack) and needs some more to run it: the rest is spun.
const SPIN: Duration = Duration::from_micros(80);

fn open(site: &Site) -> Result<Arc<dyn Backend>> {
    let gbps = in_range("gbps", site.option("gbps", GBPS)?, 0.001..=1e6)?;
    let latency_us = in_range("latency_us", site.option("latency_us", LATENCY_US)?, 0.0..=1e9)?;
    let capacity = site.capacity_bytes.unwrap_or(UNLIMITED_BYTES);
    let refused = |e: io::Error| Error::usage(format!("gpu_sim: cannot reserve {capacity} bytes: {e}"));
    let arena = Arena::new(capacity, BLOCK_BYTES).map_err(refused)?;
    let link = || Link { gbps, latency: Duration::from_secs_f64(latency_us / 1e6), free: Mutex::default() };
    Ok(Arc::new(GpuSim { arena, into: link(), out_of: link() }))
}

fn in_range(name: &str, value: f64, range: std::ops::RangeInclusive<f64>) -> Result<f64> {
    let (low, high) = (range.start(), range.end());
    let outside = || Error::usage(format!("option {name}: must be between {low} and {high}, not {value}"));
    range.contains(&value).then_some(value).ok_or_else(outside)
}

struct GpuSim {
    arena: Arc<Arena>,
    into: Link,
    out_of: Link,
}

/// One direction between host and device.
struct Link {
    gbps: f64,
    latency: Duration,
    /// When it has moved all it was given.
    free: Mutex<Option<Instant>>,
}

impl Link {
    /// When a piece of `len` bytes handed over `now` is done.
    fn carry(&self, now: Instant, len: usize) -> Instant {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let start = free.map_or(now, |free| free.max(now));
        let end = start + Duration::from_secs_f64(len as f64 / (self.gbps * 1e9));
        *free = Some(end);
        end + self.latency
    }
}

struct Kept {
    room: Room,
    recipe: Option<u64>,
}

impl Held for Kept {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn kept(held: &Arc<dyn Held>) -> &Kept {
    held.as_any().downcast_ref().expect("an entry of this backend")
}

impl Backend for GpuSim {
    fn port(self: Arc<Self>, _: &Arc<Region>, _: usize) -> io::Result<Box<dyn Port>> {
        Ok(Box::new(SimPort { gpu: self, into: VecDeque::new(), out_of: VecDeque::new() }))
    }
}

struct SimPort {
    gpu: Arc<GpuSim>,
    /// What is on its way; `finished` says when it arrives, and rises from front to back.
    into: VecDeque<Completion>,
    out_of: VecDeque<Completion>,
}

impl SimPort {
    fn due(&self) -> Option<Instant> {
        let fronts = [self.into.front(), self.out_of.front()];
        fronts.into_iter().flatten().map(|first| first.finished).min()
    }

    fn collect(&mut self, now: Instant, done: &mut Vec<Completion>) {
        for way in [&mut self.into, &mut self.out_of] {
            while let Some(arrived) = way.pop_front_if(|first| first.finished <= now) {
                done.push(arrived);
            }
        }
    }
}

/// Sleeps, then spins: other threads may run, but the moment is met.
fn wait_until(moment: Instant) {
    let left = moment.saturating_duration_since(Instant::now());
    if left > SPIN {
        std::thread::sleep(left - SPIN);
    }
    while Instant::now() < moment {
        std::thread::yield_now();
    }
}

impl Port for SimPort {
    fn create(&mut self, entry: &NewEntry<'_>) -> io::Result<Arc<dyn Held>> {
        let full = || io::Error::new(io::ErrorKind::WouldBlock, "gpu_sim: no free blocks");
        let room = self.gpu.arena.take(entry.bytes).ok_or_else(full)?;
        Ok(Arc::new(Kept { room, recipe: entry.recipe }))
    }

    fn write(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer, _: Option<Seal>) {
        let submitted = Instant::now();
        let finished = self.gpu.into.carry(submitted, piece.len);
        let Kept { room, recipe } = kept(held);
        if recipe.is_none() {
            room.copy_in(piece.offset, &buffer.payload()[..piece.len]);
        }
        self.into.push_back(Completion { token: piece.token, buffer, result: Ok(()), submitted, finished });
    }

    fn commit(&mut self, held: Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        Ok(held)
    }

    fn read(&mut self, held: &Arc<dyn Held>, piece: Piece, mut buffer: Buffer) {
        let submitted = Instant::now();
        // The link is taken first, so that making the bytes overlaps with what they are modelled to take.
        let finished = self.gpu.out_of.carry(submitted, piece.len);
        let Kept { room, recipe } = kept(held);
        let bytes = &mut buffer.payload_mut()[..piece.len];
        match recipe {
            Some(seed) => payload::fill(*seed, piece.offset, bytes),
            None => room.copy_out(piece.offset, bytes),
        }
        self.out_of.push_back(Completion { token: piece.token, buffer, result: Ok(()), submitted, finished });
    }

    fn remove(&mut self, _: Arc<dyn Held>) -> io::Result<()> {
        Ok(())
    }

    fn submit(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn reap(&mut self, deadline: Option<Instant>, done: &mut Vec<Completion>) -> io::Result<()> {
        let before = done.len();
        self.collect(Instant::now(), done);
        if let (true, Some(due), Some(deadline)) = (done.len() == before, self.due(), deadline) {
            wait_until(due.min(deadline));
            self.collect(Instant::now(), done);
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.into.len() + self.out_of.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;
    use crate::buffer::PIECE;

    fn site(capacity: u64, options: &[(&str, &str)]) -> Site {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Site { capacity_bytes: Some(capacity), options, ..Site::default() }
    }

    fn all(port: &mut dyn Port) -> Vec<Completion> {
        let mut done = Vec::new();
        while port.in_flight() > 0 {
            port.reap(Some(Instant::now() + Duration::from_secs(1)), &mut done).unwrap();
        }
        done
    }

    fn round_trip(recipe: Option<u64>) -> (Vec<u8>, Arc<Region>) {
        let region = Region::new(1).unwrap();
        let mut port = open(&site(1 << 30, &[])).unwrap().port(&region, 1).unwrap();
        let entry = NewEntry { key: &Key::from("k"), bytes: PIECE as u64 + 1000, recipe };
        let held = port.create(&entry).unwrap();
        let piece = Piece { token: 7, offset: PIECE as u64, len: 1000 };
        let mut buffer = region.take().unwrap();
        payload::fill(99, piece.offset, &mut buffer.payload_mut()[..1000]);
        port.write(&held, piece, buffer, Some(Seal { checksum: 0 }));
        let mut written = all(&mut *port);
        let held = port.commit(held).unwrap();
        let mut buffer = written.pop().unwrap().buffer;
        buffer.payload_mut().fill(0);
        port.read(&held, piece, buffer);
        let read = all(&mut *port).pop().unwrap();
        assert!(read.token == 7 && read.result.is_ok());
        (read.buffer.payload()[..1000].to_vec(), region)
    }

    #[test]
    fn bytes_come_back_kept_or_made_again() {
        let mut expected = vec![0; 1000];
        payload::fill(99, PIECE as u64, &mut expected);
        let (kept, region) = round_trip(None);
        assert_eq!(kept, expected);
        assert!(region.take().is_some(), "the buffer was given back");
        assert_eq!(round_trip(Some(99)).0, expected);
        payload::fill(5, PIECE as u64, &mut expected);
        assert_eq!(round_trip(Some(5)).0, expected, "what was written is not held: the seed is the entry");
    }

    #[test]
    fn entries_with_a_seed_take_room_too() {
        let region = Region::new(1).unwrap();
        let mut port = open(&site(80 << 30, &[])).unwrap().port(&region, 1).unwrap();
        let key = Key::from("k");
        let mut entry = NewEntry { key: &key, bytes: 80 << 30, recipe: Some(1) };
        let held = port.create(&entry).unwrap();
        entry.bytes = 1;
        assert_eq!(port.create(&entry).err().unwrap().kind(), io::ErrorKind::WouldBlock);
        port.remove(held).unwrap();
        assert!(port.create(&entry).is_ok());
    }

    /// 1 MiB at 1 GB/s is 1.05 ms. Pieces in one direction wait for each other, the directions do not.
    #[test]
    fn each_direction_is_one_link_for_all_ports() {
        let region = Region::new(8).unwrap();
        let gpu = open(&site(1 << 30, &[("gbps", "1"), ("latency_us", "300")])).unwrap();
        let mut ports = [0, 1].map(|_| Arc::clone(&gpu).port(&region, 4).unwrap());
        let entry = NewEntry { key: &Key::from("k"), bytes: PIECE as u64, recipe: Some(3) };
        let held = ports[0].create(&entry).unwrap();
        let piece = Piece { token: 0, offset: 0, len: PIECE };
        for port in &mut ports {
            for _ in 0..2 {
                port.write(&held, piece, region.take().unwrap(), None);
                port.read(&held, piece, region.take().unwrap());
            }
        }
        let transfer = Duration::from_secs_f64(PIECE as f64 / 1e9);
        let latency = Duration::from_micros(300);
        let mut done: Vec<Completion> = ports.iter_mut().flat_map(|port| all(&mut **port)).collect();
        done.sort_by_key(|piece| piece.finished);
        let first = done.iter().map(|piece| piece.submitted).min().unwrap();
        assert!(done.iter().all(|piece| piece.finished - piece.submitted >= transfer + latency));
        for (number, pair) in (1u32..).zip(done.chunks(2)) {
            let carried = pair[0].finished - first;
            assert!(carried >= transfer * number + latency, "{number} pieces went before {carried:?}");
        }
        let last = done.iter().map(|piece| piece.submitted).max().unwrap();
        assert!(done[7].finished <= last + 4 * transfer + latency, "the other direction was waited for");
    }

    #[test]
    fn a_deadline_before_the_arrival_is_kept() {
        let region = Region::new(1).unwrap();
        let gpu = open(&site(1 << 20, &[("latency_us", "3600000000"), ("gbps", "0.001")]));
        assert!(gpu.err().unwrap().to_string().contains("option latency_us: must be between"));
        let mut port = open(&site(1 << 20, &[("latency_us", "1e9")])).unwrap().port(&region, 1).unwrap();
        let held = port.create(&NewEntry { key: &Key::from("k"), bytes: 9, recipe: None }).unwrap();
        port.write(&held, Piece { token: 0, offset: 0, len: 9 }, region.take().unwrap(), None);
        let mut done = Vec::new();
        port.reap(None, &mut done).unwrap();
        port.reap(Some(Instant::now() + Duration::from_millis(1)), &mut done).unwrap();
        assert!(done.is_empty() && port.in_flight() == 1);
    }
}
