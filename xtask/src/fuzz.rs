//! `fuzz`: the reader of recordings meets bytes it never saw. Without `--guided` samples are changed at
//! random, with it by libFuzzer, which keeps what reaches new code and needs a C++ compiler.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;
use crate::process::{self, cargo, target_dir, text_of};

/// Recordings of the reference, where they lie beside the checkout.
const SAMPLES: &str = "../shared/data/lct";
/// What `ci` spends on it.
const SHORT_SECONDS: u64 = 15;
/// What libFuzzer needs to see where an input goes.
const INSTRUMENTED: &str = "\
    -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Ccodegen-units=1";
/// Inputs up to 32 KiB; memory beyond what frames of a MiB need, or ten seconds for one input, are findings.
const RULES: [&str; 5] =
    ["-max_len=32768", "-rss_limit_mb=256", "-malloc_limit_mb=64", "-timeout=10", "-print_final_stats=1"];

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Options {
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
        let mut options = Self { minutes: 10, seed: 1, engine: Engine::Random };
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
                _ => return Err(Failure::Usage(format!("unexpected argument `{arg}`"))),
            }
        }
        Ok(options)
    }
}

/// The chore.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    let Options { minutes, seed, engine } = Options::of(args)?;
    let fuzzer = match engine {
        Engine::Random => random,
        Engine::Guided => guided,
    };
    Ok(fuzzer(minutes * 60, seed)?)
}

/// The step of `ci`.
pub(crate) fn short() -> Result<(), String> {
    random(SHORT_SECONDS, 1)
}

fn random(seconds: u64, seed: u64) -> Result<(), String> {
    let folder = made("fuzz")?;
    let program = ["run", "--profile", "test", "-p", "wavetank-trace", "--example", "fuzz_lct", "--"];
    let mut command = cargo(&program);
    command.arg(seconds.to_string()).arg(seed.to_string()).arg(folder).args(samples());
    process::run(&mut command)
}

fn guided(seconds: u64, seed: u64) -> Result<(), String> {
    // What went different ways there is where this begins.
    random(SHORT_SECONDS, seed)?;
    let (folder, corpus) = (made("fuzz")?, made("fuzz/corpus")?);
    let host = text_of("rustc", &["-vV"])?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc names no host")?;
    // For a named target, programs that run while building are not instrumented.
    let mut build = cargo(&["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", host]);
    process::run(build.arg("--target-dir").arg(target_dir().join("fuzz")).env("RUSTFLAGS", INSTRUMENTED))?;
    let mut fuzzer = Command::new(target_dir().join("fuzz").join(host).join("release/lct"));
    fuzzer.arg(corpus).args(Path::new(SAMPLES).exists().then_some(SAMPLES)).args(RULES);
    fuzzer.arg(format!("-max_total_time={seconds}")).arg(format!("-seed={seed}"));
    process::run(fuzzer.arg(format!("-artifact_prefix={}/", folder.display())))
}

fn made(name: &str) -> Result<PathBuf, String> {
    let folder = target_dir().join(name);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

/// Sorted, so that a seed means the same run.
fn samples() -> Vec<PathBuf> {
    let entries = fs::read_dir(SAMPLES).into_iter().flatten().flatten();
    let mut samples: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    samples.retain(|path| path.to_string_lossy().contains(".lct"));
    samples.sort();
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let options =
            |line: &str| Options::of(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).ok();
        assert_eq!(options(""), Some(Options { minutes: 10, seed: 1, engine: Engine::Random }));
        assert_eq!(
            options("--guided --minutes 3 --seed 9"),
            Some(Options { minutes: 3, seed: 9, engine: Engine::Guided })
        );
        assert_eq!((options("--minutes"), options("--minutes x"), options("now")), (None, None, None));
    }
}
