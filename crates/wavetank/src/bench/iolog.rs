//! `--io-trace-log`: what was done to the cache, in the reference's format.

use std::io;
use std::path::{Path, PathBuf};

use wavetank_bench::{Deed, Logged, Stage};
use wavetank_model::{Error, ErrorKind, KeyTable, Result, TierRole};
use wavetank_trace::Output;
use wavetank_trace::calls::{self, Call, Operation, Phase, TierCall, Writer};

/// A log being written.
pub(super) struct IoLog {
    writer: Box<dyn Writer>,
    path: PathBuf,
    /// None: the keys of this format are names.
    keys: KeyTable,
}

impl IoLog {
    /// Creates `path` and the directories it is in, compressed if its name says so.
    pub(super) fn create(path: &Path) -> Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| cannot_write(path, &error))?;
        }
        let writer = calls::write("mlperf-csv", Output::create(path)?)?;
        Ok(Self { writer, path: path.to_owned(), keys: KeyTable::default() })
    }

    pub(super) fn write(&mut self, row: &Logged) -> io::Result<()> {
        let Logged { at, bytes, .. } = *row;
        let call = Call::Tier(TierCall {
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
        });
        self.writer.write(&call, &self.keys)
    }

    /// Writes what is left.
    pub(super) fn finish(self) -> Result<()> {
        let Self { writer, path, .. } = self;
        writer.finish().map_err(|error| cannot_write(&path, &error))
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write: {error}")).at(path.display().to_string())
}
