//! Storage-call traces: what a run reads, writes and deletes in which tier. One file per format, one row
//! each in [`ALL`]; formats are read and written.

pub mod mlperf_csv;

use std::io;

use wavetank_model::{Described, Error, ErrorKind, Nanos, Result, find};

use crate::{Input, Output};

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
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

/// Calls in the order of the trace; times never go back. Nothing follows an error.
pub type Calls = Box<dyn Iterator<Item = Result<Call>>>;

/// Writes calls in some format.
pub trait Writer: Send {
    /// Adds a call.
    fn write(&mut self, call: &Call) -> io::Result<()>;
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

impl Described for Entry {
    fn name(&self) -> &'static str {
        self.name
    }
    fn about(&self) -> &'static str {
        self.about
    }
}

/// Every storage-call trace format, alphabetical. `wavetank list calls` prints this table.
pub const ALL: &[Entry] = &[mlperf_csv::ENTRY];

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
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    /// Calls as a log has them: microseconds from the first one.
    fn calls() -> impl Strategy<Value = Vec<Call>> {
        let operation = prop::sample::select(vec![Operation::Read, Operation::Write, Operation::Delete]);
        let phase = prop::sample::select(vec![Phase::Prefill, Phase::Decode, Phase::Evict, Phase::Both]);
        let call = (0u64..1 << 40, operation, any::<u64>(), any::<u8>(), any::<String>(), phase);
        prop::collection::vec(call, 0..20).prop_map(|calls| {
            let mut micros = 0;
            let mut call =
                |(number, (pause, operation, bytes, tier, key, phase)): (usize, (_, _, _, _, String, _))| {
                    micros += if number == 0 { 0 } else { pause };
                    Call {
                        at: Nanos(micros * 1000),
                        operation,
                        bytes,
                        tier,
                        key: key.into_boxed_str(),
                        phase,
                    }
                };
            calls.into_iter().enumerate().map(&mut call).collect()
        })
    }

    fn written(format: &Entry, calls: &[Call], origin: Nanos) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = (format.write)(Output::to(&mut bytes)).unwrap();
        for call in calls {
            writer.write(&Call { at: call.at + origin, ..call.clone() }).unwrap();
        }
        writer.finish().unwrap();
        bytes
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(calls in calls(), origin_s in 0u64..2_000_000_000) {
            for format in ALL {
                let bytes = written(format, &calls, Nanos(origin_s * 1_000_000_000));
                let input = Input::Bytes(Arc::from(bytes));
                let read: Result<Vec<Call>> = (format.read)(&input).unwrap().collect();
                prop_assert_eq!(&read.unwrap(), &calls, "{}", format.name);
            }
        }
    }

    #[test]
    fn an_unknown_format_lists_the_known_ones() {
        let error = read("csv", &Input::Stdin).err().unwrap().to_string();
        assert!(error.contains("unknown storage-call format \"csv\"\nhint: known: mlperf-csv"), "{error}");
    }
}
