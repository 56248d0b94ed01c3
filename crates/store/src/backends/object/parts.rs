//! Gathers an entry's pieces, which come in any order, into the parts of an upload, which have a least size.
//!
//! Memory: only parts that have begun and are not sent yet. With pieces queued in order and `depth` of them
//! under way these are at most `depth / 8 + 2` parts of 8 MiB; an entry whose pieces come so far out of
//! order that [`OPEN_PARTS`] have begun is refused.

use std::collections::BTreeMap;
use std::io;

use bytes::Bytes;
use object_store::PutPayload;
use object_store::multipart::PartId;

use crate::buffer::PIECE;

const PIECE_BYTES: u64 = PIECE as u64;
/// Servers refuse parts under 5 MiB, save the last; and all but the last have to be of one size on some.
const PART_BYTES: u64 = 8 * PIECE_BYTES;
/// What S3 takes: 10 000, with one for the end.
const PARTS_MAX: u64 = 9_999;
/// A quarter of a gigabyte for one entry.
const OPEN_PARTS: usize = 32;

/// The pieces of one part.
pub(super) struct Part {
    /// From zero.
    pub(super) number: usize,
    pieces: Vec<Bytes>,
    /// Follows the last part's pieces.
    header: Option<Bytes>,
}

impl Part {
    /// What to send.
    pub(super) fn payload(&self) -> PutPayload {
        self.pieces.iter().chain(&self.header).cloned().collect()
    }
}

/// An entry's parts.
pub(super) struct Parts {
    bytes: u64,
    part_bytes: u64,
    /// By number, with a place for each piece; the last, which the header ends, may have none.
    open: BTreeMap<usize, Vec<Option<Bytes>>>,
    header: Option<Bytes>,
    sent: BTreeMap<usize, PartId>,
}

impl Parts {
    /// The parts of an entry of this length.
    pub(super) fn new(bytes: u64) -> Self {
        let part_bytes = PART_BYTES.max((bytes / PARTS_MAX).next_multiple_of(PIECE_BYTES));
        let mut parts =
            Self { bytes, part_bytes, open: BTreeMap::new(), header: None, sent: BTreeMap::new() };
        parts.open.insert(parts.last(), parts.places(parts.last()));
        parts
    }

    fn last(&self) -> usize {
        (self.bytes / self.part_bytes) as usize
    }

    fn places(&self, number: usize) -> Vec<Option<Bytes>> {
        let start = number as u64 * self.part_bytes;
        let pieces = self.part_bytes.min(self.bytes - start).div_ceil(PIECE_BYTES);
        vec![None; pieces as usize]
    }

    /// Takes the header, which is known when the last piece is.
    pub(super) fn seal(&mut self, header: Bytes) {
        self.header = Some(header);
    }

