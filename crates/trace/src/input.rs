//! Where bytes come from: a file or standard input, plain or compressed, cut into numbered lines.

mod lines;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flate2::bufread::MultiGzDecoder;
use wavetank_model::{Error, Result};

use crate::Head;
use crate::meter::Meter;

pub use lines::Lines;

/// A longer line is refused: it would be read into memory whole.
pub(crate) const LONGEST_LINE: u64 = 64 << 20;
const BUFFER: usize = 64 << 10;
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// What was read of standard input to see how it begins, until whoever opens it reads it again. A compressed
/// file shows nothing before the end of its first block.
static SEEN: Mutex<Vec<u8>> = Mutex::new(Vec::new());
const SEEN_BYTES: u64 = 256 << 10;

fn lock(seen: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A place to read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file, which can be read more than once.
    File(PathBuf),
    /// Bytes in memory.
    Bytes(Arc<[u8]>),
    /// Standard input, which can be read once.
    Stdin,
    /// Another one, whose bytes are counted.
    Metered(Box<Input>, Meter),
}

impl Input {
    /// `-` is standard input, anything else a path.
    pub fn named(name: &str) -> Self {
        if name == "-" { Self::Stdin } else { Self::File(PathBuf::from(name)) }
    }

    /// The name in messages.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Bytes(_) => "<memory>".to_owned(),
            Self::Stdin => "<stdin>".to_owned(),
            Self::Metered(input, _) => input.name(),
        }
    }

    /// Opens it, to be read line by line.
    pub fn lines(&self) -> Result<Lines> {
        Ok(Lines::of(self.name(), self.open()?))
    }

    /// Opens it, to be read as one text without a byte order mark.
    pub(crate) fn text(&self) -> Result<Box<dyn BufRead + Send>> {
        let mut bytes = self.open()?;
        let mut start = Vec::with_capacity(BYTE_ORDER_MARK.len());
        let mut limited = (&mut bytes).take(BYTE_ORDER_MARK.len() as u64);
        limited.read_to_end(&mut start).map_err(|error| broken(&self.name(), 1, error))?;
        if start == BYTE_ORDER_MARK { Ok(bytes) } else { Ok(Box::new(Cursor::new(start).chain(bytes))) }
    }

    /// Whether it can be read once only: standard input, a pipe.
    pub fn is_once(&self) -> bool {
        match self {
            Self::File(path) => std::fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()),
            Self::Bytes(_) => false,
            Self::Stdin => true,
            Self::Metered(input, _) => input.is_once(),
        }
    }

    /// How many bytes it holds as it is stored, where that is known.
    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            Self::File(path) => {
                std::fs::metadata(path).ok().filter(|meta| meta.is_file()).map(|meta| meta.len())
            }
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::Stdin => None,
            Self::Metered(input, _) => input.size(),
        }
    }

    /// Its first bytes, unpacked, which whoever opens it then reads again; nothing where they cannot be seen.
    pub(crate) fn head(&self) -> Result<Option<Vec<u8>>> {
        match self {
            Self::Stdin => {
                let mut seen = lock(&SEEN);
                if seen.is_empty() {
                    let mut start = io::stdin().lock().take(SEEN_BYTES);
                    start.read_to_end(&mut seen).map_err(|error| broken(&self.name(), 1, error))?;
                }
                return Self::Bytes(Arc::from(&**seen)).head();
            }
            Self::File(_) if self.is_once() => return Ok(None),
            Self::Metered(input, _) => return input.head(),
            Self::File(_) | Self::Bytes(_) => {}
        }
        let mut head = Vec::new();
        // Bytes of standard input may end within a compressed block: what comes before it is enough.
        let read = self.open()?.take(Head::BYTES as u64).read_to_end(&mut head);
        if head.starts_with(BYTE_ORDER_MARK) {
            head.drain(..BYTE_ORDER_MARK.len());
        }
        Ok((read.is_ok() || !head.is_empty()).then_some(head))
    }

    /// Opens it; compression is recognised by its first bytes.
    pub(crate) fn open(&self) -> Result<Box<dyn BufRead + Send>> {
        let mut buffered = BufReader::with_capacity(BUFFER, self.raw()?);
        let name = self.name();
        let start = buffered.fill_buf().map_err(|error| broken(&name, 1, error))?;
        Ok(if start.starts_with(GZIP) {
            Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(buffered)))
        } else if start.starts_with(ZSTD) {
            let decoder = zstd::Decoder::with_buffer(buffered).map_err(|error| broken(&name, 1, error))?;
            Box::new(BufReader::with_capacity(BUFFER, decoder))
        } else {
            Box::new(buffered)
        })
    }

    /// Its bytes as they are stored.
    fn raw(&self) -> Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::File(path) => Box::new(open_file(path)?),
            Self::Bytes(bytes) => Box::new(Cursor::new(Arc::clone(bytes))),
            Self::Stdin => Box::new(Cursor::new(std::mem::take(&mut *lock(&SEEN))).chain(io::stdin())),
            Self::Metered(input, meter) => Box::new(meter.counting(input.raw()?)),
        })
    }
}

