//! `object`: S3-compatible object storage, one object per entry: the payload, then the entry's header.
//!
//! An object is `<prefix>/<key's hash>-<version>.kv`. The header (as in `layout.rs`) comes last because its
//! checksum is known last. An entry of one piece is one PUT. A longer one is a multipart upload whose last
//! part has the header; completing the upload is the commit. Both are atomic: a torn upload is no object, so
//! nothing finds it. Uploads of a killed process stay with the server, unseen: a lifecycle rule of the bucket
//! (`AbortIncompleteMultipartUpload`) ends them. One prefix is for one process at a time.
//!
//! An entry that is removed while it is read is deleted after the last reader: a process killed before that
//! leaves it to be found again.
//!
//! The interface: <https://docs.aws.amazon.com/AmazonS3/latest/API/>. The asynchronous runtime of the client
//! stays inside this folder; everything here blocks, and is called from threads outside any such runtime.

mod bucket;
mod credentials;
mod parts;
mod recover;

use std::any::Any;
use std::io;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, MultipartId, ObjectStore, ObjectStoreExt};
use wavetank_model::Result;

use self::bucket::Bucket;
use self::parts::{Part, Parts};
use super::{Entry, Site};
use crate::backend::{Backend, Birth, Caps, Found, Held, Location, NewEntry, Piece, Port, Recovery, Seal};
use crate::buffer::{Buffer, PIECE, Region};
use crate::checksum;
use crate::key::Key;
use crate::layout::{Header, header_len};
use crate::name;
use crate::threads::{Blocking, ThreadPort};

pub(super) const ENTRY: Entry = Entry {
    name: "object",
    about: "S3-compatible storage: s3://bucket/prefix; credentials from AWS_ACCESS_KEY_ID and the like",
    caps: Caps { keeps_bytes: true, survives: true, inline: false, location: Location::Url },
    options: &[
        ("credentials_file", "a file like ~/.aws/credentials; the environment, then that file unless given"),
        ("endpoint", "the server's address, http:// or https://; that of AWS unless given"),
        ("region", "the bucket's region; AWS_REGION, then us-east-1 unless given"),
        ("timeout_s", "seconds until a request has failed, with all its retries; 10 unless given"),
    ],
    open: |site: &Site| -> Result<Arc<dyn Backend>> {
        // Later processes have higher versions even if they do not look for the entries of earlier ones.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64);
        let objects =
            Objects { bucket: Bucket::open(site)?, version: AtomicU64::new(now), left: AtomicU64::new(0) };
        Ok(Arc::new(Object { objects: Arc::new(objects) }))
    },
};

struct Object {
    objects: Arc<Objects>,
}

/// The objects under one prefix.
struct Objects {
    bucket: Bucket,
    version: AtomicU64,
    /// Entries and uploads that could not be deleted.
    left: AtomicU64,
}

const WRITING: u8 = 0;
/// The object may be there: it was to be committed, and no answer came.
const UNSURE: u8 = 1;
const COMMITTED: u8 = 2;
/// The object goes with the last who reads it.
const REMOVED: u8 = 3;
const GONE: u8 = 4;

/// An entry, and the object that it is or will be.
struct Stored {
    objects: Arc<Objects>,
    key: Key,
    bytes: u64,
    birth: Birth,
    version: u64,
    path: Path,
    state: AtomicU8,
    parts: Mutex<Parts>,
    /// Held while the upload is begun, so that it is begun once.
    upload: Mutex<Option<MultipartId>>,
}

impl Held for Stored {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn stored(held: &Arc<dyn Held>) -> &Stored {
    held.as_any().downcast_ref().expect("an entry of this backend")
}

impl Backend for Object {
    fn port(self: Arc<Self>, _: &Arc<Region>, depth: usize) -> io::Result<Box<dyn Port>> {
        Ok(Box::new(ThreadPort::new(self, depth)?))
    }

    fn recover(self: Arc<Self>, found: &mut dyn FnMut(Found)) -> io::Result<Recovery> {
        recover::recover(&self.objects, found)
    }

    fn notes(&self) -> Vec<String> {
        let left = self.objects.left.load(Ordering::Relaxed);
        let note = format!("object: {left} removed or unfinished entries could not be deleted on the server");
        if left > 0 { vec![note] } else { Vec::new() }
    }
}

impl Blocking for Object {
    fn create(&self, entry: &NewEntry<'_>) -> io::Result<Arc<dyn Held>> {
        let version = self.objects.version.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Stored::new(&self.objects, entry, version, WRITING)))
    }

    fn write(
        &self,
        held: &Arc<dyn Held>,
        piece: Piece,
        buffer: &mut Buffer,
        seal: Option<Seal>,
    ) -> io::Result<()> {
        let entry = stored(held);
        let bytes = Bytes::copy_from_slice(&buffer.payload()[..piece.len]);
        entry.parts().add(piece.offset, bytes)?;
        if let Some(Seal { checksum }) = seal {
            entry.seal(checksum);
        }
        if entry.is_single() { Ok(()) } else { entry.send_whole_parts() }
    }

    fn commit(&self, held: Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        let entry = stored(&held);
        if entry.bytes == 0 {
            entry.seal(checksum::of(&[]));
        }
        if entry.is_single() {
            entry.put()?
        } else {
            entry.complete()?
        }
        entry.state.store(COMMITTED, Ordering::Release);
        entry.parts().forget();
        Ok(held)
    }

    fn read(&self, held: &Arc<dyn Held>, piece: Piece, buffer: &mut Buffer) -> io::Result<()> {
        let entry = stored(held);
        if piece.len == 0 {
            return Ok(());
        }
        let range = GetRange::Bounded(piece.offset..piece.offset + piece.len as u64);
        let options = GetOptions { range: Some(range), ..GetOptions::default() };
        let payload = &mut buffer.payload_mut()[..piece.len];
        let bucket = &self.objects.bucket;
        let read = bucket.ask(&entry.path, async {
            let mut read = 0;
            let mut chunks = bucket.s3.get_opts(&entry.path, options).await?.into_stream();
            while let Some(chunk) = chunks.try_next().await? {
                // The client checks the answer's range, not how long its body is.
                let room = &mut payload[read..];
                let len = chunk.len().min(room.len());
                room[..len].copy_from_slice(&chunk[..len]);
                read += len;
            }
            Ok(read)
        })?;
        let short =
            || io::Error::new(io::ErrorKind::UnexpectedEof, bucket.named(&entry.path, "ends too soon"));
        if read == piece.len { Ok(()) } else { Err(short()) }
    }

    fn remove(&self, held: Arc<dyn Held>) -> io::Result<()> {
        let entry = stored(&held);
        let _ = entry.state.compare_exchange(COMMITTED, REMOVED, Ordering::AcqRel, Ordering::Acquire);
        // Who else holds it reads or writes it; the last of them takes the object away.
        if Arc::strong_count(&held) == 1 { entry.end() } else { Ok(()) }
    }
}

