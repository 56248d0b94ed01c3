//! Bytes to store that no drive can shrink: incompressible, no two blocks alike, a function of seed and
//! offset.
//!
//! Every 4 KiB block starts eight xorshift64 generators (Marsaglia, 2003) from the seed and the block's
//! number, so any part of an entry can be made again, in any order, without the parts before it. A pool of
//! random bytes that is copied around would be faster and would deduplicate; this is fast enough (see
//! records/).

use std::fmt;
use std::sync::Arc;

/// A block: the unit of uniqueness, and what deduplicating drives look at.
const BLOCK: usize = 4096;
const LANES: usize = 8;
const LINE: usize = LANES * size_of::<u64>();

/// Where an entry's bytes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Generated from a seed, `bytes` of them.
    Seeded {
        /// Which bytes.
        seed: u64,
        /// How many.
        bytes: u64,
    },
    /// These bytes.
    Bytes(Arc<[u8]>),
    /// Bytes that someone else owns too.
    Shared(Shared),
}

/// Bytes in memory of their owner's own kind, which gets it back from the last who let go of them.
#[derive(Clone)]
pub struct Shared(pub Arc<dyn AsRef<[u8]> + Send + Sync>);

impl Shared {
    fn bytes(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared({} bytes)", self.bytes().len())
    }
}

impl PartialEq for Shared {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Shared {}

impl Payload {
    /// How many bytes there are.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Seeded { bytes, .. } => *bytes,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Shared(shared) => shared.bytes().len() as u64,
        }
    }

    /// The seed that makes them again, if there is one.
    pub(crate) fn recipe(&self) -> Option<u64> {
        match self {
            Self::Seeded { seed, .. } => Some(*seed),
            Self::Bytes(_) | Self::Shared(_) => None,
        }
    }

    /// Writes the part from `offset` (a multiple of the block) into `out`.
    pub fn fill(&self, offset: u64, out: &mut [u8]) {
        let part = offset as usize..offset as usize + out.len();
        match self {
            Self::Seeded { seed, .. } => fill(*seed, offset, out),
            Self::Bytes(bytes) => out.copy_from_slice(&bytes[part]),
            Self::Shared(shared) => out.copy_from_slice(&shared.bytes()[part]),
        }
    }
}

/// Writes the bytes of `seed` from `offset` on into `out`.
///
/// # Panics
/// When `offset` is inside a block.
pub fn fill(seed: u64, offset: u64, out: &mut [u8]) {
    assert!(offset.is_multiple_of(BLOCK as u64), "payload is generated from a block's start");
    let first = offset / BLOCK as u64;
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the feature was just detected.
            #[allow(unsafe_code)]
            return unsafe { fill_avx512(seed, first, out) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the feature was just detected.
            #[allow(unsafe_code)]
            return unsafe { fill_avx2(seed, first, out) };
        }
    }
    fill_blocks(seed, first, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn fill_avx512(seed: u64, first: u64, out: &mut [u8]) {
    fill_blocks(seed, first, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn fill_avx2(seed: u64, first: u64, out: &mut [u8]) {
    fill_blocks(seed, first, out);
}

/// Inlined into each caller, so that the compiler makes one version per instruction set.
#[inline(always)]
fn fill_blocks(seed: u64, first: u64, out: &mut [u8]) {
    for (number, block) in (first..).zip(out.chunks_mut(BLOCK)) {
        let mut lanes = lanes_of(seed, number);
        let mut lines = block.chunks_exact_mut(LINE);
        for line in &mut lines {
            step(&mut lanes, line);
        }
        let tail = lines.into_remainder();
        if !tail.is_empty() {
            let mut line = [0; LINE];
            step(&mut lanes, &mut line);
            tail.copy_from_slice(&line[..tail.len()]);
        }
    }
}

#[inline(always)]
fn lanes_of(seed: u64, number: u64) -> [u64; LANES] {
    let start = mix(seed ^ mix(number));
    // A generator at zero would stay there.
    std::array::from_fn(|lane| mix(start.wrapping_add(lane as u64)).max(1))
}

#[inline(always)]
fn step(lanes: &mut [u64; LANES], line: &mut [u8]) {
    for (lane, word) in lanes.iter_mut().zip(line.chunks_exact_mut(size_of::<u64>())) {
        *lane ^= *lane << 13;
        *lane ^= *lane >> 7;
        *lane ^= *lane << 17;
        word.copy_from_slice(&lane.to_le_bytes());
    }
}

/// SplitMix64's finaliser (Steele, Lea, Flood 2014).
#[inline(always)]
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn made(seed: u64, offset: u64, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        fill(seed, offset, &mut out);
        out
    }

    #[test]
    fn any_part_is_the_same_as_in_the_whole() {
        let whole = made(7, 0, 64 * 1024 + 100);
        assert_eq!(made(7, 8192, 20_000), whole[8192..28_192]);
        assert_eq!(made(7, 64 * 1024, 100), whole[64 * 1024..]);
    }

    #[test]
    fn every_instruction_set_makes_the_same_bytes() {
        let mut plain = vec![0; 10_000];
        fill_blocks(99, 3, &mut plain);
        assert_eq!(made(99, 3 * BLOCK as u64, 10_000), plain);
    }

    #[test]
    fn no_two_blocks_are_alike_and_nothing_compresses() {
        let mut blocks = HashSet::new();
        let mut joined = Vec::new();
        for seed in 0..8 {
            let bytes = made(seed, 0, 512 * 1024);
            blocks.extend(bytes.chunks(512).map(<[u8]>::to_vec));
            joined.extend(bytes);
        }
        assert_eq!(blocks.len(), 8 * 1024, "a deduplicator of 512-byte blocks finds nothing");
        let shrunk = zstd::bulk::compress(&joined, 19).unwrap();
        assert!(shrunk.len() >= joined.len(), "{} of {}", shrunk.len(), joined.len());
    }
}
