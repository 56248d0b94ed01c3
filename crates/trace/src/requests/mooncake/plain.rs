//! The lines that public traces are made of: known keys, whole numbers, texts without escapes. They are most
//! of every large file and are read several times faster than JSON in general.

use wavetank_model::Nanos;

use crate::{Moment, Row};

/// Milliseconds up to here are the same number of nanoseconds in floating point.
const LARGEST_MS: u64 = 1 << 33;
/// As many digits always fit 64 bits.
const DIGITS: usize = 19;

/// Keys that must be there, as bits.
const OUTPUT: u8 = 1 << 5;
const IDS: u8 = 1 << 6;

/// Reads `line` into `row`, which is empty; nothing where the line is in any way unusual: then `row` holds
/// anything, and whether the line is right is for others to say.
pub(super) fn parse(line: &[u8], row: &mut Row) -> Option<()> {
    let mut rest = Cursor { bytes: line };
    let mut met = 0;
    rest.byte(b'{')?;
    loop {
        rest.space();
        let bit = rest.member(row)?;
        if met & bit != 0 {
            return None;
        }
        met |= bit;
        rest.space();
        match rest.any()? {
            b',' => {}
            b'}' if rest.bytes.is_empty() => break,
            _ => return None,
        }
    }
    (met & OUTPUT != 0 && met & IDS != 0).then_some(())
}

/// What is left of a line.
struct Cursor<'a> {
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// A key and its value; tells which key, as a bit.
    fn member(&mut self, row: &mut Row) -> Option<u8> {
        let key = self.text()?;
        self.space();
        self.byte(b':')?;
        self.space();
        Some(match key {
            b"request_id" => {
                row.request = Some(self.owned()?);
                1
            }
            b"session_id" => {
                row.session = Some(self.owned()?);
                1 << 1
            }
            b"timestamp" => {
                row.start = Some(Moment { nanos: self.ms()?.cast_signed() });
                1 << 2
            }
            b"delay" => {
                row.pause = Some(Nanos(self.ms()?));
                1 << 3
            }
            b"input_length" => {
                row.input_tokens = Some(self.tokens()?);
                1 << 4
            }
            b"output_length" => {
                row.output_tokens = Some(self.tokens()?);
                OUTPUT
            }
            b"hash_ids" => {
                self.ids(&mut row.ids)?;
                IDS
            }
            _ => return None,
        })
    }

    fn any(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn byte(&mut self, expected: u8) -> Option<()> {
        (self.any()? == expected).then_some(())
    }

    /// One space is usual; more are left to the reader of all JSON.
    fn space(&mut self) {
        if let [b' ', rest @ ..] = self.bytes {
            self.bytes = rest;
        }
    }

    /// What stands between two quotes, without escapes.
    fn text(&mut self) -> Option<&'a [u8]> {
        self.byte(b'"')?;
        let length = self.bytes.iter().position(|byte| *byte == b'"')?;
        let (text, rest) = self.bytes.split_at(length);
        self.bytes = &rest[1..];
        let is_plain = text.iter().all(|byte| *byte >= b' ' && *byte != b'\\');
        is_plain.then_some(text)
    }

    fn owned(&mut self) -> Option<String> {
        std::str::from_utf8(self.text()?).ok().map(str::to_owned)
    }

    fn number(&mut self) -> Option<u64> {
        let (mut value, mut length) = (0_u64, 0);
        while let Some(digit) = self.bytes.get(length).map(|byte| byte.wrapping_sub(b'0')).filter(|d| *d < 10)
        {
            value = value.wrapping_mul(10).wrapping_add(digit.into());
            length += 1;
        }
        let is_plain = (1..=DIGITS).contains(&length) && (length == 1 || self.bytes[0] != b'0');
        self.bytes = &self.bytes[length..];
        is_plain.then_some(value)
    }

    fn ms(&mut self) -> Option<u64> {
        self.number().filter(|ms| *ms <= LARGEST_MS).map(|ms| ms * 1_000_000)
    }

    fn tokens(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn ids(&mut self, ids: &mut Vec<u64>) -> Option<()> {
        self.byte(b'[')?;
        loop {
            ids.push(self.number()?);
            match self.any()? {
                b',' => self.space(),
                b']' => return Some(()),
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Dialect, line};
    use super::*;

    fn both(text: &str) -> (Option<Row>, Option<Row>) {
        let (mut plain, mut general) = (Row::default(), Row::default());
        let is_plain = parse(text.as_bytes(), &mut plain).is_some();
        let is_right = line::parse(text.as_bytes(), &mut general, Dialect::Plain).is_ok();
        (is_plain.then_some(plain), is_right.then_some(general))
    }

    #[test]
    fn usual_lines_are_plain() {
        for text in [
            r#"{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}"#,
            r#"{"session_id":"s","timestamp":0,"delay":5,"input_length":1,"output_length":0,"hash_ids":[0]}"#,
            r#"{"request_id": "ä", "output_length": 4294967295, "hash_ids": [9999999999999999999, 1]}"#,
        ] {
            let (plain, general) = both(text);
            assert!(plain.is_some() && plain == general, "{text}: {plain:?} {general:?}");
        }
    }

    #[test]
    fn what_is_unusual_is_left() {
        for text in [
            r#"{"output_length":1,"hash_ids":[1],"x":1}"#,
            r#"{"output_length":1.0,"hash_ids":[1]}"#,
            r#"{"output_length":1,"hash_ids":[01]}"#,
            r#"{"output_length":1,"hash_ids":[]}"#,
            r#"{"output_length":1,"output_length":1,"hash_ids":[1]}"#,
            r#"{"output_length":1}"#,
            r#"{"hash_ids":[1]}"#,
            r#"{"output_length":1,"hash_ids":[1]} x"#,
            r#"{"output_length":1,"hash_ids":[18446744073709551616]}"#,
            r#"{"timestamp":1779163048815,"output_length":1,"hash_ids":[1]}"#,
            r#"{"session_id":"a\"b","output_length":1,"hash_ids":[1]}"#,
            r#"{"output_length":4294967296,"hash_ids":[1]}"#,
            r#"{"output_length":1,"hash_ids":[1]"#,
            "",
        ] {
            assert_eq!(both(text).0, None, "{text}");
        }
    }

    proptest! {
        /// Broken by: a plain reader that takes what JSON does not, or that means something else by it.
        #[test]
        fn plain_lines_mean_what_json_means(
            parts in prop::collection::vec(prop::sample::select(vec![
                "{", "}", "[", "]", ",", ":", " ", "0", "7", "12", "-", ".", "e", "\"", "\\", "null",
                "\"timestamp\":", "\"delay\": ", "\"input_length\":", "\"output_length\": ", "\"hash_ids\":",
                "\"session_id\":\"a\"", "[1, 2]", "{\"output_length\":3,\"hash_ids\":[4", "]}", "5,",
            ]), 0..12),
        ) {
            let text = parts.concat();
            if let (Some(plain), general) = both(&text) {
                prop_assert_eq!(Some(plain), general, "{}", text);
            }
        }
    }
}
