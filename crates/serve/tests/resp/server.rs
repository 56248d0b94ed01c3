//! A cache with its front door.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wavetank_calls::{
    AdapterPlan, EvictionPlan, L1Plan, LoadPolicy, Plan, QuotaPlan, Storage, StorageOptions, StorePolicy,
};
use wavetank_model::Nanos;
use wavetank_serve::resp::{Door, Settings};
use wavetank_serve::{Cache, Counters};
use wavetank_telemetry::Bus;

use crate::client::Client;

/// A server that ends with this.
pub(crate) struct Server {
    pub(crate) cache: Arc<Cache>,
    pub(crate) door: Door,
}

/// Settings for a port that is free.
pub(crate) fn settings() -> Settings {
    Settings { listen: ([127, 0, 0, 1], 0).into(), threads: 2, ..Settings::default() }
}

/// Memory of `bytes` with tiers behind it.
pub(crate) fn cache(bytes: u64, adapters: Vec<AdapterPlan>, patience: Duration) -> Arc<Cache> {
    let eviction = EvictionPlan { policy: "lru".to_owned(), trigger_watermark: 0.9, eviction_ratio: 0.2 };
    let hour = Nanos(3_600_000_000_000);
    let l1 = L1Plan {
        capacity_bytes: Some(bytes),
        align_bytes: 1,
        write_ttl: hour,
        read_ttl: hour,
        eviction,
        quotas: QuotaPlan::default(),
    };
    let plan = Plan {
        l1,
        adapters,
        store_delay: Nanos(0),
        store_policy: StorePolicy::Default,
        load_policy: LoadPolicy::Retain,
    };
    let storage = Storage::open(&plan, &StorageOptions::default(), None).unwrap();
    Arc::new(Cache { storage, counters: Counters::default(), bus: Bus::off(), patience })
}

impl Server {
    /// One as most tests want it.
    pub(crate) fn usual() -> Self {
        Self::with(settings())
    }

    /// One that is set so, with memory enough.
    pub(crate) fn with(settings: Settings) -> Self {
        Self::over(cache(4 << 30, Vec::new(), Duration::from_secs(5)), settings)
    }

    /// One over `cache`.
    pub(crate) fn over(cache: Arc<Cache>, settings: Settings) -> Self {
        let door = Door::open(settings, Arc::clone(&cache)).unwrap();
        Self { cache, door }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.door.address()
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address())
    }
}

/// Waits until `is_so`: what the other side does, it does in its own time.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}: it never came");
        std::thread::sleep(Duration::from_millis(2));
    }
}
