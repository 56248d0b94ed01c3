//! Where written bytes go: anything that takes them, or a file, compressed when its name says so.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use wavetank_model::{Error, ErrorKind, Result};

use crate::draft::Draft;

/// The level of `.zst` files: what the reference's logs have.
const ZSTD_LEVEL: i32 = 3;

/// Large files are written in few calls.
const BUFFER: usize = 256 << 10;

/// A place to write to. What it holds is complete only after [`Output::finish`].
pub struct Output<'w>(Kind<'w>);

enum Kind<'w> {
    Plain(Box<dyn Write + Send + 'w>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
}

impl<'w> Output<'w> {
    /// Writes to `bytes`.
    pub fn to(bytes: impl Write + Send + 'w) -> Self {
        Self(Kind::Plain(Box::new(bytes)))
    }

    /// Makes the file `path` anew; one that ends in `.gz` or `.zst` is compressed.
    pub fn create(path: &Path) -> Result<Self> {
        Self::over(created(path)?, path, buffered)
    }

    /// The same, but what is written is in the file when the call returns; compressed, when it is flushed.
    pub fn direct(path: &Path) -> Result<Self> {
        Self::over(created(path)?, path, |file| Box::new(file))
    }

    /// A file that gets the name `path` only when it is kept; what is no plain file is written at once.
    pub fn draft(path: &Path) -> Result<(Self, Draft)> {
        let (file, draft) = Draft::begin(path).map_err(|error| refused(path, error))?;
        Ok((Self::over(file, path, buffered)?, draft))
    }

    fn over(file: File, path: &Path, plain: fn(File) -> Box<dyn Write + Send>) -> Result<Self> {
        let kind = match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Kind::Gzip(GzEncoder::new(BufWriter::new(file), Compression::default())),
            Some("zst") => {
                let encoder = zstd::Encoder::new(BufWriter::new(file), ZSTD_LEVEL);
                Kind::Zstd(encoder.map_err(|error| refused(path, error))?)
            }
            _ => Kind::Plain(plain(file)),
        };
        Ok(Self(kind))
    }

    /// Writes what is still held.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Kind::Plain(mut bytes) => bytes.flush(),
            Kind::Gzip(encoder) => encoder.finish()?.flush(),
            Kind::Zstd(encoder) => encoder.finish()?.flush(),
        }
    }
}

fn created(path: &Path) -> Result<File> {
    File::create(path).map_err(|error| refused(path, error))
}

fn refused(path: &Path, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write: {error}"))
        .at(path.display().to_string())
        .hint("name a file in a folder that exists and may be written")
        .source(error)
}

fn buffered(file: File) -> Box<dyn Write + Send> {
    Box::new(BufWriter::with_capacity(BUFFER, file))
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::Plain(out) => out.write(bytes),
            Kind::Gzip(out) => out.write(bytes),
            Kind::Zstd(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::Plain(out) => out.flush(),
            Kind::Gzip(out) => out.flush(),
            Kind::Zstd(out) => out.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Input;

    #[test]
    fn what_is_written_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            ("log.csv", b"a lo".as_slice()),
            ("log.csv.gz", &[0x1f, 0x8b]),
            ("log.csv.zst", &[0x28, 0xb5, 0x2f, 0xfd]),
        ];
        for (name, start) in names {
            let path = folder.path().join(name);
            let mut output = Output::create(&path).unwrap();
            output.write_all(b"a log\n").unwrap();
            output.finish().unwrap();
            assert!(std::fs::read(&path).unwrap().starts_with(start), "{name}");
            let mut lines = Input::File(path).lines().unwrap();
            assert!(lines.advance().unwrap());
            assert_eq!(lines.current(), b"a log");
        }
    }

    /// Broken by: a draft under its own name, one that stays when it is dropped.
    #[test]
    fn a_draft_is_there_when_it_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl.gz");
        fs::write(&path, "before").unwrap();
        let names = || fs::read_dir(folder.path()).unwrap().count();
        let (mut output, draft) = Output::draft(&path).unwrap();
        output.write_all(b"after\n").unwrap();
        assert_eq!((fs::read(&path).unwrap(), names()), (b"before".to_vec(), 2));
        drop((output, draft));
        assert_eq!((fs::read(&path).unwrap(), names()), (b"before".to_vec(), 1));
        let (mut output, draft) = Output::draft(&path).unwrap();
        output.write_all(b"after\n").unwrap();
        output.finish().unwrap();
        draft.keep().unwrap();
        let mut lines = Input::File(path).lines().unwrap();
        assert!(lines.advance().unwrap() && lines.current() == b"after" && names() == 1);
        let error = Output::draft(Path::new("no such folder/x")).err().unwrap().to_string();
        assert!(error.starts_with("no such folder/x: cannot write: "), "{error}");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let error = Output::create(Path::new("no such folder/log.csv")).err().unwrap().to_string();
        assert!(error.starts_with("no such folder/log.csv: cannot write: "), "{error}");
    }
}
