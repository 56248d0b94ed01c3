//! Which blocks of one span of memory are free: bookkeeping only, for memory of the host and of devices.
//!
//! Blocks are handed out as the shortest free run that fits, so that a piece is one copy. Those never used
//! are in line behind all others and come when no run fits, as many as are readily used; only then is an
//! entry put together from several runs, and what is still missing is taken from behind.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Blocks of one size.
pub(crate) struct Blocks {
    block: u64,
    count: u32,
    /// How many of them may be used before an entry is put together from several runs.
    readily: u32,
    free: Mutex<Free>,
}

/// The free runs of blocks that were used before, no two of them touching: length by first block, and the
/// same sorted by length. Behind them are those never used.
#[derive(Default)]
struct Free {
    /// How many there are, used before or not.
    blocks: u32,
    /// The first that was never used, as all behind it.
    unused: u32,
    runs: BTreeMap<u32, u32>,
    lengths: BTreeSet<(u32, u32)>,
}

impl Blocks {
    /// Blocks of `block` bytes for `bytes` bytes, of which those for `readily` are used before an entry is
    /// put together from several runs; nothing when they are too many to count.
    pub(crate) fn new(bytes: u64, readily: u64, block: usize) -> Option<Arc<Self>> {
        let block = block as u64;
        let count = u32::try_from(bytes.div_ceil(block)).ok()?;
        u64::from(count).checked_mul(block)?;
        let readily = u32::try_from(readily.div_ceil(block)).map_or(count, |readily| readily.min(count));
        let free = Free { blocks: count, ..Free::default() };
        Some(Arc::new(Self { block, count, readily, free: Mutex::new(free) }))
    }

    /// How much memory the blocks take.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.count) * self.block
    }

    /// How much of it those take that are readily used.
    pub(crate) fn readily_bytes(&self) -> u64 {
        u64::from(self.readily) * self.block
    }

    /// Room for `bytes`, or nothing of it when there is not enough: `WouldBlock` when there may be later.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64) -> io::Result<Extent> {
        let refused = |kind, why: &str| Err(io::Error::new(kind, why));
        let need = match u32::try_from(bytes.div_ceil(self.block)) {
            Ok(need) if need <= self.count => need,
            _ => return refused(io::ErrorKind::StorageFull, "the entry is larger than all there is"),
        };
        let mut extent = Extent { blocks: Arc::clone(self), runs: Vec::new() };
        let mut free = self.free();
        let mut left = match need <= free.blocks {
            true => need,
            false => return refused(io::ErrorKind::WouldBlock, "no free blocks"),
        };
        let mut at = 0;
        while left > 0 {
            let (first, length) = free.cut(left, self.readily);
            match extent.runs.last_mut() {
                Some(last) if last.first + last.length == first => last.length += length,
                _ => extent.runs.push(Run { at, first, length }),
            }
            at += u64::from(length) * self.block;
            left -= length;
        }
        Ok(extent)
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Free {
    /// At most `want` of the free blocks, which are as many at least. In this order: those of the shortest
    /// run that has so many, those never used if no more than `readily` are used then, the longest run, what
    /// is missing of those never used.
    fn cut(&mut self, want: u32, readily: u32) -> (u32, u32) {
        if let Some(&(length, first)) = self.lengths.range((want, 0)..).next() {
            return self.take_of((first, length), want);
        }
        let last = self.runs.last_key_value().map(|(&first, &length)| (first, length));
        let last = last.filter(|(first, length)| first + length == self.unused);
        let (first, length) = last.unwrap_or((self.unused, 0));
        let missing = want - length;
        match self.lengths.last() {
            Some(&(length, first)) if missing > readily.saturating_sub(self.unused) => {
                self.take_of((first, length), length)
            }
            _ => {
                self.forget(first, length);
                self.unused += missing;
                self.blocks -= want;
                (first, want)
            }
        }
    }

    /// The first `taken` blocks of a run.
    fn take_of(&mut self, (first, length): (u32, u32), taken: u32) -> (u32, u32) {
        self.forget(first, length);
        if taken < length {
            self.note(first + taken, length - taken);
        }
        self.blocks -= taken;
        (first, taken)
    }

    fn put_back(&mut self, first: u32, length: u32) {
        self.blocks += length;
        let (mut first, mut length) = (first, length);
        let before = self.runs.range(..first).next_back().map(|(&first, &length)| (first, length));
        if let Some((earlier, len)) = before.filter(|(earlier, len)| earlier + len == first) {
            self.forget(earlier, len);
            (first, length) = (earlier, len + length);
        }
        if let Some(&len) = self.runs.get(&(first + length)) {
            self.forget(first + length, len);
            length += len;
        }
        if length > 0 {
            self.note(first, length);
        }
    }

    fn note(&mut self, first: u32, length: u32) {
        self.runs.insert(first, length);
        self.lengths.insert((length, first));
    }

    fn forget(&mut self, first: u32, length: u32) {
        self.runs.remove(&first);
        self.lengths.remove(&(length, first));
    }
}

/// Blocks that belong to one entry; given back when dropped.
pub(crate) struct Extent {
    blocks: Arc<Blocks>,
    runs: Vec<Run>,
}

/// Neighbouring blocks: those of the entry from its byte `at`.
struct Run {
    at: u64,
    first: u32,
    length: u32,
}

