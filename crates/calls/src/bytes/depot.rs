//! Where the bytes of a tier behind memory are: a store of one tier that lets nobody leave by itself, because
//! who is there is decided by the engine.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wavetank_cache::Rules;
use wavetank_cache::eviction::{self, Settings};
use wavetank_model::{Error, KeyId, Result};
use wavetank_store::backend::{Birth, Location, Recovery};
use wavetank_store::backends::{self, Entry, Site};
use wavetank_store::{Done, Existing, Key, Lane, OpId, Outcome, Payload, Put, Shared, Store, Tier, Want};
use wavetank_store::{dismantle, wrappers};

use super::pool::{Object, Pool};
use crate::plan::{AdapterPlan, Medium};

/// What holds the objects of `mock`.
const MEMORY: &str = "memory";
/// What everything of ours is called, in directories and on servers that others use too.
const OURS: &str = "wavetank.calls";

/// Nothing takes longer, whatever the plan says.
const SLOWEST: Duration = Duration::from_secs(86_400);

/// What stays in a tier whose bytes outlive a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keeping {
    /// Nothing: it is emptied at the beginning and at the end.
    #[default]
    Nothing,
    /// All: what was there is found, and what is there stays.
    All,
}

/// One tier's store. Dropping it removes all that was written, as far as that works, unless it is kept.
pub(crate) struct Depot {
    /// Until it is emptied.
    store: Option<Arc<Store>>,
    bytes_per_second: Option<f64>,
    /// Nothing has to be removed at the end.
    leaves: bool,
    /// What is stored is there for the next process.
    outlives: bool,
    /// The directory that was made for it.
    directory: Option<PathBuf>,
}

impl Depot {
    /// Opens the tier with this number. It has a place of its own where it is, so that nothing else there is
    /// touched; what an earlier process left in that place is removed, unless it is kept.
    pub(crate) fn open(plan: &AdapterPlan, number: usize, keeping: Keeping) -> Result<Self> {
        let place = |error: Error| error.within(format!("--l2-adapter, number {}", number + 1));
        Self::open_here(plan, number, keeping).map_err(place)
    }

    fn open_here(plan: &AdapterPlan, number: usize, keeping: Keeping) -> Result<Self> {
        let (name, location, options, around) = match &plan.medium {
            Medium::Mock => (MEMORY, "", BTreeMap::new(), &[][..]),
            Medium::Backend { name, location, options, wrappers } => {
                (name.as_str(), location.as_str(), options.clone(), &wrappers[..])
            }
        };
        let row = backends::backend(name)?;
        let (site, directory) = own_place(row, (location, options), number)?;
        let capacity_bytes = plan.capacity_bytes.filter(|_| row.caps.location == Location::Device);
        let mut backend = backends::open(name, &Site { capacity_bytes, ..site })?;
        for wrapping in around {
            let row = wrappers::wrapper(&wrapping.name)?;
            backend = (row.wrap)(backend, &wrapping.options.clone().into())?;
        }
        let eviction = (eviction::policy("noop")?.build)(&Settings::default())?;
        let store = Store::open(vec![Tier { backend, capacity_bytes: None, eviction }], Rules::default())?;
        let (survives, bytes_per_second) = (row.caps.survives, plan.bytes_per_second);
        if keeping == Keeping::Nothing {
            store.clear().map_err(unremoved)?;
        }
        let leaves = !survives || keeping == Keeping::All;
        let outlives = survives && keeping == Keeping::All;
        Ok(Self { store: Some(store), bytes_per_second, leaves, outlives, directory })
    }

    fn store(&self) -> &Arc<Store> {
        self.store.as_ref().expect("it is there until it is emptied")
    }

    /// Whether what is stored here is there for the next process.
    pub(crate) fn outlives(&self) -> bool {
        self.outlives
    }

