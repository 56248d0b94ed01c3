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

/// Seconds this thread was on a core, where the kernel says so: the machine may have other work.
fn on_core() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}

/// Millions a second of wall time and of time on a core.
struct Rate(Instant, f64);

impl Rate {
    fn begin() -> Self {
        Self(Instant::now(), on_core())
    }

    fn tell(&self, what: &str, count: usize) {
        let (wall, core) = (self.0.elapsed().as_secs_f64(), on_core() - self.1);
        let millions = count as f64 / 1e6;
        println!("{what}: {:.2} M/s, {:.2} M per second on a core", millions / wall, millions / core);
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
    let first = Rate::begin();
    (0..entries).for_each(|number| set(&storage, number, bytes));
    first.tell("written for the first time", entries);
    let live = LIVE.load(Ordering::Relaxed) - before;
    let own = live as f64 / entries as f64 - (24 + bytes) as f64;
    println!("{entries} entries of {bytes} bytes: {own:.1} bytes each besides name and value");
    let rounds = 2_000_000;
    let reading = Rate::begin();
    let mut random = 1usize;
    for _ in 0..rounds {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let Got::Here(object) = storage.get(&name((random >> 33) % entries)) else { panic!("it is there") };
        black_box(object[0]);
    }
    reading.tell("read", rounds);
    let writing = Rate::begin();
    for _ in 0..rounds {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        set(&storage, (random >> 33) % entries, bytes);
    }
    writing.tell("written again", rounds);
}
