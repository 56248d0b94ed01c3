//! How chunks travel in a body: for each its index (4 bytes), its length (8 bytes), both with the lowest byte
//! first, and its bytes.

use bytes::{Buf, Bytes};

/// Bytes before a chunk.
pub(super) const HEAD: usize = 12;
/// The index of a frame that holds no chunk but words about those that follow.
pub(super) const PREAMBLE: u32 = u32::MAX;

/// What stands before a chunk.
pub(super) fn head(index: u32, length: u64) -> Bytes {
    let mut head = Vec::with_capacity(HEAD);
    head.extend(index.to_le_bytes());
    head.extend(length.to_le_bytes());
    head.into()
}

/// Takes a body apart as it comes.
#[derive(Default)]
pub(super) struct Reader {
    head: Vec<u8>,
    /// Bytes of the chunk that have not come.
    left: u64,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A chunk begins.
    Begin {
        /// Its place.
        index: u32,
        /// Its length.
        length: u64,
    },
    /// More of it.
    Bytes(Bytes),
    /// It is whole.
    End,
}

impl Reader {
    /// Takes the next part off the front of `piece`; none if more is needed.
    pub(super) fn next(&mut self, piece: &mut Bytes) -> Option<Part> {
        if self.head.len() == HEAD {
            if self.left == 0 {
                self.head.clear();
                return Some(Part::End);
            }
            if piece.is_empty() {
                return None;
            }
            let taken = (piece.len() as u64).min(self.left);
            self.left -= taken;
            return Some(Part::Bytes(piece.split_to(taken as usize)));
        }
        let missing = (HEAD - self.head.len()).min(piece.len());
        self.head.extend_from_slice(&piece[..missing]);
        piece.advance(missing);
        if self.head.len() < HEAD {
            return None;
        }
        let mut head = &self.head[..];
        let (index, length) = (head.get_u32_le(), head.get_u64_le());
        self.left = length;
        Some(Part::Begin { index, length })
    }

    /// Whether a body may end here.
    pub(super) fn is_whole(&self) -> bool {
        self.head.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Chunks as they come out, from a body cut at `cuts`.
    fn read(body: &[u8], cuts: usize) -> (Vec<(u32, Vec<u8>)>, bool) {
        let (mut reader, mut chunks) = (Reader::default(), Vec::new());
        for piece in body.chunks(cuts) {
            let mut piece = Bytes::copy_from_slice(piece);
            while let Some(part) = reader.next(&mut piece) {
                match part {
                    Part::Begin { index, .. } => chunks.push((index, Vec::new())),
                    Part::Bytes(bytes) => chunks.last_mut().unwrap().1.extend_from_slice(&bytes),
                    Part::End => {}
                }
            }
        }
        (chunks, reader.is_whole())
    }

    proptest! {
        /// Broken by: a head or a chunk that has to come in one piece, an empty chunk that is skipped.
        #[test]
        fn what_was_framed_is_read_however_it_is_cut(
            chunks in prop::collection::vec((any::<u32>(), prop::collection::vec(any::<u8>(), 0..40)), 0..6),
            cuts in 1usize..50,
        ) {
            let mut body = Vec::new();
            for (index, bytes) in &chunks {
                body.extend_from_slice(&head(*index, bytes.len() as u64));
                body.extend_from_slice(bytes);
            }
            let (read_back, is_whole) = read(&body, cuts);
            prop_assert_eq!(read_back, chunks);
            prop_assert!(is_whole);
            if !body.is_empty() {
                prop_assert!(!read(&body[..body.len() - 1], cuts).1);
            }
        }
    }
}
