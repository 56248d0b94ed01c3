//! A folder through blocking calls: what `direct` falls back to, and what `buffered` is.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::fs::{Advice, fadvise};
use rustix::io::{pread, pwrite};

use crate::backend::{Held, NewEntry, Piece, Seal};
use crate::buffer::Buffer;
use crate::folder::{Folder, opened};
use crate::frame::{self, Span};
use crate::threads::Blocking;

/// A folder, read and written with `pread` and `pwrite`.
pub(crate) struct Files {
    /// The directory.
    pub(crate) folder: Arc<Folder>,
    /// Asks the page cache to forget an entry before it is read.
    pub(crate) forget: bool,
}

impl Blocking for Files {
    fn create(&self, entry: &NewEntry<'_>) -> io::Result<Arc<dyn Held>> {
        Ok(self.folder.create(entry)?)
    }

    fn write(
        &self,
        held: &Arc<dyn Held>,
        piece: Piece,
        buffer: &mut Buffer,
        seal: Option<Seal>,
    ) -> io::Result<()> {
        let open = opened(held);
        let (payload, header) = frame::to_write(&open.filed, piece, buffer, seal);
        write_span(&open.fd, payload, buffer)?;
        header.map_or(Ok(()), |header| write_span(&open.fd, header, buffer))
    }

    fn commit(&self, held: Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        self.folder.commit(&held)
    }

    fn open(&self, held: &Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        let open = self.folder.open_entry(held)?;
        if self.forget {
            fadvise(&open.fd, 0, None, Advice::DontNeed)?;
        }
        Ok(open)
    }

    fn read(&self, held: &Arc<dyn Held>, piece: Piece, buffer: &mut Buffer) -> io::Result<()> {
        let open = opened(held);
        let span = frame::to_read(&open.filed, piece);
        let mut rest = span.bytes(buffer);
        let mut at = span.at;
        while !rest.is_empty() {
            let read = pread(&open.fd, &mut *rest, at)?;
            if read == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends inside the entry"));
            }
            rest = &mut rest[read..];
            at += read as u64;
        }
        Ok(())
    }

    fn remove(&self, held: Arc<dyn Held>) -> io::Result<()> {
        self.folder.remove(&held)
    }
}

fn write_span(file: impl AsFd, span: Span, buffer: &mut Buffer) -> io::Result<()> {
    let mut rest = &*span.bytes(buffer);
    let mut at = span.at;
    while !rest.is_empty() {
        let written = pwrite(&file, rest, at)?;
        if written == 0 {
            return Err(io::Error::new(io::ErrorKind::WriteZero, "nothing was written"));
        }
        rest = &rest[written..];
        at += written as u64;
    }
    Ok(())
}
