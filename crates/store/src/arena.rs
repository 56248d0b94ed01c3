//! A large piece of memory handed out in equal blocks. It is reserved at once, and backed as it is touched or
//! when that is asked for.

#![allow(unsafe_code)]

use std::io;
use std::sync::Arc;

use crate::blocks::{Blocks, Extent};
use crate::buffer::Mover;
use crate::copy::copy;
use crate::mapping::Mapping;

/// Blocks of one size in one mapping.
pub(crate) struct Arena {
    memory: Mapping,
    blocks: Arc<Blocks>,
}

impl Arena {
    /// An arena of `bytes` bytes in blocks of `block` bytes, the first `readily` of them used first.
    pub(crate) fn new(bytes: u64, readily: u64, block: usize) -> io::Result<Arc<Self>> {
        let blocks = Blocks::new(bytes, readily, block)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "too many blocks: use larger ones"))?;
        let memory = Mapping::new(blocks.bytes() as usize)?;
        Ok(Arc::new(Self { memory, blocks }))
    }

    /// Has what is used first backed now.
    pub(crate) fn back(&self) -> io::Result<()> {
        self.memory.back(self.blocks.readily_bytes() as usize)
    }

    /// Room for `bytes`; errors are those of [`Blocks::take`].
    pub(crate) fn take(self: &Arc<Self>, bytes: u64) -> io::Result<Room> {
        Ok(Room { extent: self.blocks.take(bytes)?, arena: Arc::clone(self) })
    }

    /// Whether the kernel took the advice to use huge pages.
    pub(crate) fn huge_pages(&self) -> bool {
        self.memory.huge()
    }
}

/// Blocks that belong to one entry; given back when dropped.
pub(crate) struct Room {
    extent: Extent,
    arena: Arc<Arena>,
}

impl Room {
    /// Copies `bytes` to `offset`.
    ///
    /// The caller writes an entry's pieces before anyone can read it, and no two pieces overlap.
    pub(crate) fn copy_in(&self, offset: u64, bytes: &[u8]) {
        for part in self.extent.parts(offset, bytes.len()) {
            let from = &bytes[part.at..part.at + part.len];
            // SAFETY: parts are inside blocks of this room, which nobody reads before it is committed.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), self.address(part.place), part.len) }
        }
    }

    /// Copies from `offset` into `bytes`, which `next` moves on.
    pub(crate) fn copy_out(&self, offset: u64, bytes: &mut [u8], next: Mover) {
        for part in self.extent.parts(offset, bytes.len()) {
            let to = &mut bytes[part.at..part.at + part.len];
            // SAFETY: parts are inside blocks of this room, which nobody writes after it is committed.
            unsafe { copy(self.address(part.place), to.as_mut_ptr(), part.len, next) }
        }
    }

    fn address(&self, place: u64) -> *mut u8 {
        // SAFETY: the extent's places are below the bytes of its blocks, which the mapping has.
        unsafe { self.arena.memory.start().as_ptr().add(place as usize) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_hold_what_was_put_in_and_come_back() {
        let arena = Arena::new(16 * 100, 16 * 100, 16).unwrap();
        let first = arena.take(100).unwrap();
        let gap = arena.take(16).unwrap();
        let second = arena.take(1000).unwrap();
        drop(gap);
        let scattered = arena.take(480).unwrap();
        assert!(
            arena.take(1).is_err(),
            "7, 63 and 30 of 100 blocks are taken, the last of them not together"
        );
        let bytes: Vec<u8> = (0..400u32).map(|i| i as u8).collect();
        for room in [&first, &second, &scattered] {
            room.copy_in(5, &bytes[..90]);
        }
        scattered.copy_in(95, &bytes[90..]);
        let mut out = vec![0; 400];
        scattered.copy_out(5, &mut out, Mover::Thread);
        assert_eq!(out, bytes);
        scattered.copy_in(80, &bytes);
        scattered.copy_out(80, &mut out, Mover::Device);
        assert_eq!(out, bytes);
        first.copy_out(5, &mut out[..90], Mover::Thread);
        assert_eq!(out[..90], bytes[..90]);
        drop((first, second, scattered));
        assert!(arena.take(1600).is_ok());
        assert!(arena.take(1601).is_err());
    }
}
