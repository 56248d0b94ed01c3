//! What an earlier process left under a prefix: entries, damaged ones, and what is neither.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use super::{COMMITTED, Objects, REMOVED, Stored};
use crate::backend::{Found, NewEntry, Recovery};
use crate::buffer::{ALIGN, HEADROOM};
use crate::key::Key;
use crate::layout::{Header, NotAHeader, header_len};
use crate::name;

/// Headers that are fetched at a time: a request takes tens of milliseconds, whatever it brings.
const AT_A_TIME: usize = 32;

/// Reads every header and reports each key's latest entry; older ones are deleted.
pub(super) fn recover(objects: &Arc<Objects>, report: &mut dyn FnMut(Found)) -> io::Result<Recovery> {
    let bucket = &objects.bucket;
    let mut scan = Scan { objects, latest: HashMap::new(), counts: Recovery::default() };
    let ours = scan.listed()?;
    let headers = stream::iter(ours).map(|meta| async move {
        let start = meta.size.saturating_sub(HEADROOM as u64);
        let end = bucket.s3.get_range(&meta.location, start..meta.size).await;
        (meta, end)
    });
    let mut headers = std::pin::pin!(headers.buffer_unordered(AT_A_TIME));
    while let Some((meta, end)) = bucket.ask(bucket.prefix(), async { Ok(headers.next().await) })? {
        scan.entry(&meta, end)?;
    }
    let mut entries: Vec<_> = scan.latest.into_values().collect();
    entries.sort_by_key(Header::age);
    for Header { key, bytes, checksum, version, birth } in entries {
        let held = Arc::new(Stored::new(
            objects,
            &NewEntry { key: &key, bytes, recipe: None, birth },
            version,
            COMMITTED,
        ));
        report(Found { key, bytes, checksum, version, birth, held });
    }
    Ok(scan.counts)
}

struct Scan<'a> {
    objects: &'a Arc<Objects>,
    latest: HashMap<Key, Header>,
    counts: Recovery,
}

impl Scan<'_> {
    /// The objects that are called like entries.
    fn listed(&mut self) -> io::Result<Vec<ObjectMeta>> {
        let bucket = &self.objects.bucket;
        let mut list = bucket.s3.list(Some(bucket.prefix()));
        let mut ours = Vec::new();
        while let Some(meta) = bucket.ask(bucket.prefix(), async { list.next().await.transpose() })? {
            let name = meta.location.filename().and_then(read_name);
            let here = name.is_some_and(|(hash, version)| {
                bucket.path(&name::of_entry(hash, version)) == meta.location && meta.size >= ALIGN as u64
            });
            if here { ours.push(meta) } else { self.counts.foreign += 1 }
        }
        Ok(ours)
    }

    fn entry(&mut self, meta: &ObjectMeta, end: object_store::Result<Bytes>) -> io::Result<()> {
        let end = match end {
            Ok(end) => end,
            // Deleted since it was listed.
            Err(object_store::Error::NotFound { .. }) => return Ok(()),
            Err(e) => return Err(self.objects.bucket.told(&meta.location, &e)),
        };
        let name = meta.location.filename().and_then(read_name);
        match last_header(&end, meta.size) {
            Ok(header) if name == Some((header.key.hash(), header.version)) => self.keep(header),
            Ok(_) | Err(NotAHeader::Damaged) => {
                self.counts.torn += 1;
                Ok(())
            }
            Err(NotAHeader::Foreign) => {
                self.counts.foreign += 1;
                Ok(())
            }
        }
    }

    /// Keeps the later of two entries of one key: a process was killed before it removed the older.
    fn keep(&mut self, header: Header) -> io::Result<()> {
        self.objects.version.fetch_max(header.version.saturating_add(1), Ordering::Relaxed);
        let older = match self.latest.entry(header.key.clone()) {
            Slot::Vacant(free) => {
                free.insert(header);
                return Ok(());
            }
            Slot::Occupied(other) if other.get().age() > header.age() => header,
            Slot::Occupied(mut other) => other.insert(header),
        };
        self.counts.spare += 1;
        let Header { key, bytes, birth, version, .. } = &older;
        let entry = NewEntry { key, bytes: *bytes, recipe: None, birth: *birth };
        Stored::new(self.objects, &entry, *version, REMOVED).end()
    }
}

/// The header that ends an object of `size` bytes whose last bytes are `end`: it is a few blocks long, and
/// says how many together with how much is before it.
fn last_header(end: &[u8], size: u64) -> Result<Header, NotAHeader> {
    let mut problem = NotAHeader::Foreign;
    for len in (ALIGN..=end.len()).step_by(ALIGN) {
        match Header::decode(&end[end.len() - len..]) {
            Ok(header)
                if header_len(&header.key) == len && size.checked_sub(len as u64) == Some(header.bytes) =>
            {
                return Ok(header);
            }
            Err(NotAHeader::Foreign) => {}
            Ok(_) | Err(NotAHeader::Damaged) => problem = NotAHeader::Damaged,
        }
    }
    Err(problem)
}

fn read_name(name: &str) -> Option<(u128, u64)> {
    let (hash, version) = name.strip_suffix(".kv")?.split_once('-')?;
    let hash = u128::from_str_radix(hash, 16).ok()?;
    let version = u64::from_str_radix(version, 16).ok()?;
    // Written as we write it, or not ours.
    (name::of_entry(hash, version) == name).then_some((hash, version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_strictly() {
        assert_eq!(read_name(&name::of_entry(0xabc, 7)), Some((0xabc, 7)));
        for name in ["x.kv", "-.kv", "notes.txt", &name::of_entry(0xabc, 7).to_uppercase(), "+1-1.kv"] {
            assert_eq!(read_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_header_is_found_at_the_end_whatever_the_key() {
        for key in [&b"k"[..], &[7; 10_000], &[1; crate::KEY_BYTES_MAX]] {
            let header =
                Header { key: Key::new(key), bytes: 5, checksum: 1, version: 2, birth: Default::default() };
            let mut object = vec![0; 5 + header_len(&header.key)];
            header.encode(&mut object[5..]);
            let size = object.len() as u64;
            let end = &object[object.len().saturating_sub(HEADROOM)..];
            assert_eq!(last_header(end, size), Ok(header));
            assert_eq!(last_header(end, size + 1), Err(NotAHeader::Damaged));
        }
        assert_eq!(last_header(&[0; 8192], 8192), Err(NotAHeader::Foreign));
    }
}
