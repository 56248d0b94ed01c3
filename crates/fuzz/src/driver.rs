//! Changes inputs at random, again and again, until the time is over.
//!
//! An input that breaks a rule is left in the folder, and named; what was kept because it went another way is
//! left in its folder `corpus`.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::RngExt;
use rustix::process::{Resource, Rlimit, setrlimit};
use wavetank_model::seeded;

use crate::blind::LONGEST;
use crate::said::Met;
use crate::targets::Entry;

/// One input takes milliseconds; one that takes this long goes round in circles.
const TOO_LONG: Duration = Duration::from_secs(10);
/// Inputs kept.
const MOST: usize = 2048;
/// The file that holds what is being read.
const CURRENT: &str = "current";

/// How long, and from where chance begins.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Seconds.
    pub seconds: u64,
    /// What every draw depends on.
    pub seed: u64,
}

/// Beyond what a target may have: stacks of threads, and what is mapped without being used. An allocation
/// that does not fit ends the process.
const MAPPED: u64 = 6 << 30;

/// What is being read, for whoever finds it broken. It is in a file, so that it is there when the process has
/// died of it.
struct Current {
    folder: PathBuf,
    file: Option<File>,
    number: AtomicU64,
    /// It is being read now; files that are written meanwhile may take their time.
    is_read: AtomicBool,
    /// Something panicked, in whichever thread.
    is_broken: AtomicBool,
}

impl Current {
    fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            file: File::create(folder.join(CURRENT)).ok(),
            number: AtomicU64::new(0),
            is_read: AtomicBool::new(false),
            is_broken: AtomicBool::new(false),
        }
    }

    fn note(&self, bytes: &[u8]) -> io::Result<()> {
        let Some(file) = &self.file else { return Err(io::ErrorKind::NotFound.into()) };
        file.set_len(bytes.len() as u64)?;
        file.write_all_at(bytes, 0)
    }

    fn save(&self, what: &str) {
        let path = self.folder.join(format!("{what}-{}", self.number.load(Ordering::Relaxed)));
        let saved = fs::copy(self.folder.join(CURRENT), &path);
        say(&format!("{what}: an input in {} ({saved:?} bytes)", path.display()));
    }
}

#[allow(clippy::print_stderr, reason = "a tool talks to its terminal")]
fn say(text: &str) {
    eprintln!("{text}");
}

/// What `target` begins with: the beginnings of its samples, and its own seeds. Sorted, so that a seed of
/// chance means the same run.
pub fn inputs(target: &Entry) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut inputs = Vec::new();
    for folder in target.samples {
        let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        inputs.extend(paths.iter().filter_map(|path| beginning(path)));
    }
    inputs.extend((target.seeds)());
    inputs
}

fn beginning(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(LONGEST as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Fuzzes `target` and leaves what it finds in `folder`.
pub fn run(target: &Entry, limits: Limits, folder: &Path) -> ExitCode {
    let Limits { seconds, seed } = limits;
    bound(target.most_memory as u64 + MAPPED);
    let current = Arc::new(Current::new(folder));
    watch(&current);
    let started = Instant::now();
    let mut corpus = inputs(target);
    let seeds = corpus.len();
    let mut ways: HashSet<Met> = corpus.iter().map(|bytes| read(target, bytes, &current)).collect();
    let mut draw = seeded(seed, target.name);
    while started.elapsed() < Duration::from_secs(seconds) {
        let [one, other] = [0, 0].map(|_: u8| &corpus[draw.random_range(0..corpus.len())]);
        let bytes = (target.changed)(one, other, &mut draw);
        if ways.insert(read(target, &bytes, &current)) && corpus.len() < MOST {
            corpus.push(bytes);
        }
        if current.is_broken.load(Ordering::Relaxed) {
            return ExitCode::FAILURE;
        }
        if peak().is_some_and(|peak| peak > target.most_memory) {
            current.save("memory");
            return ExitCode::FAILURE;
        }
    }
    let executions = current.number.load(Ordering::Relaxed);
    let peak = peak().unwrap_or(0);
    say(&format!(
        "{}: {executions} executions in {:.0} s, seed {seed}; {seeds} seeds, {} kept, {} ways; peak {} MiB",
        target.name,
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

fn keep(corpus: &[Vec<u8>], folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut inputs = (0..).zip(corpus);
    inputs.try_for_each(|(number, bytes): (u32, _)| fs::write(folder.join(format!("{number:04}")), bytes))
}

fn read(target: &Entry, bytes: &[u8], current: &Current) -> Met {
    current.number.fetch_add(1, Ordering::Relaxed);
    current.note(bytes).expect("there is room for an input");
    current.is_read.store(true, Ordering::Relaxed);
    let way = (target.check)(bytes);
    current.is_read.store(false, Ordering::Relaxed);
    way
}

/// Lets no allocation succeed that is out of all proportion.
fn bound(bytes: u64) {
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    if let Err(error) = setrlimit(Resource::As, limit) {
        say(&format!("memory is not bounded: {error}"));
    }
}

/// Saves an input that makes something panic, or takes too long. One that takes too much memory is saved
/// where it was read.
fn watch(current: &Arc<Current>) {
    let broken = Arc::clone(current);
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        told(panic);
        broken.save("panic");
        broken.is_broken.store(true, Ordering::Relaxed);
    }));
    let slow = Arc::clone(current);
    std::thread::spawn(move || {
        let mut last = u64::MAX;
        loop {
            let number = slow.number.load(Ordering::Relaxed);
            if number == last && slow.is_read.load(Ordering::Relaxed) {
                slow.save("hang");
                std::process::abort();
            }
            last = number;
            std::thread::sleep(TOO_LONG);
        }
    });
}

/// The most memory this process has had, in bytes.
fn peak() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<usize>().ok()? * 1024)
}
