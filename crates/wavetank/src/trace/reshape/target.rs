//! Where a trace goes: which format, which file, and its rows written there.

use std::fs;
use std::io;
use std::path::Path;

use wavetank_model::{Error, ErrorKind, Result};
use wavetank_trace::convert::{Fitting, Setting};
use wavetank_trace::requests::{self, Blocks, Entry, Prompts, Provides, Reader, Source, WriteOptions};
use wavetank_trace::{Draft, Fill, Meter, Output, Row};

/// A trace to write, as typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceOutput {
    /// A path, `format:path`, or `-` for standard output.
    pub file: String,
    /// Its format, unless it stands before the path; otherwise by the file's name, or as it was read.
    pub to: Option<String>,
    /// What stands in for what is not said and must be.
    pub fill: Fill,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceWritten {
    /// The format.
    pub format: &'static str,
    /// Requests.
    pub requests: u64,
    /// What was skipped, filled and lost, in words.
    pub notes: Vec<String>,
}

/// What is written of.
pub(super) struct Origin {
    pub(super) provides: Provides,
    /// The format to write where nothing else is said.
    pub(super) format: &'static Entry,
}

impl Origin {
    pub(super) fn of(source: &Source) -> Self {
        Self { provides: source.format.provides, format: source.format }
    }
}

impl TraceOutput {
    /// Refuses to write over what is read.
    pub(super) fn check_apart(&self, source: &Source) -> Result<()> {
        let (_, path) = self.split();
        let own = fs::canonicalize(path).ok();
        let is_same = |input: &String| own.is_some() && fs::canonicalize(input).ok() == own;
        if Path::new(path).is_file() && source.paths().iter().any(is_same) {
            return Err(Error::usage("is also what is read").at(path).hint("write to another file"));
        }
        Ok(())
    }

    /// A format before a colon, and the path.
    fn split(&self) -> (Option<&'static Entry>, &str) {
        let named = self.file.split_once(':');
        let named = named.and_then(|(name, path)| Some((requests::find(name).ok()?, path)));
        named.map_or((None, &self.file), |(format, path)| (Some(format), path))
    }

    fn format(&self, origin: &Origin) -> Result<&'static Entry> {
        let (named, path) = self.split();
        let to = self.to.as_deref().map(requests::find).transpose()?;
        match (named, to) {
            (Some(named), Some(to)) if named.name != to.name => {
                let both = format!("{} was named before the path", named.name);
                Err(Error::usage(both).at(format!("--to {}", to.name)).hint("name one format"))
            }
            (Some(format), _) | (None, Some(format)) => Ok(format),
            (None, None) => Ok(by_name(path).unwrap_or(origin.format)),
        }
    }

    /// Writes all that `reader` reads; nothing stays of a file that is not written to its end.
    pub(super) fn write(
        &self,
        reader: &mut dyn Reader,
        origin: &Origin,
        meter: &Meter,
    ) -> Result<TraceWritten> {
        let format = self.format(origin)?;
        check_prompts(format, origin)?;
        let tokens_per_id = reader.tokens_per_id();
        let setting =
            Setting { target: format, tokens_per_id, blocks: origin.provides.blocks, fill: self.fill };
        let mut fitting = Fitting::of(&setting)?;
        let has_ids = format.provides.blocks != Blocks::Absent;
        let options = WriteOptions { tokens_per_id: fitting.tokens_per_id().filter(|_| has_ids) };
        let begin = format.write.expect("what is fitted is written");
        let (output, draft) = self.open()?;
        let mut writer = begin(output, &options).map_err(|error| self.failed(error))?;
        let (mut row, mut requests) = (Row::default(), 0);
        while reader.read(&mut row)? {
            meter.count()?;
            fitting.fit(&mut row).map_err(|error| error.at(reader.place()))?;
            if !self.is_taken(writer.write(&row))? {
                break;
            }
            requests += 1;
        }
        if requests == 0 {
            return Err(Error::input("there are no requests to write").hint("nothing was written"));
        }
        self.is_taken(writer.finish())?;
        draft.map_or(Ok(()), Draft::keep)?;
        let mut notes = reader.findings().notes;
        notes.extend(fitting.notes());
        Ok(TraceWritten { format: format.name, requests, notes })
    }

    fn open(&self) -> Result<(Output<'static>, Option<Draft>)> {
        match self.split() {
            (_, "-") => Ok((Output::to(io::BufWriter::with_capacity(1 << 18, io::stdout())), None)),
            (_, path) => Output::draft(Path::new(path)).map(|(output, draft)| (output, Some(draft))),
        }
    }

    /// Whether somebody takes what is written: a reader of standard output that went away is no error.
    fn is_taken(&self, written: io::Result<()>) -> Result<bool> {
        match written {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe && self.split().1 == "-" => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    #[cold]
    fn failed(&self, error: io::Error) -> Error {
        let place = match self.split() {
            (_, "-") => "standard output".to_owned(),
            (_, path) => path.to_owned(),
        };
        Error::new(ErrorKind::Io, format!("cannot write: {error}")).at(place).source(error)
    }
}

/// The format whose name is in that of the file; the longest of several.
fn by_name(path: &str) -> Option<&'static Entry> {
    let name = Path::new(path).file_name()?.to_str()?.to_lowercase().replace('-', "_");
    requests::ALL.iter().filter(|entry| name.contains(entry.name)).max_by_key(|entry| entry.name.len())
}

/// What a turn adds is not the whole prompt.
fn check_prompts(format: &Entry, origin: &Origin) -> Result<()> {
    match (origin.provides.prompts, format.provides.prompts) {
        (Prompts::Whole, Prompts::Whole) | (Prompts::Added, Prompts::Added) => Ok(()),
        (Prompts::Added, Prompts::Whole) => Err(Error::usage(format!(
            "the trace tells what every turn adds, and {} holds whole prompts",
            format.name
        ))
        .hint("answers are part of later prompts, and their blocks have no ids; replay it as it is")),
        (Prompts::Whole, Prompts::Added) => Err(Error::usage(format!(
            "the trace tells whole prompts, and {} holds what every turn adds",
            format.name
        ))
        .hint("name a format of whole prompts, such as mooncake")),
    }
}