/// Bytes that lie together, in the span of memory and in the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Where in the span of memory.
    pub(crate) place: u64,
    /// Where in the piece that was asked for.
    pub(crate) at: usize,
    /// How many.
    pub(crate) len: usize,
}

impl Extent {
    /// The parts of the `len` bytes from `offset`, in order.
    ///
    /// # Panics
    /// When the entry ends before them.
    pub(crate) fn parts(&self, offset: u64, len: usize) -> impl Iterator<Item = Part> {
        let block = self.blocks.block;
        let mut index = self.runs.partition_point(|run| run.at <= offset);
        let mut at = 0;
        std::iter::from_fn(move || {
            (at < len).then(|| {
                let run = &self.runs[index - 1];
                let within = offset + at as u64 - run.at;
                let left = u64::from(run.length) * block - within;
                let taken = left.min((len - at) as u64) as usize;
                let part = Part { place: u64::from(run.first) * block + within, at, len: taken };
                index += 1;
                at += taken;
                part
            })
        })
    }
}

impl Drop for Extent {
    fn drop(&mut self) {
        let mut free = self.blocks.free();
        for run in &self.runs {
            free.put_back(run.first, run.length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(extent: &Extent, offset: u64, len: usize) -> Vec<(u64, usize, usize)> {
        extent.parts(offset, len).map(|part| (part.place, part.at, part.len)).collect()
    }

    #[test]
    fn entries_lie_together_in_the_shortest_run_that_fits() {
        let blocks = Blocks::new(1000, 1000, 10).unwrap();
        let [wide, _a, narrow, _b] = [50, 10, 20, 10].map(|bytes| blocks.take(bytes).unwrap());
        drop((wide, narrow));
        let (small, large) = (blocks.take(15).unwrap(), blocks.take(41).unwrap());
        assert_eq!(parts(&small, 0, 15), [(60, 0, 15)]);
        assert_eq!(parts(&large, 9, 32), [(9, 0, 32)]);
        assert_eq!(parts(&blocks.take(60).unwrap(), 0, 60), [(90, 0, 60)]);
    }

    #[test]
    fn what_fits_nowhere_is_put_together_and_what_comes_back_is_joined() {
        let blocks = Blocks::new(95, 95, 10).unwrap();
        assert_eq!(blocks.bytes(), 100);
        let mut taken: Vec<_> = (0..10).map(|_| blocks.take(10).ok()).collect();
        for gone in [1, 4, 5, 8] {
            taken[gone] = None;
        }
        let scattered = blocks.take(39).unwrap();
        assert_eq!(parts(&scattered, 5, 30), [(45, 0, 15), (80, 15, 10), (10, 25, 5)]);
        assert_eq!(parts(&scattered, 20, 0), []);
        assert!(
            blocks.take(1).is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock) && blocks.take(0).is_ok()
        );
        drop((taken, scattered));
        assert_eq!(parts(&blocks.take(100).unwrap(), 0, 100), [(0, 0, 100)]);
        for never in [101, u64::MAX] {
            assert!(blocks.take(never).is_err_and(|e| e.kind() == io::ErrorKind::StorageFull));
        }
        assert!(Blocks::new(u64::MAX, 0, 10).is_none());
    }

    /// Broken by: memory that is backed though there is room in what was, or entries put together early.
    #[test]
    fn blocks_never_used_come_when_nothing_fits_and_behind_what_is_readily_used_last() {
        let blocks = Blocks::new(200, 100, 10).unwrap();
        let mut taken: Vec<_> = (0..9).map(|_| blocks.take(10).ok()).collect();
        for gone in [1, 3, 4, 8] {
            taken[gone] = None;
        }
        let next = blocks.take(20).unwrap();
        assert_eq!(parts(&next, 0, 20), [(30, 0, 20)], "the shortest run that fits");
        let on = blocks.take(20).unwrap();
        assert_eq!(parts(&on, 0, 20), [(80, 0, 20)], "the last run goes on to what is readily used");
        drop(next);
        let scattered = blocks.take(30).unwrap();
        assert_eq!(parts(&scattered, 0, 30), [(30, 0, 20), (10, 20, 10)]);
        let behind = blocks.take(50).unwrap();
        assert_eq!(parts(&behind, 0, 50), [(100, 0, 50)]);
        drop((taken, scattered, behind, on));
        assert_eq!(parts(&blocks.take(200).unwrap(), 0, 200), [(0, 0, 200)]);
    }

    proptest::proptest! {
        #[test]
        fn no_block_belongs_to_two(
            readily in 0u64..1100,
            steps in proptest::collection::vec((0u64..200, 0usize..12), 1..80),
        ) {
            let blocks = Blocks::new(1000, readily, 10).unwrap();
            let mut held: Vec<(u64, Extent)> = Vec::new();
            for (bytes, gone) in steps {
                held.extend(blocks.take(bytes).ok().map(|extent| (bytes, extent)));
                if gone < held.len() {
                    held.swap_remove(gone);
                }
                let mut owned = [false; 1000];
                for (bytes, extent) in &held {
                    for part in extent.parts(0, *bytes as usize) {
                        for byte in &mut owned[part.place as usize..][..part.len] {
                            assert!(!std::mem::replace(byte, true), "a byte has two owners");
                        }
                    }
                }
                let used: u64 = held.iter().map(|(bytes, _)| bytes.div_ceil(10)).sum();
                assert_eq!(u64::from(blocks.free().blocks), 100 - used);
            }
        }
    }
}
