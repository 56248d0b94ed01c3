//! `--trace-level storage`: what the storage layer did, recorded so that it can be made again.
//!
//! Whoever calls the storage layer leaves a note with the names that are meant, and goes on; a thread of its
//! own writes them. Numbers of names are used again, so a number means a name only when it is told.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use wavetank_calls::{AdapterPlan, Called, Journal, ObjectName, Plan as StoragePlan};
use wavetank_model::{Error, KeyFamily, KeyId, KeyTable, Layout, LayoutId, ObjectKey, Recorded, Result};
use wavetank_trace::calls::lct::{Header, LctOptions, Recording as LctRecording, canonical};
use wavetank_trace::recorder::{Kept, Page, ROOM, Recorder, Recordist, Scribe};

use crate::plan::Recording;

/// A recording that runs; finished or dropped, it is written to its end.
pub struct Tape {
    recordist: Recordist<Noted>,
    path: PathBuf,
}

impl Tape {
    /// Begins to record what happens on such storage.
    pub fn start(to: &Recording, storage: &StoragePlan) -> Result<Self> {
        if let Some(folder) = to.path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| Error::io(&to.path, error))?;
        }
        let options = LctOptions { rotate_bytes: to.rotate_bytes, cap_bytes: to.cap_bytes };
        let recording = LctRecording::buffered(&to.path, header(storage), options)?;
        let recordist = Recordist::start(recording, NameScribe::default(), ROOM)?;
        Ok(Self { recordist, path: to.path.clone() })
    }

    /// Ends a recording of a server that did not start: it is as if it had not begun.
    pub(crate) fn discard(self) {
        let Self { recordist, path } = self;
        // Nothing was recorded, and that it cannot be removed is less than what went wrong before.
        let _ = recordist.finish();
        let _ = std::fs::remove_file(path);
    }

    /// Whom the storage layer tells.
    pub fn journal(&self) -> Arc<dyn Journal> {
        Arc::new(Overhearing(self.recordist.recorder()))
    }

    /// Says at any time what it has come to.
    pub(crate) fn teller(&self) -> impl Fn() -> Kept + Send + Sync + 'static {
        let recorder = self.recordist.recorder();
        move || recorder.so_far()
    }

    /// Writes what was noted, and says what it came to.
    pub fn finish(self) -> Result<Kept> {
        self.recordist.finish()
    }
}

/// What the recording says of itself: the storage it is of, in the reference's words.
fn header(storage: &StoragePlan) -> Header {
    let adapters: Vec<Value> = storage.adapters.iter().map(AdapterPlan::described).collect();
    let config = storage.config(&adapters).to_string();
    // Keys are sorted, so that one storage has one text and one digest.
    let config = canonical(&config).map_or(config, |sorted| sorted.to_string());
    let mut level_meta = Map::new();
    level_meta.insert("recorder".to_owned(), "wavetank serve".into());
    level_meta.insert("wavetank_version".to_owned(), env!("CARGO_PKG_VERSION").into());
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Header { level_meta, ..Header::storage(since_1970.as_secs_f64(), config) }
}

/// What is noted on the data path.
struct Noted {
    recorded: Recorded,
    /// The names of its keys in the order of the call, each after its length.
    names: Box<[u8]>,
}

struct Overhearing(Recorder<Noted>);

impl Journal for Overhearing {
    fn record(&self, recorded: Recorded, called: Called<'_>) {
        self.0.note(|| {
            let mut names = Vec::new();
            for key in recorded.call.keys() {
                let name = called.name(key).unwrap_or_default();
                names.extend((name.len() as u32).to_le_bytes());
                names.extend(name);
            }
            Noted { recorded, names: names.into() }
        });
    }
}

/// Gives names and lengths the numbers of a page.
#[derive(Default)]
struct NameScribe {
    layouts: HashMap<u32, LayoutId>,
    hash: Vec<u8>,
}

impl NameScribe {
    fn key(&mut self, name: &[u8], keys: &mut KeyTable) -> KeyId {
        let Some(parsed) = ObjectName::parse(name).filter(|parsed| !is_plain(parsed)) else {
            return keys.key_id(ObjectKey { chunk_hash: name, family: PLAIN });
        };
        let ObjectName { model_name, kv_rank, object_group_id, chunk_hash, cache_salt } = parsed;
        self.hash.clear();
        self.hash
            .extend(chunk_hash.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])));
        let family = KeyFamily { model_name, kv_rank, object_group_id, cache_salt };
        keys.key_id(ObjectKey { chunk_hash: &self.hash, family })
    }
}

/// What names of any other form belong to: their bytes are the hash.
const PLAIN: KeyFamily<'_> = KeyFamily { model_name: "resp", kv_rank: 0, object_group_id: 0, cache_salt: "" };

/// Whether a name would become the key of another one.
fn is_plain(name: &ObjectName<'_>) -> bool {
    let ObjectName { model_name, kv_rank, object_group_id, cache_salt, .. } = *name;
    KeyFamily { model_name, kv_rank, object_group_id, cache_salt } == PLAIN
}

fn digit(letter: u8) -> u8 {
    if letter.is_ascii_digit() { letter - b'0' } else { letter - b'a' + 10 }
}

impl Scribe<Noted> for NameScribe {
    fn begin(&mut self, _: &mut KeyTable) {
        self.layouts.clear();
    }

    fn write(&mut self, note: Noted, page: &mut Page<'_>) {
        let Noted { mut recorded, names } = note;
        let mut rest = &names[..];
        let mut numbers = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk() {
            let (name, next) = after.split_at(u32::from_le_bytes(*length) as usize);
            numbers.push(self.key(name, page.keys));
            rest = next;
        }
        let mut numbers = numbers.into_iter();
        let layouts = &mut self.layouts;
        recorded.call.renumber(
            |_| numbers.next().expect("every key has its name"),
            |LayoutId(bytes)| {
                *layouts.entry(bytes).or_insert_with(|| {
                    let (shapes, dtypes) =
                        ([[u64::from(bytes)].into()].into(), ["torch.uint8".into()].into());
                    page.keys.layout_id(Layout { shapes, dtypes })
                })
            },
        );
        page.record(&recorded);
    }
}

#[cfg(test)]
mod tests;
