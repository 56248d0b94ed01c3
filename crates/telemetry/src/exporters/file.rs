//! A file of JSON lines, for when there is no collector: see [`crate::json`].
//!
//! Lines of earlier runs stay, and new ones follow. One process has it at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use wavetank_model::{Error, Result};

use super::{Attempt, Entry, Exporter, Target, Verdict};
use crate::json;
use crate::resource::Resource;
use crate::span::Span;
use crate::tally::Reason;

pub(super) const ENTRY: Entry =
    Entry { name: "file", about: "OTLP as JSON lines in a file (--otlp-file)", open };

struct Lines(BufWriter<File>);

fn open(target: &Target) -> Result<Box<dyn Exporter>> {
    let path = Path::new(&target.address);
    let wrong = |error| Error::io(path, error);
    let mut file = OpenOptions::new().append(true).create(true).open(path).map_err(wrong)?;
    // What is no file, a pipe or a terminal, may be shared and has no end to look at.
    if file.metadata().map_err(wrong)?.is_file() {
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use()),
            Err(TryLockError::Error(error)) => return Err(wrong(error)),
        }
        // A process that was killed may have left half a line: it stays, on a line of its own.
        if last_byte(path).is_some_and(|byte| byte != b'\n') {
            file.write_all(b"\n").map_err(wrong)?;
        }
    }
    Ok(Box::new(Lines(BufWriter::new(file))))
}

fn in_use() -> Error {
    Error::usage("another process writes spans to it").hint("give another --otlp-file, or end that process")
}

/// Of a file that is not empty and may be read.
fn last_byte(path: &Path) -> Option<u8> {
    let mut file = File::open(path).ok()?;
    let mut last = [0];
    file.seek(SeekFrom::End(-1)).ok()?;
    file.read_exact(&mut last).ok()?;
    Some(last[0])
}

impl Exporter for Lines {
    fn export<'a>(&'a mut self, resource: &'a Resource, spans: &'a [Span]) -> Attempt<'a> {
        let written = json::write_line(&mut self.0, resource, spans).and_then(|()| self.0.flush());
        let verdict = match written {
            Ok(()) => Verdict::taken(None),
            Err(error) => Verdict::Lost { why: Reason::Unwritten, message: error.to_string() },
        };
        Box::pin(std::future::ready(verdict))
    }
}
