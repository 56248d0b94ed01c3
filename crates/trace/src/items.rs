//! The items of one JSON array, or of all arrays of one name, one at a time: a file of any length, and one
//! item in memory.

use std::io::BufRead;

use wavetank_model::{Error, Result};

use crate::Input;
use crate::input::{LONGEST_LINE, broken};

/// An array being read.
pub(crate) struct Items {
    name: String,
    bytes: Box<dyn BufRead + Send>,
    /// What the array is of, in messages.
    of: &'static str,
    /// The member whose arrays are read, wherever it stands; without it the file is the array.
    key: Option<&'static str>,
    /// Brackets and braces that are open around the array.
    depth: u32,
    state: State,
    /// The line of the byte to be read next.
    reached: u64,
    item: Vec<u8>,
    /// Where the item begins, and its number from 1.
    item_line: u64,
    number: u64,
    /// Whether the array has shown nothing yet.
    is_first: bool,
    arrays: u64,
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
        Ok(Self {
            name: input.name(),
            bytes: input.text()?,
            of,
            key: None,
            depth: 0,
            state: State::Outside,
            reached: 1,
            item: Vec::new(),
            item_line: 1,
            number: 0,
            is_first: true,
            arrays: 0,
        })
    }

    /// Opens `input`, in which all arrays called `key` are read. What stands around them need only be closed.
    pub(crate) fn under(input: &Input, key: &'static str) -> Result<Self> {
        Ok(Self { key: Some(key), ..Self::open(input, key)? })
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
        loop {
            if self.state == State::Ended || (self.state == State::Outside && !self.enter()?) {
                return Ok(false);
            }
            self.state = State::Inside;
            match (self.next_byte()?, self.is_first, self.key) {
                (Some(b']'), _, None) => return self.end(),
                (Some(b']'), _, Some(_)) => {
                    self.depth = self.depth.saturating_sub(1);
                    self.state = State::Outside;
                    continue;
                }
                (Some(b','), false, _) => {}
                (Some(byte), true, _) => return self.take(byte),
                (Some(_), false, _) => return Err(self.wrong("not valid JSON: expected , or ]".to_owned())),
                (None, ..) => return Err(self.cut()),
            }
            return match self.next_byte()? {
                Some(b']' | b',') => Err(self.wrong("not valid JSON: expected a value".to_owned())),
                Some(byte) => self.take(byte),
                None => Err(self.cut()),
            };
        }
    }

    /// Goes behind the bracket that begins an array. Tells whether there is one.
    fn enter(&mut self) -> Result<bool> {
        self.is_first = true;
        let found = match self.key {
            Some(key) => self.seek(key)?,
            None => match self.next_byte()? {
                Some(b'[') => true,
                Some(_) => return Err(self.wrong(format!("not an array of {}", self.of))),
                None => return Err(self.cut()),
            },
        };
        self.arrays += u64::from(found);
        Ok(found)
    }

    /// Goes behind the bracket of the next array called `key`.
    fn seek(&mut self, key: &str) -> Result<bool> {
        let mut met = Met::Other;
        loop {
            met = match (self.next_byte()?, met) {
                (None, _) if self.depth > 0 => return Err(self.cut()),
                (None, _) if self.arrays == 0 => {
                    return Err(self.wrong(format!("there is no array \"{key}\" in it")));
                }
                (None, _) => return Ok(false),
                (Some(b'"'), _) if self.string_is(key)? => Met::Key,
                (Some(b':'), Met::Key) => Met::Colon,
                (Some(b'['), Met::Colon) => {
                    self.depth += 1;
                    return Ok(true);
                }
                (Some(b'{' | b'['), _) => {
                    self.depth += 1;
                    Met::Other
                }
                (Some(b'}' | b']'), _) if self.depth == 0 => {
                    return Err(self.wrong("not valid JSON: a bracket that nothing opened".to_owned()));
                }
                (Some(b'}' | b']'), _) => {
                    self.depth -= 1;
                    Met::Other
                }
                (Some(_), _) => Met::Other,
            };
        }
    }

    /// Goes behind a string; tells whether it is `key`.
    fn string_is(&mut self, key: &str) -> Result<bool> {
        let (mut is_escaped, mut matched, mut is_key) = (false, 0, true);
        loop {
            let buffer = self.bytes.fill_buf().map_err(|error| broken(&self.name, self.reached, error))?;
            if buffer.is_empty() {
                return Err(self.cut());
            }
            let mut used = 0;
            for &byte in buffer {
                used += 1;
                match byte {
                    b'"' if !is_escaped => {
                        self.bytes.consume(used);
                        return Ok(is_key && matched == key.len());
                    }
                    _ => {
                        is_escaped = byte == b'\\' && !is_escaped;
                        is_key &= key.as_bytes().get(matched) == Some(&byte);
                        matched += 1;
                        self.reached += u64::from(byte == b'\n');
                    }
                }
            }
            self.bytes.consume(used);
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
            let buffer = self.bytes.fill_buf().map_err(|error| broken(&self.name, self.reached, error))?;
            if buffer.is_empty() {
                return Ok(None);
            }
            let blank = buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.reached += buffer[..blank].iter().filter(|byte| **byte == b'\n').count() as u64;
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
        self.item_line = self.reached;
        self.number += 1;
        self.is_first = false;
        let mut scan = Scan::default();
        scan.step(first);
        loop {
            let buffer = self.bytes.fill_buf().map_err(|error| broken(&self.name, self.reached, error))?;
            if buffer.is_empty() {
                return Err(self.cut());
            }
            let length = buffer.iter().position(|byte| scan.step(*byte));
            let taken = &buffer[..length.unwrap_or(buffer.len())];
            self.reached += taken.iter().filter(|byte| **byte == b'\n').count() as u64;
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
        Error::input(message).at(format!("{}:{}", self.name, self.reached)).hint(match self.key {
            None => format!("it is one JSON array of {}", self.of),
            Some(key) => format!("it is JSON with arrays called \"{key}\""),
        })
    }

    fn cut(&self) -> Error {
        Error::input("not valid JSON: it ends within the array")
            .at(format!("{}:{}", self.name, self.reached))
            .hint("the file is truncated")
    }
}

/// What stood before, on the way to an array.
#[derive(Clone, Copy)]
enum Met {
    Key,
    Colon,
    Other,
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

    fn spans(text: &str) -> Result<Vec<(u64, String)>> {
        let mut items = Items::under(&Input::Bytes(Arc::from(text.as_bytes())), "spans")?;
        let mut all = Vec::new();
        while items.advance()? {
            all.push((items.line(), String::from_utf8_lossy(items.current().trim_ascii()).into_owned()));
        }
        Ok(all)
    }

    /// Broken by: a value that is taken for a key, or an array within an item for one of its own.
    #[test]
    fn arrays_of_a_name_are_found_wherever_they_are() {
        let text = "{\"a\":\"spans\",\"spans\":5,\"b\":[{\"spans\" :\n[1,{\"spans\":[2]}]},\n\
                    {\"spans\":[]}]}\n\
                    {\"x\":\"\\\"spans\",\"spans\":[3]}";
        let found = spans(text).unwrap();
        let expected = [(2, "1"), (2, "{\"spans\":[2]}"), (4, "3")];
        assert!(found.iter().map(|(line, text)| (*line, text.as_str())).eq(expected), "{found:?}");
        for (text, expected) in [
            ("", "<memory>:1: there is no array \"spans\""),
            ("{\"spans\":[1]", "<memory>:1: not valid JSON: it ends"),
            ("{\"spans\":[1,", "<memory>:1: not valid JSON: it ends"),
            ("{\"spans\":[1]}\n]", "<memory>:2: not valid JSON: a bracket"),
            ("{\"spans", "<memory>:1: not valid JSON: it ends"),
        ] {
            let error = spans(text).unwrap_err().to_string();
            assert!(error.starts_with(expected) && error.contains("\nhint: "), "{text}: {error}");
        }
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
