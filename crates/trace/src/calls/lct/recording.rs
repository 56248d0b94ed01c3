//! A recording in files: when one is full it goes on in the next, and at its largest size it stops and says
//! so.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use wavetank_model::{Clock, Error, ErrorKind, KeyTable, Nanos, Recorded, Result, StorageCall};

use super::header::Header;
use super::operation::Operation;
use super::writer::Writer;
use crate::Output;

/// What is kept free below the largest size for saying that it was reached, and what was lost then.
const RESERVED: u64 = 512;
/// A compressed file is made readable up to here each time so much was written.
const FLUSHED: u64 = 1 << 20;

/// How large files get, in bytes before compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LctOptions {
    /// A file that would be larger is closed and the recording goes on in the next one: `x.lct`, `x.2.lct`.
    pub rotate_bytes: Option<u64>,
    /// The recording stops when all its files would be larger.
    pub cap_bytes: Option<u64>,
}

/// A recording being written.
pub struct Recording {
    path: PathBuf,
    header: Header,
    options: LctOptions,
    open: fn(&Path) -> Result<Output<'static>>,
    writer: Writer<'static>,
    /// The first file, locked: nobody else records to it meanwhile.
    _claim: Option<File>,
    /// Bytes of files that are closed.
    closed: u64,
    /// Bytes of this file that others can read.
    flushed: u64,
    calls: u64,
    /// Calls that others can read.
    flushed_calls: u64,
    lost: u64,
    latest: Option<Clock>,
}

/// What a recording came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its files in order.
    pub files: Vec<PathBuf>,
    /// Bytes before compression.
    pub bytes: u64,
    /// Calls in it.
    pub calls: u64,
    /// Calls that came after its largest size was reached.
    pub lost: u64,
}

impl Recording {
    /// Makes the file `path` anew, compressed if it ends in `.zst`, and writes its header. One that another
    /// recording is being written to stays.
    pub fn create(path: &Path, header: Header, options: LctOptions) -> Result<Self> {
        Self::begin(path, header, options, Output::direct)
    }

    /// The same for who flushes it: many calls are one write.
    pub fn buffered(path: &Path, header: Header, options: LctOptions) -> Result<Self> {
        let mut begun = Self::unflushed(path, header, options)?;
        begun.flush()?;
        Ok(begun)
    }

    pub(crate) fn unflushed(path: &Path, header: Header, options: LctOptions) -> Result<Self> {
        Self::begin(path, header, options, Output::create)
    }

    fn begin(
        path: &Path,
        header: Header,
        options: LctOptions,
        open: fn(&Path) -> Result<Output<'static>>,
    ) -> Result<Self> {
        check_place(path, options)?;
        let claim = claim(path, File::options().write(true).create(true).truncate(false))?;
        let refused = |error| cannot_write(path, error);
        let writer = Writer::begin(open(path)?, &header).map_err(refused)?;
        Ok(Self {
            path: path.to_owned(),
            header,
            options,
            open,
            writer,
            _claim: claim,
            closed: 0,
            flushed: 0,
            calls: 0,
            flushed_calls: 0,
            lost: 0,
            latest: None,
        })
    }

    /// Adds a call.
    pub fn write(&mut self, recorded: &Recorded, keys: &KeyTable) -> Result<()> {
        self.latest = Some(self.writer.clock(recorded));
        if self.lost > 0 {
            self.lost += 1;
            return Ok(());
        }
        let cap = self.options.cap_bytes.unwrap_or(u64::MAX);
        let left = cap.saturating_sub(self.closed).saturating_sub(RESERVED);
        let full = self.options.rotate_bytes.unwrap_or(u64::MAX);
        if self.attempt(recorded, keys, left.min(full))? {
            return Ok(());
        }
        // A file has a call at least, or one too large for any file would open files without end.
        if left > full && self.calls > 0 {
            self.rotate()?;
            let left = cap.saturating_sub(self.closed).saturating_sub(RESERVED);
            if self.attempt(recorded, keys, left)? {
                return Ok(());
            }
        } else if left > full && self.attempt(recorded, keys, left)? {
            return Ok(());
        }
        self.lost = 1;
        self.mark(Operation::Capped, cap)?;
        // Nothing more comes that would bring it to the file.
        self.flush()
    }

    /// Says that so many calls are missing here, if there is room to; they are among those lost if not.
    pub fn gap(&mut self, missing: u64) -> Result<bool> {
        let (calls, lost) = (self.calls, self.lost);
        self.write(&self.gap_of(missing), &KeyTable::default())?;
        let is_marked = self.calls > calls;
        (self.calls, self.lost) = (calls, if is_marked { lost } else { lost + missing });
        Ok(is_marked)
    }

    fn gap_of(&self, lost: u64) -> Recorded {
        let clock = self.latest;
        let at = Nanos::from_seconds(clock.map_or(0.0, |clock| clock.mono_s));
        Recorded { clock, ..Recorded::plain(at, StorageCall::Gap { lost }) }
    }

