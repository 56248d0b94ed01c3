//! A large piece of memory handed out in equal blocks. It is reserved at once and backed as it is touched.

#![allow(unsafe_code)]

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::buffer::Mapping;

/// Blocks of one size in one mapping.
pub(crate) struct Arena {
    memory: Mapping,
    block: usize,
    free: Mutex<Free>,
}

/// Blocks given back, and the first that was never used: used ones first, so that memory is touched late.
struct Free {
    returned: Vec<u32>,
    fresh: u32,
    count: u32,
}

impl Arena {
    /// An arena of `capacity` bytes in blocks of `block` bytes.
    pub(crate) fn new(capacity: u64, block: usize) -> io::Result<Arc<Self>> {
        let count = u32::try_from(capacity.div_ceil(block as u64))
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "too many blocks: use larger ones"))?;
        let too_large = || io::Error::new(io::ErrorKind::InvalidInput, "more than an address can name");
        let memory = Mapping::new((count as usize).checked_mul(block).ok_or_else(too_large)?)?;
        let free = Mutex::new(Free { returned: Vec::new(), fresh: 0, count });
        Ok(Arc::new(Self { memory, block, free }))
    }

    /// Room for `bytes`, or nothing of it when there is not enough.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64) -> Option<Room> {
        let need = bytes.div_ceil(self.block as u64) as usize;
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let reused = need.min(free.returned.len());
        let fresh = need - reused;
        if fresh > (free.count - free.fresh) as usize {
            return None;
        }
        let from = free.returned.len() - reused;
        let mut blocks: Vec<u32> = free.returned.drain(from..).collect();
        blocks.extend(free.fresh..free.fresh + fresh as u32);
        free.fresh += fresh as u32;
        Some(Room { arena: Arc::clone(self), blocks })
    }

    /// Whether `bytes` would fit if nothing else were there.
    pub(crate) fn fits(&self, bytes: u64) -> bool {
        bytes <= self.memory.len() as u64
    }

    /// Whether the kernel took the advice to use huge pages.
    pub(crate) fn huge_pages(&self) -> bool {
        self.memory.huge()
    }
}

/// Blocks that belong to one entry; given back when dropped.
pub(crate) struct Room {
    arena: Arc<Arena>,
    blocks: Vec<u32>,
}

impl Room {
    /// Copies `bytes` to `offset`.
    ///
    /// The caller writes an entry's pieces before anyone can read it, and no two pieces overlap.
    pub(crate) fn copy_in(&self, offset: u64, bytes: &[u8]) {
        self.runs(offset, bytes.len(), |address, at, len| {
            // SAFETY: `runs` stays inside blocks of this room, which nobody reads before it is committed.
            unsafe { std::ptr::copy_nonoverlapping(bytes[at..at + len].as_ptr(), address, len) }
        });
    }

    /// Copies from `offset` into `bytes`.
    pub(crate) fn copy_out(&self, offset: u64, bytes: &mut [u8]) {
        self.runs(offset, bytes.len(), |address, at, len| {
            // SAFETY: `runs` stays inside blocks of this room, which nobody writes after it is committed.
            unsafe { std::ptr::copy_nonoverlapping(address, bytes[at..at + len].as_mut_ptr(), len) }
        });
    }

    /// Calls `each` with the address, the position in the piece and the length of every contiguous run.
    fn runs(&self, offset: u64, len: usize, mut each: impl FnMut(*mut u8, usize, usize)) {
        let block = self.arena.block;
        let (mut at, mut offset) = (0, offset as usize);
        while at < len {
            let (number, within) = (offset / block, offset % block);
            let first = self.blocks[number];
            let mut run = block - within;
            let mut next = number + 1;
            while run < len - at && self.blocks.get(next) == Some(&(first + (next - number) as u32)) {
                run += block;
                next += 1;
            }
            let run = run.min(len - at);
            // SAFETY: the run's blocks are numbers below the arena's count.
            let address = unsafe { self.arena.memory.base().as_ptr().add(first as usize * block + within) };
            each(address, at, run);
            (at, offset) = (at + run, offset + run);
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut free = self.arena.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.returned.extend(self.blocks.iter().rev());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_hold_what_was_put_in_and_come_back() {
        let arena = Arena::new(16 * 100, 16).unwrap();
        let first = arena.take(100).unwrap();
        let gap = arena.take(16).unwrap();
        let second = arena.take(1000).unwrap();
        drop(gap);
        let scattered = arena.take(400).unwrap();
        assert!(arena.take(81).is_none(), "95 of 100 blocks are taken, one more than fits is asked for");
        let bytes: Vec<u8> = (0..400u32).map(|i| i as u8).collect();
        for room in [&first, &second, &scattered] {
            room.copy_in(5, &bytes[..90]);
        }
        scattered.copy_in(95, &bytes[90..300]);
        let mut out = vec![0; 300];
        scattered.copy_out(5, &mut out);
        assert_eq!(out, bytes[..300]);
        first.copy_out(5, &mut out[..90]);
        assert_eq!(out[..90], bytes[..90]);
        drop((first, second, scattered));
        assert!(arena.take(1600).is_some());
        assert!(arena.take(1601).is_none());
    }
}
