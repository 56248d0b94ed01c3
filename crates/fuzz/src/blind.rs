//! Changes of bytes that know nothing of what they mean.

use std::ops::Range;

use rand::RngExt;
use wavetank_model::Draw;

/// Nothing larger is made.
pub(crate) const LONGEST: usize = 32 << 10;

/// A place and a short range that begins there.
fn range(length: usize, draw: &mut Draw) -> Range<usize> {
    let start = draw.random_range(0..length);
    let longest = (length - start).min(1 << draw.random_range(0..12_u32));
    start..start + draw.random_range(0..=longest)
}

/// One change of `bytes`, which are not empty, with a part of `other` or a byte that is `telling`.
pub(crate) fn blind(bytes: &mut Vec<u8>, other: &[u8], telling: &[u8], draw: &mut Draw) {
    let at = draw.random_range(0..bytes.len());
    match draw.random_range(0..8_u32) {
        0 => bytes[at] ^= 1 << draw.random_range(0..8_u32),
        1 => bytes[at] = telling[draw.random_range(0..telling.len())],
        2 => bytes.insert(at, telling[draw.random_range(0..telling.len())]),
        3 => bytes.insert(at, draw.random()),
        4 => drop(bytes.drain(range(bytes.len(), draw))),
        5 => {
            let part = bytes[range(bytes.len(), draw)].to_vec();
            bytes.splice(at..at, part);
        }
        6 if !other.is_empty() => {
            let part = other[range(other.len(), draw)].to_vec();
            let end = (at + part.len()).min(bytes.len());
            bytes.splice(at..end, part);
        }
        _ => bytes.truncate(at),
    }
}
