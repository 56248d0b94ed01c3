//! `--io-trace-log`: what was done to the cache, in the reference's format.

use std::io;
use std::path::Path;

use wavetank_bench::{Deed, Logged, Stage, TierRole};
use wavetank_model::{Error, Result};
use wavetank_trace::Output;
use wavetank_trace::calls::{self, Call, Operation, Phase, Writer};

/// A log being written.
pub(super) struct IoLog {
    writer: Box<dyn Writer>,
    place: String,
}

impl IoLog {
    /// Creates `path`, compressed if its name says so.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let writer = calls::write("mlperf-csv", Output::create(path)?)?;
        Ok(Self { writer, place: path.display().to_string() })
    }

    pub(super) fn write(&mut self, row: &Logged) -> io::Result<()> {
        let Logged { at, bytes, .. } = *row;
        self.writer.write(&Call {
            at,
            operation: match row.deed {
                Deed::Read => Operation::Read,
                Deed::Write => Operation::Write,
                Deed::Delete => Operation::Delete,
            },
            bytes,
            tier: match row.tier {
                TierRole::Gpu => 0,
                TierRole::Cpu => 1,
                TierRole::Storage => 2,
            },
            key: row.name.to_string().into(),
            phase: match row.stage {
                Stage::Prefill => Phase::Prefill,
                Stage::Decode => Phase::Decode,
                Stage::Evict => Phase::Evict,
                Stage::Both => Phase::Both,
            },
        })
    }

    /// Writes what is left.
    pub(super) fn finish(self) -> Result<()> {
        let told = |error: io::Error| Error::usage(format!("cannot write: {error}")).at(self.place.clone());
        self.writer.finish().map_err(told)
    }
}
