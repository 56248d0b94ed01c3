//! A directory of entries, one file each. A file's name says what it is; renaming is how it changes.
//!
//! | name | what |
//! |---|---|
//! | `<key's hash>-<version>.kv` | a committed entry |
//! | `<version>.part` | being written for the first time |
//! | `<version>.free` | spare: held an entry once, will hold another |
//!
//! Files are renamed only after their bytes are written, so a process killed at any point leaves whole entries and
//! spares. Files are used again instead of deleted: creating and unlinking them is what small entries cost most, and
//! file systems slow down under it. Everything is inside `wavetank.store/`; nothing else is ever touched.

use std::any::Any;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{
    AtFlags, FallocateFlags, FlockOperation, IFlags, Mode, OFlags, fallocate, fdatasync, flock, fsync,
    ftruncate, ioctl_getflags, ioctl_setflags, mkdirat, openat, renameat, unlinkat,
};
use wavetank_model::{Error, Result};

use crate::backend::{Held, NewEntry};
use crate::key::Key;
use crate::layout::{self, Header};
use crate::spares::{SpareFile, Spares};

/// Several directories, so that threads that create files do not wait for each other.
const SHARDS: u8 = 16;
const ROOT: &str = "wavetank.store";
const FORMAT: &[u8] = b"wavetank store 1\n";

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
    preallocates: AtomicBool,
    /// How much room its files may take; entries' lengths and spares are kept below it.
    limit_bytes: Option<u64>,
    file_bytes: AtomicU64,
    /// How many files stay open between operations, so that reading one costs no look-up.
    kept: AtomicUsize,
    kept_max: usize,
    _lock: OwnedFd,
}

const WRITING: u8 = 0;
const COMMITTED: u8 = 1;
const REMOVED: u8 = 2;
/// Its file could not be renamed: it is not used again.
const ABANDONED: u8 = 3;

