//! How long a reader waits for the storage layer while others keep it busy, and how fast writers are while a
//! tier behind memory hangs.
//!
//! ```text
//! cargo run --release -p wavetank-calls --example held_up
//! ```

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use wavetank_calls::{
    AdapterPlan, EvictionPlan, Got, L1Plan, LoadPolicy, Medium, Plan, QuotaPlan, SetManner, Storage,
    StorageOptions, StorePolicy, Wrapping,
};
use wavetank_model::Nanos;

const GIB: u64 = 1 << 30;

fn plan(capacity: u64, adapters: Vec<AdapterPlan>) -> Plan {
    Plan {
        l1: L1Plan {
            capacity_bytes: Some(capacity),
            align_bytes: 4096,
            write_ttl: Nanos::from_seconds(600.0),
            read_ttl: Nanos::from_seconds(300.0),
            eviction: EvictionPlan::typed("lru", None, None, [""; 3]).unwrap(),
            quotas: QuotaPlan::default(),
        },
        adapters,
        store_delay: Nanos::ZERO,
        store_policy: StorePolicy::Default,
        load_policy: LoadPolicy::Retain,
    }
}

/// A tier of 4 GiB in memory, which takes `spike_ms` for every request where that is not 0.
fn tier(spike_ms: u64) -> AdapterPlan {
    let options = [("spike", "1".to_owned()), ("spike_ms", spike_ms.to_string())];
    let options: BTreeMap<String, String> =
        options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let fault = Wrapping { name: "fault".to_owned(), options };
    AdapterPlan {
        quotas: QuotaPlan::default(),
        capacity_bytes: Some(4 * GIB),
        bytes_per_second: None,
        eviction: Some(EvictionPlan::typed("lru", None, None, [""; 3]).unwrap()),
        medium: Medium::Backend {
            name: "memory".to_owned(),
            location: String::new(),
            options: BTreeMap::new(),
            wrappers: if spike_ms > 0 { vec![fault] } else { Vec::new() },
        },
    }
}

fn set(storage: &Storage, name: &[u8], bytes: usize) {
    let blank = storage.room(bytes as u64).expect("there is room");
    storage.set(name, blank, SetManner::default());
}

/// Reads one object again and again while `work` is done: how long that took, and the slowest reads.
fn watched(storage: &Storage, work: impl FnOnce()) -> (Duration, Vec<Duration>) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut took = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                assert!(matches!(storage.get(b"watched"), Got::Here(_) | Got::Behind | Got::Absent));
                took.push(begun.elapsed());
                std::thread::sleep(Duration::from_micros(100));
            }
            took.sort_unstable();
            took
        });
        let begun = Instant::now();
        work();
        let took = begun.elapsed();
        over.store(true, Ordering::Relaxed);
        (took, reader.join().unwrap())
    })
}

fn told(what: &str, (took, reads): (Duration, Vec<Duration>)) {
    let at = |share: f64| reads[((reads.len() - 1) as f64 * share) as usize];
    let (median, high, most) = (at(0.5), at(0.999), at(1.0));
    println!(
        "{what}: {took:.2?}; {} reads, median {median:.1?}, P99.9 {high:.1?}, longest {most:.2?}",
        reads.len()
    );
}

fn main() {
    let options = StorageOptions::default();
    let storage = Storage::open(&plan(4 * GIB, vec![tier(0)]), &options, None).unwrap();
    set(&storage, b"watched", 1);
    let small = |storage: &Storage, count: u32| {
        (0..count).for_each(|number| set(storage, &number.to_le_bytes(), 1));
    };
    told("130,000 writes of 1 byte, a tier of memory behind", watched(&storage, || small(&storage, 130_000)));
    told("until all are copied", watched(&storage, || storage.settle()));
    told("all removed", watched(&storage, || storage.clear()));
    storage.close().unwrap();

    let storage = Storage::open(&plan(GIB, Vec::new()), &options, None).unwrap();
    small(&storage, 262_000);
    told("room for 512 MiB among values of 4 KiB", watched(&storage, || drop(storage.room(GIB / 2))));

    let options = StorageOptions { closing: Duration::from_millis(200), ..options };
    let storage = Storage::open(&plan(GIB, vec![tier(3_600_000)]), &options, None).unwrap();
    set(&storage, b"watched", 1);
    let result = watched(&storage, || small(&storage, 600_000));
    println!("a tier that hangs: {:.0} writes/s", 600_000.0 / result.0.as_secs_f64());
    told("meanwhile", result);
    println!("{:?}", storage.background().behind());
}
