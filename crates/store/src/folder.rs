//! A directory of entries, one file each. A file's name says what it is; renaming is how it changes.
//!
//! | name | what |
//! |---|---|
//! | `<key's hash>-<version>.kv` | a committed entry |
//! | `<version>.part` | being written for the first time |
//! | `<version>.free` | spare: held an entry once, will hold another |
//!
//! Files are renamed only after their bytes are written, so a process killed at any point leaves whole
//! entries and spares. Files are used again instead of deleted: creating and unlinking them is what small
//! entries cost most, and file systems slow down under it. Everything is inside `wavetank.store/`; nothing
//! else is ever touched.

use std::any::Any;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{
    AtFlags, FallocateFlags, Mode, OFlags, fallocate, fdatasync, fsync, ftruncate, openat, renameat, unlinkat,
};
use rustix::io::Errno;
use wavetank_model::{Error, Result};

use crate::backend::{Birth, Held, NewEntry};
use crate::ground::{ROOT, SHARDS, check_format, lock_of, next_version, shard_directories};
use crate::kept::KeptOpen;
use crate::key::{KEY_BYTES_MAX, Key};
use crate::layout::{self, Header};
use crate::name;
use crate::spares::{SpareFile, Spares};

/// How a folder's files are opened and made to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manner {
    /// Past the page cache.
    pub(crate) direct: bool,
    /// Synchronised with the device before an entry counts as written.
    pub(crate) durable: bool,
}

/// The directory.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    shards: Vec<OwnedFd>,
    manner: Manner,
    version: AtomicU64,
    spares: Mutex<Spares>,
    /// Whether entries were created or recovered.
    used: AtomicBool,
    /// By shard: whether names were taken from entries and the device may not know it yet.
    unsynced: Vec<Mutex<bool>>,
    preallocates: AtomicBool,
    /// How much room its files may take; entries' lengths and spares are kept below it.
    limit_bytes: Option<u64>,
    file_bytes: AtomicU64,
    _lock: OwnedFd,
}

const WRITING: u8 = 0;
const COMMITTED: u8 = 1;
const REMOVED: u8 = 2;
/// Its file is gone, or not to be used again.
const GONE: u8 = 3;

/// One file with an entry in it, or to be.
pub(crate) struct Filed {
    folder: Arc<Folder>,
    /// Whose.
    pub(crate) key: Key,
    /// How long the entry is.
    pub(crate) bytes: u64,
    /// Where the entry comes from.
    pub(crate) birth: Birth,
    version: u64,
    /// The file, and its name before it was committed.
    spare: SpareFile,
    state: AtomicU8,
    /// How long the header before the payload is.
    pub(crate) header_len: usize,
    kept: KeptOpen,
}

/// A [`Filed`] with its file open.
pub(crate) struct Opened {
    /// The file.
    pub(crate) fd: Arc<OwnedFd>,
    /// What is in it.
    pub(crate) filed: Arc<Filed>,
}

/// A [`Filed`] with its file closed.
pub(crate) struct Kept(pub(crate) Arc<Filed>);

impl Held for Kept {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Held for Opened {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The open file behind a hold that `create` or `open` gave.
pub(crate) fn opened(held: &Arc<dyn Held>) -> &Opened {
    held.as_any().downcast_ref().expect("an open entry of this folder")
}

/// The file behind any hold of a folder.
pub(crate) fn filed(held: &Arc<dyn Held>) -> Arc<Filed> {
    let any = held.as_any();
    if let Some(open) = any.downcast_ref::<Opened>() {
        return Arc::clone(&open.filed);
    }
    Arc::clone(&any.downcast_ref::<Kept>().expect("an entry of this folder").0)
}

impl Folder {
    /// Opens or makes the store's directory in `parent`. One process at a time.
    pub(crate) fn open(parent: &Path, manner: Manner, limit_bytes: Option<u64>) -> Result<Arc<Self>> {
        let path = parent.join(ROOT);
        let told =
            |what: &str, e: io::Error| Error::usage(format!("{what}: {e}")).at(path.display().to_string());
        std::fs::create_dir_all(&path).map_err(|e| told("cannot make the store's directory", e))?;
        let lock = lock_of(&path).map_err(|e| match e.kind() {
            io::ErrorKind::WouldBlock => told("another process uses this store", e)
                .hint("end it, or give each process a directory of its own"),
            _ => told("cannot lock the store", e),
        })?;
        check_format(&path).map_err(|e| told("not a store of this version", e))?;
        let shards = shard_directories(&path).map_err(|e| told("cannot open the store's directories", e))?;
        let version = next_version(&shards).map_err(|e| told("cannot list the store's directories", e))?;
        let folder = Self {
            path,
            shards,
            manner,
            version: AtomicU64::new(version),
            spares: Mutex::default(),
            used: AtomicBool::new(false),
            unsynced: (0..SHARDS).map(|_| Mutex::default()).collect(),
            preallocates: AtomicBool::new(true),
            limit_bytes,
            file_bytes: AtomicU64::new(0),
            _lock: lock,
        };
        Ok(Arc::new(folder))
    }

