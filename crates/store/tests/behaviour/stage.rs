//! Where each backend of the table is tried: one [`Stage`] per row and variant that can run here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use wavetank_store::backend::{Backend, Found, Location, Recovery};
use wavetank_store::backends::{self, Entry, Site};

use crate::driver::Driver;
use crate::server::{self, Peer, S3};

/// Other ways to run a row of the table, besides its defaults.
const VARIANTS: &[(&str, &[(&str, &str)])] = &[
    ("buffered", &[("durable", "false"), ("forget", "true")]),
    ("direct", &[("buffers", "plain"), ("durable", "true")]),
    ("direct", &[("engine", "threads")]),
];

/// Where `entry` can be tried on this machine; nothing, with a printed reason, where it cannot.
fn site_for(entry: &Entry) -> Option<(Site, Option<Arc<Server>>)> {
    match entry.caps.location {
        Location::None => Some((Site::default(), None)),
        Location::Directory => {
            let folder = tempfile::Builder::new().prefix(entry.name).tempdir_in(env!("CARGO_TARGET_TMPDIR"));
            let location = folder.unwrap().keep().to_str().unwrap().to_owned();
            Some((Site { location, ..Site::default() }, None))
        }
        Location::Device => skipped(entry.name, "needs a device"),
        Location::Url => peer(entry.name).map(|server| (server.site(), Some(server))),
    }
}

/// The server behind a backend: one for all stages there are at a time, which ends with the last of them.
enum Server {
    Redis(Peer),
    Object(S3),
}

impl Server {
    fn start(name: &str) -> Option<Self> {
        let _quiet = no_forks();
        match name {
            "redis" => server::redis().map(|(peer, _)| Self::Redis(peer)),
            "object" => server::s3(&[]).map(Self::Object),
            _ => panic!("{name} needs a server of its own kind"),
        }
    }

    /// A place of its own for each stage.
    fn site(&self) -> Site {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        match self {
            Self::Redis(peer) => {
                let mut site = server::at_redis(peer);
                let prefix = format!("stage{number}");
                site.options = [("prefix", prefix.as_str()), ("timeout_s", "20")].into_iter().collect();
                site
            }
            Self::Object(s3) => s3.at(&format!("s3://bucket/stage{number}")),
        }
    }
}

fn peer(name: &'static str) -> Option<Arc<Server>> {
    static RUNNING: Mutex<BTreeMap<&str, Weak<Server>>> = Mutex::new(BTreeMap::new());
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let there = running.get(name).and_then(Weak::upgrade);
    let server = there.or_else(|| Server::start(name).map(Arc::new))?;
    running.insert(name, Arc::downgrade(&server));
    Some(server)
}

/// Says that something is not tried, and why.
pub(crate) fn skipped<T>(what: &str, why: &str) -> Option<T> {
    eprintln!("skipped: {what}: {why}");
    None
}

/// While this is held no process is started: a new one has the lock of every store that is open, for a moment
/// even after it runs, and a store closed in that moment could not be opened again.
pub(crate) fn no_forks() -> MutexGuard<'static, ()> {
    static FORKS: Mutex<()> = Mutex::new(());
    FORKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A backend that can be opened, again and again.
pub(crate) struct Stage {
    pub(crate) entry: &'static Entry,
    pub(crate) site: Site,
    /// Its name and options.
    pub(crate) name: String,
    /// What it talks to.
    _server: Option<Arc<Server>>,
}

impl Stage {
    fn new(entry: &'static Entry, options: &[(&str, &str)]) -> Option<Self> {
        let (mut site, _server) = site_for(entry)?;
        if !options.is_empty() {
            site.options = options.iter().copied().collect();
        }
        let name =
            options.iter().fold(entry.name.to_owned(), |name, (key, value)| format!("{name} {key}={value}"));
        let stage = Self { entry, site, name, _server };
        match backends::open(entry.name, &stage.site) {
            Ok(_) => Some(stage),
            Err(e) if e.to_string().contains("O_DIRECT") => skipped(&stage.name, &e.to_string()),
            Err(e) => panic!("{}: {e}", stage.name),
        }
    }

    /// Every row and variant that can run here and that `wanted` takes.
    pub(crate) fn every(wanted: impl Fn(&Entry) -> bool) -> Vec<Self> {
        let mut stages = Vec::new();
        for entry in backends::ALL.iter().filter(|entry| wanted(entry)) {
            let variants = VARIANTS.iter().filter(|(name, _)| *name == entry.name);
            stages.extend(Self::new(entry, &[]));
            stages.extend(variants.filter_map(|(_, options)| Self::new(entry, options)));
        }
        for stage in &stages {
            eprintln!("stage: {}", stage.name);
        }
        stages
    }

    pub(crate) fn open(&self) -> Arc<dyn Backend> {
        self.open_at(&self.site)
    }

    pub(crate) fn open_at(&self, site: &Site) -> Arc<dyn Backend> {
        let _quiet = no_forks();
        backends::open(self.entry.name, site).unwrap_or_else(|e| panic!("{}: {e}", self.name))
    }

    /// A backend with what an earlier process left, in the order of versions.
    pub(crate) fn reopen(&self) -> (Arc<dyn Backend>, Vec<Found>, Recovery) {
        let backend = self.open();
        let mut found = Vec::new();
        let recovery = Arc::clone(&backend).recover(&mut |entry| found.push(entry)).unwrap();
        (backend, found, recovery)
    }

    pub(crate) fn driver(&self, depth: usize) -> Driver {
        Driver::new(&self.open(), depth)
    }

    /// Whether what was written comes back.
    pub(crate) fn keeps(&self) -> bool {
        self.entry.caps.keeps_bytes
    }

    /// The directory its files are in.
    pub(crate) fn root(&self) -> PathBuf {
        Path::new(&self.site.location).join("wavetank.store")
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if self.entry.caps.location == Location::Directory {
            let _ = std::fs::remove_dir_all(&self.site.location);
        }
    }
}

/// Rows that hold bytes.
pub(crate) fn keeping(entry: &Entry) -> bool {
    entry.caps.keeps_bytes
}

/// Rows whose entries outlive the process.
pub(crate) fn surviving(entry: &Entry) -> bool {
    entry.caps.survives
}

/// Rows that are a directory of files.
pub(crate) fn filing(entry: &Entry) -> bool {
    entry.caps.location == Location::Directory
}
