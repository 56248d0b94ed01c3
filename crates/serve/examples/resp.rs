//! The front door alone, to be tried and measured by hand: `resp PORT GB [THREADS]`.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use wavetank_calls::{
    EvictionPlan, L1Plan, LoadPolicy, Plan, QuotaPlan, Storage, StorageOptions, StorePolicy,
};
use wavetank_model::Nanos;
use wavetank_serve::resp::{Door, Settings};
use wavetank_serve::{Cache, Counters};
use wavetank_telemetry::Bus;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, usual: u64| args.get(index).map_or(Ok(usual), |text| text.parse::<u64>());
    let (port, bytes) = (number(0, 6380)? as u16, number(1, 4)? << 30);
    let settings = Settings {
        listen: ([127, 0, 0, 1], port).into(),
        l1_bytes: Some(bytes),
        is_flush_enabled: true,
        ..Settings::default()
    };
    let threads = number(2, settings.threads as u64)? as usize;
    let eviction = EvictionPlan { policy: "lru".to_owned(), trigger_watermark: 0.8, eviction_ratio: 0.2 };
    let hour = Nanos(3_600_000_000_000);
    let l1 =
        L1Plan { capacity_bytes: Some(bytes), align_bytes: 1, write_ttl: hour, read_ttl: hour, eviction };
    let plan = Plan {
        l1,
        adapters: Vec::new(),
        store_delay: Nanos(0),
        store_policy: StorePolicy::Default,
        load_policy: LoadPolicy::Retain,
    };
    let storage = Storage::open(&plan, &StorageOptions::default(), None)?;
    let patience = Duration::from_secs(10);
    let cache = Cache { storage, counters: Counters::default(), bus: Bus::off(), patience };
    let _door = Door::open(Settings { threads, ..settings }, Arc::new(cache))?;
    loop {
        std::thread::park();
    }
}
