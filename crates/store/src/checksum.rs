//! CRC-64/NVME over an entry's bytes, piece by piece in any order.
//!
//! The same checksum S3 offers as `CRC64NVME`, so an entry can be checked by other tools.

use crc_fast::{CrcAlgorithm, checksum, checksum_combine};

/// The checksum of some bytes.
pub fn of(bytes: &[u8]) -> u64 {
    checksum(CrcAlgorithm::Crc64Nvme, bytes)
}

/// Collects the checksums of pieces that arrive in any order.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    parts: Vec<Option<(u64, u64)>>,
    added: usize,
}

impl Pieces {
    /// Adds piece number `index`; one that was there is replaced.
    pub(crate) fn add(&mut self, index: usize, bytes: &[u8]) {
        if index >= self.parts.len() {
            self.parts.resize(index + 1, None);
        }
        let before = self.parts[index].replace((of(bytes), bytes.len() as u64));
        self.added += usize::from(before.is_none());
    }

    /// How many different pieces were added.
    pub(crate) fn count(&self) -> usize {
        self.added
    }

    /// The checksum of all pieces in order.
    ///
    /// # Panics
    /// When one is missing.
    pub(crate) fn total(&self) -> u64 {
        let mut parts = self.parts.iter().map(|part| part.expect("every piece was added"));
        let Some((first, _)) = parts.next() else { return of(&[]) };
        parts.fold(first, |sum, (part, bytes)| checksum_combine(CrcAlgorithm::Crc64Nvme, sum, part, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_published_one() {
        // The check value of CRC-64/NVME in the catalogue of parametrised CRC algorithms.
        assert_eq!(of(b"123456789"), 0xae8b_1486_0a79_9888);
    }

    #[test]
    fn order_of_arrival_does_not_matter() {
        let bytes: Vec<u8> = (0..10_000u32).map(|i| (i * 7) as u8).collect();
        let mut pieces = Pieces::default();
        for (index, piece) in bytes.chunks(1024).enumerate().rev() {
            pieces.add(index, piece);
        }
        assert_eq!(pieces.total(), of(&bytes));
        assert_eq!(Pieces::default().total(), of(&[]));
    }
}
