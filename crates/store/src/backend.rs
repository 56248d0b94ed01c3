//! The seam between the store and what holds bytes: a [`Backend`] is shared, a [`Port`] is one thread's queue
//! into it.
//!
//! An entry's life: `create` makes room, `write` takes its pieces (in any order, the last one with the
//! [`Seal`]), `commit` makes it last; `read` brings pieces back; `remove` ends it. Pieces travel in
//! [`Buffer`]s that the port owns until it gives them back with a [`Completion`], so no byte is copied on the
//! way.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use crate::buffer::{Buffer, Region};
use crate::key::Key;

/// What holds bytes. Shared by all threads.
pub trait Backend: Send + Sync {
    /// A queue for the calling thread, whose buffers come from `region`; at most `depth` pieces are with the
    /// device at a time.
    fn port(self: Arc<Self>, region: &Arc<Region>, depth: usize) -> io::Result<Box<dyn Port>>;

    /// Every committed entry that outlived an earlier process, each once; what is not ours is left alone.
    fn recover(self: Arc<Self>, found: &mut dyn FnMut(Found)) -> io::Result<Recovery> {
        let _ = found;
        Ok(Recovery::default())
    }

    /// Gives back what is kept for later entries, such as files without one; when nothing is measured any
    /// more.
    fn trim(&self) -> io::Result<()> {
        Ok(())
    }

    /// What becomes of the bytes of entries here. A store none of whose tiers moves any makes none either.
    fn contents(&self) -> Contents {
        Contents::Moved
    }

    /// What does not work here as it should, in words, and what happens instead.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What a backend does with the bytes of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contents {
    /// They are moved.
    Moved,
    /// Pieces come and go in their time, with nothing in them.
    Hollow,
    /// Entries are only booked: each is one piece of no length.
    Booked,
}

/// One thread's queue into a backend.
///
/// Whoever implements it keeps every buffer it was given until the device is done with it, also when dropped,
/// and completes every `read` and `write` exactly once.
pub trait Port {
    /// Makes room for an entry. Nothing is readable, or survives, before `commit`. An error of kind
    /// `WouldBlock` means that room will come when entries being read or moved have left.
    fn create(&mut self, entry: &NewEntry<'_>) -> io::Result<Arc<dyn Held>>;

    /// Queues a piece to be written; `seal` comes with the last one queued.
    fn write(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer, seal: Option<Seal>);

    /// Makes an entry last, after all its writes completed, and gives the hold to keep.
    fn commit(&mut self, held: Arc<dyn Held>) -> io::Result<Arc<dyn Held>>;

    /// Gives the hold to read through; whoever reads several pieces opens once.
    fn open(&mut self, held: &Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        Ok(Arc::clone(held))
    }

    /// Queues a piece to be read into `buffer`.
    fn read(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer);

    /// Ends an entry, committed or not. Those who still read it finish; its room is free after the last of
    /// them.
    fn remove(&mut self, held: Arc<dyn Held>) -> io::Result<()>;

    /// Hands what is queued to the device.
    fn submit(&mut self) -> io::Result<()>;

    /// Takes what has completed; waits for one completion until `deadline`, if given and any is on its way.
    fn reap(&mut self, deadline: Option<Instant>, done: &mut Vec<Completion>) -> io::Result<()>;

    /// How many pieces are queued or with the device.
    fn in_flight(&self) -> usize;

    /// Whether the caller's thread does the work: pieces in flight are then done, and their buffers are the
    /// sooner of use again, and still in the processor's cache, the sooner they are reaped.
    fn is_inline(&self) -> bool {
        false
    }
}

/// A backend's hold on one entry. Its room is given back when it was removed and the last clone is dropped.
pub trait Held: Send + Sync {
    /// For the backend that made it.
    fn as_any(&self) -> &dyn Any;
}

/// An entry to be created.
#[derive(Clone, Copy, Debug)]
pub struct NewEntry<'a> {
    /// Its name.
    pub key: &'a Key,
    /// Its length.
    pub bytes: u64,
    /// The seed that makes its bytes, where it is known: a modelled device need not hold them.
    pub recipe: Option<u64>,
    /// Where it comes from.
    pub birth: Birth,
}

/// What stays with an entry wherever it moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Birth {
    /// The number of the write that made it: of two entries of one key the higher is the later, also when the
    /// older was moved after the newer was written.
    pub put: u64,
    /// Whose it is.
    pub tenant: u32,
    /// Seconds since 1970 from which on nobody should be given it; 0 for never. The store only keeps it.
    pub expires_s: u32,
}

/// Part of an entry: at most [`PIECE`](crate::buffer::PIECE) bytes from a multiple of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Comes back with the completion.
    pub token: u64,
    /// From where.
    pub offset: u64,
    /// How long.
    pub len: usize,
}

/// What is known of an entry when its last piece is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// The checksum of all its bytes.
    pub checksum: u64,
}

/// A piece that was read or written, or was not.
pub struct Completion {
    /// The piece's.
    pub token: u64,
    /// Its buffer.
    pub buffer: Buffer,
    /// Whether it worked; a short read or write did not.
    pub result: io::Result<()>,
    /// When the device got it.
    pub submitted: Instant,
    /// When it was seen to be done.
    pub finished: Instant,
}

/// An entry of an earlier process.
pub struct Found {
    /// Its name.
    pub key: Key,
    /// Its length.
    pub bytes: u64,
    /// The checksum it was sealed with.
    pub checksum: u64,
    /// The copy's version in its backend: of two copies of one write the higher is the later.
    pub version: u64,
    /// Where it comes from.
    pub birth: Birth,
    /// The hold on it.
    pub held: Arc<dyn Held>,
}

/// What else was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Files that are not ours: left alone.
    pub foreign: u64,
    /// Ours, but torn or damaged: never served.
    pub torn: u64,
    /// Ours, with nothing in them: used again.
    pub spare: u64,
}

/// What a kind of backend can do, for tests and for `wavetank list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// What was written comes back.
    pub keeps_bytes: bool,
    /// Committed entries outlive the process.
    pub survives: bool,
    /// The thread that asks moves the bytes itself, one piece after the other.
    pub inline: bool,
    /// What its location names.
    pub location: Location,
}

impl Caps {
    /// Whether it is the machine's own memory, copied by the thread that asks.
    pub fn is_memory(&self) -> bool {
        self.keeps_bytes && self.inline
    }
}

/// What a backend's location names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// It has none.
    None,
    /// A directory.
    Directory,
    /// A number of the device.
    Device,
    /// An address.
    Url,
}
