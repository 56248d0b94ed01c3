//! CRC-64/NVME over an entry's bytes, piece by piece in any order.
//!
//! The same checksum S3 offers as `CRC64NVME`, so an entry can be checked by other tools.

use std::sync::LazyLock;

use crc_fast::{CrcAlgorithm, checksum};

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
        parts.fold(first, |sum, (part, bytes)| shift(sum, bytes) ^ part)
    }
}

/// The generator polynomial, bits reversed.
const POLYNOMIAL: u64 = 0x9a6c_9329_ac4b_c9b5;

/// What following zeros do to a checksum, as a matrix over bits: column `i` is what becomes of bit `i`.
type Matrix = [u64; 64];

/// One matrix for each power of two of bytes. `crc_fast::checksum_combine` finds them anew at each call,
/// which takes 0.3 ms: as long as writing the piece.
static ZEROS: LazyLock<Vec<Matrix>> = LazyLock::new(|| {
    let byte = std::array::from_fn(|bit| {
        (0..8).fold(1 << bit, |sum: u64, _| (sum >> 1) ^ (POLYNOMIAL & (sum & 1).wrapping_neg()))
    });
    let twice = |half: &Matrix| Some(half.map(|column| apply(half, column)));
    std::iter::successors(Some(byte), twice).take(u64::BITS as usize).collect()
});

fn apply(matrix: &Matrix, sum: u64) -> u64 {
    let columns = matrix.iter().enumerate();
    columns.fold(0, |result, (bit, column)| result ^ (column & (sum >> bit & 1).wrapping_neg()))
}

/// The share of `sum` in the checksum of its bytes and `bytes` more.
fn shift(sum: u64, bytes: u64) -> u64 {
    let powers = ZEROS.iter().enumerate().filter(|(power, _)| bytes >> power & 1 == 1);
    powers.fold(sum, |sum, (_, matrix)| apply(matrix, sum))
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