fn open_file(path: &Path) -> Result<File> {
    let file = File::open(path)
        .map_err(|error| Error::io(path, error).hint("name a trace file, or - for standard input"))?;
    if file.metadata().is_ok_and(|meta| meta.is_dir()) {
        return Err(Error::input("is a directory").at(path.display().to_string()).hint("name a trace file"));
    }
    Ok(file)
}

pub(crate) fn broken(name: &str, line: u64, error: io::Error) -> Error {
    Error::input(format!("cannot read on: {error}"))
        .at(format!("{name}:{line}"))
        .hint("the file is truncated or damaged")
        .source(error)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lines_of(name: &str, bytes: &[u8]) -> Result<Vec<(u64, String)>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let mut lines = Input::File(path).lines()?;
        let mut all = Vec::new();
        while lines.advance()? {
            let text = String::from_utf8(lines.current().to_vec()).unwrap();
            all.push((lines.number(), text));
        }
        Ok(all)
    }

    const TEXT: &[u8] = b"\xef\xbb\xbfa\r\n\n  \nb";

    #[test]
    fn plain_gzip_and_zstd_give_the_same_lines() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(TEXT).unwrap();
        let zstd = zstd::encode_all(TEXT, 1).unwrap();
        let expected = vec![(1, "a".to_owned()), (4, "b".to_owned())];
        assert_eq!(lines_of("t.jsonl", TEXT).unwrap(), expected);
        assert_eq!(lines_of("t.jsonl.gz", &gzip.finish().unwrap()).unwrap(), expected);
        assert_eq!(lines_of("t.jsonl.zst", &zstd).unwrap(), expected);
    }

    #[test]
    fn a_text_has_no_byte_order_mark() {
        for text in [TEXT, &TEXT[3..], b"\xef", b""] {
            let mut read = Vec::new();
            Input::Bytes(Arc::from(text)).text().unwrap().read_to_end(&mut read).unwrap();
            assert_eq!(read, text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text));
        }
    }

    #[test]
    fn a_truncated_archive_is_an_error_with_its_line() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(TEXT).unwrap();
        let whole = gzip.finish().unwrap();
        let error = lines_of("t.gz", &whole[..whole.len() - 9]).unwrap_err().to_string();
        assert!(error.contains("t.gz:") && error.contains("truncated"), "{error}");
    }

    #[test]
    fn an_endless_line_is_refused() {
        let bytes = vec![b'x'; (LONGEST_LINE + 2) as usize];
        let error = lines_of("long", &bytes).unwrap_err().to_string();
        assert!(error.contains("long:1: line is longer than 64 MiB"), "{error}");
    }
}
