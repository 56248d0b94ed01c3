//! Calls as frames, one write each, so that a process that is killed loses no more than the last one.

use std::io::{self, Write};

use wavetank_model::{Clock, KeyTable, Recorded};

use super::encode::Pen;
use super::header::Header;
use super::operation::Operation;
use crate::Output;
use crate::calls::{self, Call};

/// A recording being written. The reference reads it as one of its own.
pub struct Writer<'w> {
    output: Output<'w>,
    pen: Pen,
    wall_start_s: f64,
    bytes: u64,
}

impl<'w> Writer<'w> {
    /// Begins a recording: the header is written at once.
    pub fn begin(mut output: Output<'w>, header: &Header) -> io::Result<Self> {
        let mut pen = Pen::default();
        let frame = pen.header(header);
        output.write_all(frame)?;
        let bytes = frame.len() as u64;
        Ok(Self { output, pen, wall_start_s: header.wall_start_s, bytes })
    }

    /// Adds a call.
    pub fn record(&mut self, recorded: &Recorded, keys: &KeyTable) -> io::Result<()> {
        self.record_within(recorded, keys, u64::MAX).map(drop)
    }

    /// Adds a call unless the file would have more than `most` bytes then. Tells whether it did.
    pub(super) fn record_within(
        &mut self,
        recorded: &Recorded,
        keys: &KeyTable,
        most: u64,
    ) -> io::Result<bool> {
        let clock = self.clock(recorded);
        let frame = self.pen.record(recorded, clock, keys);
        let bytes = self.bytes + frame.len() as u64;
        if bytes > most {
            return Ok(false);
        }
        self.output.write_all(frame)?;
        self.bytes = bytes;
        Ok(true)
    }

    pub(super) fn mark(&mut self, operation: Operation, clock: Clock, number: u64) -> io::Result<()> {
        let frame = self.pen.mark(operation, clock, number);
        self.bytes += frame.len() as u64;
        self.output.write_all(frame)
    }

    /// When a call was made, computed where it does not say.
    pub(super) fn clock(&self, recorded: &Recorded) -> Clock {
        let mono_s = recorded.at.as_seconds();
        recorded.clock.unwrap_or(Clock { mono_s, wall_s: self.wall_start_s + mono_s })
    }

    /// Bytes written, before compression.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Has everything written so far readable by others, if it is compressed.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// Ends the recording.
    pub fn finish(self) -> io::Result<()> {
        self.output.finish()
    }
}

impl calls::Writer for Writer<'_> {
    fn write(&mut self, call: &Call, keys: &KeyTable) -> io::Result<()> {
        match call {
            Call::Storage(recorded) => self.record(recorded, keys),
            Call::Tier(_) => Err(io::Error::other("an operation on one tier is no storage call")),
        }
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        Writer::finish(*self)
    }
}
