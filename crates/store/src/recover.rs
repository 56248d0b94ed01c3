//! What an earlier process left in a folder: entries, spare files, and what is neither.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Dir, FileType, Mode, OFlags, fstat, openat};
use rustix::io::{Errno, pread};

use crate::backend::{Found, Recovery};
use crate::buffer::{ALIGN, Buffer, HEADROOM, Mover, Region};
use crate::folder::{Filed, Folder, Kept};
use crate::key::Key;
use crate::layout::{Header, NotAHeader, file_len};
use crate::name::{self, Named};
use crate::spares::SpareFile;

/// Reads every header of `folder` and reports each key's latest entry; older ones become spare.
pub(crate) fn recover(folder: &Arc<Folder>, report: &mut dyn FnMut(Found)) -> io::Result<Recovery> {
    folder.recovers()?;
    let region = Region::new(1)?;
    let buffer = region.take(Mover::Device).expect("nothing else uses it");
    let mut scan = Scan { folder, buffer, latest: HashMap::new(), counts: Recovery::default() };
    for (shard, directory) in folder.shards() {
        scan.directory(shard, directory)?;
    }
    let mut entries: Vec<_> = scan.latest.into_values().collect();
    entries.sort_by_key(|(header, _)| header.age());
    for (header, filed) in entries {
        let Header { key, bytes, checksum, version, birth } = header;
        report(Found { key, bytes, checksum, version, birth, held: Arc::new(Kept(filed)) });
    }
    Ok(scan.counts)
}

struct Scan<'a> {
    folder: &'a Arc<Folder>,
    buffer: Buffer,
    latest: HashMap<Key, (Header, Arc<Filed>)>,
    counts: Recovery,
}

impl Scan<'_> {
    fn directory(&mut self, shard: u8, directory: BorrowedFd<'_>) -> io::Result<()> {
        for item in Dir::read_from(directory)? {
            let item = item?;
            let name = item.file_name().to_string_lossy();
            if name == "." || name == ".." {
                continue;
            }
            let regular = matches!(item.file_type(), FileType::RegularFile | FileType::Unknown);
            match Named::read(&name) {
                Named::Entry { hash, version } if regular => self.entry(shard, directory, hash, version)?,
                Named::Spare { version, fresh } if regular => {
                    self.spare(directory, SpareFile { shard, version, fresh, len: 0 })?;
                }
                _ => self.counts.foreign += 1,
            }
        }
        Ok(())
    }

    fn spare(&mut self, directory: BorrowedFd<'_>, spare: SpareFile) -> io::Result<()> {
        let Some((_, len)) = self.open(directory, &spare.name())? else { return Ok(()) };
        self.counts.spare += 1;
        self.folder.found_spare(SpareFile { len, ..spare });
        Ok(())
    }

    /// A file and its length. One that is gone, or that we may not open, is not ours to find.
    fn open(&mut self, directory: BorrowedFd<'_>, name: &str) -> io::Result<Option<(OwnedFd, u64)>> {
        // A pipe must not make us wait for its other end.
        let flags = self.folder.read_flags() | OFlags::NONBLOCK;
        match openat(directory, name, flags, Mode::empty()) {
            Ok(file) => {
                let about = fstat(&file)?;
                if FileType::from_raw_mode(about.st_mode) == FileType::RegularFile {
                    return Ok(Some((file, about.st_size as u64)));
                }
            }
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::ACCESS | Errno::PERM | Errno::NXIO | Errno::ISDIR) => {}
            Err(e) => return Err(e.into()),
        }
        self.counts.foreign += 1;
        Ok(None)
    }

    fn entry(&mut self, shard: u8, directory: BorrowedFd<'_>, hash: u128, version: u64) -> io::Result<()> {
        let Some((file, len)) = self.open(directory, &name::of_entry(hash, version))? else { return Ok(()) };
        let block = self.buffer.header_mut(HEADROOM);
        let Ok(read) = pread(&file, &mut block[..], 0) else {
            self.counts.torn += 1;
            return Ok(());
        };
        let header = match Header::decode(&block[..read / ALIGN * ALIGN]) {
            Ok(header) => header,
            Err(NotAHeader::Foreign) => {
                self.counts.foreign += 1;
                return Ok(());
            }
            Err(NotAHeader::Damaged) => {
                self.counts.torn += 1;
                return Ok(());
            }
        };
        let named_so = header.key.hash() == hash && header.version == version;
        if !named_so || len < file_len(&header.key, header.bytes) {
            self.counts.torn += 1;
            return Ok(());
        }
        let filed = self.folder.found(shard, len, &header);
        self.keep(header, filed)
    }

    /// Keeps the later of two entries of one key: a process was killed between writing one and removing the
    /// other.
    fn keep(&mut self, header: Header, filed: Arc<Filed>) -> io::Result<()> {
        let older = match self.latest.entry(header.key.clone()) {
            Slot::Vacant(free) => {
                free.insert((header, filed));
                return Ok(());
            }
            Slot::Occupied(other) if other.get().0.age() > header.age() => filed,
            Slot::Occupied(mut other) => other.insert((header, filed)).1,
        };
        self.counts.spare += 1;
        self.folder.remove_file(&older)
    }
}
