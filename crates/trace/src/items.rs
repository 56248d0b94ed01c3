//! The items of one JSON array, one at a time: a file of any length, and one item in memory.

use std::io::BufRead;

use wavetank_model::{Error, Result};

use crate::Input;
use crate::input::{LONGEST_LINE, broken};

/// An array being read.
pub(crate) struct Items {
    name: String,
    bytes: Box<dyn BufRead>,
    /// What the array is of, in messages.
    of: &'static str,
    state: State,
    /// Of the byte to be read next.
    line: u64,
    item: Vec<u8>,
    /// Where the item begins, and its number from 1.
    item_line: u64,
    number: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Outside,
    Inside,
    Ended,
}

impl Items {
    /// Opens `input`, an array of `of`.
    pub(crate) fn open(input: &Input, of: &'static str) -> Result<Self> {
        let (name, bytes) = (input.name(), input.text()?);
        let (state, item) = (State::Outside, Vec::new());
        Ok(Self { name, bytes, of, state, line: 1, item, item_line: 1, number: 0 })
    }

    /// Moves to the next item. Tells whether there is one. Nothing follows an error.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        let found = self.find();
        if !matches!(found, Ok(true)) {
            self.state = State::Ended;
        }
        found
    }

    fn find(&mut self) -> Result<bool> {
        if self.state == State::Ended {
            return Ok(false);
        }
        if self.state == State::Outside {
            match self.next_byte()? {
                Some(b'[') => self.state = State::Inside,
                Some(_) => return Err(self.wrong(format!("not an array of {}", self.of))),
                None => return Err(self.cut()),
            }
        }
        match (self.next_byte()?, self.number) {
            (Some(b']'), _) => return self.end(),
            (Some(b','), 1..) => {}
            (Some(byte), 0) => return self.take(byte),
            (Some(_), _) => return Err(self.wrong("not valid JSON: expected , or ]".to_owned())),
            (None, _) => return Err(self.cut()),
        }
        match self.next_byte()? {
            Some(b']' | b',') => Err(self.wrong("not valid JSON: expected a value".to_owned())),
            Some(byte) => self.take(byte),
            None => Err(self.cut()),
        }
    }

    /// The item as it stands in the file.
    pub(crate) fn current(&self) -> &[u8] {
        &self.item
    }

    /// The number of the item, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The line of the item, and `file:line` of a line within it that JSON counts from 1.
    pub(crate) fn line(&self) -> u64 {
        self.item_line
    }

    pub(crate) fn place(&self, line_within: usize) -> String {
        format!("{}:{}", self.name, self.item_line + (line_within as u64).saturating_sub(1))
    }

    /// The next byte that is no white space.
    fn next_byte(&mut self) -> Result<Option<u8>> {
        loop {
            let buffer = self.bytes.fill_buf().map_err(|error| broken(&self.name, self.line, error))?;
            if buffer.is_empty() {
                return Ok(None);
            }
            let blank = buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.line += buffer[..blank].iter().filter(|byte| **byte == b'\n').count() as u64;
            let (found, length) = (buffer.get(blank).copied(), (blank + 1).min(buffer.len()));
            self.bytes.consume(length);
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    /// Reads the item that begins with `first`, up to the comma or bracket behind it.
    fn take(&mut self, first: u8) -> Result<bool> {
        self.item.clear();
        self.item.push(first);
        self.item_line = self.line;
        self.number += 1;
        let mut scan = Scan::default();
        scan.step(first);
        loop {
            let buffer = self.bytes.fill_buf().map_err(|error| broken(&self.name, self.line, error))?;
            if buffer.is_empty() {
                return Err(self.cut());
            }
            let length = buffer.iter().position(|byte| scan.step(*byte));
            let taken = &buffer[..length.unwrap_or(buffer.len())];
            self.line += taken.iter().filter(|byte| **byte == b'\n').count() as u64;
            self.item.extend_from_slice(taken);
            let consumed = taken.len();
            self.bytes.consume(consumed);
            if length.is_some() {
                return Ok(true);
            }
            if self.item.len() as u64 > LONGEST_LINE {
                let message =
                    format!("{} {} is longer than {} MiB", self.of, self.number, LONGEST_LINE >> 20);
                return Err(self.wrong(message));
            }
        }
    }

    /// Behind the array there is nothing.
    fn end(&mut self) -> Result<bool> {
        match self.next_byte()? {
            None => Ok(false),
            Some(_) => Err(self.wrong("not valid JSON: trailing characters".to_owned())),
        }
    }

    fn wrong(&self, message: String) -> Error {
        Error::input(message)
            .at(format!("{}:{}", self.name, self.line))
            .hint(format!("it is one JSON array of {}", self.of))
    }

    fn cut(&self) -> Error {
        Error::input("not valid JSON: it ends within the array")
            .at(format!("{}:{}", self.name, self.line))
            .hint("the file is truncated")
    }
}

/// Where a reader of bytes is within a value.
#[derive(Default)]
struct Scan {
    depth: u32,
    in_string: bool,
    is_escaped: bool,
}

impl Scan {
    /// Takes a byte; tells whether it stands behind the value.
    fn step(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b',' | b']' if self.depth == 0 => return true,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn items(text: &str) -> Result<Vec<(u64, String)>> {
        let mut items = Items::open(&Input::Bytes(Arc::from(text.as_bytes())), "numbers")?;
        let mut all = Vec::new();
        while items.advance()? {
            all.push((items.line(), String::from_utf8_lossy(items.current().trim_ascii()).into_owned()));
        }
        assert!(!items.advance()?, "nothing follows the end");
        Ok(all)
    }

    #[test]
    fn items_come_with_their_lines() {
        let found = items("\n[ {\"a\": [1, \"]},\\\"\"]},\n\n 2 ,\"x\"\n]\n").unwrap();
        let expected = [(2, "{\"a\": [1, \"]},\\\"\"]}"), (4, "2"), (4, "\"x\"")];
        assert!(found.iter().map(|(line, text)| (*line, text.as_str())).eq(expected), "{found:?}");
        assert!(items("[]").unwrap().is_empty());
    }

    #[test]
    fn mistakes_have_their_line() {
        for (text, expected) in [
            ("", "<memory>:1: not valid JSON: it ends"),
            ("{}", "<memory>:1: not an array of numbers"),
            ("[1,\n2", "<memory>:2: not valid JSON: it ends"),
            ("[1,\n,2]", "<memory>:2: not valid JSON: expected a value"),
            ("[1,]", "<memory>:1: not valid JSON: expected a value"),
            ("[1]\n]", "<memory>:2: not valid JSON: trailing"),
        ] {
            let error = items(text).unwrap_err().to_string();
            assert!(error.starts_with(expected) && error.contains("\nhint: "), "{text}: {error}");
        }
    }
}
