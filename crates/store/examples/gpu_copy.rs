//! How close the `cuda` backend comes to plain pinned copies, on a machine with an NVIDIA GPU.
//!
//! `gpu_copy [GIB]` moves GIB (8 unless given) per measurement, with the driver's own calls and through a
//! port, in turns over the same buffers, and prints medians. It also moves entries there and back, compares
//! their bytes, and prints what is said when there is no memory or no such device.
#![allow(clippy::print_stdout)]

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::{result, sys};
use wavetank_model::ErrorKind;
use wavetank_store::backend::{Backend, Completion, Held, NewEntry, Piece, Port};
use wavetank_store::backends::{self, Site};
use wavetank_store::buffer::{Buffer, Mover, PIECE, Region};
use wavetank_store::{Key, payload};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const MIB: u64 = 1 << 20;
const BUFFERS: usize = 64;
const PAIRS: usize = 5;
const ENTRY_MIB: [u64; 3] = [1, 16, 96];
const DEPTHS: [usize; 2] = [16, 4];

/// Which way bytes go; `Both`: half of them each way, at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    In,
    Out,
    Both,
}

fn main() -> Outcome {
    let gib: u64 = std::env::args().nth(1).map_or(Ok(8), |text| text.parse())?;
    let total = gib.max(1) * 1024 * MIB;
    let gpu = match open("", Some(total + 1024 * MIB)) {
        Ok(gpu) => gpu,
        Err(e) if e.kind() == ErrorKind::Unsupported => {
            println!("nothing to measure here: {e}");
            return Ok(());
        }
        Err(e) => return Err(e.into()),
    };
    let region = Region::new(BUFFERS)?;
    let mut port = Arc::clone(&gpu).port(&region, BUFFERS)?;
    println!("notes: {:?}; huge pages: {}", gpu.notes(), region.huge_pages());
    refusals();
    verify(&mut *port, &region)?;
    let plain = Plain::new(&region, total)?;
    println!("{}; {gib} GiB a measurement, medians of {PAIRS} pairs", plain.name);
    println!("copies: {BUFFERS} buffers of 1 MiB in turn, all queued at once, a stream for each direction");
    println!("way   entry MiB  depth  plain GB/s  port GB/s  ratio  plain CPU s/GiB  port CPU s/GiB");
    for size in ENTRY_MIB.map(|mib| mib * MIB) {
        let entries = write_entries(&mut *port, &region, (size, total / size))?;
        for way in [Way::In, Way::Out, Way::Both] {
            for depth in DEPTHS {
                let mut lane = Lane { port: &mut *port, region: &region, entries: &entries, size, depth };
                compare(&plain, &mut lane, way)?;
            }
        }
    }
    Ok(())
}

fn open(location: &str, capacity_bytes: Option<u64>) -> wavetank_model::Result<Arc<dyn Backend>> {
    let site = Site { location: location.to_owned(), capacity_bytes, ..Site::default() };
    backends::open("cuda", &site)
}

/// What is said, and that none of it is a panic.
fn refusals() {
    for (what, location, capacity) in [
        ("too much", "", Some(1 << 45)),
        ("no capacity", "", None),
        ("bad device", "99", Some(MIB)),
        ("no number", "gpu", Some(MIB)),
    ] {
        let said = open(location, capacity).map(|_| "opened").map_err(|e| e.to_string().replace('\n', "; "));
        println!("{what}: {said:?}");
    }
}

/// A measurement: bytes, how long, and how much of it on a CPU.
#[derive(Clone, Copy)]
struct Measured {
    bytes: u64,
    wall: Duration,
    cpu: Duration,
}

impl Measured {
    fn of(bytes: u64, work: impl FnOnce() -> Outcome) -> Outcome<Self> {
        let (start, cpu) = (Instant::now(), cpu_time());
        work()?;
        Ok(Self { bytes, wall: start.elapsed(), cpu: cpu_time() - cpu })
    }

    fn gbps(&self) -> f64 {
        self.bytes as f64 / self.wall.as_secs_f64() / 1e9
    }