impl Stored {
    fn new(objects: &Arc<Objects>, entry: &NewEntry<'_>, version: u64, state: u8) -> Self {
        let NewEntry { key, bytes, birth, .. } = *entry;
        Self {
            objects: Arc::clone(objects),
            key: key.clone(),
            bytes,
            birth,
            version,
            path: objects.bucket.path(&name::of_entry(key.hash(), version)),
            state: AtomicU8::new(state),
            parts: Mutex::new(Parts::new(bytes)),
            upload: Mutex::default(),
        }
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn upload(&self) -> MutexGuard<'_, Option<MultipartId>> {
        self.upload.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One PUT instead of an upload in parts: that is three requests at least.
    fn is_single(&self) -> bool {
        self.bytes <= PIECE as u64
    }

    fn seal(&self, checksum: u64) {
        let mut header = vec![0; header_len(&self.key)];
        let Self { bytes, version, birth, .. } = *self;
        Header { key: self.key.clone(), bytes, checksum, version, birth }.encode(&mut header);
        self.parts().seal(header.into());
    }

    fn incomplete(&self) -> io::Error {
        let what = self.objects.bucket.named(&self.path, "committed before all of it was written");
        io::Error::new(io::ErrorKind::InvalidInput, what)
    }

    /// Sends the parts that have all their pieces. A part that fails waits for the next piece to try again.
    fn send_whole_parts(&self) -> io::Result<()> {
        loop {
            let part = self.parts().take_whole();
            let Some(part) = part else { return Ok(()) };
            self.send(&part).inspect_err(|_| self.parts().give_back(part))?;
        }
    }

    fn send(&self, part: &Part) -> io::Result<()> {
        let bucket = &self.objects.bucket;
        let id = self.begin()?;
        let sent = bucket.s3.put_part(&self.path, &id, part.number, part.payload());
        let sent = bucket.ask(&self.path, sent)?;
        self.parts().sent(part.number, sent);
        Ok(())
    }

    fn begin(&self) -> io::Result<MultipartId> {
        let bucket = &self.objects.bucket;
        let mut upload = self.upload();
        if upload.is_none() {
            *upload = Some(bucket.ask(&self.path, bucket.s3.create_multipart(&self.path))?);
        }
        Ok(upload.clone().expect("just begun"))
    }

    fn put(&self) -> io::Result<()> {
        let bucket = &self.objects.bucket;
        let part = self.parts().take_whole().ok_or_else(|| self.incomplete())?;
        self.state.store(UNSURE, Ordering::Release);
        let put = bucket.ask(&self.path, bucket.s3.put(&self.path, part.payload()));
        put.map(|_| ()).inspect_err(|_| self.parts().give_back(part))
    }

    fn complete(&self) -> io::Result<()> {
        let bucket = &self.objects.bucket;
        let sent = self.parts().all_sent().ok_or_else(|| self.incomplete())?;
        let id = self.begin()?;
        self.state.store(UNSURE, Ordering::Release);
        bucket.ask(&self.path, bucket.s3.complete_multipart(&self.path, &id, sent))?;
        *self.upload() = None;
        Ok(())
    }

    /// Ends the upload of an entry that is not committed, and deletes the object of one that no longer is.
    fn end(&self) -> io::Result<()> {
        let before = self.state.swap(GONE, Ordering::AcqRel);
        let bucket = &self.objects.bucket;
        let absent_is_fine = |result: io::Result<()>| match result {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        };
        let abort = || match &*self.upload() {
            Some(id) => absent_is_fine(bucket.ask(&self.path, bucket.s3.abort_multipart(&self.path, id))),
            None => Ok(()),
        };
        let delete = || match before {
            UNSURE | REMOVED => absent_is_fine(bucket.ask(&self.path, bucket.s3.delete(&self.path))),
            _ => Ok(()),
        };
        abort().and_then(|()| delete()).inspect_err(|_| {
            self.objects.left.fetch_add(1, Ordering::Relaxed);
        })
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        match *self.state.get_mut() {
            COMMITTED | GONE => {}
            // One wait for a server that is gone is enough: not one for each entry.
            _ if !self.objects.bucket.answers() => {
                self.objects.left.fetch_add(1, Ordering::Relaxed);
            }
            _ => {
                let _ = self.end();
            }
        }
    }
}