/// One file with an entry in it, or to be.
pub(crate) struct Filed {
    folder: Arc<Folder>,
    /// Whose.
    pub(crate) key: Key,
    /// How long the entry is.
    pub(crate) bytes: u64,
    version: u64,
    /// The file, and its name before it was committed.
    spare: SpareFile,
    state: AtomicU8,
    /// How long the header before the payload is.
    pub(crate) header_len: usize,
    /// Its descriptor, where it is kept open.
    kept: Mutex<Option<Arc<OwnedFd>>>,
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
        let folder = Self {
            path,
            shards,
            manner,
            version: AtomicU64::new(1),
            spares: Mutex::default(),
            preallocates: AtomicBool::new(true),
            limit_bytes,
            file_bytes: AtomicU64::new(0),
            kept: AtomicUsize::new(0),
            kept_max: descriptors_to_keep(),
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

    /// Versions from here on are above `version`.
    fn seen(&self, version: u64) {
        self.version.fetch_max(version + 1, Ordering::Relaxed);
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

    /// A file for a new entry: a spare one, or a new one, with room for all of it.
    pub(crate) fn create(self: &Arc<Self>, entry: &NewEntry<'_>) -> io::Result<Arc<Opened>> {
        let file_len = layout::file_len(entry.key, entry.bytes);
        let version = self.version.fetch_add(1, Ordering::Relaxed);
        let (spare, fd, kept) = match self.reopen_spare(file_len)? {
            Some(reused) => reused,
            None => {
                let (spare, fd) = self.create_file(version)?;
                (spare, Arc::new(fd), None)
            }
        };
        let spare = self.resize(&fd, spare, file_len)?;
        let filed = Arc::new(Filed {
            folder: Arc::clone(self),
            key: entry.key.clone(),
            bytes: entry.bytes,
            version,
            spare,
            state: AtomicU8::new(WRITING),
            header_len: layout::header_len(entry.key),
            kept: Mutex::new(kept),
        });
        filed.keep_open(&fd);
        Ok(Arc::new(Opened { fd, filed }))
    }

    /// A spare file, open, and its descriptor again where that was kept.
    fn reopen_spare(&self, len: u64) -> io::Result<Option<Reopened>> {
        loop {
            let Some((spare, kept)) = self.spares().take(len) else { return Ok(None) };
            if let Some(fd) = kept {
                return Ok(Some((spare, Arc::clone(&fd), Some(fd))));
            }
            match openat(self.shard(spare.shard), spare.name(), self.flags(), Mode::empty()) {
                Ok(fd) => return Ok(Some((spare, Arc::new(fd), None))),
                // Someone deleted it: there may be another.
                Err(rustix::io::Errno::NOENT) => self.counted(spare.len, 0),
                Err(e) => {
                    self.spares().add((spare, None));
                    return Err(e.into());
                }
            }
        }
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
        } else if spare.len > len + len / 4 {
            ftruncate(fd, len).map_err(io::Error::from)
        } else {
            return Ok(spare);
        };
        let reached = if result.is_ok() { len } else { ftruncate(fd, 0).map_or(spare.len, |()| 0) };
        self.counted(spare.len, reached);
        let spare = SpareFile { len: reached, ..spare };
        result.inspect_err(|_| self.spares().add((spare, None)))?;
        Ok(spare)
    }

    /// Allocates blocks and sets the length: writes then extend nothing and need no worker thread.
    fn make_room(&self, fd: &OwnedFd, len: u64) -> io::Result<()> {
        match fallocate(fd, FallocateFlags::empty(), 0, len) {
            Err(rustix::io::Errno::OPNOTSUPP) => {
                self.preallocates.store(false, Ordering::Relaxed);
                Ok(ftruncate(fd, len)?)
            }
            Err(rustix::io::Errno::NOSPC) if self.empty_spares(u64::MAX) > 0 => {
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
            let Some((spare, kept)) = self.spares().take_shortest() else { break };
            let file = openat(self.shard(spare.shard), spare.name(), self.flags(), Mode::empty());
            let emptied = file.is_ok_and(|fd| ftruncate(&fd, 0).is_ok());
            let len = if emptied { 0 } else { spare.len };
            self.counted(spare.len, len);
            freed += spare.len - len;
            if !emptied {
                self.close(kept);
                break;
            }
            self.spares().add((SpareFile { len, ..spare }, kept));
        }
        freed
    }

    fn close(&self, kept: Option<Arc<OwnedFd>>) {
        if kept.is_some() {
            self.kept.fetch_sub(1, Ordering::Relaxed);
        }
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
        renameat(directory, filed.spare.name(), directory, filed.name()).inspect_err(|_| filed.abandon())?;
        filed.state.store(COMMITTED, Ordering::Release);
        if self.manner.durable {
            fsync(directory)?;
        }
        Ok(Arc::new(Kept(Arc::clone(filed))))
    }

    /// Opens a committed entry's file.
    pub(crate) fn open_entry(&self, held: &Arc<dyn Held>) -> io::Result<Arc<Opened>> {
        let filed = filed(held);
        let kept = filed.kept().clone();
        let fd = match kept {
            Some(fd) => fd,
            None => {
                let name = filed.name();
                Arc::new(openat(self.shard(filed.spare.shard), name, self.flags(), Mode::empty())?)
            }
        };
        filed.keep_open(&fd);
        Ok(Arc::new(Opened { fd, filed }))
    }

    /// A spare file found on the disk.
    pub(crate) fn found_spare(&self, spare: SpareFile) {
        self.seen(spare.version);
        self.counted(0, spare.len);
        self.spares().add((spare, None));
    }

    /// A committed entry found on the disk, in a file of `len` bytes.
    pub(crate) fn found(self: &Arc<Self>, shard: u8, len: u64, header: &Header) -> Arc<Filed> {
        let version = header.version;
        self.seen(version);
        self.counted(0, len);
        Arc::new(Filed {
            folder: Arc::clone(self),
            key: header.key.clone(),
            bytes: header.bytes,
            version,
            spare: SpareFile { shard, version, fresh: false, len },
            state: AtomicU8::new(COMMITTED),
            header_len: layout::header_len(&header.key),
            kept: Mutex::default(),
        })
    }

    /// Takes the entry's name from its file. The file is spare once nobody reads it any more.
    pub(crate) fn remove(&self, held: &Arc<dyn Held>) -> io::Result<()> {
        self.remove_file(&filed(held))
    }

    /// As [`Self::remove`], by the file.
    pub(crate) fn remove_file(&self, filed: &Filed) -> io::Result<()> {
        if filed.state.swap(REMOVED, Ordering::AcqRel) != COMMITTED {
            return Ok(());
        }
        let directory = self.shard(filed.spare.shard);
        let spare = SpareFile { version: filed.version, fresh: false, ..filed.spare };
        renameat(directory, filed.name(), directory, spare.name()).inspect_err(|_| filed.abandon())?;
        Ok(())
    }

    /// Deletes the spare files. Called when nothing is measured any more.
    pub(crate) fn delete_spares(&self) -> io::Result<()> {
        let spares = self.spares().drain();
        for (spare, kept) in spares {
            self.close(kept);
            self.counted(spare.len, 0);
            unlinkat(self.shard(spare.shard), spare.name(), AtFlags::empty())?;
        }
        Ok(())
    }
}

impl Filed {
    fn name(&self) -> String {
        entry_name(self.key.hash(), self.version)
    }

    fn kept(&self) -> MutexGuard<'_, Option<Arc<OwnedFd>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the file open for later, if not too many are.
    fn keep_open(&self, fd: &Arc<OwnedFd>) {
        let mut kept = self.kept();
        if kept.is_none() && self.folder.kept.fetch_add(1, Ordering::Relaxed) < self.folder.kept_max {
            *kept = Some(Arc::clone(fd));
        } else if kept.is_none() {
            self.folder.kept.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The file has not the name it should have: it is not used again.
    fn abandon(&self) {
        self.state.store(ABANDONED, Ordering::Release);
    }

    /// The entry's version.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }
}

/// A spare file, open, and its descriptor again where it counts as kept.
type Reopened = (SpareFile, Arc<OwnedFd>, Option<Arc<OwnedFd>>);

/// Half of what this process may have open is left to others.
fn descriptors_to_keep() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| limit as usize / 2)
}

/// The name of a committed entry's file.
pub(crate) fn entry_name(hash: u128, version: u64) -> String {
    format!("{hash:032x}-{version:016x}.kv")
}

impl Drop for Filed {
    fn drop(&mut self) {
        let kept = self.kept().take();
        let (version, fresh) = match self.state.load(Ordering::Acquire) {
            WRITING => (self.spare.version, self.spare.fresh),
            REMOVED => (self.version, false),
            _ => return self.folder.close(kept),
        };
        self.folder.spares().add((SpareFile { version, fresh, ..self.spare }, kept));
    }
}

fn lock_of(path: &Path) -> io::Result<OwnedFd> {
    let lock =
        std::fs::OpenOptions::new().create(true).write(true).truncate(false).open(path.join("LOCK"))?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    Ok(lock.into())
}

fn check_format(path: &Path) -> io::Result<()> {
    let file = path.join("FORMAT");
    match std::fs::read(&file) {
        Ok(text) if text == FORMAT => Ok(()),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "FORMAT is another one")),
        Err(e) if e.kind() == io::ErrorKind::NotFound => std::fs::write(&file, FORMAT),
        Err(e) => Err(e),
    }
}

fn shard_directories(path: &Path) -> io::Result<Vec<OwnedFd>> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let root = rustix::fs::open(path, flags, Mode::empty())?;
    // ext4 spreads the subdirectories of a "top" directory over the disk; elsewhere this is refused, and no loss.
    if let Ok(attributes) = ioctl_getflags(&root) {
        let _ = ioctl_setflags(&root, attributes | IFlags::TOPDIR);
    }
    let mut shards = Vec::new();
    for shard in 0..SHARDS {
        let name = format!("{shard:x}");
        match mkdirat(&root, &name, Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
        shards.push(openat(&root, &name, flags | OFlags::NOFOLLOW, Mode::empty())?);
    }
    Ok(shards)
}
