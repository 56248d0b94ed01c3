//! Files that are there as a whole or not at all, whatever ends the writing of them: a full drive, a signal.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use wavetank_model::{Error, ErrorKind, Result};
use wavetank_trace::Draft;

/// Creates `path` and the folders above it, filled by `content`. Where that fails, what was there stays.
pub fn write_whole(
    path: &Path,
    content: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> Result<()> {
    let mut whole = WholeFile::begin(path)?;
    content(&mut whole.out).map_err(|error| cannot_write(path, &error))?;
    whole.keep()
}

/// A file that is filled while something runs. What has its name stays as it is until it is kept.
#[must_use]
pub struct WholeFile {
    path: PathBuf,
    out: BufWriter<File>,
    draft: Draft,
}

impl WholeFile {
    /// Begins `path` and makes the folders above it.
    pub fn begin(path: &Path) -> Result<Self> {
        let begun = make_folder(path).and_then(|()| Draft::begin(path));
        let (file, draft) = begun.map_err(|error| cannot_write(path, &error))?;
        Ok(Self { path: path.to_owned(), out: BufWriter::new(file), draft })
    }

    /// Gives it its name, with all that was written.
    pub fn keep(mut self) -> Result<()> {
        self.out.flush().map_err(|error| cannot_write(&self.path, &error))?;
        self.draft.keep()
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Finds out before a long run whether `path` can be written after it. A file that is there stays as it is,
/// and one that is not never comes into being, whatever ends the trial.
pub fn try_out(path: &Path) -> Result<()> {
    let is_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    let tried = match path.exists() {
        true => File::options().append(true).open(path).map(drop),
        false if is_folder => Err(io::ErrorKind::IsADirectory.into()),
        false => make_folder(path).and_then(|()| Draft::begin(path).map(drop)),
    };
    tried.map_err(|error| cannot_write(path, &error))
}

/// Makes the folders above `path`.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => fs::create_dir_all(parent),
        _ => Ok(()),
    }
}

/// The error of a file that cannot be written.
pub fn cannot_write(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write: {error}")).at(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a trial that leaves something or finds out too late what cannot be written. One under the
    /// file's own name leaves an empty file when it is ended: seed 202 of `signals` in the torture.
    #[test]
    fn a_trial_leaves_nothing_and_knows() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["", "below/", &format!("x/{}", "n".repeat(300))] {
            assert!(try_out(&at(name)).is_err(), "{name}");
        }
        try_out(&at("new/r.json")).unwrap();
        assert_eq!(fs::read_dir(at("new")).unwrap().count(), 0);
        fs::write(at("there"), "before").unwrap();
        try_out(&at("there")).unwrap();
        assert_eq!(fs::read(at("there")).unwrap(), b"before");
    }

    /// Broken by: a file that is emptied before it is written, a part that stays, or bytes that are held back
    /// and lost without a word.
    #[test]
    fn what_cannot_be_written_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/r.json");
        write_whole(&path, |out| out.write_all(b"before")).unwrap();
        let failed = write_whole(&path, |out| {
            out.write_all(&[b'x'; 100_000])?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(failed.unwrap_err().to_string().contains("r.json: cannot write: "));
        assert_eq!(fs::read(&path).unwrap(), b"before");
        assert_eq!(fs::read_dir(folder.path().join("a")).unwrap().count(), 1);
        let full = write_whole(Path::new("/dev/full"), |out| out.write_all(b"a few bytes"));
        assert!(full.unwrap_err().to_string().starts_with("/dev/full: cannot write: "));
    }
}
