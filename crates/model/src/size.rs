//! Bytes as people write them: `100GiB`, `1.5T`, `500 MB`.

use crate::error::{Error, Result};

const UNITS: &[(&str, u64)] = &[
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("T", 1 << 40),
    ("G", 1 << 30),
    ("M", 1 << 20),
    ("K", 1 << 10),
    ("B", 1),
];

/// No machine has more.
const MOST: f64 = 1e18;

/// Bytes of `text`; its unit is needed, because some mean bytes by a number and others GiB.
pub fn parse(text: &str, place: &str) -> Result<u64> {
    of(text).ok_or_else(|| {
        let wrong = format!("\"{text}\" is no size: a number and a unit");
        Error::usage(wrong).at(place).hint("as 100GiB, 1.5TiB or 500MB; G is GiB, and Gb may be bits")
    })
}

/// Bytes of `text`, if it is a size. `Gb` and its like are none: some mean bits by them.
pub fn of(text: &str) -> Option<u64> {
    if text.ends_with('b') && text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let (unit, scale) = UNITS.iter().find(|(unit, _)| lower.ends_with(&unit.to_ascii_lowercase()))?;
    let number = lower[..lower.len() - unit.len()].trim();
    if !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let bytes = number.parse::<f64>().ok()? * *scale as f64;
    (1.0..=MOST).contains(&bytes).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a unit found as the end of another, or a bare number that is taken for something.
    #[test]
    fn a_size_has_a_number_and_a_unit() {
        let cases = [
            ("100GiB", Some(100 << 30)),
            ("1.5t", Some(3 << 39)),
            ("500 MB", Some(500_000_000)),
            ("4096b", Some(4096)),
            ("2k", Some(2048)),
            ("32gb", Some(32_000_000_000)),
            ("32Gb", None),
            ("32Gib", None),
            ("6379", None),
            ("GiB", None),
            ("-1G", None),
            ("1e3G", None),
            ("0B", None),
            ("9999999999T", None),
            ("", None),
        ];
        for (text, bytes) in cases {
            assert_eq!(of(text), bytes, "{text}");
        }
    }
}
