//! `bench store`: entries through the store's `direct` backend beside `fio` on the same directory, pair by
//! pair, and the memory tier beside a plain copy.
//!
//! fio runs as spec'd for like with like: io_uring, direct, registered buffers, one job, one file per entry,
//! pieces of at most 1 MiB, as many in flight. Its write leaves out creating and preallocating files (its
//! set-up phase) and makes no fresh bytes; ours includes both and a checksum. Every write of new files goes
//! to a fresh directory; nothing is unlinked before the last pair of a size is measured. Neither side
//! flushes.

mod ours;
mod pairs;

use std::fs;
use std::path::{Path, PathBuf};

use super::fio::{self, Job};
use super::rate::Rate;
use super::{Options, Page};
use crate::process::{self, cargo, text_of};
use ours::Entries;
use pairs::{Pair, Phase};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
/// The smallest last: deleting thousands of files slows the making of new ones for minutes.
const SIZES: [u64; 4] = [96 * MIB, 16 * MIB, MIB, 128 * KIB];
const DEPTHS: [usize; 3] = [1, 4, 16];
/// What each phase moves.
const TOTAL: u64 = 960 * MIB;
/// Pieces of an entry.
const PIECE: u64 = MIB;
/// Where entries go; `WAVETANK_BENCH_DIRECTORY` names another place.
const FOLDER: &str = "target/bench/store";
const OWN: &str = "wavetank_bench";

/// Where entries go: a folder of ours, which is removed afterwards, in the one that
/// `WAVETANK_BENCH_DIRECTORY` names, or `usual`.
pub(super) fn place(usual: &str) -> PathBuf {
    let named = std::env::var_os("WAVETANK_BENCH_DIRECTORY");
    named.map_or_else(|| usual.into(), |folder| PathBuf::from(folder).join(OWN))
}

/// Runs every size and depth.
pub(super) fn measure(options: &Options) -> Result<Page, String> {
    process::run(&mut cargo(&["build", "--release", "-p", "wavetank-store", "--example", "entries"]))?;
    let version = fio::install()?;
    let place = place(FOLDER);
    let mut rows = String::new();
    for size in SIZES {
        for depth in DEPTHS {
            for (phase, pairs) in measure_pairs(&place, size, depth, options.reps)? {
                rows += &pairs::row(size, depth, phase, &pairs);
            }
        }
        fs::remove_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
    }
    let method = format!(
        "- {version}; file system: {}\n\nMedians of {} interleaved pairs of {} MiB each; spread is \
         (most - least) / median of one program's runs; ratio is the median of ours / fio within a pair. \
         CPU is that of the process with its kernel time; our writes make their bytes and a checksum, \
         our buffers are on huge pages. METHODOLOGY.md says what is like with like and what is not.\n",
        file_system(&place)?,
        options.reps,
        TOTAL / MIB,
    );
    Ok(Page { method, table: format!("{}{rows}\n{}", pairs::HEAD, ours::memory(options.reps)?) })
}

/// All pairs of one size and depth, by phase.
fn measure_pairs(
    place: &Path,
    size: u64,
    depth: usize,
    reps: usize,
) -> Result<Vec<(Phase, Vec<Pair>)>, String> {
    let mut found: Vec<(Phase, Vec<Pair>)> = pairs::PHASES.iter().map(|phase| (*phase, Vec::new())).collect();
    for rep in 0..reps {
        eprintln!("measuring {} KiB, {depth} in flight, pair {}", size / KIB, rep + 1);
        let folder = |who: &str| place.join(format!("{who}-{size}-{depth}-{rep}"));
        let (ours, theirs) = (folder("ours"), folder("fio"));
        for folder in [&ours, &theirs] {
            fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        let mut entries = Entries::start("direct", &ours, size, depth, TOTAL)?;
        for (phase, pairs) in &mut found {
            // Who goes first alternates, so that neither always finds the device as the other left it.
            let pair = if rep % 2 == 0 {
                let ours = entries.run(phase.ours)?;
                Pair { ours, fio: theirs_of(phase.fio, &theirs, size, depth)? }
            } else {
                let fio = theirs_of(phase.fio, &theirs, size, depth)?;
                Pair { ours: entries.run(phase.ours)?, fio }
            };
            pairs.push(pair);
        }
        entries.end()?;
    }
    Ok(found)
}

/// fio on files of `size` bytes.
fn theirs_of(way: &str, folder: &Path, size: u64, depth: usize) -> Result<Rate, String> {
    let more = vec!["--file_service_type=sequential".to_owned()];
    let job = Job { way, folder, size, files: TOTAL / size, piece: PIECE, depth, more };
    let [read, written] = fio::run(&job)?;
    Ok(if way == "read" { read } else { written })
}

pub(super) fn file_system(place: &Path) -> Result<String, String> {
    let parent = place.parent().unwrap_or(Path::new("."));
    let path = parent.display().to_string();
    let told = text_of("stat", &["-f", "-c", "%T", &path])?;
    Ok(told)
}
