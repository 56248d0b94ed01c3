//! What an earlier process left in a folder: entries, spare files, and what is neither.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::fs::{Dir, FileType, Mode, fstat, openat};
use rustix::io::pread;

use crate::backend::{Found, Recovery};
use crate::buffer::{ALIGN, Buffer, HEADROOM, Region};
use crate::folder::{Filed, Folder, Kept, entry_name};
use crate::key::Key;
use crate::layout::{Header, NotAHeader, file_len};
use crate::spares::SpareFile;

/// What a file's name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Entry { hash: u128, version: u64 },
    Spare { version: u64, fresh: bool },
    Foreign,
}

/// Reads every header of `folder` and reports each key's latest entry; older ones become spare.
pub(crate) fn recover(folder: &Arc<Folder>, report: &mut dyn FnMut(Found)) -> io::Result<Recovery> {
    let region = Region::new(1)?;
    let buffer = region.take().expect("nothing else uses it");
    let mut scan = Scan { folder, buffer, latest: HashMap::new(), counts: Recovery::default() };
    for (shard, directory) in folder.shards() {
        scan.directory(shard, directory)?;
    }
    let mut entries: Vec<_> = scan.latest.into_values().collect();
    entries.sort_by_key(|(header, _)| header.version);
    for (header, filed) in entries {
        let Header { key, bytes, checksum, version } = header;
        report(Found { key, bytes, checksum, version, held: Arc::new(Kept(filed)) });
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
            match read_name(&name) {
                Named::Entry { hash, version } if regular => self.entry(shard, directory, hash, version)?,
                Named::Spare { version, fresh } if regular => self.spare(shard, directory, version, fresh)?,
                _ => self.counts.foreign += 1,
            }
        }
        Ok(())
    }

    fn spare(&mut self, shard: u8, directory: BorrowedFd<'_>, version: u64, fresh: bool) -> io::Result<()> {
        let spare = SpareFile { shard, version, fresh, len: 0 };
        let file = openat(directory, spare.name(), self.folder.flags(), Mode::empty())?;
        let len = fstat(&file)?.st_size as u64;
        self.counts.spare += 1;
        self.folder.found_spare(SpareFile { len, ..spare });
        Ok(())
    }

    fn entry(&mut self, shard: u8, directory: BorrowedFd<'_>, hash: u128, version: u64) -> io::Result<()> {
        let file = openat(directory, entry_name(hash, version), self.folder.flags(), Mode::empty())?;
        let len = fstat(&file)?.st_size as u64;
        let block = self.buffer.header_mut(HEADROOM);
        let read = pread(&file, &mut block[..], 0).unwrap_or(0);
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

    /// Keeps the later of two entries of one key: a process was killed between writing one and removing the other.
    fn keep(&mut self, header: Header, filed: Arc<Filed>) -> io::Result<()> {
        let older = match self.latest.entry(header.key.clone()) {
            Slot::Vacant(free) => {
                free.insert((header, filed));
                return Ok(());
            }
            Slot::Occupied(other) if other.get().0.version > header.version => filed,
            Slot::Occupied(mut other) => other.insert((header, filed)).1,
        };
        self.counts.spare += 1;
        self.folder.remove_file(&older)
    }
}

fn read_name(name: &str) -> Named {
    let number = |text: &str, digits: usize| {
        let plain = text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        plain.then(|| u128::from_str_radix(text, 16).ok()).flatten()
    };
    let spare =
        |text: &str, fresh| number(text, 16).map(|version| Named::Spare { version: version as u64, fresh });
    let found = match name.rsplit_once('.') {
        Some((stem, "part")) => spare(stem, true),
        Some((stem, "free")) => spare(stem, false),
        Some((stem, "kv")) => stem.split_once('-').and_then(|(hash, version)| {
            Some(Named::Entry { hash: number(hash, 32)?, version: number(version, 16)? as u64 })
        }),
        _ => None,
    };
    found.unwrap_or(Named::Foreign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_strictly() {
        let name = entry_name(0xabc, 7);
        assert_eq!(read_name(&name), Named::Entry { hash: 0xabc, version: 7 });
        assert_eq!(read_name("0000000000000010.part"), Named::Spare { version: 16, fresh: true });
        assert_eq!(read_name("0000000000000010.free"), Named::Spare { version: 16, fresh: false });
        for name in
            ["10.part", "0000000000000010.PART", "+000000000000010.free", "notes.txt", "x.kv", ".kv", "-.kv"]
        {
            assert_eq!(read_name(name), Named::Foreign, "{name}");
        }
    }
}
