//! What an entry in memory costs besides its name and its value, counted by the allocator, and how many are
//! read and written a second by one thread.
//!
//! ```text
//! cargo run --release -p wavetank-calls --example entry_bytes [-- ENTRIES [VALUE_BYTES]]
//! ```

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use wavetank_calls::{
    EvictionPlan, Got, L1Plan, LoadPolicy, Plan, QuotaPlan, SetManner, Storage, StorageOptions, StorePolicy,
};
use wavetank_model::Nanos;

/// Bytes asked of the allocator and not given back.
static LIVE: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call goes on to the system's allocator with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promised us.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promised us.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promised us.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LIVE.fetch_add(size, Ordering::Relaxed);
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promised us.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn plan() -> Plan {
    Plan {
        l1: L1Plan {
            capacity_bytes: Some(64 << 30),
            align_bytes: 1,
            write_ttl: Nanos::from_seconds(600.0),
            read_ttl: Nanos::from_seconds(300.0),
            eviction: EvictionPlan::typed("lru", None, None, [""; 3]).unwrap(),
            quotas: QuotaPlan::default(),
        },
        adapters: Vec::new(),
        store_delay: Nanos::ZERO,
        store_policy: StorePolicy::Default,
        load_policy: LoadPolicy::Default,
    }
}

/// Names of 24 bytes.
fn name(number: usize) -> [u8; 24] {
    let mut name = *b"entry:000000000000000000";
    let mut rest = number;
    for digit in name.iter_mut().rev().take(18) {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    name
}

fn set(storage: &Storage, number: usize, bytes: usize) {
    let mut blank = storage.room(bytes as u64).unwrap();
    blank.bytes_mut()[..8].copy_from_slice(&number.to_le_bytes());
    black_box(storage.set(&name(number), blank, SetManner::default()).fate);
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>().unwrap());
    let (entries, bytes) = (arguments.next().unwrap_or(100_000), arguments.next().unwrap_or(4096));
    let storage = Storage::open(&plan(), &StorageOptions::default(), None).unwrap();
    let before = LIVE.load(Ordering::Relaxed);
    let begun = Instant::now();
    (0..entries).for_each(|number| set(&storage, number, bytes));
    let filled = begun.elapsed().as_secs_f64();
    let live = LIVE.load(Ordering::Relaxed) - before;
    let own = live as f64 / entries as f64 - (24 + bytes) as f64;
    println!("{entries} entries of {bytes} bytes: {own:.1} bytes each besides name and value");
    println!("written for the first time: {:.2} M/s", entries as f64 / filled / 1e6);
    let rounds = 2_000_000;
    let begun = Instant::now();
    let mut random = 1usize;
    for _ in 0..rounds {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let Got::Here(object) = storage.get(&name((random >> 33) % entries)) else { panic!("it is there") };
        black_box(object[0]);
    }
    println!("read: {:.2} M/s", rounds as f64 / begun.elapsed().as_secs_f64() / 1e6);
    let begun = Instant::now();
    for _ in 0..rounds {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        set(&storage, (random >> 33) % entries, bytes);
    }
    println!("written again: {:.2} M/s", rounds as f64 / begun.elapsed().as_secs_f64() / 1e6);
}