    fn cpu_s_per_gib(&self) -> f64 {
        self.cpu.as_secs_f64() / (self.bytes as f64 / (1024 * MIB) as f64)
    }
}

fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one structure.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Measures both in turns, so that what else the machine does meets both.
fn compare(plain: &Plain, lane: &mut Lane<'_>, way: Way) -> Outcome {
    let mut pairs = Vec::new();
    for number in 0..PAIRS {
        pairs.push(if number % 2 == 0 {
            let first = plain.measure(way)?;
            (first, lane.measure(way)?)
        } else {
            let first = lane.measure(way)?;
            (plain.measure(way)?, first)
        });
    }
    let [copy, ours] = [pairs.iter().map(|p| p.0).collect(), pairs.iter().map(|p| p.1).collect::<Vec<_>>()];
    let gbps = |of: &[Measured]| median(of.iter().map(Measured::gbps));
    let cpu = |of: &[Measured]| median(of.iter().map(Measured::cpu_s_per_gib));
    let ratio = median(pairs.iter().map(|(copy, ours)| ours.gbps() / copy.gbps()));
    println!(
        "{:<5} {:>9}  {:>5}  {:>10.2}  {:>9.2}  {ratio:>5.3}  {:>15.4}  {:>14.4}",
        format!("{way:?}").to_lowercase(),
        lane.size / MIB,
        lane.depth,
        gbps(&copy),
        gbps(&ours),
        cpu(&copy),
        cpu(&ours),
    );
    Ok(())
}

/// The driver's own copies between the region's buffers and one allocation.
struct Plain {
    name: String,
    memory: sys::CUdeviceptr,
    streams: [sys::CUstream; 2],
    buffers: Vec<*mut u8>,
    bytes: u64,
}

impl Plain {
    /// The region is pinned already, by the port.
    fn new(region: &Arc<Region>, bytes: u64) -> Outcome<Self> {
        let device = result::device::get(0)?;
        let stream = || result::stream::create(result::stream::StreamKind::NonBlocking);
        let taken: Vec<Buffer> = std::iter::from_fn(|| region.take(Mover::Device)).collect();
        let buffers = taken.iter().map(|buffer| buffer.payload().as_ptr().cast_mut()).collect();
        // SAFETY: the port's backend has initialised the driver; nothing is freed before the process ends.
        let memory = unsafe {
            result::ctx::set_current(result::primary_ctx::retain(device)?)?;
            result::malloc_sync(bytes as usize)?
        };
        let name = result::device::get_name(device)?;
        Ok(Self { name, memory, streams: [stream()?, stream()?], buffers, bytes })
    }

    fn measure(&self, way: Way) -> Outcome<Measured> {
        Measured::of(self.bytes, || {
            for (number, place) in (0..self.bytes).step_by(PIECE).enumerate() {
                let (buffer, at) = (self.buffers[number % BUFFERS].cast(), self.memory + place);
                let into = way == Way::In || (way == Way::Both && number % 2 == 0);
                // SAFETY: the buffers' memory lives in the region and the port moves nothing meanwhile.
                let code = unsafe {
                    if into {
                        sys::cuMemcpyHtoDAsync_v2(at, buffer, PIECE, self.streams[0])
                    } else {
                        sys::cuMemcpyDtoHAsync_v2(buffer, at, PIECE, self.streams[1])
                    }
                };
                code.result()?;
            }
            for stream in self.streams {
                // SAFETY: the stream lives.
                unsafe { result::stream::synchronize(stream) }?;
            }
            Ok(())
        })
    }
}

/// The same through a port.
struct Lane<'a> {
    port: &'a mut dyn Port,
    region: &'a Arc<Region>,
    entries: &'a [Arc<dyn Held>],
    size: u64,
    depth: usize,
}