    fn shard(&self, shard: u8) -> BorrowedFd<'_> {
        self.shards[usize::from(shard)].as_fd()
    }

    /// Every directory with its number.
    pub(crate) fn shards(&self) -> impl Iterator<Item = (u8, BorrowedFd<'_>)> {
        (0..SHARDS).map(|shard| (shard, self.shard(shard)))
    }

    pub(crate) fn spares(&self) -> MutexGuard<'_, Spares> {
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to recover entries: once, and before any are created, since files in use look like spare ones.
    pub(crate) fn recovers(&self) -> io::Result<()> {
        let late = || {
            io::Error::new(io::ErrorKind::InvalidInput, "entries are recovered once, before any other use")
        };
        if self.used.swap(true, Ordering::Relaxed) { Err(late()) } else { Ok(()) }
    }

    /// What the file system does not do.
    pub(crate) fn notes(&self) -> Option<String> {
        let place = self.path.display();
        let note = format!("{place}: the file system cannot preallocate: writing new files costs more");
        (!self.preallocates.load(Ordering::Relaxed)).then_some(note)
    }

    /// Whether the file system lets files be opened past the page cache.
    pub(crate) fn check_direct(&self) -> Result<()> {
        let probe = || -> io::Result<()> {
            let (spare, fd) = self.create_file(self.version.fetch_add(1, Ordering::Relaxed))?;
            drop(fd);
            Ok(unlinkat(self.shard(spare.shard), spare.name(), AtFlags::empty())?)
        };
        probe().map_err(|e| {
            let place = self.path.display().to_string();
            match e.kind() {
                io::ErrorKind::InvalidInput => Error::usage("the file system refuses O_DIRECT")
                    .hint("use the buffered backend, or a directory on another file system"),
                _ => Error::usage(format!("cannot create files: {e}")),
            }
            .at(place)
        })
    }

    /// How files are opened.
    pub(crate) fn flags(&self) -> OFlags {
        let direct = if self.manner.direct { OFlags::DIRECT } else { OFlags::empty() };
        OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | direct
    }

    /// How files are opened that are only read: they can be when the file system has turned read-only.
    pub(crate) fn read_flags(&self) -> OFlags {
        self.flags() - OFlags::RDWR
    }