    /// Takes a piece. One that comes again, because its part could not be sent, changes nothing.
    pub(super) fn add(&mut self, offset: u64, piece: Bytes) -> io::Result<()> {
        let wrong = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, format!("object: {what}")));
        if offset > self.bytes || piece.len() as u64 != PIECE_BYTES.min(self.bytes - offset) {
            return wrong("a piece that the entry does not have");
        }
        let number = (offset / self.part_bytes) as usize;
        if piece.is_empty() || self.sent.contains_key(&number) {
            return Ok(());
        }
        if !self.open.contains_key(&number) {
            if self.open.len() >= OPEN_PARTS {
                return wrong("the entry's pieces come too far out of order");
            }
            self.open.insert(number, self.places(number));
        }
        let places = self.open.get_mut(&number).expect("just made");
        places[(offset % self.part_bytes / PIECE_BYTES) as usize] = Some(piece);
        Ok(())
    }

    /// A part that has all its pieces, and its header if it is the last.
    pub(super) fn take_whole(&mut self) -> Option<Part> {
        let last = self.last();
        let sealed = self.header.is_some();
        let whole = |(number, places): (&usize, &Vec<Option<Bytes>>)| {
            ((*number != last || sealed) && places.iter().all(Option::is_some)).then_some(*number)
        };
        let number = self.open.iter().find_map(whole)?;
        let pieces = self.open.remove(&number)?.into_iter().flatten().collect();
        Some(Part { number, pieces, header: self.header.clone().filter(|_| number == last) })
    }

    /// Takes back a part that could not be sent.
    pub(super) fn give_back(&mut self, part: Part) {
        self.open.insert(part.number, part.pieces.into_iter().map(Some).collect());
    }

    /// Notes what the server calls a part.
    pub(super) fn sent(&mut self, number: usize, id: PartId) {
        self.sent.insert(number, id);
    }

    /// Lets go of everything, when the entry is committed: it is held for long after.
    pub(super) fn forget(&mut self) {
        self.open.clear();
        self.sent.clear();
        self.header = None;
    }

    /// The server's names of the parts in order, if all were sent.
    pub(super) fn all_sent(&self) -> Option<Vec<PartId>> {
        (self.sent.len() == self.last() + 1).then(|| self.sent.values().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(bytes: u64, order: impl Iterator<Item = u64>) -> Vec<(usize, usize)> {
        let mut parts = Parts::new(bytes);
        let mut sent = Vec::new();
        for number in order {
            let offset = number * PIECE_BYTES;
            let len = PIECE_BYTES.min(bytes - offset) as usize;
            parts.add(offset, Bytes::from(vec![number as u8; len])).unwrap();
            while let Some(part) = parts.take_whole() {
                sent.push((part.number, part.payload().content_length()));
                parts.sent(part.number, PartId { content_id: String::new() });
            }
        }
        assert!(parts.all_sent().is_none(), "the header is missing");
        parts.seal(Bytes::from_static(&[0; 4096]));
        let last = parts.take_whole().expect("only the header was missing");
        parts.sent(last.number, PartId { content_id: String::new() });
        sent.push((last.number, last.payload().content_length()));
        assert_eq!(parts.all_sent().map(|ids| ids.len()), Some(last.number + 1));
        sent
    }

    #[test]
    fn pieces_become_parts_and_the_header_ends_the_last() {
        let eight = PART_BYTES as usize;
        assert_eq!(
            gathered(20 * PIECE_BYTES + 13, 0..21),
            [(0, eight), (1, eight), (2, eight / 2 + 13 + 4096)]
        );
        assert_eq!(gathered(2 * PART_BYTES, (0..16).rev()), [(1, eight), (0, eight), (2, 4096)]);
        assert_eq!(gathered(5, 0..1), [(0, 5 + 4096)]);
        assert_eq!(gathered(0, 0..1), [(0, 4096)]);
    }

    #[test]
    fn a_part_that_failed_is_whole_again_and_a_piece_may_come_again() {
        let mut parts = Parts::new(PART_BYTES + 1);
        for number in 0..8 {
            parts.add(number * PIECE_BYTES, Bytes::from(vec![7; PIECE])).unwrap();
        }
        let part = parts.take_whole().unwrap();
        parts.give_back(part);
        parts.add(0, Bytes::from(vec![7; PIECE])).unwrap();
        assert_eq!(parts.take_whole().map(|part| part.number), Some(0));
    }

    #[test]
    fn what_does_not_belong_or_takes_too_much_memory_is_refused() {
        let mut parts = Parts::new(100 * PART_BYTES);
        assert!(parts.add(100 * PART_BYTES + PIECE_BYTES, Bytes::new()).is_err());
        assert!(parts.add(0, Bytes::from_static(b"short")).is_err());
        let piece = Bytes::from(vec![0; PIECE]);
        let begun = (0..100).take_while(|part| parts.add(part * PART_BYTES, piece.clone()).is_ok());
        assert_eq!(begun.count(), OPEN_PARTS - 1, "one more is the last part");
    }

    #[test]
    fn huge_entries_have_larger_parts() {
        let bytes = 1 << 42;
        let parts = Parts::new(bytes);
        assert!(parts.last() < 10_000 && parts.part_bytes.is_multiple_of(PIECE_BYTES), "{}", parts.last());
    }
}
