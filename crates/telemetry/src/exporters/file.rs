//! A file of JSON lines, for when there is no collector: see [`crate::json`].

use std::fs::File;
use std::io::{BufWriter, Write};
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
    let file = File::create(&target.address).map_err(|error| Error::io(Path::new(&target.address), error))?;
    Ok(Box::new(Lines(BufWriter::new(file))))
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
