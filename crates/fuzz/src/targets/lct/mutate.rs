//! Changes of bytes: blind ones, ones that know frames, and ones inside an archive.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use rand::RngExt;
use wavetank_model::Draw;

use crate::blind::{LONGEST, blind};

/// Bytes that mean something: markers of MessagePack and ends of ranges.
const TELLING: [u8; 24] = [
    0x00, 0x01, 0x7f, 0x80, 0x81, 0x8f, 0x90, 0x91, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc4, 0xc6, 0xca, 0xcb,
    0xcf, 0xd3, 0xd9, 0xdb, 0xdc, 0xdd, 0xff,
];
/// Bytes of a frame's length.
pub(super) const PREFIX: usize = 4;

/// `bytes` changed a few times, with parts of `other`.
pub(super) fn changed(bytes: &[u8], other: &[u8], draw: &mut Draw) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 << draw.random_range(0..5u32) {
        if bytes.is_empty() {
            bytes.push(0);
        }
        match draw.random_range(0..10u32) {
            0..5 => blind(&mut bytes, other, &TELLING, draw),
            5..9 => framed(&mut bytes, other, draw),
            _ => packed(&mut bytes, draw),
        }
        bytes.truncate(LONGEST);
    }
    bytes
}

/// Frames with their lengths, as far as they go.
pub(super) fn frames(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut frames = Vec::new();
    let mut at = 0;
    while let Some((length, _)) = bytes[at..].split_first_chunk::<PREFIX>() {
        let end = at.saturating_add(PREFIX).saturating_add(u32::from_be_bytes(*length) as usize);
        if end > bytes.len() {
            break;
        }
        frames.push(at..end);
        at = end;
    }
    frames
}

/// A change inside a frame whose length is put right, or of frames among each other.
fn framed(bytes: &mut Vec<u8>, other: &[u8], draw: &mut Draw) {
    let places = frames(bytes);
    let Some(place) = places.get(draw.random_range(0..places.len().max(1))).cloned() else { return };
    match draw.random_range(0..6u32) {
        0..4 if place.len() > PREFIX => {
            let mut content = bytes[place.start + PREFIX..place.end].to_vec();
            blind(&mut content, other, &TELLING, draw);
            let length = (content.len() as u32).to_be_bytes();
            bytes.splice(place, length.into_iter().chain(content));
        }
        4 => {
            let frame = bytes[place].to_vec();
            let at = places[draw.random_range(0..places.len())].start;
            bytes.splice(at..at, frame);
        }
        _ => {
            let found = frames(other);
            if let Some(frame) = found.get(draw.random_range(0..found.len().max(1))) {
                bytes.splice(place, other[frame.clone()].iter().copied());
            }
        }
    }
}

/// Unpacks what is packed and packs what is not.
fn packed(bytes: &mut Vec<u8>, draw: &mut Draw) {
    let mut plain = Vec::new();
    let longest = LONGEST as u64;
    let is_packed = match bytes.first_chunk::<2>() {
        Some([0x1f, 0x8b]) => GzDecoder::new(&bytes[..]).take(longest).read_to_end(&mut plain).is_ok(),
        Some([0x28, 0xb5]) => zstd::Decoder::new(&bytes[..])
            .is_ok_and(|decoder| decoder.take(longest).read_to_end(&mut plain).is_ok()),
        _ => false,
    };
    if is_packed {
        *bytes = plain;
    } else if draw.random() {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        *bytes = packer.write_all(bytes).and_then(|()| packer.finish()).expect("memory takes every byte");
    } else {
        *bytes = zstd::encode_all(&bytes[..], 1).expect("memory takes every byte");
    }
}
