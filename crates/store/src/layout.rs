//! What an entry looks like in a file: a header of whole blocks, then the payload, padded to whole blocks.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `WTENTRY1` |
//! | 8..12, 12..16 | length of the header, length of the key |
//! | 16..24 | length of the payload |
//! | 24..32 | CRC-64/NVME of the payload |
//! | 32..40 | version: the number in the file's name |
//! | 40..48 | CRC-64/NVME of the header, with these bytes zero |
//! | 48..56 | number of the write: of two entries of one key the higher is the later |
//! | 56..60, 60..64 | tenant, seconds since 1970 until which it is of use or zero |
//! | 64.. | the key, then zeros |
//!
//! Numbers are little-endian. A file that a later process finds is served only if all of this is right.

use crate::backend::Birth;
use crate::buffer::ALIGN;
use crate::checksum;
use crate::key::{KEY_BYTES_MAX, Key};

const MAGIC: &[u8; 8] = b"WTENTRY1";
const FIXED: usize = 64;
const OWN_CHECKSUM: std::ops::Range<usize> = 40..48;
/// No entry is as long, and no process counts as far: what says so is damaged, whatever its checksum.
const FAR: u64 = 1 << 62;

/// An entry's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) key: Key,
    pub(crate) bytes: u64,
    pub(crate) checksum: u64,
    pub(crate) version: u64,
    pub(crate) birth: Birth,
}

impl Header {
    /// What is later is higher.
    pub(crate) fn age(&self) -> (u64, u64) {
        (self.birth.put, self.version)
    }
}

/// Why bytes are not a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotAHeader {
    /// They do not begin like one: not ours.
    Foreign,
    /// They begin like one, and are damaged.
    Damaged,
}

/// How many bytes the header of an entry with `key` takes.
pub(crate) fn header_len(key: &Key) -> usize {
    (FIXED + key.bytes().len()).next_multiple_of(ALIGN)
}

/// How many bytes a file needs for an entry.
pub(crate) fn file_len(key: &Key, bytes: u64) -> u64 {
    header_len(key) as u64 + bytes.next_multiple_of(ALIGN as u64)
}

impl Header {
    /// Writes the header into `out`, which is as long as [`header_len`] says.
    pub(crate) fn encode(&self, out: &mut [u8]) {
        let (key, len) = (self.key.bytes(), out.len() as u32);
        out.fill(0);
        out[..8].copy_from_slice(MAGIC);
        out[8..12].copy_from_slice(&len.to_le_bytes());
        out[12..16].copy_from_slice(&(key.len() as u32).to_le_bytes());
        out[16..24].copy_from_slice(&self.bytes.to_le_bytes());
        out[24..32].copy_from_slice(&self.checksum.to_le_bytes());
        out[32..40].copy_from_slice(&self.version.to_le_bytes());
        out[48..56].copy_from_slice(&self.birth.put.to_le_bytes());
        out[56..60].copy_from_slice(&self.birth.tenant.to_le_bytes());
        out[60..64].copy_from_slice(&self.birth.expires_s.to_le_bytes());
        out[FIXED..FIXED + key.len()].copy_from_slice(key);
        let own = checksum::of(out);
        out[OWN_CHECKSUM].copy_from_slice(&own.to_le_bytes());
    }

    /// How long the header is that begins with `start`, if it can be one.
    pub(crate) fn length_of(start: &[u8]) -> Result<usize, NotAHeader> {
        if start.len() < FIXED || &start[..8] != MAGIC {
            return Err(NotAHeader::Foreign);
        }
        let (len, key) = (number(start, 8, 4) as usize, number(start, 12, 4) as usize);
        let sound = key <= KEY_BYTES_MAX && len == (FIXED + key).next_multiple_of(ALIGN);
        if sound { Ok(len) } else { Err(NotAHeader::Damaged) }
    }

    /// Reads a header from `block`, which is as long as [`Self::length_of`] says.
    pub(crate) fn decode(block: &[u8]) -> Result<Self, NotAHeader> {
        let len = Self::length_of(block)?;
        let block = block.get(..len).ok_or(NotAHeader::Damaged)?;
        let mut plain = block.to_vec();
        plain[OWN_CHECKSUM].fill(0);
        if checksum::of(&plain) != number(block, 40, 8) {
            return Err(NotAHeader::Damaged);
        }
        if number(block, 16, 8) >= FAR || number(block, 48, 8) >= FAR {
            return Err(NotAHeader::Damaged);
        }
        let key_len = number(block, 12, 4) as usize;
        Ok(Self {
            key: Key::new(&block[FIXED..FIXED + key_len]),
            bytes: number(block, 16, 8),
            checksum: number(block, 24, 8),
            version: number(block, 32, 8),
            birth: Birth {
                put: number(block, 48, 8),
                tenant: number(block, 56, 4) as u32,
                expires_s: number(block, 60, 4) as u32,
            },
        })
    }
}

fn number(block: &[u8], at: usize, len: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes[..len].copy_from_slice(&block[at..at + len]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(key: &[u8]) -> Header {
        Header {
            key: Key::new(key),
            bytes: 5,
            checksum: 0x1234,
            version: 7,
            birth: Birth { put: 9, tenant: 3, expires_s: 11 },
        }
    }

    fn encoded(header: &Header) -> Vec<u8> {
        let mut out = vec![0xff; header_len(&header.key)];
        header.encode(&mut out);
        out
    }

    #[test]
    fn comes_back_whatever_the_key() {
        for key in
            [&b""[..], b"../../etc/passwd\0", "käse/\u{202e}".as_bytes(), &[7; 10_000], &[1; KEY_BYTES_MAX]]
        {
            let header = header(key);
            let bytes = encoded(&header);
            assert_eq!(bytes.len() % ALIGN, 0);
            assert_eq!(Header::decode(&bytes), Ok(header));
        }
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let bytes = encoded(&header(b"key"));
        for bit in 0..bytes.len() * 8 {
            let mut torn = bytes.clone();
            torn[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&torn).is_err(), "bit {bit}");
        }
    }

    /// Broken by: a length or a number that is believed and overflows what is counted with it.
    #[test]
    fn lengths_and_numbers_of_no_entry_are_damage() {
        let sound = header(b"key");
        for far in [FAR, u64::MAX - 4096, u64::MAX] {
            let long = Header { bytes: far, ..sound.clone() };
            let late = Header { birth: Birth { put: far, ..sound.birth }, ..sound.clone() };
            for header in [long, late] {
                assert_eq!(Header::decode(&encoded(&header)), Err(NotAHeader::Damaged), "{header:?}");
            }
        }
    }

    #[test]
    fn what_is_not_ours_is_told_from_what_is_damaged() {
        let bytes = encoded(&header(b"key"));
        assert_eq!(Header::decode(&[0; 4096]), Err(NotAHeader::Foreign));
        assert_eq!(Header::decode(b"short"), Err(NotAHeader::Foreign));
        assert_eq!(Header::decode(&bytes[..100]), Err(NotAHeader::Damaged));
    }
}
