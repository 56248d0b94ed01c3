//! Copies by what becomes of the bytes: what this thread reads next stays in its cache, what a device takes
//! goes past it. A device at work on a buffer whose lines are in a cache has to fetch them from there, and
//! the next copy into it has to take them back.

#![allow(unsafe_code)]

use crate::buffer::Mover;

/// Copies `len` bytes, which `next` moves on.
///
/// # Safety
///
/// As [`std::ptr::copy_nonoverlapping`].
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, len: usize, next: Mover) {
    match next {
        // SAFETY: as the caller promises.
        Mover::Thread => unsafe { std::ptr::copy_nonoverlapping(from, to, len) },
        // SAFETY: as above.
        Mover::Device => unsafe { past_the_cache(from, to, len) },
    }
}

/// Whole lines are stored around the cache, what is before and after them through it.
#[cfg(target_arch = "x86_64")]
unsafe fn past_the_cache(from: *const u8, to: *mut u8, len: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const LINE: usize = 64;
    const WORD: usize = size_of::<__m128i>();

    let before = to.align_offset(LINE).min(len);
    let lines = (len - before) / LINE;
    let after = before + lines * LINE;
    // SAFETY: all offsets are at most `len`; what is stored around the cache is aligned, and fenced before
    // anyone is told that it is there.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, before);
        for line in 0..lines {
            for word in (0..LINE).step_by(WORD) {
                let at = before + line * LINE + word;
                _mm_stream_si128(to.add(at).cast(), _mm_loadu_si128(from.add(at).cast()));
            }
        }
        std::ptr::copy_nonoverlapping(from.add(after), to.add(after), len - after);
        _mm_sfence();
    }
}

/// Elsewhere a copy is a copy.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn past_the_cache(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: as the caller promises.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: bytes before the first or after the last whole line left out, or written beyond them.
    #[test]
    fn every_byte_arrives_and_no_other_is_touched() {
        let source: Vec<u8> = (0..400u32).map(|i| i as u8 | 1).collect();
        for next in [Mover::Thread, Mover::Device] {
            for (skip, start, len) in (0..3).flat_map(|skip| {
                (0..70)
                    .step_by(7)
                    .flat_map(move |start| [0, 1, 63, 64, 65, 200, 300].map(|len| (skip, start, len)))
            }) {
                let mut target = [0; 400];
                // SAFETY: both are 400 bytes, and 72 + 300 are less.
                unsafe { copy(source.as_ptr().add(skip), target.as_mut_ptr().add(start), len, next) };
                let mut wanted = [0; 400];
                wanted[start..start + len].copy_from_slice(&source[skip..skip + len]);
                assert_eq!(target, wanted, "{next:?}, {len} bytes from {skip} to {start}");
            }
        }
    }
}
