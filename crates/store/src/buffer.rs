//! Fixed-size aligned buffers on huge pages, handed out and given back; entries stream through them.
//!
//! Each buffer is `HEADROOM` bytes for an entry's header, then [`PIECE`] bytes of payload, so that header
//! and first piece go to a device as one write. Huge pages keep a piece in a few physical segments: with 4
//! KiB pages the block layer has to split it.

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::mapping::Mapping;

/// What O_DIRECT needs of addresses, offsets and lengths on every device we know.
pub const ALIGN: usize = 4096;
/// Payload bytes of one buffer: larger ones win no bandwidth, smaller ones cost more CPU per byte.
pub const PIECE: usize = 1024 * 1024;
/// Room before the payload for a header.
pub(crate) const HEADROOM: usize = 16 * 1024;
const STRIDE: usize = HEADROOM + PIECE;

/// The memory of one lane's buffers. Backends register or pin it once.
pub struct Region {
    memory: Mapping,
    count: usize,
    /// Those that a thread used are at the back, the last one last; those that a device used at the front.
    free: Mutex<VecDeque<u16>>,
}

/// Who moves the bytes of a buffer. One that a thread used is in its cache, where a copy is a third faster;
/// so it is given to a thread again, and not to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mover {
    /// The thread that asks for it, and nobody else.
    Thread,
    /// On one of its two ways, something that does not go through the thread's cache.
    Device,
}

impl Region {
    /// Memory for `count` buffers.
    pub fn new(count: usize) -> io::Result<Arc<Self>> {
        let slots = u16::try_from(count).map_err(|_| io::Error::other("too many buffers"))?;
        let memory = Mapping::new(count * STRIDE)?;
        Ok(Arc::new(Self { memory, count, free: Mutex::new((0..slots).collect()) }))
    }

    /// A free buffer, if there is one: the last that such a mover has given back.
    pub fn take(self: &Arc<Self>, mover: Mover) -> Option<Buffer> {
        let mut free = self.free_slots();
        let slot = match mover {
            Mover::Thread => free.pop_back(),
            Mover::Device => free.pop_front(),
        };
        Some(Buffer { region: Arc::clone(self), slot: slot?, mover })
    }

    /// How many buffers there are, free or not.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether they are on huge pages, as far as the kernel says.
    pub fn huge_pages(&self) -> bool {
        self.memory.huge()
    }

    /// Where the memory begins, and how long it is.
    pub fn span(&self) -> (*mut u8, usize) {
        (self.memory.start().as_ptr(), self.memory.len())
    }

    fn free_slots(&self) -> std::sync::MutexGuard<'_, VecDeque<u16>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One buffer, owned; dropping it gives it back.
pub struct Buffer {
    region: Arc<Region>,
    slot: u16,
    mover: Mover,
}

impl Buffer {
    fn start(&self) -> *mut u8 {
        // SAFETY: slots are below the region's count, so this stays inside its memory.
        unsafe { self.region.memory.start().as_ptr().add(usize::from(self.slot) * STRIDE) }
    }

    /// Who moves its bytes.
    pub(crate) fn mover(&self) -> Mover {
        self.mover
    }

    /// The payload.
    pub fn payload(&self) -> &[u8] {
        // SAFETY: the slot is this buffer's alone while it lives, and inside the region.
        unsafe { std::slice::from_raw_parts(self.start().add(HEADROOM), PIECE) }
    }

    /// The payload, to be written.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        // SAFETY: as `payload`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start().add(HEADROOM), PIECE) }
    }

    /// The last `len` bytes before the payload.
    pub(crate) fn header_mut(&mut self, len: usize) -> &mut [u8] {
        assert!(len <= HEADROOM, "a header fits the headroom");
        // SAFETY: inside this buffer's slot, borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start().add(HEADROOM - len), len) }
    }

    /// The last `header` bytes of headroom and the first `payload` bytes after it.
    pub fn framed(&self, header: usize, payload: usize) -> &[u8] {
        assert!(header <= HEADROOM && payload <= PIECE, "inside the buffer");
        // SAFETY: inside this buffer's slot.
        unsafe { std::slice::from_raw_parts(self.start().add(HEADROOM - header), header + payload) }
    }

    /// As [`Self::framed`], to be written.
    pub(crate) fn framed_mut(&mut self, header: usize, payload: usize) -> &mut [u8] {
        assert!(header <= HEADROOM && payload <= PIECE, "inside the buffer");
        // SAFETY: inside this buffer's slot, borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start().add(HEADROOM - header), header + payload) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut free = self.region.free_slots();
        match self.mover {
            Mover::Thread => free.push_back(self.slot),
            Mover::Device => free.push_front(self.slot),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_apart_and_come_back() {
        let region = Region::new(3).unwrap();
        let mut taken: Vec<Buffer> = (0..3).map(|_| region.take(Mover::Thread).unwrap()).collect();
        assert!(region.take(Mover::Thread).is_none());
        for (fill, buffer) in taken.iter_mut().enumerate() {
            assert_eq!(buffer.payload().as_ptr() as usize % ALIGN, 0);
            buffer.framed_mut(HEADROOM, PIECE).fill(fill as u8);
        }
        for (fill, buffer) in taken.iter().enumerate() {
            assert!(buffer.framed(HEADROOM, PIECE).iter().all(|byte| *byte == fill as u8));
        }
        taken.pop();
        assert!(region.take(Mover::Thread).is_some());
    }

    /// Broken by: one heap for all, from which a thread gets what a device has just used.
    #[test]
    fn a_thread_gets_what_a_thread_has_used() {
        let region = Region::new(4).unwrap();
        let place = |buffer: Buffer| buffer.payload().as_ptr();
        let (warm, cold) = (region.take(Mover::Thread).unwrap(), region.take(Mover::Device).unwrap());
        let (used, read) = (place(warm), place(cold));
        assert_eq!(
            [region.take(Mover::Thread), region.take(Mover::Device)].map(|it| place(it.unwrap())),
            [used, read]
        );
    }

    #[test]
    fn header_and_payload_touch() {
        let region = Region::new(1).unwrap();
        let mut buffer = region.take(Mover::Thread).unwrap();
        buffer.header_mut(4096).fill(1);
        buffer.payload_mut().fill(2);
        let framed = buffer.framed(4096, 10);
        assert!(framed[..4096].iter().all(|byte| *byte == 1) && framed[4096..] == [2; 10]);
    }
}