    /// What does not work here as it should, in words.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.store().notes()
    }

    /// How long the tier takes for so many bytes, if it is as slow as the plan says.
    pub(crate) fn takes(&self, bytes: u64) -> Duration {
        self.bytes_per_second.map_or(Duration::ZERO, |rate| {
            Duration::try_from_secs_f64(bytes as f64 / rate).unwrap_or(SLOWEST).min(SLOWEST)
        })
    }

    /// What is there: names, lengths and where they come from, the earliest first.
    pub(crate) fn entries(&self) -> Vec<(Key, u64, Birth)> {
        let mut entries = self.store().entries();
        entries.sort_by_key(|(key, _, birth)| (birth.put, key.hash()));
        entries
    }

    /// What was found at the start besides.
    pub(crate) fn recovery(&self) -> Recovery {
        self.store().recovery()
    }

    /// Whether an object of this name is there.
    #[cfg(test)]
    pub(crate) fn contains(&self, name: &[u8]) -> bool {
        self.store().contains(&Key::new(name))
    }

    /// Removes all that was written, once every lane is closed.
    pub(crate) fn clean(mut self) -> Result<()> {
        self.empty()
    }

    fn empty(&mut self) -> Result<()> {
        let Some(store) = self.store.take().filter(|_| !self.leaves) else { return Ok(()) };
        store.clear().map_err(unremoved)?;
        store.trim().map_err(|error| Error::usage(format!("cannot delete spare files: {error}")))?;
        drop(store);
        if let Some(directory) = &self.directory {
            dismantle(directory).map_err(|error| Error::io(directory, error))?;
            // Something else may have been put there; it stays.
            let _ = std::fs::remove_dir(directory);
        }
        Ok(())
    }
}

impl Drop for Depot {
    fn drop(&mut self) {
        let _ = self.empty();
    }
}

/// A place of our own at the location: a directory in it, a prefix of its keys, or a path below it.
fn own_place(
    row: &Entry,
    (location, mut options): (&str, BTreeMap<String, String>),
    number: usize,
) -> Result<(Site, Option<PathBuf>)> {
    let ours = format!("{OURS}-{number}");
    let mut directory = None;
    let location = match row.caps.location {
        Location::None | Location::Device => location.to_owned(),
        Location::Directory => {
            let path = PathBuf::from(location).join(ours);
            std::fs::create_dir_all(&path).map_err(|error| Error::io(&path, error))?;
            directory = Some(path.clone());
            path.display().to_string()
        }
        Location::Url if row.options.iter().any(|(name, _)| *name == "prefix") => {
            let given = options.remove("prefix").map(|prefix| format!("{prefix}."));
            options.insert("prefix".to_owned(), format!("{}{ours}", given.unwrap_or_default()));
            location.to_owned()
        }
        Location::Url => format!("{}/{ours}", location.trim_end_matches('/')),
    };
    Ok((Site { location, capacity_bytes: None, options: options.into() }, directory))
}

fn unremoved(error: io::Error) -> Error {
    Error::usage(format!("cannot remove objects: {error}"))
}

/// What one thread carries to a tier and back.
pub(crate) struct Freight {
    lane: Lane,
    pool: Arc<Pool>,
}

impl Freight {
    /// With so many pieces at the device at a time.
    pub(crate) fn new(depot: &Depot, pool: &Arc<Pool>, depth: usize) -> io::Result<Self> {
        Ok(Self { lane: depot.store().lane(depth)?, pool: Arc::clone(pool) })
    }

    /// Writes objects that have numbers for names; those that a device failed to write.
    pub(crate) fn put(&mut self, objects: &[(KeyId, Arc<Object>)]) -> Vec<KeyId> {
        let mut asked = HashMap::new();
        for (key, object) in objects {
            let put = put(number(*key), object, Existing::Keep);
            asked.insert(self.lane.put(put), *key);
        }
        self.unwritten(asked)
    }

    /// Writes objects; those that a device failed to write.
    pub(crate) fn put_parcels(&mut self, parcels: &[Parcel]) -> Vec<KeyId> {
        let mut asked = HashMap::new();
        for Parcel { key, name, object, existing, number, expires_s, .. } in parcels {
            let put = put(Key::new(&**name), object, *existing);
            let birth = Birth { put: *number, tenant: 0, expires_s: *expires_s };
            asked.insert(self.lane.put_born(put, birth), *key);
        }
        self.unwritten(asked)
    }

