//! Storage-call traces: what a run asks a store, or reads, writes and deletes in which of its tiers. One
//! file per format, one row each in [`ALL`]; formats are read and written.

pub mod lct;
pub mod mlperf_csv;

use std::io;

use wavetank_model::{Error, ErrorKind, KeyTable, Nanos, Recorded, Result, described, find};

pub use crate::call_guess::{guess, recognise};
use crate::{CallSurvey, Input, Output};

/// One record of a trace. A format has one kind of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// What an engine asks of the store, or background work of it.
    Storage(Recorded),
    /// What is done to an object in one tier.
    Tier(TierCall),
}

/// What is done to an object in one tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierCall {
    /// When it was made. Readers count from the first call; writers take any origin.
    pub at: Nanos,
    /// What it does.
    pub operation: Operation,
    /// The size of the object.
    pub bytes: u64,
    /// The tier it goes to, 0 the fastest.
    pub tier: u8,
    /// The object.
    pub key: Box<str>,
    /// What it is done for.
    pub phase: Phase,
}

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads an object whole.
    Read,
    /// Writes an object whole.
    Write,
    /// Removes an object.
    Delete,
}

/// What a call is done for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Storing what a prompt left.
    Prefill,
    /// Generating from what is stored.
    Decode,
    /// Making room: a read in one tier and a write in the next, or a delete.
    Evict,
    /// Prefill and decode in one.
    Both,
}

/// Calls in the order of the trace. Nothing follows an error.
pub type Calls = Box<dyn CallReader>;

/// A trace being read.
pub trait CallReader: Iterator<Item = Result<Call>> {
    /// Every key and layout of the calls read so far.
    fn keys(&self) -> &KeyTable;
    /// What was met so far: a reader passes over what it cannot use, and counts it here.
    fn survey(&self) -> CallSurvey;
}

/// Writes calls in some format.
pub trait Writer: Send {
    /// Adds a call whose keys and layouts are in `keys`.
    fn write(&mut self, call: &Call, keys: &KeyTable) -> io::Result<()>;
    /// Ends the trace; without it the last calls may be missing.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// A row of the table.
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// One line for `wavetank list`.
    pub about: &'static str,
    /// Reads a trace as it goes.
    pub read: fn(&Input) -> Result<Calls>,
    /// Begins a trace.
    pub write: for<'w> fn(Output<'w>) -> io::Result<Box<dyn Writer + 'w>>,
}

described!(Entry);

/// Every storage-call trace format, alphabetical. `wavetank list calls` prints this table.
pub const ALL: &[Entry] = &[lct::ENTRY, mlperf_csv::ENTRY];

/// Reads `input` as the format called `name`.
pub fn read(name: &str, input: &Input) -> Result<Calls> {
    (find("storage-call format", ALL, name)?.read)(input)
}

/// Begins a trace of the format called `name`.
pub fn write<'w>(name: &str, output: Output<'w>) -> Result<Box<dyn Writer + 'w>> {
    let format = find("storage-call format", ALL, name)?;
    (format.write)(output)
        .map_err(|error| Error::new(ErrorKind::Io, format!("cannot write: {error}")).source(error))
}

#[cfg(test)]
mod tests;
