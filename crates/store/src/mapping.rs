//! Memory of this process on huge pages: reserved at once, and backed when it is touched or asked for.

#![allow(unsafe_code)]

use std::io;
use std::panic::resume_unwind;
use std::ptr::NonNull;
use std::thread;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

const HUGE_PAGE: usize = 2 * 1024 * 1024;
const SMALL_PAGE: usize = 4096;
/// More threads than this clear memory no faster.
const CLEARERS_MAX: usize = 16;

/// Anonymous memory aligned to huge pages.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
    raw: (usize, usize),
    huge: bool,
}

// SAFETY: the mapping is plain memory; who may touch which part is settled by its owners.
unsafe impl Send for Mapping {}
// SAFETY: as above, shared references give out addresses only.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves `len` bytes; nothing is backed until it is touched.
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        let total = len.checked_next_multiple_of(HUGE_PAGE).and_then(|len| len.checked_add(HUGE_PAGE));
        let total = total.ok_or(io::ErrorKind::OutOfMemory)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice.
        let raw = unsafe {
            mmap_anonymous(std::ptr::null_mut(), total, ProtFlags::READ | ProtFlags::WRITE, flags)?
        };
        let mapped = raw as usize;
        let start = mapped.next_multiple_of(HUGE_PAGE);
        // SAFETY: within the mapping just made; advice only.
        let huge = unsafe { madvise(start as *mut _, total - HUGE_PAGE, Advice::LinuxHugepage) }.is_ok();
        let start = NonNull::new(start as *mut u8).expect("a mapping is not at zero");
        Ok(Self { start, len, raw: (mapped, total), huge })
    }

    /// Has the first `len` bytes backed now; threads take a share each, since a kernel clears what it gives.
    pub(crate) fn back(&self, len: usize) -> io::Result<()> {
        assert!(len <= self.len, "what is backed is of the mapping");
        let threads = thread::available_parallelism().map_or(1, usize::from).min(CLEARERS_MAX);
        let share = len.div_ceil(threads).next_multiple_of(HUGE_PAGE).max(HUGE_PAGE);
        thread::scope(|scope| {
            let back = |begin: usize| scope.spawn(move || self.back_range(begin, share.min(len - begin)));
            let shares: Vec<_> = (0..len).step_by(share).map(back).collect();
            shares.into_iter().try_for_each(|share| share.join().unwrap_or_else(|why| resume_unwind(why)))
        })
    }

    fn back_range(&self, begin: usize, len: usize) -> io::Result<()> {
        // SAFETY: within the mapping, which it is known to be by its caller.
        let start = unsafe { self.start.as_ptr().add(begin) };
        // SAFETY: as above; pages are made, and what is in those there are stays.
        match unsafe { madvise(start.cast(), len, Advice::LinuxPopulateWrite) } {
            // A kernel before 5.14 backs what is written to.
            Err(Errno::INVAL) => {
                // SAFETY: as above, and nobody was given anything of it yet.
                (0..len).step_by(SMALL_PAGE).for_each(|at| unsafe { start.add(at).write_volatile(0) });
                Ok(())
            }
            told => Ok(told?),
        }
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether the kernel took the advice to use huge pages.
    pub(crate) fn huge(&self) -> bool {
        self.huge
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped; every user holds the mapping alive.
        let _ = unsafe { munmap(self.raw.0 as *mut _, self.raw.1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident_bytes() -> u64 {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * SMALL_PAGE as u64
    }

    /// Broken by: memory that is asked for and comes when it is touched, a share that nobody backs, or one
    /// more than was asked for.
    #[test]
    fn what_is_asked_for_is_there_at_once() {
        const ASKED: usize = (256 << 20) + 12_345;
        let mapping = Mapping::new(4 * ASKED).unwrap();
        let before = resident_bytes();
        mapping.back(ASKED).unwrap();
        let more = resident_bytes() - before;
        assert!((ASKED as u64 * 9 / 10..ASKED as u64 * 2).contains(&more), "{more} bytes more are there");
        mapping.back(0).unwrap();
    }
}
