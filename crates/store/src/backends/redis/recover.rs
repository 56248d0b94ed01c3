//! What an earlier process left under a prefix: entries, pieces without a manifest, and what is neither.

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use redis::cmd;

use super::{COMMITTED, Keys, Valued, piece_name, pieces};
use crate::backend::{Found, Recovery};
use crate::key::Key;
use crate::layout::{Header, NotAHeader};

const SCAN_KEYS: usize = 1000;
/// Manifests of one call: a few hundred kilobytes.
const MANIFESTS: usize = 64;

/// The hash of an entry's key and its version.
type Id = (u128, u64);

/// What a key says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Manifest(Id),
    Piece(Id, u64),
    Foreign,
}

struct Scan<'a> {
    keys: &'a Keys,
    manifests: BTreeSet<Id>,
    pieces: BTreeMap<Id, BTreeSet<u64>>,
    /// A scan may name a key twice.
    foreign: HashSet<Vec<u8>>,
    latest: HashMap<Key, Header>,
    torn: u64,
    spare: u64,
}

/// Reads every manifest and reports each key's latest entry; older ones and pieces of none are deleted.
pub(super) fn recover(keys: &Arc<Keys>, report: &mut dyn FnMut(Found)) -> io::Result<Recovery> {
    let mut scan = Scan::new(keys);
    scan.names()?;
    scan.manifests()?;
    scan.orphans()?;
    let mut entries: Vec<Header> = scan.latest.into_values().collect();
    entries.sort_by_key(Header::age);
    for header in entries {
        report(found(keys, header));
    }
    Ok(Recovery { foreign: scan.foreign.len() as u64, torn: scan.torn, spare: scan.spare })
}

fn read_name(keys: &Keys, name: &[u8]) -> Named {
    let parse = || {
        let text = std::str::from_utf8(name).ok()?;
        let mut fields = text.strip_prefix(&keys.prefix)?.strip_prefix(':')?.split(':');
        let hash = u128::from_str_radix(fields.next()?, 16).ok()?;
        let version = u64::from_str_radix(fields.next()?, 16).ok()?;
        let id = (hash, version);
        // Written as we write it, or not ours.
        let manifest = keys.name(hash, version);
        match fields.next() {
            None => (text == manifest).then_some(Named::Manifest(id)),
            Some(number) => {
                let number = number.parse().ok()?;
                (text == piece_name(&manifest, number)).then_some(Named::Piece(id, number))
            }
        }
    };
    parse().unwrap_or(Named::Foreign)
}

impl<'a> Scan<'a> {
    fn new(keys: &'a Keys) -> Self {
        Self {
            keys,
            manifests: BTreeSet::new(),
            pieces: BTreeMap::new(),
            foreign: HashSet::new(),
            latest: HashMap::new(),
            torn: 0,
            spare: 0,
        }
    }

    /// Sorts every key under the prefix.
    fn names(&mut self) -> io::Result<()> {
        let pattern = format!("{}:*", self.keys.prefix);
        let mut cursor = 0u64;
        loop {
            let mut command = cmd("SCAN");
            command.arg(cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(SCAN_KEYS);
            let (next, names): (u64, Vec<Vec<u8>>) = self.keys.server.ask(&command)?;
            for name in names {
                match read_name(self.keys, &name) {
                    Named::Manifest(id) => _ = self.manifests.insert(id),
                    Named::Piece(id, number) => _ = self.pieces.entry(id).or_default().insert(number),
                    Named::Foreign => _ = self.foreign.insert(name),
                }
            }
            if next == 0 {
                return Ok(());
            }
            cursor = next;
        }
    }

    fn manifests(&mut self) -> io::Result<()> {
        let manifests: Vec<Id> = std::mem::take(&mut self.manifests).into_iter().collect();
        for ids in manifests.chunks(MANIFESTS) {
            let names: Vec<String> = ids.iter().map(|id| self.keys.name(id.0, id.1)).collect();
            let values: Vec<Option<Vec<u8>>> = self.keys.server.ask(cmd("MGET").arg(&names))?;
            for (id, value) in ids.iter().zip(values) {
                // A value of another type has no text, and was not written here.
                self.manifest(*id, &value.unwrap_or_default())?;
            }
        }
        Ok(())
    }

    /// Deletes what belongs to no manifest: its process was killed while it wrote or removed.
    fn orphans(&mut self) -> io::Result<()> {
        for (id, numbers) in std::mem::take(&mut self.pieces) {
            self.torn += 1;
            delete(self.keys, &self.keys.name(id.0, id.1), &numbers)?;
        }
        Ok(())
    }

    fn manifest(&mut self, id: Id, value: &[u8]) -> io::Result<()> {
        let keys = self.keys;
        let name = keys.name(id.0, id.1);
        let header = match Header::decode(value) {
            Err(NotAHeader::Foreign) => {
                self.foreign.insert(name.into_bytes());
                return Ok(());
            }
            header => header,
        };
        let numbers = self.pieces.remove(&id).unwrap_or_default();
        let sound = |header: &Header| {
            let last = numbers.last().map_or(0, |number| number.saturating_add(1));
            let count = pieces(header.bytes);
            (header.key.hash(), header.version) == id && count == last && count == numbers.len() as u64
        };
        let Some(header) = header.ok().filter(sound) else {
            self.torn += 1;
            return delete(keys, &name, &numbers);
        };
        keys.version.fetch_max(header.version.saturating_add(1), Ordering::Relaxed);
        let older = match self.latest.entry(header.key.clone()) {
            Slot::Vacant(free) => {
                free.insert(header);
                return Ok(());
            }
            Slot::Occupied(other) if other.get().age() > header.age() => header,
            Slot::Occupied(mut other) => other.insert(header),
        };
        self.spare += 1;
        keys.unlink(&keys.name(older.key.hash(), older.version), pieces(older.bytes))
    }
}

/// Deletes a manifest and these pieces of it.
fn delete(keys: &Keys, name: &str, numbers: &BTreeSet<u64>) -> io::Result<()> {
    keys.unlink(name, 0)?;
    let names: Vec<String> = numbers.iter().map(|number| piece_name(name, *number)).collect();
    names.chunks(SCAN_KEYS).try_for_each(|names| keys.server.ask(cmd("UNLINK").arg(names)))
}

fn found(keys: &Arc<Keys>, header: Header) -> Found {
    let Header { key, bytes, checksum, version, birth } = header;
    let held = Valued {
        keys: Arc::clone(keys),
        key: key.clone(),
        bytes,
        birth,
        version,
        checksum: OnceLock::from(checksum),
        state: AtomicU8::new(COMMITTED),
    };
    Found { key, bytes, checksum, version, birth, held: Arc::new(held) }
}
