//! Changes of texts: blind ones, values that are at the end of ranges, lines among each other, and archives.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use rand::RngExt;
use wavetank_model::Draw;

use crate::blind::{LONGEST, blind};

/// Bytes that mean something in JSON or CSV.
const TELLING: &[u8] = b"{}[]\",:.-+eE0919\\\n\r \xff\x00";

/// Values that readers must think of.
const VALUES: [&str; 22] = [
    "0",
    "-1",
    "1",
    "18446744073709551615",
    "18446744073709551616",
    "4294967295",
    "4294967296",
    "1e308",
    "-1e308",
    "1e-9",
    "9223372036854.775807",
    "9223372036855",
    "0.1",
    "null",
    "true",
    "\"\"",
    "[]",
    "{}",
    "\"\\ud800\"",
    "2262-04-11 23:47:16.854775807",
    "1677-09-21 00:12:44",
    "NaN",
];

/// The beginnings of the files that are given, and texts of no format.
pub(crate) fn seeds(samples: &[String]) -> Vec<Vec<u8>> {
    let read = |path: &String| {
        let mut bytes = Vec::new();
        std::fs::File::open(path).ok()?.take(LONGEST as u64).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    };
    let none =
        [b"".as_slice(), b"[]", b"{}", b"a,b\n1,2\n", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xef\xbb\xbf"];
    samples.iter().filter_map(read).chain(none.map(<[u8]>::to_vec)).collect()
}

/// `bytes` changed a few times, with parts of `other`.
pub(crate) fn changed(bytes: &[u8], other: &[u8], draw: &mut Draw) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 << draw.random_range(0..4u32) {
        if bytes.is_empty() {
            bytes.push(b'{');
        }
        match draw.random_range(0..20u32) {
            0..8 => blind(&mut bytes, other, TELLING, draw),
            8..15 => valued(&mut bytes, draw),
            15..19 => lined(&mut bytes, other, draw),
            _ => packed(&mut bytes, draw),
        }
        bytes.truncate(LONGEST);
    }
    bytes
}

/// Puts a value where another one is: between a colon or comma and what ends it.
fn valued(bytes: &mut Vec<u8>, draw: &mut Draw) {
    let from = draw.random_range(0..bytes.len());
    let is_before = |byte: &u8| matches!(byte, b':' | b',' | b'[' | b'\n');
    let Some(start) = bytes[from..].iter().position(is_before).map(|at| from + at + 1) else { return };
    let is_behind = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b'\n' | b'\r');
    let end = bytes[start..].iter().position(is_behind).map_or(bytes.len(), |at| start + at);
    let value = VALUES[draw.random_range(0..VALUES.len())];
    bytes.splice(start..end, value.bytes());
}

/// A line twice, elsewhere, gone, or of another file.
fn lined(bytes: &mut Vec<u8>, other: &[u8], draw: &mut Draw) {
    let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let (at, to) = (draw.random_range(0..lines.len()), draw.random_range(0..lines.len()));
    match draw.random_range(0..4u32) {
        0 => lines.insert(to, lines[at].clone()),
        1 => lines.swap(at, to),
        2 => drop(lines.remove(at)),
        _ => {
            let others: Vec<_> = other.split(|byte| *byte == b'\n').collect();
            lines.insert(to, others[draw.random_range(0..others.len())].to_vec());
        }
    }
    *bytes = lines.join(&b'\n');
}

fn packed(bytes: &mut Vec<u8>, draw: &mut Draw) {
    if draw.random() {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        *bytes = packer.write_all(bytes).and_then(|()| packer.finish()).expect("memory takes every byte");
    } else {
        *bytes = zstd::encode_all(&bytes[..], 1).expect("memory takes every byte");
    }
}