impl Lane<'_> {
    fn measure(&mut self, way: Way) -> Outcome<Measured> {
        let bytes = self.size * self.entries.len() as u64;
        let pieces = pieces(self.size);
        let entries = self.entries.iter();
        // What is written again is the same room: nobody reads it meanwhile.
        let jobs = entries.flat_map(|held| pieces.iter().map(move |piece| (held, *piece))).enumerate();
        let jobs = jobs.map(|(number, (held, piece))| {
            let into = way == Way::In || (way == Way::Both && number % 2 == 0);
            (held, piece, into)
        });
        let mut buffers: VecDeque<Buffer> = std::iter::from_fn(|| self.region.take(Mover::Device)).collect();
        let (port, depth) = (&mut *self.port, self.depth);
        Measured::of(bytes, || {
            let mut done = Vec::with_capacity(BUFFERS);
            for (held, piece, into) in jobs {
                while port.in_flight() >= depth {
                    reap(port, &mut done)?;
                    buffers.extend(done.drain(..).map(|completion| completion.buffer));
                }
                let buffer = buffers.pop_front().ok_or("fewer buffers than the depth")?;
                if into {
                    port.write(held, piece, buffer, None);
                } else {
                    port.read(held, piece, buffer);
                }
                port.submit()?;
            }
            while port.in_flight() > 0 {
                reap(port, &mut done)?;
            }
            Ok(())
        })
    }
}

fn reap(port: &mut dyn Port, done: &mut Vec<Completion>) -> Outcome {
    let before = done.len();
    port.reap(Some(Instant::now() + Duration::from_secs(5)), done)?;
    for completion in &mut done[before..] {
        std::mem::replace(&mut completion.result, Ok(()))?;
    }
    if done.len() == before { Err("no completion in 5 s".into()) } else { Ok(()) }
}

fn pieces(size: u64) -> Vec<Piece> {
    let offsets = (0..size).step_by(PIECE);
    offsets
        .map(|offset| Piece { token: offset, offset, len: (size - offset).min(PIECE as u64) as usize })
        .collect()
}

/// `count` entries of `size` bytes, written once.
fn write_entries(
    port: &mut dyn Port,
    region: &Arc<Region>,
    (size, count): (u64, u64),
) -> Outcome<Vec<Arc<dyn Held>>> {
    let key = Key::from("entry");
    let new = NewEntry { key: &key, bytes: size, recipe: None, birth: Default::default() };
    let entries = (0..count).map(|_| port.create(&new)).collect::<Result<Vec<_>, _>>()?;
    Lane { port: &mut *port, region, entries: &entries, size, depth: 16 }.measure(Way::In)?;
    Ok(entries.into_iter().map(|held| port.commit(held)).collect::<Result<_, _>>()?)
}

/// Entries go there and back, all pieces of one at once, the last piece of odd length.
fn verify(port: &mut dyn Port, region: &Arc<Region>) -> Outcome {
    let mut expected = vec![0; PIECE];
    let key = Key::from("round trip");
    for (seed, size) in [(1, MIB), (2, 16 * MIB), (3, 50 * MIB + 12_345)] {
        let pieces = pieces(size);
        let held =
            port.create(&NewEntry { key: &key, bytes: size, recipe: None, birth: Default::default() })?;
        for piece in &pieces {
            let mut buffer = region.take(Mover::Device).ok_or("no buffer")?;
            payload::fill(seed, piece.offset, &mut buffer.payload_mut()[..piece.len]);
            port.write(&held, *piece, buffer, None);
        }
        let mut done = Vec::new();
        while port.in_flight() > 0 {
            reap(port, &mut done)?;
        }
        let held = port.commit(held)?;
        for (piece, mut completion) in pieces.iter().zip(std::mem::take(&mut done)) {
            completion.buffer.payload_mut().fill(0);
            port.read(&held, *piece, completion.buffer);
        }
        while port.in_flight() > 0 {
            reap(port, &mut done)?;
        }
        for completion in done {
            let len = (size - completion.token).min(PIECE as u64) as usize;
            payload::fill(seed, completion.token, &mut expected[..len]);
            if completion.buffer.payload()[..len] != expected[..len] {
                return Err(format!("{size} bytes: other bytes came back at {}", completion.token).into());
            }
        }
        port.remove(held)?;
        println!("round trip of {size} bytes: the same bytes came back");
    }
    Ok(())
}
