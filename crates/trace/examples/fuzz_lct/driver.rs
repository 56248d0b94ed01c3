//! Changes inputs at random, again and again, until the time is over. Every fuzzer of `cargo xtask fuzz` that
//! is not guided runs on it.
//!
//! `PROGRAM SECONDS SEED FOLDER [SAMPLE]...`: an input that breaks a rule is left in the folder, and named;
//! what was kept because it went another way is left in its folder `corpus`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rand::RngExt;
use wavetank_model::{Draw, seeded};

/// One input takes milliseconds; one that takes this long goes round in circles.
const TOO_LONG: Duration = Duration::from_secs(10);
/// Inputs kept.
const MOST: usize = 2048;

/// What is fuzzed.
pub(crate) struct Fuzzer {
    /// Its name, and the ending of files that break a rule.
    pub(crate) name: &'static str,
    /// What is changed: the samples given, and more.
    pub(crate) seeds: fn(&[String]) -> Vec<Vec<u8>>,
    /// An input changed a few times, with parts of another.
    pub(crate) changed: fn(&[u8], &[u8], &mut Draw) -> Vec<u8>,
    /// Panics where a rule is broken, and tells what was met: inputs of which that differs went different
    /// ways.
    pub(crate) check: fn(&[u8]) -> String,
    /// What this process may take: the inputs it keeps, and what one of them needs.
    pub(crate) most_memory: usize,
}

/// What is being read, for whoever finds it broken.
#[derive(Default)]
struct Current {
    bytes: Mutex<Vec<u8>>,
    number: AtomicU64,
    /// It is being read now; files that are written meanwhile may take their time.
    is_read: AtomicBool,
}

impl Current {
    fn save(&self, folder: &Path, what: &str) {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let path = folder.join(format!("{what}-{}", self.number.load(Ordering::Relaxed)));
        let saved = std::fs::write(&path, &*bytes);
        say(&format!("{what}: {} bytes in {} ({saved:?})", bytes.len(), path.display()));
    }
}

#[allow(clippy::print_stderr, reason = "a tool talks to its terminal")]
fn say(text: &str) {
    eprintln!("{text}");
}

/// Does what the command line says.
#[allow(clippy::disallowed_methods, reason = "it runs for a time")]
pub(crate) fn run(fuzzer: &Fuzzer) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [seconds, seed, folder, samples @ ..] = &arguments[..] else {
        say(&format!("usage: fuzz_{} SECONDS SEED FOLDER [SAMPLE]...", fuzzer.name));
        return ExitCode::from(2);
    };
    let (Ok(seconds), Ok(seed)) = (seconds.parse(), seed.parse()) else {
        say("SECONDS and SEED are whole numbers");
        return ExitCode::from(2);
    };
    let folder = PathBuf::from(folder);
    let current = Arc::new(Current::default());
    watch(&current, &folder);
    let started = Instant::now();
    let mut corpus = (fuzzer.seeds)(samples);
    let seeds = corpus.len();
    let mut ways: HashSet<String> = corpus.iter().map(|bytes| read(fuzzer, bytes, &current)).collect();
    let mut draw = seeded(seed, fuzzer.name);
    while started.elapsed() < Duration::from_secs(seconds) {
        let [one, other] = [0, 0].map(|_: u8| &corpus[draw.random_range(0..corpus.len())]);
        let bytes = (fuzzer.changed)(one, other, &mut draw);
        if ways.insert(read(fuzzer, &bytes, &current)) && corpus.len() < MOST {
            corpus.push(bytes);
        }
        if peak().is_some_and(|peak| peak > fuzzer.most_memory) {
            current.save(&folder, "memory");
            return ExitCode::FAILURE;
        }
    }
    let executions = current.number.load(Ordering::Relaxed);
    let peak = peak().unwrap_or(0);
    say(&format!(
        "{executions} executions in {:.0} s, seed {seed}; {seeds} seeds, {} kept, {} ways; peak {} MiB",
        started.elapsed().as_secs_f64(),
        corpus.len(),
        ways.len(),
        peak >> 20
    ));
    if let Err(error) = keep(&corpus, &folder.join("corpus")) {
        say(&format!("cannot keep what was found: {error}"));
        return ExitCode::from(2);
    }
    ExitCode::SUCCESS
}

fn keep(corpus: &[Vec<u8>], folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut inputs = (0..).zip(corpus);
    inputs
        .try_for_each(|(number, bytes): (u32, _)| std::fs::write(folder.join(format!("{number:04}")), bytes))
}

fn read(fuzzer: &Fuzzer, bytes: &[u8], current: &Current) -> String {
    current.number.fetch_add(1, Ordering::Relaxed);
    let mut kept = current.bytes.lock().unwrap_or_else(PoisonError::into_inner);
    kept.clear();
    kept.extend_from_slice(bytes);
    drop(kept);
    current.is_read.store(true, Ordering::Relaxed);
    let way = (fuzzer.check)(bytes);
    current.is_read.store(false, Ordering::Relaxed);
    way
}

/// Saves an input that makes the reader panic, or takes too long. One that takes too much memory is
/// saved where it was read.
fn watch(current: &Arc<Current>, folder: &Path) {
    let (broken, at) = (Arc::clone(current), folder.to_owned());
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        told(panic);
        broken.save(&at, "panic");
    }));
    let (slow, at) = (Arc::clone(current), folder.to_owned());
    std::thread::spawn(move || {
        let mut last = u64::MAX;
        loop {
            let number = slow.number.load(Ordering::Relaxed);
            if number == last && slow.is_read.load(Ordering::Relaxed) {
                slow.save(&at, "hang");
                std::process::abort();
            }
            last = number;
            std::thread::sleep(TOO_LONG);
        }
    });
}

/// The most memory this process has had, in bytes.
fn peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<usize>().ok()? * 1024)
}
