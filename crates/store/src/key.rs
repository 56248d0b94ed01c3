//! What names an entry: any bytes. Outside memory only its hash is a name, so no key can escape a directory.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

/// The longest key a store takes: with its entry's header it has to fit a buffer's headroom.
pub const KEY_BYTES_MAX: usize = 16 * 1024 - 64;

/// An entry's name and the name's hash.
#[derive(Clone)]
pub struct Key {
    bytes: Arc<[u8]>,
    hash: u128,
}

impl Key {
    /// A key of these bytes.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        Self { hash: xxh3_128(&bytes), bytes }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The name in file systems and key-value servers.
    pub fn hash(&self) -> u128 {
        self.hash
    }

    /// The short form in events and logs.
    pub fn fingerprint(&self) -> u64 {
        self.hash as u64
    }

    /// Which of `count` shards it belongs to.
    pub(crate) fn shard(&self, count: usize) -> usize {
        (self.hash >> 64) as usize % count
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes())
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.bytes == other.bytes
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.fingerprint());
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", String::from_utf8_lossy(&self.bytes))
    }
}
