//! `memory`: entries in RAM, in an arena on huge pages that is reserved at once, and backed as it fills or
//! before the first entry.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use wavetank_model::{Error, Result};

use super::{Entry, Site};
use crate::arena::{Arena, Room};
use crate::backend::{Backend, Caps, Completion, Held, Location, NewEntry, Piece, Port, Seal};
use crate::buffer::{Buffer, Region};
use crate::immediate::Immediate;
use crate::payload;

pub(super) const ENTRY: Entry = Entry {
    name: "memory",
    about: "RAM: an arena on huge pages, backed as it fills or before that",
    caps: Caps { keeps_bytes: true, survives: false, inline: true, location: Location::None },
    options: &[
        ("block", "bytes of one arena block, 4096 unless given"),
        (BACKED, "true: before the first entry, as engines pin what they offload to; otherwise as it fills"),
    ],
    open: |site| open_with(site, ENTRY.name, Seeded::Kept),
};

/// The option that has memory backed before the first entry.
pub const BACKED: &str = "backed";

/// A page: entries are hundreds of kilobytes to gigabytes, so next to nothing is lost in the last block.
const BLOCK_BYTES: usize = 4096;
/// The capacity is for entries' bytes. Whole blocks take a little more, up to twice as much for entries of
/// half a block; only addresses are reserved for it.
const BLOCKS_PER_BYTE: u64 = 2;
/// Beyond the capacity this part of it is used, before entries are put together from what is free in several
/// places.
const GAPS: u64 = 8;
/// Without a limit the address space for this much is reserved; memory is taken only as it is used.
const UNLIMITED_BYTES: u64 = 1 << 40;

/// What is held of an entry whose bytes come from a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seeded {
    /// The bytes.
    Kept,
    /// The seed.
    MadeAgain,
}

/// Memory that a tier of `capacity` bytes takes when it is backed before the first entry.
pub fn backed_bytes(capacity: u64) -> u64 {
    capacity.saturating_add(capacity / GAPS)
}

/// An arena for a backend called `name`.
pub(super) fn open_with(site: &Site, name: &'static str, seeded: Seeded) -> Result<Arc<dyn Backend>> {
    let capacity = site.capacity_bytes.unwrap_or(UNLIMITED_BYTES);
    let block = site.options.option("block", BLOCK_BYTES)?;
    if block == 0 {
        return Err(Error::usage("option block: must be above 0"));
    }
    let refused = |e: io::Error| Error::usage(format!("{name}: cannot reserve {capacity} bytes: {e}"));
    let addresses = capacity.saturating_mul(BLOCKS_PER_BYTE);
    let arena = Arena::new(addresses, backed_bytes(capacity), block).map_err(refused)?;
    if site.option(BACKED, false)? {
        if site.capacity_bytes.is_none() {
            return Err(Error::usage(format!("option {BACKED}: is for a tier with a capacity")));
        }
        arena.back().map_err(|e| Error::usage(format!("{name}: cannot back {capacity} bytes: {e}")))?;
    }
    Ok(Arc::new(Memory { arena, capacity, used: AtomicU64::new(0), name, seeded }))
}

struct Memory {
    arena: Arc<Arena>,
    capacity: u64,
    used: AtomicU64,
    name: &'static str,
    seeded: Seeded,
}

struct MemoryPort {
    memory: Arc<Memory>,
    done: Immediate,
}

struct Kept {
    room: Room,
    /// The seed, where it is all that is held.
    seed: Option<u64>,
    _booked: Booked,
}

/// Bytes of the capacity that belong to an entry; given back when dropped.
struct Booked {
    memory: Arc<Memory>,
    bytes: u64,
}

impl Booked {
    fn new(memory: &Arc<Memory>, bytes: u64) -> io::Result<Self> {
        if bytes > memory.capacity {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the entry is larger than all there is"));
        }
        let fits = |used: u64| used.checked_add(bytes).filter(|after| *after <= memory.capacity);
        let taken = memory.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits);
        taken.map_err(|_| io::Error::new(io::ErrorKind::WouldBlock, "no room for now"))?;
        Ok(Self { memory: Arc::clone(memory), bytes })
    }
}

impl Drop for Booked {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

impl Held for Kept {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Backend for Memory {
    fn port(self: Arc<Self>, _: &Arc<Region>, _: usize) -> io::Result<Box<dyn Port>> {
        Ok(Box::new(MemoryPort { memory: self, done: Immediate::default() }))
    }

    fn notes(&self) -> Vec<String> {
        let note = format!("{}: no huge pages here, copies are slower", self.name);
        if self.arena.huge_pages() { Vec::new() } else { vec![note] }
    }
}

fn kept(held: &Arc<dyn Held>) -> &Kept {
    held.as_any().downcast_ref().expect("an entry of this backend")
}

impl Port for MemoryPort {
    fn create(&mut self, entry: &NewEntry<'_>) -> io::Result<Arc<dyn Held>> {
        let booked = Booked::new(&self.memory, entry.bytes)?;
        let room = self.memory.arena.take(entry.bytes)?;
        let seed = entry.recipe.filter(|_| self.memory.seeded == Seeded::MadeAgain);
        Ok(Arc::new(Kept { room, seed, _booked: booked }))
    }

    fn write(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer, _: Option<Seal>) {
        let start = Instant::now();
        let Kept { room, seed, .. } = kept(held);
        if seed.is_none() {
            room.copy_in(piece.offset, &buffer.payload()[..piece.len]);
        }
        self.done.finish(piece, buffer, start);
    }

    fn commit(&mut self, held: Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        Ok(held)
    }

    fn read(&mut self, held: &Arc<dyn Held>, piece: Piece, mut buffer: Buffer) {
        let start = Instant::now();
        let Kept { room, seed, .. } = kept(held);
        let mover = buffer.mover();
        let bytes = &mut buffer.payload_mut()[..piece.len];
        match seed {
            Some(seed) => payload::fill(*seed, piece.offset, bytes),
            None => room.copy_out(piece.offset, bytes, mover),
        }
        self.done.finish(piece, buffer, start);
    }

    fn remove(&mut self, _: Arc<dyn Held>) -> io::Result<()> {
        Ok(())
    }

    fn submit(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn reap(&mut self, _: Option<Instant>, done: &mut Vec<Completion>) -> io::Result<()> {
        self.done.take(done);
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.done.len()
    }

    fn is_inline(&self) -> bool {
        true
    }
}
