//! `redis`: a Redis server, one value per piece of an entry, committed by one more.
//!
//! | key | value |
//! |---|---|
//! | `<prefix>:<key's hash>:<version>:<number>` | a piece |
//! | `<prefix>:<key's hash>:<version>` | the manifest: the header of `layout.rs`, written last |
//!
//! An entry is there if its manifest is. Setting one key is atomic, versions never share keys, and a removal
//! takes the manifest first, so a process killed at any point leaves whole entries, and pieces without a
//! manifest, which the next recovery deletes. That is also why one prefix is for one process at a time.
//!
//! The protocol: <https://redis.io/docs/latest/develop/reference/protocol-spec/>.

mod recover;
mod server;

use std::any::Any;
use std::io;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::cmd;
use wavetank_model::{Error, Result};

use self::server::Server;
use super::{Entry, Site};
use crate::backend::{Backend, Birth, Caps, Found, Held, Location, NewEntry, Piece, Port, Recovery, Seal};
use crate::buffer::{Buffer, PIECE, Region};
use crate::checksum;
use crate::key::Key;
use crate::layout::{Header, header_len};
use crate::threads::{Blocking, ThreadPort};

pub(super) const ENTRY: Entry = Entry {
    name: "redis",
    about: "a Redis server: redis://host:port/db; the password from REDIS_PASSWORD",
    caps: Caps { keeps_bytes: true, survives: true, inline: false, location: Location::Url },
    options: &[
        ("password_file", "the file that holds the password; the variable REDIS_PASSWORD unless given"),
        ("prefix", "what its keys begin with, for this process alone; wavetank unless given"),
        ("timeout_s", "seconds of silence after which a call has failed; 10 unless given"),
    ],
    open,
};

const TIMEOUT_S: u64 = 10;
/// Keys of one UNLINK: long enough to be few calls, short enough not to hold up the server.
const UNLINK_KEYS: u64 = 512;

fn open(site: &Site) -> Result<Arc<dyn Backend>> {
    let prefix = site.option("prefix", "wavetank".to_owned())?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if prefix.is_empty() || !prefix.chars().all(plain) {
        return Err(Error::usage("option prefix: letters, digits, dots, dashes and underscores only"));
    }
    let timeout_s = site.option("timeout_s", TIMEOUT_S)?;
    if timeout_s == 0 {
        return Err(Error::usage("option timeout_s: must be above 0"));
    }
    let password = password(site)?;
    let server = Server::open(&site.location, password, Duration::from_secs(timeout_s))?;
    // Later processes have higher versions even if they do not look for the entries of earlier ones.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64);
    let version = AtomicU64::new(now);
    Ok(Arc::new(Redis { keys: Arc::new(Keys { server, prefix, version, left: AtomicU64::new(0) }) }))
}

