//! Changes of texts: blind ones, values that are at the end of ranges, lines among each other, and depth.

use rand::RngExt;
use wavetank_model::Draw;

use crate::blind::{LONGEST, blind};

/// Bytes that mean something in JSON, TOML, YAML or CSV.
const TELLING: &[u8] = b"{}[]\",:.-+eE0919\\\n\r \xff\x00#&*=|>'";

/// Values that readers must think of.
const VALUES: [&str; 32] = [
    "0",
    "-0.0",
    "-1",
    "1",
    "2",
    "18446744073709551615",
    "18446744073709551616",
    "4294967295",
    "4294967296",
    "2147483648",
    "1e308",
    "-1e308",
    "1e999",
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
    "\"</script><img src=x onerror=1>\"",
    "\"\u{202e}\\u0000\"",
    "\"@none\"",
    "2262-04-11 23:47:16.854775807",
    "1677-09-21 00:12:44",
    "NaN",
    "nan",
    "inf",
    "-inf",
];
/// What begins something that has to end.
const OPENINGS: [&str; 6] = ["[", "{\"a\":", "{a = ", "- ", "a.", "(("];

/// `bytes` changed a few times, with parts of `other`.
pub(crate) fn changed(bytes: &[u8], other: &[u8], draw: &mut Draw) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 << draw.random_range(0..4u32) {
        if bytes.is_empty() {
            bytes.push(b'{');
        }
        match draw.random_range(0..32u32) {
            0..12 => blind(&mut bytes, other, TELLING, draw),
            12..24 => valued(&mut bytes, draw),
            24..31 => lined(&mut bytes, other, draw),
            _ => deepened(&mut bytes, draw),
        }
        bytes.truncate(LONGEST);
    }
    bytes
}

/// Puts a value where another one is: between what comes before one and what ends it.
fn valued(bytes: &mut Vec<u8>, draw: &mut Draw) {
    let from = draw.random_range(0..bytes.len());
    let is_before = |byte: &u8| matches!(byte, b':' | b',' | b'[' | b'=' | b'\n');
    let Some(start) = bytes[from..].iter().position(is_before).map(|at| from + at + 1) else { return };
    let is_behind = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b'\n' | b'\r');
    let end = bytes[start..].iter().position(is_behind).map_or(bytes.len(), |at| start + at);
    let value = VALUES[draw.random_range(0..VALUES.len())];
    // YAML needs a space, tables mind it.
    let space = draw.random::<bool>().then_some(b' ');
    bytes.splice(start..end, space.into_iter().chain(value.bytes()));
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

/// Something begins again and again.
fn deepened(bytes: &mut Vec<u8>, draw: &mut Draw) {
    let at = draw.random_range(0..=bytes.len());
    let opening = OPENINGS[draw.random_range(0..OPENINGS.len())];
    let depth = 1 << draw.random_range(1..13u32);
    bytes.splice(at..at, opening.repeat(depth).into_bytes());
}