    fn unwritten(&mut self, mut asked: HashMap<OpId, KeyId>) -> Vec<KeyId> {
        let is_written = |done: &Done| matches!(done.outcome, Outcome::Stored(_) | Outcome::Existed);
        let mut failed = Vec::new();
        while let Some(done) = self.lane.wait() {
            failed.extend(asked.remove(&done.op).filter(|_| !is_written(&done)));
        }
        failed
    }

    /// Reads objects that have numbers for names; those that a device failed to read are missing.
    pub(crate) fn load(&mut self, wanted: &[(KeyId, u64)]) -> Vec<(KeyId, Object)> {
        self.read(wanted.iter().map(|&(key, bytes)| (key, number(key), bytes)))
    }

    /// Reads objects; those that a device failed to read are missing, and those of another length.
    pub(crate) fn load_named(&mut self, wanted: &[&Wanted]) -> Vec<(KeyId, Object)> {
        self.read(wanted.iter().map(|wanted| (wanted.key, Key::new(&*wanted.name), wanted.bytes)))
    }

    fn read(&mut self, wanted: impl Iterator<Item = (KeyId, Key, u64)>) -> Vec<(KeyId, Object)> {
        let mut asked: HashMap<OpId, (KeyId, u64)> = HashMap::new();
        let mut lent = 0;
        for (key, name, bytes) in wanted {
            self.lane.lend(self.pool.take(bytes as usize));
            lent += bytes;
            asked.insert(self.lane.get(name, Want::Bytes), (key, bytes));
        }
        let mut objects = Vec::new();
        while let Some(done) = self.lane.wait() {
            let Some((key, bytes)) = asked.remove(&done.op) else { continue };
            let data = done.data.filter(|data| data.len() as u64 == bytes);
            if let (Outcome::Hit(_), Some(data)) = (done.outcome, data) {
                lent = lent.saturating_sub(data.len() as u64);
                objects.push((key, self.pool.adopt(data)));
            }
        }
        for unused in self.lane.take_back() {
            lent = lent.saturating_sub(unused.len() as u64);
            self.pool.give(unused);
        }
        // What a failed read took with it.
        self.pool.lost(lent as usize);
        objects
    }

    /// Removes an object that has a number for a name, if it is there. One that cannot be removed is not
    /// found any more all the same.
    pub(crate) fn remove(&mut self, key: KeyId) {
        self.remove_key(number(key));
    }

    /// Removes what has this name, in the same way.
    pub(crate) fn remove_named(&mut self, name: &[u8]) {
        self.remove_key(Key::new(name));
    }

    fn remove_key(&mut self, key: Key) {
        self.lane.remove(key);
        while self.lane.wait().is_some() {}
    }
}

/// An object on its way to a tier.
pub(crate) struct Parcel {
    pub(crate) key: KeyId,
    pub(crate) name: Box<[u8]>,
    pub(crate) object: Arc<Object>,
    /// What it takes of memory as long as it is under way.
    pub(crate) taken: u64,
    /// What if something has its name.
    pub(crate) existing: Existing,
    /// Of two objects of one name the one with the higher is the later.
    pub(crate) number: u64,
    /// Seconds since 1970 until which it is of use; 0 for ever.
    pub(crate) expires_s: u32,
}

/// An object that a tier is to bring.
pub(crate) struct Wanted {
    pub(crate) adapter: usize,
    pub(crate) key: KeyId,
    pub(crate) name: Box<[u8]>,
    pub(crate) bytes: u64,
}

fn put(key: Key, object: &Arc<Object>, existing: Existing) -> Put {
    Put { key, payload: Payload::Shared(Shared(Arc::clone(object) as _)), tenant: 0, existing }
}

fn number(key: KeyId) -> Key {
    Key::new(key.0.to_le_bytes().as_slice())
}