    fn attempt(&mut self, recorded: &Recorded, keys: &KeyTable, most: u64) -> Result<bool> {
        let taken = self.writer.record_within(recorded, keys, most);
        if !taken.map_err(|error| cannot_write(&self.path, error))? {
            return Ok(false);
        }
        self.calls += 1;
        if self.writer.bytes() >= self.flushed + FLUSHED {
            self.flush()?;
        }
        Ok(true)
    }

    /// Has everything written so far readable by others.
    pub fn flush(&mut self) -> Result<()> {
        self.flushed = self.writer.bytes();
        self.writer.flush().map_err(|error| cannot_write(&self.path, error))?;
        self.flushed_calls = self.calls;
        Ok(())
    }

    fn mark(&mut self, operation: Operation, number: u64) -> Result<()> {
        let clock = self.latest.unwrap_or(Clock { mono_s: 0.0, wall_s: self.header.wall_start_s });
        self.writer.mark(operation, clock, number).map_err(|error| cannot_write(&self.path, error))
    }

    fn rotate(&mut self) -> Result<()> {
        let part = self.header.part + 1;
        self.mark(Operation::Continued, part.into())?;
        let header = Header { part, ..self.header.clone() };
        let next = part_path(&self.path, part);
        // What came there since the recording began is somebody else's.
        File::create_new(&next).map_err(|error| cannot_write(&next, error))?;
        let begun = Writer::begin((self.open)(&next)?, &header).map_err(|e| cannot_write(&next, e))?;
        let full = std::mem::replace(&mut self.writer, begun);
        self.closed += full.bytes();
        (self.header, self.flushed) = (header, 0);
        full.finish().map_err(|error| cannot_write(&self.path, error))
    }

    /// Ends the recording; what came after its largest size stands in it as lost.
    pub fn finish(mut self) -> Result<Written> {
        if self.lost > 0 {
            let gap = self.gap_of(self.lost);
            let written = self.writer.record(&gap, &KeyTable::default());
            written.map_err(|error| cannot_write(&self.path, error))?;
        }
        let Self { path, header, writer, closed, calls, lost, .. } = self;
        let bytes = closed + writer.bytes();
        writer.finish().map_err(|error| cannot_write(&path, error))?;
        let files = (1..=header.part).map(|part| part_path(&path, part)).collect();
        Ok(Written { files, bytes, calls, lost })
    }

    /// What others can read of it by now.
    pub fn so_far(&self) -> Written {
        let files = (1..=self.header.part).map(|part| part_path(&self.path, part)).collect();
        Written { files, bytes: self.closed + self.flushed, calls: self.flushed_calls, lost: self.lost }
    }

    /// Leaves a recording that cannot be written any more as it is: at least what was flushed is in it.
    pub(crate) fn abandon(self) -> Written {
        self.so_far()
    }
}

/// Refuses a recording where another one is being written, or in several files where one is that a part of it
/// would replace.
pub fn check_place(path: &Path, options: LctOptions) -> Result<()> {
    claim(path, File::options().write(true))?;
    if options.rotate_bytes.is_none() {
        return Ok(());
    }
    let folder = folder_of(path);
    let there = fs::read_dir(folder).into_iter().flatten().flatten();
    let part = there.map(|entry| folder.join(entry.file_name())).find(|other| is_later_part(path, other));
    let Some(part) = part else { return Ok(()) };
    Err(Error::usage("is there already, and the recording would go on in it")
        .at(part.display().to_string())
        .hint(format!("move it away, or record to another name than {}", path.display())))
}

/// Locks a file that can be opened so; refused if somebody else has.
fn claim(path: &Path, how: &OpenOptions) -> Result<Option<File>> {
    // Why it cannot be opened is said by who writes to it; what cannot be locked is not shared by chance.
    let Ok(file) = how.open(path) else { return Ok(None) };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::usage("another recording is being written to it")
            .at(path.display().to_string())
            .hint("record to another name, or end the one that runs first")),
        _ => Ok(Some(file)),
    }
}

/// Whether a recording that begins in `first` may go on in a file of this name.
pub fn is_later_part(first: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(folder_of(path)).unwrap_or_else(|_| folder_of(path).to_owned());
    let (name, other_name) = (name_of(first), name_of(other));
    let (stem, ending) = stem_and_ending(&name);
    let number = other_name.strip_prefix(stem).and_then(|rest| rest.strip_suffix(ending)?.strip_prefix('.'));
    let is_part = number.and_then(|number| number.parse::<u32>().ok()).is_some_and(|number| number > 1);
    is_part && real(first) == real(other)
}

/// `a.lct.zst` is `a.2.lct.zst` as the second part.
pub(super) fn part_path(path: &Path, part: u32) -> PathBuf {
    if part == 1 {
        return path.to_owned();
    }
    let name = name_of(path);
    let (stem, ending) = stem_and_ending(&name);
    path.with_file_name(format!("{stem}.{part}{ending}"))
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn stem_and_ending(name: &str) -> (&str, &str) {
    name.find(".lct").map_or((name, ""), |at| name.split_at(at))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn cannot_write(path: &Path, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write: {error}")).at(path.display().to_string()).source(error)
}
