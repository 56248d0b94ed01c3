//! A file as frames: a length of four bytes, then so many (spec/storage-trace.md 1.1). One buffer, which
//! grows with what is there and not with what a length claims.

use std::io::{self, BufRead};
use std::ops::Range;

use wavetank_model::Result;

use crate::Input;
use crate::call_survey::{Cut, Stop};

const PREFIX: usize = 4;
const BUFFER: usize = 256 << 10;

/// An open file.
pub(super) struct Frames {
    name: String,
    bytes: Box<dyn BufRead + Send>,
    limit: usize,
    buffer: Vec<u8>,
    /// The part of `buffer` that is not read yet.
    unread: Range<usize>,
    /// Where it begins in the file.
    offset: u64,
    /// The input is at its end.
    ended: bool,
    /// It ended before it should have.
    broke_off: bool,
}

/// What comes next.
pub(super) enum Next {
    /// A frame: where it begins in the file, and where its content is in the buffer.
    Frame(u64, Range<usize>),
    /// The file ends within a frame.
    Cut(Cut),
    /// The file cannot be read on: nothing tells where the next frame begins.
    Stop(Stop),
    /// Nothing.
    End,
}

impl Frames {
    pub(super) fn open(input: &Input, limit: usize) -> Result<Self> {
        Ok(Self {
            name: input.name(),
            bytes: input.open()?,
            limit,
            buffer: Vec::new(),
            unread: 0..0,
            offset: 0,
            ended: false,
            broke_off: false,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of a frame that [`Self::advance`] found.
    pub(super) fn content(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    /// Moves to the next frame.
    pub(super) fn advance(&mut self) -> Next {
        self.found().unwrap_or_else(|stop| stop)
    }

    fn found(&mut self) -> std::result::Result<Next, Next> {
        if !self.fill(PREFIX)? {
            return Ok(self.end());
        }
        let Range { start, .. } = self.unread;
        let prefix: [u8; PREFIX] = self.buffer[start..start + PREFIX].try_into().expect("filled");
        let length = u32::from_be_bytes(prefix) as usize;
        if length > self.limit {
            let limit = self.limit;
            return Err(self.stop(format!("a frame of {length} bytes, above the limit of {limit}")));
        }
        if !self.fill(PREFIX + length)? {
            return Ok(self.end());
        }
        let (offset, start) = (self.offset, self.unread.start + PREFIX);
        self.offset += (PREFIX + length) as u64;
        self.unread.start = start + length;
        Ok(Next::Frame(offset, start..start + length))
    }

    /// What is left is less than a frame.
    fn end(&self) -> Next {
        match self.unread.len() as u64 {
            0 if !self.broke_off => Next::End,
            bytes => Next::Cut(Cut { offset: self.offset, bytes }),
        }
    }

    /// Reads on until `wanted` bytes are there. Tells whether they are.
    fn fill(&mut self, wanted: usize) -> std::result::Result<bool, Next> {
        while self.unread.len() < wanted && !self.ended {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
            if self.unread.end == self.buffer.len() {
                let size = (self.buffer.len() * 2).min(self.limit + PREFIX).max(BUFFER);
                self.buffer.reserve_exact(size - self.buffer.len());
                self.buffer.resize(size, 0);
            }
            match self.bytes.read(&mut self.buffer[self.unread.end..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.unread.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A compressed recording whose recorder was killed: what could be unpacked is good.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    (self.ended, self.broke_off) = (true, true);
                }
                Err(error) => return Err(self.stop(format!("cannot read on: {error}"))),
            }
        }
        Ok(self.unread.len() >= wanted)
    }

    #[cold]
    fn stop(&self, reason: String) -> Next {
        Next::Stop(Stop { offset: self.offset, reason })
    }
}
