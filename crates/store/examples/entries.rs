//! Writes, reads and writes again entries of one size through a store of one tier, and prints what it cost.
//!
//! `entries BACKEND LOCATION ENTRY_BYTES DEPTH TOTAL_BYTES` takes phases from standard input, a word a line:
//! `write`, `read`, `overwrite`, or `copy` for a plain copy of as many bytes. Each is answered by one line of
//! JSON. CPU time is that of the whole process with its kernel time; payload and checksum are part of a
//! write. `cargo xtask bench store` runs it beside `fio`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use wavetank_cache::{Rules, eviction};
use wavetank_store::backends::{self, Site};
use wavetank_store::buffer::{Mover, PIECE, Region};
use wavetank_store::{Existing, Key, Lane, Outcome, Payload, Put, Store, Tier, Want};

struct Load {
    entry_bytes: u64,
    depth: usize,
    entries: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [backend, location, entry_bytes, depth, total] = args.as_slice() else {
        return Err("usage: entries BACKEND LOCATION ENTRY_BYTES DEPTH TOTAL_BYTES".into());
    };
    let entry_bytes: u64 = entry_bytes.parse()?;
    let entries = (total.parse::<u64>()? / entry_bytes).max(1);
    let load = Load { entry_bytes, depth: depth.parse()?, entries };
    let site = Site { location: location.clone(), ..Site::default() };
    let backend = backends::open(backend, &site)?;
    let tier = Tier {
        backend,
        capacity_bytes: None,
        eviction: (eviction::policy("lru")?.build)(&eviction::Settings::default())?,
    };
    let store = Store::open(vec![tier], Rules::default())?;
    let mut lane = store.lane(load.depth)?;
    for note in store.notes() {
        eprintln!("{note}");
    }
    for phase in std::io::stdin().lines() {
        run(&store, &mut lane, &load, phase?.trim())?;
    }
    Ok(())
}

fn run(store: &Arc<Store>, lane: &mut Lane, load: &Load, phase: &str) -> Result<(), Box<dyn Error>> {
    match phase {
        "write" => measured(phase, load, || drive(lane, load, write)),
        "read" => measured(phase, load, || {
            drive(lane, load, |lane, number, _| {
                lane.get(key(number), Want::Nothing);
            })
        }),
        "overwrite" => {
            drive(lane, load, |lane, number, _| {
                lane.remove(key(number));
            })?;
            assert!(store.is_empty(), "every entry was removed");
            measured(phase, load, || drive(lane, load, write))
        }
        "copy" => copy(load),
        other => Err(format!("unknown phase {other}").into()),
    }
}

/// Copies memory to the buffers of a lane, piece by piece, as reading a memory tier does.
fn copy(load: &Load) -> Result<(), Box<dyn Error>> {
    let pieces = (load.entries * load.entry_bytes).div_ceil(PIECE as u64) as usize;
    let (from, to) = (Region::new(pieces)?, Region::new(load.depth)?);
    let mut sources: Vec<_> = (0..pieces).filter_map(|_| from.take(Mover::Device)).collect();
    let mut targets: Vec<_> = (0..load.depth).filter_map(|_| to.take(Mover::Device)).collect();
    for buffer in sources.iter_mut().chain(&mut targets) {
        buffer.payload_mut().fill(1);
    }
    measured("copy", load, || {
        for (number, source) in sources.iter().enumerate() {
            let target = &mut targets[number % load.depth];
            std::hint::black_box(target.payload_mut()).copy_from_slice(source.payload());
        }
        Ok(())
    })
}

fn key(number: u64) -> Key {
    Key::from(format!("entry-{number}").as_str())
}

fn write(lane: &mut Lane, number: u64, bytes: u64) {
    let payload = Payload::Seeded { seed: number, bytes };
    lane.put(Put { key: key(number), payload, tenant: 0, existing: Existing::Keep });
}

/// Asks for every entry, with as many operations pending as keep the devices busy.
fn drive(lane: &mut Lane, load: &Load, ask: impl Fn(&mut Lane, u64, u64)) -> Result<(), Box<dyn Error>> {
    let mut asked = 0;
    let mut done = 0;
    while done < load.entries {
        while asked < load.entries && lane.pending() < 2 * load.depth + 2 {
            ask(lane, asked, load.entry_bytes);
            asked += 1;
        }
        let end = lane.wait().expect("operations are pending");
        match end.outcome {
            Outcome::Stored(_) | Outcome::Hit(_) | Outcome::Removed(true) => done += 1,
            other => return Err(format!("{other:?}").into()),
        }
    }
    Ok(())
}

fn measured(
    phase: &str,
    load: &Load,
    work: impl FnOnce() -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let (start, cpu) = (Instant::now(), cpu_seconds());
    work()?;
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let bytes = load.entries * load.entry_bytes;
    println!("{{\"phase\":\"{phase}\",\"bytes\":{bytes},\"seconds\":{seconds:.6},\"cpu_seconds\":{cpu:.6}}}");
    Ok(())
}

fn cpu_seconds() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}
