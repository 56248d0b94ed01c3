//! Objects in memory. What the last reader lets go of is used again for the next object of its length: new
//! memory has to be cleared by the kernel, page by page, the first time it is touched.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Buffers by length.
pub(crate) struct Pool {
    /// All there may be, in use or not; no limit when absent.
    limit: Option<u64>,
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    spare: BTreeMap<usize, Vec<Vec<u8>>>,
    spare_bytes: u64,
    lent_bytes: u64,
}

/// The bytes of an object; its memory goes back to where it came from.
pub struct Object {
    bytes: Box<[u8]>,
    pool: Arc<Pool>,
}

impl Pool {
    /// Keeps no more than `limit` bytes, but for those in use.
    pub(crate) fn new(limit: Option<u64>) -> Arc<Self> {
        Arc::new(Self { limit, books: Mutex::default() })
    }

    /// An object of `len` bytes, with whatever was there before.
    pub(crate) fn object(self: &Arc<Self>, len: usize) -> Object {
        self.adopt(self.take(len))
    }

    /// An object of bytes that are in a buffer of [`Self::take`], or in one that came another way.
    pub(crate) fn adopt(self: &Arc<Self>, bytes: Vec<u8>) -> Object {
        Object { bytes: bytes.into(), pool: Arc::clone(self) }
    }

    /// A buffer of `len` bytes; it comes back, or is [`Self::lost`].
    pub(crate) fn take(&self, len: usize) -> Vec<u8> {
        let mut books = self.books();
        books.lent_bytes += len as u64;
        if let Some(bytes) = books.spare.get_mut(&len).and_then(Vec::pop) {
            books.spare_bytes -= len as u64;
            return bytes;
        }
        let dropped = self.drop_spares(&mut books);
        drop(books);
        drop(dropped);
        vec![0; len]
    }

    /// A buffer is not in use any more.
    pub(crate) fn give(&self, bytes: Vec<u8>) {
        let len = bytes.len();
        let mut books = self.books();
        books.lent_bytes = books.lent_bytes.saturating_sub(len as u64);
        books.spare_bytes += len as u64;
        books.spare.entry(len).or_default().push(bytes);
        let dropped = self.drop_spares(&mut books);
        drop(books);
        drop(dropped);
    }

    /// A buffer of `len` bytes will not come back.
    pub(crate) fn lost(&self, len: usize) {
        let mut books = self.books();
        books.lent_bytes = books.lent_bytes.saturating_sub(len as u64);
    }

    /// Bytes in use, and bytes kept for later.
    #[cfg(test)]
    pub(crate) fn held(&self) -> (u64, u64) {
        let books = self.books();
        (books.lent_bytes, books.spare_bytes)
    }

    /// Takes out what is kept for later and too much.
    fn drop_spares(&self, books: &mut Books) -> Vec<Vec<u8>> {
        let mut dropped = Vec::new();
        let Some(limit) = self.limit else { return dropped };
        while books.spare_bytes > 0 && books.lent_bytes + books.spare_bytes > limit {
            let Some(mut some) = books.spare.first_entry() else { break };
            match some.get_mut().pop() {
                Some(bytes) => {
                    books.spare_bytes -= bytes.len() as u64;
                    dropped.push(bytes);
                }
                None => {
                    some.remove();
                }
            }
        }
        dropped
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for Object {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Object {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl AsRef<[u8]> for Object {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        self.pool.give(std::mem::take(&mut self.bytes).into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: spares that count against nobody, or memory that is not used again.
    #[test]
    fn memory_is_used_again_and_never_more_than_there_may_be() {
        let pool = Pool::new(Some(3000));
        let first = pool.object(1000);
        let address = first.as_ptr();
        drop(first);
        assert_eq!(pool.held(), (0, 1000));
        let again = pool.object(1000);
        assert_eq!(again.as_ptr(), address);
        let other = pool.object(2000);
        drop(again);
        assert_eq!(pool.held(), (2000, 1000));
        let third = pool.object(500);
        assert_eq!(pool.held(), (2500, 0), "what is kept for later makes room");
        drop((other, third));
        assert_eq!(pool.held(), (0, 2500));
    }
}