fn password(site: &Site) -> Result<Option<String>> {
    let Some(path) = site.options.get("password_file") else {
        return Ok(std::env::var("REDIS_PASSWORD").ok());
    };
    let text = std::fs::read_to_string(path).map_err(|e| Error::io(path.as_ref(), e))?;
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

struct Redis {
    keys: Arc<Keys>,
}

/// The keys of one prefix.
struct Keys {
    server: Server,
    prefix: String,
    version: AtomicU64,
    /// Entries whose pieces could not be deleted.
    left: AtomicU64,
}

const WRITING: u8 = 0;
/// The manifest was sent, and no answer came.
const UNSURE: u8 = 1;
const COMMITTED: u8 = 2;
/// Its manifest is gone; its pieces go with the last who reads them.
const REMOVED: u8 = 3;
const GONE: u8 = 4;

/// An entry on the server.
struct Valued {
    keys: Arc<Keys>,
    key: Key,
    bytes: u64,
    birth: Birth,
    version: u64,
    checksum: OnceLock<u64>,
    state: AtomicU8,
}

impl Held for Valued {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn valued(held: &Arc<dyn Held>) -> &Valued {
    held.as_any().downcast_ref().expect("an entry of this backend")
}

impl Backend for Redis {
    fn port(self: Arc<Self>, _: &Arc<Region>, depth: usize) -> io::Result<Box<dyn Port>> {
        Ok(Box::new(ThreadPort::new(self, depth)?))
    }

    fn recover(self: Arc<Self>, found: &mut dyn FnMut(Found)) -> io::Result<Recovery> {
        recover::recover(&self.keys, found)
    }

    fn notes(&self) -> Vec<String> {
        let left = self.keys.left.load(Ordering::Relaxed);
        let left = (left > 0).then(|| {
            format!("redis: {left} entries could not be deleted: the next recovery deletes their pieces")
        });
        self.keys.server.notes().into_iter().chain(left).collect()
    }
}

impl Blocking for Redis {
    fn create(&self, entry: &NewEntry<'_>) -> io::Result<Arc<dyn Held>> {
        let version = self.keys.version.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Valued {
            keys: Arc::clone(&self.keys),
            key: entry.key.clone(),
            bytes: entry.bytes,
            birth: entry.birth,
            version,
            checksum: OnceLock::new(),
            state: AtomicU8::new(WRITING),
        }))
    }

    fn write(
        &self,
        held: &Arc<dyn Held>,
        piece: Piece,
        buffer: &mut Buffer,
        seal: Option<Seal>,
    ) -> io::Result<()> {
        let entry = valued(held);
        if let Some(Seal { checksum }) = seal {
            entry.checksum.get_or_init(|| checksum);
        }
        if piece.len == 0 {
            return Ok(());
        }
        let name = entry.piece_name(piece.offset / PIECE as u64);
        self.keys.server.ask(cmd("SET").arg(name).arg(&buffer.payload()[..piece.len]))
    }

    fn commit(&self, held: Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        let entry = valued(&held);
        let empty = (entry.bytes == 0).then(|| checksum::of(&[]));
        let unsealed =
            || io::Error::new(io::ErrorKind::InvalidInput, "redis: committed before it was sealed");
        let checksum = entry.checksum.get().copied().or(empty).ok_or_else(unsealed)?;
        let Valued { key, bytes, version, birth, .. } = entry;
        let header = Header { key: key.clone(), bytes: *bytes, checksum, version: *version, birth: *birth };
        let mut manifest = vec![0; header_len(&entry.key)];
        header.encode(&mut manifest);
        entry.state.store(UNSURE, Ordering::Release);
        self.keys.server.ask::<()>(cmd("SET").arg(entry.name()).arg(manifest))?;
        entry.state.store(COMMITTED, Ordering::Release);
        Ok(held)
    }

    fn read(&self, held: &Arc<dyn Held>, piece: Piece, buffer: &mut Buffer) -> io::Result<()> {
        if piece.len == 0 {
            return Ok(());
        }
        let name = valued(held).piece_name(piece.offset / PIECE as u64);
        let value: Option<Vec<u8>> = self.keys.server.ask(cmd("GET").arg(&name))?;
        let gone = || io::Error::new(io::ErrorKind::NotFound, format!("redis: {name} is gone"));
        let short = || io::Error::new(io::ErrorKind::UnexpectedEof, format!("redis: {name} is too short"));
        let value = value.ok_or_else(gone)?;
        buffer.payload_mut()[..piece.len].copy_from_slice(value.get(..piece.len).ok_or_else(short)?);
        Ok(())
    }

    fn remove(&self, held: Arc<dyn Held>) -> io::Result<()> {
        let entry = valued(&held);
        if matches!(entry.state.load(Ordering::Acquire), COMMITTED | UNSURE) {
            self.keys.server.ask::<()>(cmd("UNLINK").arg(entry.name()))?;
            entry.state.store(REMOVED, Ordering::Release);
        }
        // Who else holds it reads or writes it; the last of them takes the pieces away.
        if Arc::strong_count(&held) == 1 { entry.end() } else { Ok(()) }
    }
}

impl Keys {
    /// The manifest's key.
    fn name(&self, hash: u128, version: u64) -> String {
        format!("{}:{hash:032x}:{version:016x}", self.prefix)
    }

    /// Deletes a manifest, then the first `pieces` pieces.
    fn unlink(&self, name: &str, pieces: u64) -> io::Result<()> {
        self.server.ask::<()>(cmd("UNLINK").arg(name))?;
        for first in (0..pieces).step_by(UNLINK_KEYS as usize) {
            let names = (first..pieces.min(first + UNLINK_KEYS)).map(|number| piece_name(name, number));
            self.server.ask::<()>(cmd("UNLINK").arg(names.collect::<Vec<_>>()))?;
        }
        Ok(())
    }
}

fn piece_name(entry: &str, number: u64) -> String {
    format!("{entry}:{number}")
}

/// How many pieces an entry has.
fn pieces(bytes: u64) -> u64 {
    bytes.div_ceil(PIECE as u64)
}

impl Valued {
    fn name(&self) -> String {
        self.keys.name(self.key.hash(), self.version)
    }

    fn piece_name(&self, number: u64) -> String {
        piece_name(&self.name(), number)
    }

    /// Deletes what is left of an entry that is not, or no longer, committed.
    fn end(&self) -> io::Result<()> {
        self.state.store(GONE, Ordering::Release);
        self.keys.unlink(&self.name(), pieces(self.bytes)).inspect_err(|_| {
            self.keys.left.fetch_add(1, Ordering::Relaxed);
        })
    }
}

impl Drop for Valued {
    fn drop(&mut self) {
        match *self.state.get_mut() {
            COMMITTED | GONE => {}
            // One wait for a server that is gone is enough: not one for each entry.
            _ if !self.keys.server.answers() => {
                self.keys.left.fetch_add(1, Ordering::Relaxed);
            }
            _ => {
                let _ = self.end();
            }
        }
    }
}
