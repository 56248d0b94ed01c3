//! Numbered lines, found in one large buffer.

use std::io::{BufRead, ErrorKind, Read};
use std::ops::Range;

use wavetank_model::{Error, Result};

use super::{BYTE_ORDER_MARK, LONGEST_LINE, broken};

/// What is read at once: the work per line is finding its end.
const BUFFER: usize = 256 << 10;

/// Lines with their numbers, one at a time in one buffer.
pub struct Lines {
    name: String,
    bytes: Box<dyn BufRead + Send>,
    /// Grows with the longest line.
    buffer: Vec<u8>,
    /// What of it was read and is no line yet.
    rest: Range<usize>,
    line: Range<usize>,
    number: u64,
}

impl Lines {
    pub(super) fn of(name: String, bytes: Box<dyn BufRead + Send>) -> Self {
        Self { name, bytes, buffer: vec![0; BUFFER], rest: 0..0, line: 0..0, number: 0 }
    }

    /// Moves to the next line that is not blank. Tells whether there is one.
    pub fn advance(&mut self) -> Result<bool> {
        loop {
            self.number += 1;
            let Some(line) = self.next_line()? else { return Ok(false) };
            self.line = line;
            if self.number == 1 && self.buffer[self.line.clone()].starts_with(BYTE_ORDER_MARK) {
                self.line.start += BYTE_ORDER_MARK.len();
            }
            if !self.current().is_empty() {
                return Ok(true);
            }
        }
    }

    /// Where the next line is, with what ends it.
    fn next_line(&mut self) -> Result<Option<Range<usize>>> {
        let mut searched = 0;
        loop {
            let unread = &self.buffer[self.rest.clone()];
            if let Some(found) = memchr::memchr(b'\n', &unread[searched..]) {
                return self.take(searched + found + 1).map(Some);
            }
            searched = unread.len();
            if searched as u64 > LONGEST_LINE {
                return Err(self.too_long());
            }
            if !self.read_more()? {
                return if searched == 0 { Ok(None) } else { self.take(searched).map(Some) };
            }
        }
    }

    fn take(&mut self, length: usize) -> Result<Range<usize>> {
        if length as u64 > LONGEST_LINE {
            return Err(self.too_long());
        }
        let line = self.rest.start..self.rest.start + length;
        self.rest.start = line.end;
        Ok(line)
    }

    /// Reads behind the rest, which moves to the front; tells whether there was anything.
    fn read_more(&mut self) -> Result<bool> {
        self.buffer.copy_within(self.rest.clone(), 0);
        self.rest = 0..self.rest.len();
        if self.rest.end == self.buffer.len() {
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
        loop {
            match self.bytes.read(&mut self.buffer[self.rest.end..]) {
                Ok(length) => {
                    self.rest.end += length;
                    return Ok(length > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(&self.name, self.number, error)),
            }
        }
    }

    #[cold]
    fn too_long(&self) -> Error {
        let message = format!("line is longer than {} MiB", LONGEST_LINE >> 20);
        Error::input(message).at(self.place()).hint("one request is one line of JSON")
    }

    /// The line without surrounding white space.
    pub fn current(&self) -> &[u8] {
        self.buffer[self.line.clone()].trim_ascii()
    }

    /// The number of the line read last.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// `file:line` of the line read last.
    pub fn place(&self) -> String {
        format!("{}:{}", self.name, self.number)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, BufReader};

    use super::*;

    /// Hands out its bytes in pieces of `step`.
    struct Dribble<'a> {
        bytes: &'a [u8],
        step: usize,
    }

    impl Read for Dribble<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let length = self.step.min(into.len()).min(self.bytes.len());
            into[..length].copy_from_slice(&self.bytes[..length]);
            self.bytes = &self.bytes[length..];
            Ok(length)
        }
    }

    /// Broken by: a line that begins in one piece and ends in another, or that is longer than the buffer.
    #[test]
    fn pieces_of_any_size_give_the_same_lines() {
        let long = "x".repeat(2 * BUFFER + 5);
        let text: &'static str = Box::leak(format!("a\n\n{long}\r\nb\n {long} \nlast").into_boxed_str());
        for step in [1, 7, BUFFER - 1, BUFFER, 3 * BUFFER] {
            let bytes = BufReader::with_capacity(8, Dribble { bytes: text.as_bytes(), step });
            let mut lines = Lines::of("t".to_owned(), Box::new(bytes));
            let mut found = Vec::new();
            while lines.advance().unwrap() {
                found.push((lines.number(), String::from_utf8(lines.current().to_vec()).unwrap()));
            }
            let expected = [(1, "a"), (3, &*long), (4, "b"), (5, &*long), (6, "last")];
            assert!(found.iter().map(|(n, text)| (*n, text.as_str())).eq(expected), "{step}");
            assert!(!lines.advance().unwrap());
        }
    }
}
