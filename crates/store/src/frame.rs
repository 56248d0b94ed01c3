//! Which bytes of a buffer go where in an entry's file: the header and the payload in whole blocks.

use crate::backend::{Piece, Seal};
use crate::buffer::{ALIGN, Buffer};
use crate::folder::Filed;
use crate::layout::Header;

/// Bytes around the start of a buffer's payload, and their place in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    header: usize,
    payload: usize,
    /// The place in the file.
    pub(crate) at: u64,
}

impl Span {
    /// The bytes.
    pub(crate) fn bytes(self, buffer: &mut Buffer) -> &mut [u8] {
        buffer.framed_mut(self.header, self.payload)
    }
}

/// What to write for a piece. The last one queued brings the header: in one write with the payload where they
/// touch, else in a second one.
pub(crate) fn to_write(
    filed: &Filed,
    piece: Piece,
    buffer: &mut Buffer,
    seal: Option<Seal>,
) -> (Span, Option<Span>) {
    let padded = piece.len.next_multiple_of(ALIGN);
    buffer.payload_mut()[piece.len..padded].fill(0);
    let header = filed.header_len;
    let payload = Span { header: 0, payload: padded, at: header as u64 + piece.offset };
    let Some(Seal { checksum }) = seal else { return (payload, None) };
    let content = Header {
        key: filed.key.clone(),
        bytes: filed.bytes,
        checksum,
        version: filed.version(),
        birth: filed.birth,
    };
    content.encode(buffer.header_mut(header));
    match piece.offset {
        0 => (Span { header, payload: padded, at: 0 }, None),
        _ => (payload, Some(Span { header, payload: 0, at: 0 })),
    }
}

/// What to read for a piece.
pub(crate) fn to_read(filed: &Filed, piece: Piece) -> Span {
    let payload = piece.len.next_multiple_of(ALIGN);
    Span { header: 0, payload, at: filed.header_len as u64 + piece.offset }
}
