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
use wavetank_store::backend::Location;
use wavetank_store::backends::{self, Entry, Site};
use wavetank_store::{Done, Key, Lane, OpId, Outcome, Payload, Put, Shared, Store, Tier, Want};
use wavetank_store::{dismantle, wrappers};

use super::pool::{Object, Pool};
use crate::plan::{AdapterPlan, Medium};

/// What holds the objects of `mock`.
const MEMORY: &str = "memory";
/// What everything of ours is called, in directories and on servers that others use too.
const OURS: &str = "wavetank.calls";

/// Nothing takes longer, whatever the plan says.
const SLOWEST: Duration = Duration::from_secs(86_400);

/// One tier's store. Dropping it removes all that was written, as far as that works.
pub(crate) struct Depot {
    /// Until it is emptied.
    store: Option<Arc<Store>>,
    bytes_per_second: Option<f64>,
    survives: bool,
    /// The directory that was made for it.
    directory: Option<PathBuf>,
}

impl Depot {
    /// Opens the tier with this number, empty. It has a place of its own where it is, so that nothing else
    /// there is touched; what an earlier process left in that place is removed.
    pub(crate) fn open(plan: &AdapterPlan, number: usize) -> Result<Self> {
        let place = |error: Error| error.within(format!("--l2-adapter, number {}", number + 1));
        Self::open_here(plan, number).map_err(place)
    }

    fn open_here(plan: &AdapterPlan, number: usize) -> Result<Self> {
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
        store.clear().map_err(unremoved)?;
        Ok(Self { store: Some(store), bytes_per_second, survives, directory })
    }

    fn store(&self) -> &Arc<Store> {
        self.store.as_ref().expect("it is there until it is emptied")
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

    /// Whether an object of `key` is there.
    #[cfg(test)]
    pub(crate) fn contains(&self, key: KeyId) -> bool {
        self.store().contains(&name(key))
    }

    /// Removes all that was written, once every lane is closed.
    pub(crate) fn clean(mut self) -> Result<()> {
        self.empty()
    }

    fn empty(&mut self) -> Result<()> {
        let Some(store) = self.store.take().filter(|_| self.survives) else { return Ok(()) };
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

    /// Writes objects; those that a device failed to write.
    pub(crate) fn put(&mut self, objects: &[(KeyId, Arc<Object>)]) -> Vec<KeyId> {
        let mut asked = HashMap::new();
        for (key, object) in objects {
            let payload = Payload::Shared(Shared(Arc::clone(object) as _));
            let put = Put { key: name(*key), payload, tenant: 0, existing: Default::default() };
            asked.insert(self.lane.put(put), *key);
        }
        let is_written = |done: &Done| matches!(done.outcome, Outcome::Stored(_) | Outcome::Existed);
        let mut failed = Vec::new();
        while let Some(done) = self.lane.wait() {
            failed.extend(asked.remove(&done.op).filter(|_| !is_written(&done)));
        }
        failed
    }

    /// Reads objects of these lengths; those that a device failed to read are missing.
    pub(crate) fn load(&mut self, wanted: &[(KeyId, u64)]) -> Vec<(KeyId, Object)> {
        let mut asked: HashMap<OpId, KeyId> = HashMap::new();
        let mut lent = 0;
        for &(key, bytes) in wanted {
            self.lane.lend(self.pool.take(bytes as usize));
            lent += bytes;
            asked.insert(self.lane.get(name(key), Want::Bytes), key);
        }
        let mut objects = Vec::new();
        while let Some(done) = self.lane.wait() {
            let Some(key) = asked.remove(&done.op) else { continue };
            if let (Outcome::Hit(_), Some(data)) = (done.outcome, done.data) {
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

    /// Removes an object, if it is there. One that cannot be removed is not found any more all the same.
    pub(crate) fn remove(&mut self, key: KeyId) {
        self.lane.remove(name(key));
        while self.lane.wait().is_some() {}
    }
}

fn name(key: KeyId) -> Key {
    Key::new(key.0.to_le_bytes().as_slice())
}
