//! What a folder stands on: its lock, its format and its directories.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    Dir, FlockOperation, IFlags, Mode, OFlags, flock, ioctl_getflags, ioctl_setflags, mkdirat, openat,
};
use rustix::io::Errno;

use crate::name::Named;

/// Several directories, so that threads that create files do not wait for each other.
pub(crate) const SHARDS: u8 = 16;
const FORMAT: &[u8] = b"wavetank store 1\n";

/// The directory that everything of ours is in.
pub(crate) const ROOT: &str = "wavetank.store";

/// Removes the directories of a closed store from `location` as far as they are empty.
pub fn dismantle(location: &Path) -> io::Result<()> {
    let root = location.join(ROOT);
    for shard in 0..SHARDS {
        match std::fs::remove_dir(root.join(format!("{shard:x}"))) {
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => return Ok(()),
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    let is_ours = |name: &std::ffi::OsStr| name == "FORMAT" || name == "LOCK";
    let entries = match std::fs::read_dir(&root) {
        Ok(entries) => entries.collect::<io::Result<Vec<_>>>()?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    if !entries.iter().all(|entry| is_ours(&entry.file_name())) {
        return Ok(());
    }
    entries.iter().try_for_each(|entry| std::fs::remove_file(entry.path()))?;
    std::fs::remove_dir(root)
}

/// Takes the lock that keeps other processes out.
pub(crate) fn lock_of(path: &Path) -> io::Result<OwnedFd> {
    let lock =
        std::fs::OpenOptions::new().create(true).write(true).truncate(false).open(path.join("LOCK"))?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    Ok(lock.into())
}

/// Checks what the directory says it is; a new one is told.
pub(crate) fn check_format(path: &Path) -> io::Result<()> {
    let file = path.join("FORMAT");
    match std::fs::read(&file) {
        Ok(text) if text == FORMAT => Ok(()),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "FORMAT is another one")),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            // Under another name first: a full disk or a killed process must not leave half of it.
            let begun = path.join("FORMAT.new");
            std::fs::write(&begun, FORMAT)?;
            std::fs::rename(begun, file)
        }
        Err(e) => Err(e),
    }
}

/// Opens the directories that files are in, and makes those that are missing.
pub(crate) fn shard_directories(path: &Path) -> io::Result<Vec<OwnedFd>> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let root = rustix::fs::open(path, flags, Mode::empty())?;
    // ext4 spreads the subdirectories of a "top" directory over the disk; elsewhere this is refused, and no
    // loss.
    if let Ok(attributes) = ioctl_getflags(&root) {
        let _ = ioctl_setflags(&root, attributes | IFlags::TOPDIR);
    }
    let mut shards = Vec::new();
    for shard in 0..SHARDS {
        let name = format!("{shard:x}");
        match mkdirat(&root, &name, Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
        shards.push(openat(&root, &name, flags | OFlags::NOFOLLOW, Mode::empty())?);
    }
    Ok(shards)
}

/// A number that no process counts up to: a name with a higher one does not move ours to the end of all
/// numbers.
const FAR: u64 = 1 << 62;

/// A version above all in names, also in those that are not ours: no file is ever renamed over another.
pub(crate) fn next_version(shards: &[OwnedFd]) -> io::Result<u64> {
    let mut highest = 0;
    for shard in shards {
        for item in Dir::read_from(shard)? {
            let named = Named::read(&item?.file_name().to_string_lossy());
            highest = highest.max(named.version().filter(|version| *version < FAR).unwrap_or(0));
        }
    }
    Ok(highest + 1)
}
