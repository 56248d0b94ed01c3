//! Bytes of a client that were read and not yet understood.

use std::io::{self, IoSliceMut, Read};

/// What is read at a time.
pub(super) const INBOX_BYTES: usize = 64 << 10;
/// What is read at a time where a large value is expected: about its head, for the value goes elsewhere.
pub(super) const PEEKED_BYTES: usize = 512;

/// Bytes in the middle of a buffer.
#[derive(Default)]
pub(super) struct Inbox {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Inbox {
    /// An empty one that has memory.
    pub(super) fn equipped() -> Self {
        Self { buffer: vec![0; INBOX_BYTES], start: 0, end: 0 }
    }

    /// What is there.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The same, to be read in place.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start..self.end]
    }

    /// Whether nothing is there.
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The first `count` bytes are done with.
    pub(super) fn consume(&mut self, count: usize) {
        self.start += count;
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Takes bytes from `position` on out, as many as `into` holds and there are; how many.
    pub(super) fn take(&mut self, position: usize, into: &mut [u8]) -> usize {
        let from = self.start + position;
        let count = into.len().min(self.end - from);
        into[..count].copy_from_slice(&self.buffer[from..from + count]);
        self.skip(position, count as u64);
        count
    }

    /// Forgets up to `count` bytes from `position` on; how many there were.
    pub(super) fn skip(&mut self, position: usize, count: u64) -> u64 {
        let from = self.start + position;
        let count = ((self.end - from) as u64).min(count);
        self.buffer.copy_within(from + count as usize..self.end, from);
        self.end -= count as usize;
        count
    }

    /// How large it must be to take `more` bytes.
    pub(super) fn size_for(&self, more: usize) -> usize {
        let needed = self.end - self.start + more;
        if needed <= self.buffer.len() { self.buffer.len() } else { needed.next_power_of_two() }
    }

    /// Makes room for `more` bytes.
    pub(super) fn reserve(&mut self, more: usize) {
        if self.buffer.len() - self.end >= more {
            return;
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let size = self.size_for(more);
        self.buffer.resize(size, 0);
    }

    /// Reads up to `most` bytes, first to `before`, then here. Both counts.
    pub(super) fn read(
        &mut self,
        from: &mut impl Read,
        before: &mut [u8],
        most: usize,
    ) -> io::Result<(usize, usize)> {
        let wanted = before.len();
        let here = &mut self.buffer[self.end..self.end + most];
        let count = again(|| match wanted {
            0 => from.read(here),
            _ => from.read_vectored(&mut [IoSliceMut::new(before), IoSliceMut::new(here)]),
        })?;
        let first = count.min(wanted);
        self.end += count - first;
        Ok((first, count - first))
    }

    /// Takes the memory of `spare`, unless it has enough of its own.
    pub(super) fn borrow(&mut self, spare: &mut Self) {
        let count = self.end - self.start;
        if count > INBOX_BYTES / 2 || self.buffer.len() >= INBOX_BYTES {
            return;
        }
        spare.buffer[..count].copy_from_slice(self.bytes());
        (spare.start, spare.end) = (0, count);
        std::mem::swap(self, spare);
    }

    /// Keeps what is in it, and gives back the memory that was borrowed.
    pub(super) fn give_back(&mut self, spare: &mut Self) {
        if self.buffer.len() == INBOX_BYTES && spare.buffer.len() < INBOX_BYTES {
            let rest = self.bytes().to_vec();
            std::mem::swap(self, spare);
            (self.start, self.end, self.buffer) = (0, rest.len(), rest);
        }
        if self.is_empty() {
            *self = Self::default();
        }
        if spare.buffer.len() < INBOX_BYTES {
            *spare = Self::equipped();
        }
    }

    /// Bytes of memory.
    pub(super) fn size(&self) -> usize {
        self.buffer.len()
    }
}

/// Until nothing interrupts.
pub(super) fn again(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
