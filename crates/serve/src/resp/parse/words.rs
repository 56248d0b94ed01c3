//! The words of a command that a person typed, as Redis splits a line: blanks part them, quotes keep blanks
//! in them, and in double quotes a backslash says what cannot be typed.

use std::ops::Range;

use super::Fault;

/// Where words of `text` are after it was called; a word is never longer than what was typed for it, so it is
/// written where it was.
pub(super) fn words(text: &mut [u8]) -> Result<Vec<Range<usize>>, Fault> {
    let (mut found, mut line) = (Vec::new(), Line { text, at: 0, to: 0 });
    while let Some(skipped) = line.rest().iter().position(|byte| !is_blank(*byte)) {
        line.at += skipped;
        let start = line.at;
        line.to = start;
        line.word()?;
        found.push(start..line.to);
    }
    Ok(found)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// A line while it is read at one place and written at another before it.
struct Line<'a> {
    text: &'a mut [u8],
    at: usize,
    to: usize,
}

impl Line<'_> {
    fn rest(&self) -> &[u8] {
        &self.text[self.at..]
    }

    /// Writes `byte`, for which so many were read.
    fn put(&mut self, byte: u8, read: usize) {
        self.text[self.to] = byte;
        self.to += 1;
        self.at += read;
    }

    fn word(&mut self) -> Result<(), Fault> {
        loop {
            match self.rest() {
                [] | [b' ' | b'\n' | b'\r' | b'\t', ..] => return Ok(()),
                [quote @ (b'"' | b'\''), ..] => {
                    let quote = *quote;
                    self.at += 1;
                    return self.quoted(quote);
                }
                [byte, ..] => self.put(*byte, 1),
            }
        }
    }

    /// The rest of a word in quotes, which end it.
    fn quoted(&mut self, quote: u8) -> Result<(), Fault> {
        loop {
            match self.rest() {
                [] => return Err(Fault::Quotes),
                [end, next, ..] if *end == quote && !is_blank(*next) => return Err(Fault::Quotes),
                [end, ..] if *end == quote => {
                    self.at += 1;
                    return Ok(());
                }
                [b'\\', b'x', high, low, ..] if quote == b'"' && is_hex(*high) && is_hex(*low) => {
                    self.put(digit(*high) << 4 | digit(*low), 4);
                }
                [b'\\', letter, ..] if quote == b'"' => self.put(meant(*letter), 2),
                [b'\\', b'\'', ..] => self.put(b'\'', 2),
                [byte, ..] => self.put(*byte, 1),
            }
        }
    }
}

/// What a letter after a backslash stands for.
fn meant(letter: u8) -> u8 {
    match letter {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        itself => itself,
    }
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

fn digit(hex: u8) -> u8 {
    (hex as char).to_digit(16).map_or(0, |digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
        let mut text = line.to_vec();
        let places = words(&mut text)?;
        Ok(places.into_iter().map(|place| text[place].to_vec()).collect())
    }

    /// Broken by: an escape that is not read, or one that is read in single quotes too; quotes that begin a
    /// word of their own.
    #[test]
    fn quotes_and_escapes_are_read_as_redis_reads_them() {
        let cases: &[(&[u8], &[&[u8]])] = &[
            (b"", &[]),
            (b" \t\x0b\x0c ", &[]),
            (b"a  b\tc", &[b"a", b"b", b"c"]),
            (b"a\x0bb", &[b"a\x0bb"]),
            (br#""\n\r\t\b\a\\\"\q" x"#, &[b"\n\r\t\x08\x07\\\"q", b"x"]),
            (br#""\x41\xfF\x4\xg1\X41""#, &[b"A\xffx4xg1X41"]),
            (br#"'\n\x41\'"' "it's""#, &[br#"\n\x41'""#, b"it's"]),
            (br#"a"b c" d'e f'"#, &[b"ab c", b"de f"]),
            (br#""" ''"#, &[b"", b""]),
            (br"a\nb \x41", &[br"a\nb", br"\x41"]),
        ];
        for (line, expected) in cases {
            assert_eq!(read(line).unwrap(), *expected, "{}", line.escape_ascii());
        }
        for line in [r#""a"#, r#""a\""#, r#""a"b"#, "'a", "'a'b", r"'a\'", r#"""""#, "\"\\"] {
            assert_eq!(read(line.as_bytes()), Err(Fault::Quotes), "{line}");
        }
    }
}