    /// A file for a new entry: a spare one, or a new one, with room for all of it.
    pub(crate) fn create(self: &Arc<Self>, entry: &NewEntry<'_>) -> io::Result<Arc<Opened>> {
        if entry.key.bytes().len() > KEY_BYTES_MAX {
            let message = format!("the key has more than {KEY_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.used.store(true, Ordering::Relaxed);
        let file_len = layout::file_len(entry.key, entry.bytes);
        let version = self.version.fetch_add(1, Ordering::Relaxed);
        let (spare, fd) = match self.reopen_spare(file_len)? {
            Some(reused) => reused,
            None => self.create_file(version)?,
        };
        let spare = self.resize(&fd, spare, file_len)?;
        let filed = Filed {
            folder: Arc::clone(self),
            key: entry.key.clone(),
            bytes: entry.bytes,
            birth: entry.birth,
            version,
            spare,
            state: AtomicU8::new(WRITING),
            header_len: layout::header_len(entry.key),
            kept: KeptOpen::default(),
        };
        Ok(Arc::new(Opened { fd: Arc::new(fd), filed: Arc::new(filed) }))
    }

    fn reopen_spare(&self, len: u64) -> io::Result<Option<(SpareFile, OwnedFd)>> {
        loop {
            let Some(spare) = self.spares().take(len) else { return Ok(None) };
            let synced = self.sync_removals(spare.shard);
            match synced.and_then(|()| self.open_spare(spare)) {
                Ok(fd) => return Ok(Some((spare, fd))),
                // Someone deleted it: there may be another.
                Err(Errno::NOENT) => self.counted(spare.len, 0),
                Err(e) => {
                    self.spares().add(spare);
                    return Err(e.into());
                }
            }
        }
    }

    fn open_spare(&self, spare: SpareFile) -> Result<OwnedFd, Errno> {
        openat(self.shard(spare.shard), spare.name(), self.flags(), Mode::empty())
    }

    /// Makes removals of a shard last before its files are written again: after a power cut a file must not
    /// be found under its old entry's name with the new one's bytes in it.
    fn sync_removals(&self, shard: u8) -> Result<(), Errno> {
        if !self.manner.durable {
            return Ok(());
        }
        let mut unsynced = self.unsynced(shard);
        if *unsynced {
            fsync(self.shard(shard))?;
            *unsynced = false;
        }
        Ok(())
    }

    fn unsynced(&self, shard: u8) -> MutexGuard<'_, bool> {
        self.unsynced[usize::from(shard)].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn create_file(&self, version: u64) -> io::Result<(SpareFile, OwnedFd)> {
        let shard = (version % u64::from(SHARDS)) as u8;
        let spare = SpareFile { shard, version, fresh: true, len: 0 };
        let flags = self.flags() | OFlags::CREATE | OFlags::EXCL;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let fd = openat(self.shard(shard), spare.name(), flags, mode)?;
        Ok((spare, fd))
    }

    /// Brings a file to `len` bytes, or a little more where it is so already.
    fn resize(&self, fd: &OwnedFd, spare: SpareFile, len: u64) -> io::Result<SpareFile> {
        let result = if spare.len < len {
            self.trim(len - spare.len);
            self.make_room(fd, len)
        } else if spare.len > len + self.slack(len) {
            ftruncate(fd, len).map_err(io::Error::from)
        } else {
            return Ok(spare);
        };
        let reached = if result.is_ok() { len } else { ftruncate(fd, 0).map_or(spare.len, |()| 0) };
        self.counted(spare.len, reached);
        let spare = SpareFile { len: reached, ..spare };
        result.inspect_err(|_| self.spares().add(spare))?;
        Ok(spare)
    }

    /// How much longer than its entry of `len` bytes a file may stay. Under a limit nothing: entries that
    /// fill it would take more than it in files.
    fn slack(&self, len: u64) -> u64 {
        if self.limit_bytes.is_some() { 0 } else { len / 4 }
    }

    /// Allocates blocks and sets the length: writes then extend nothing and need no worker thread.
    fn make_room(&self, fd: &OwnedFd, len: u64) -> io::Result<()> {
        match fallocate(fd, FallocateFlags::empty(), 0, len) {
            Err(Errno::OPNOTSUPP) => {
                self.preallocates.store(false, Ordering::Relaxed);
                Ok(ftruncate(fd, len)?)
            }
            Err(Errno::NOSPC) if self.empty_spares(u64::MAX) > 0 => {
                Ok(fallocate(fd, FallocateFlags::empty(), 0, len)?)
            }
            result => Ok(result?),
        }
    }

    /// Gives room of spare files back when `growth` more bytes would be more than the folder may take.
    fn trim(&self, growth: u64) {
        let Some(limit) = self.limit_bytes else { return };
        let over = (self.file_bytes.load(Ordering::Relaxed) + growth).saturating_sub(limit);
        if over > 0 {
            self.empty_spares(over);
        }
    }

    /// Empties spare files until `bytes` are free; gives how many became so.
    fn empty_spares(&self, bytes: u64) -> u64 {
        let mut freed = 0;
        while freed < bytes {
            let Some(spare) = self.spares().take_shortest() else { break };
            match self.open_spare(spare).and_then(|fd| ftruncate(&fd, 0)) {
                Ok(()) => self.spares().add(SpareFile { len: 0, ..spare }),
                // Someone deleted it, and freed its room.
                Err(Errno::NOENT) => {}
                Err(_) => {
                    self.spares().add(spare);
                    break;
                }
            }
            self.counted(spare.len, 0);
            freed += spare.len;
        }
        freed
    }

    fn counted(&self, before: u64, after: u64) {
        self.file_bytes.fetch_add(after, Ordering::Relaxed);
        self.file_bytes.fetch_sub(before, Ordering::Relaxed);
    }

    /// Gives a written file its entry's name.
    pub(crate) fn commit(&self, held: &Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        let open = opened(held);
        let filed = &open.filed;
        if self.manner.durable {
            fdatasync(&*open.fd)?;
        }
        let directory = self.shard(filed.spare.shard);
        renameat(directory, filed.spare.name(), directory, filed.name())?;
        filed.state.store(COMMITTED, Ordering::Release);
        if self.manner.durable {
            // What may not last must not be found either.
            fsync(directory).inspect_err(|_| drop(self.remove_file(filed)))?;
        }
        filed.kept.keep(&open.fd);
        Ok(Arc::new(Kept(Arc::clone(filed))))
    }

    /// Opens a committed entry's file.
    pub(crate) fn open_entry(&self, held: &Arc<dyn Held>) -> io::Result<Arc<Opened>> {
        let filed = filed(held);
        if let Some(fd) = filed.kept.descriptor() {
            return Ok(Arc::new(Opened { fd, filed }));
        }
        let fd = openat(self.shard(filed.spare.shard), filed.name(), self.read_flags(), Mode::empty())?;
        let fd = Arc::new(fd);
        filed.kept.keep(&fd);
        Ok(Arc::new(Opened { fd, filed }))
    }

    /// A spare file found on the disk.
    pub(crate) fn found_spare(&self, spare: SpareFile) {
        self.counted(0, spare.len);
        self.spares().add(spare);
    }

    /// A committed entry found on the disk, in a file of `len` bytes.
    pub(crate) fn found(self: &Arc<Self>, shard: u8, len: u64, header: &Header) -> Arc<Filed> {
        let version = header.version;
        self.counted(0, len);
        Arc::new(Filed {
            folder: Arc::clone(self),
            key: header.key.clone(),
            bytes: header.bytes,
            birth: header.birth,
            version,
            spare: SpareFile { shard, version, fresh: false, len },
            state: AtomicU8::new(COMMITTED),
            header_len: layout::header_len(&header.key),
            kept: KeptOpen::default(),
        })
    }

    /// Takes the entry's name from its file. The file is spare once nobody reads it any more.
    pub(crate) fn remove(&self, held: &Arc<dyn Held>) -> io::Result<()> {
        self.remove_file(&filed(held))
    }

    /// As [`Self::remove`], by the file.
    pub(crate) fn remove_file(&self, filed: &Filed) -> io::Result<()> {
        // What was never committed is still a spare file by name; its room is free when the last hold goes.
        if filed.state.compare_exchange(COMMITTED, REMOVED, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return Ok(());
        }
        let directory = self.shard(filed.spare.shard);
        let spare = SpareFile { version: filed.version, fresh: false, ..filed.spare };
        if let Err(e) = renameat(directory, filed.name(), directory, spare.name()) {
            let gone = e == Errno::NOENT;
            self.counted(if gone { spare.len } else { 0 }, 0);
            filed.state.store(if gone { GONE } else { COMMITTED }, Ordering::Release);
            return Err(e.into());
        }
        if self.manner.durable {
            *self.unsynced(filed.spare.shard) = true;
        }
        Ok(())
    }

    /// Deletes the spare files.
    pub(crate) fn delete_spares(&self) -> io::Result<()> {
        let spares = self.spares().drain();
        for spare in spares {
            self.counted(spare.len, 0);
            unlinkat(self.shard(spare.shard), spare.name(), AtFlags::empty())?;
        }
        Ok(())
    }
}

impl Filed {
    fn name(&self) -> String {
        name::of_entry(self.key.hash(), self.version)
    }

    /// The entry's version.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }
}

impl Drop for Filed {
    fn drop(&mut self) {
        let (version, fresh) = match self.state.load(Ordering::Acquire) {
            WRITING => (self.spare.version, self.spare.fresh),
            REMOVED => (self.version, false),
            _ => return,
        };
        self.folder.spares().add(SpareFile { version, fresh, ..self.spare });
    }
}
