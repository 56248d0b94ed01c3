//! `fuzz`: readers of what comes from outside meet bytes they never saw. Targets are rows of the crate
//! `fuzz`. Without `--guided` samples are changed at random, with it by libFuzzer, which keeps what reaches
//! new code and needs a C++ compiler.

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::Failure;
use crate::process::{self, cargo, output_of, target_dir};

const PACKAGE: &str = "wavetank-fuzz";
/// What `ci` spends on each.
const SECONDS_IN_CI: u64 = 60;
/// How long samples are changed at random before libFuzzer takes over.
const SECONDS_BEFORE_GUIDED: u64 = 8;

/// A row of the crate's table, as it tells it.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    name: String,
    /// What a process may take.
    memory_mib: u64,
    /// Files to begin with, where they are there.
    folders: Vec<PathBuf>,
}

/// What libFuzzer needs to see where an input goes.
const INSTRUMENTED: &str = "\
    -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Ccodegen-units=1";
/// Inputs up to 32 KiB; ten seconds for one of them are a finding.
const RULES: [&str; 3] = ["-max_len=32768", "-timeout=10", "-print_final_stats=1"];
/// What counters and what libFuzzer keeps take besides.
const INSTRUMENTS_MIB: u64 = 256;

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    /// All of them when absent.
    target: Option<String>,
    minutes: u64,
    seed: u64,
    engine: Engine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Engine {
    Random,
    Guided,
}

impl Options {
    fn of(args: &[String]) -> Result<Self, Failure> {
        let mut options = Self { target: None, minutes: 10, seed: 1, engine: Engine::Random };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut number = || {
                let number = args.next().and_then(|value| value.parse().ok());
                number.ok_or_else(|| Failure::Usage(format!("`{arg}` needs a whole number")))
            };
            match arg.as_str() {
                "--minutes" => options.minutes = number()?,
                "--seed" => options.seed = number()?,
                "--guided" => options.engine = Engine::Guided,
                name if !name.starts_with('-') && options.target.is_none() => {
                    options.target = Some(name.to_owned())
                }
                _ => return Err(Failure::Usage(format!("unexpected argument `{arg}`"))),
            }
        }
        Ok(options)
    }
}

/// The chore.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    let Options { target, minutes, seed, engine } = Options::of(args)?;
    let all = built()?;
    let chosen = chosen(&all, target.as_deref())?;
    let fuzzer = match engine {
        Engine::Random => random,
        Engine::Guided => guided,
    };
    chosen.iter().try_for_each(|it| Ok(fuzzer(it, minutes * 60, seed)?))
}

/// The step of `ci`: as many at a time as there are processors.
pub(crate) fn short() -> Result<(), String> {
    let targets = built()?;
    let next = Mutex::new(targets.iter());
    let take = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || std::iter::from_fn(take).try_for_each(|target| random(target, SECONDS_IN_CI, 1));
    let hands = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let hands: Vec<_> = (0..hands).map(|_| scope.spawn(work)).collect();
        hands.into_iter().try_for_each(|hand| hand.join().expect("a hand only waits"))
    })
}

/// Builds the program and asks it what there is.
fn built() -> Result<Vec<Target>, String> {
    process::run(&mut cargo(&["build", "-p", PACKAGE]))?;
    let listed = output_of(program().arg("list"))?;
    listed.lines().map(|line| Target::of(line).ok_or_else(|| format!("no target: {line}"))).collect()
}

fn program() -> Command {
    Command::new(target_dir().join("debug").join(PACKAGE))
}

impl Target {
    fn of(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let mut word = || words.next();
        let (name, memory_mib) = (word()?.to_owned(), word()?.parse().ok()?);
        Some(Self { name, memory_mib, folders: words.map(PathBuf::from).collect() })
    }
}

fn chosen<'a>(all: &'a [Target], name: Option<&str>) -> Result<Vec<&'a Target>, Failure> {
    let chosen: Vec<&Target> = all.iter().filter(|it| name.is_none_or(|name| it.name == name)).collect();
    if !chosen.is_empty() {
        return Ok(chosen);
    }
    let known: Vec<&str> = all.iter().map(|target| target.name.as_str()).collect();
    Err(Failure::Usage(format!("there is no such target; known: {}", known.join(", "))))
}

fn random(target: &Target, seconds: u64, seed: u64) -> Result<(), String> {
    let folder = made(&format!("fuzz/{}", target.name))?;
    let mut program = program();
    program.arg(&target.name).arg(seconds.to_string()).arg(seed.to_string()).arg(folder);
    process::run(&mut program)
}

fn guided(target: &Target, seconds: u64, seed: u64) -> Result<(), String> {
    // What went different ways there is where this begins.
    random(target, SECONDS_BEFORE_GUIDED, seed)?;
    let folder = made(&format!("fuzz/{}", target.name))?;
    let corpus = made(&format!("fuzz/{}/corpus", target.name))?;
    let mut fuzzer = Command::new(guided_program()?);
    fuzzer.env("WAVETANK_FUZZ_TARGET", &target.name).arg(corpus);
    fuzzer.args(target.folders.iter().filter(|folder| Path::new(folder).is_dir())).args(RULES);
    fuzzer.arg(format!("-rss_limit_mb={}", target.memory_mib + INSTRUMENTS_MIB));
    fuzzer.arg(format!("-max_total_time={seconds}")).arg(format!("-seed={seed}"));
    process::run(fuzzer.arg(format!("-artifact_prefix={}/", folder.display())))
}

/// The build for libFuzzer.
fn guided_program() -> Result<PathBuf, String> {
    let host = process::host()?;
    // For a named target, programs that run while building are not instrumented.
    let mut build = cargo(&["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", &host]);
    build.arg("--target-dir").arg(target_dir().join("fuzz"));
    process::run(build.env("RUSTFLAGS", INSTRUMENTED))?;
    Ok(target_dir().join("fuzz").join(host).join("release/guided"))
}

fn made(name: &str) -> Result<PathBuf, String> {
    let folder = target_dir().join(name);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let options =
            |line: &str| Options::of(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).ok();
        let usual = || Options { target: None, minutes: 10, seed: 1, engine: Engine::Random };
        assert_eq!(options(""), Some(usual()));
        let target = Some("resp".to_owned());
        assert_eq!(
            options("resp --guided --minutes 3 --seed 9"),
            Some(Options { target, minutes: 3, seed: 9, engine: Engine::Guided })
        );
        assert_eq!((options("--minutes"), options("--minutes x"), options("--now")), (None, None, None));
        assert_eq!(options("resp lct"), None);
    }

    #[test]
    fn targets_are_chosen_from_what_the_program_tells() {
        let of = |line: &str| Target::of(line).unwrap();
        let all = [of("lct 192 ../shared/lct a/b"), of("resp 64")];
        assert_eq!(all[0].folders, [Path::new("../shared/lct"), Path::new("a/b")]);
        assert_eq!((all[1].memory_mib, all[1].folders.len()), (64, 0));
        assert_eq!(Target::of("lct"), None);
        let names = |name| chosen(&all, name).ok().map(|found| found.len());
        assert_eq!((names(None), names(Some("resp")), names(Some("now"))), (Some(2), Some(1), None));
    }
}
