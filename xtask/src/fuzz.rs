//! `fuzz`: readers of what comes from outside meet bytes they never saw. Without `--guided` samples are
//! changed at random, with it by libFuzzer, which keeps what reaches new code and needs a C++ compiler.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;
use crate::process::{self, cargo, target_dir, text_of};

/// What is fuzzed.
struct Target {
    name: &'static str,
    /// Whose example changes bytes at random.
    package: &'static str,
    /// Files to begin with, where they are there, and what they are called.
    samples: Option<(&'static str, &'static str)>,
    /// What `ci` spends on it.
    short_seconds: u64,
}

impl Target {
    fn example(&self) -> String {
        format!("fuzz_{}", self.name)
    }
}

/// Every target: recordings of storage calls, request traces of all formats, and commands of Redis clients.
const ALL: [Target; 3] = [
    Target {
        name: "lct",
        package: "wavetank-trace",
        samples: Some(("../shared/data/lct", ".lct")),
        short_seconds: 15,
    },
    Target {
        name: "requests",
        package: "wavetank-trace",
        samples: Some(("crates/trace/tests/samples", ".")),
        short_seconds: 30,
    },
    Target { name: "resp", package: "wavetank-serve", samples: None, short_seconds: 15 },
];
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
                name if ALL.iter().any(|target| target.name == name) => {
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
    let fuzzer = match engine {
        Engine::Random => random,
        Engine::Guided => guided,
    };
    let is_wanted = |it: &&Target| target.as_ref().is_none_or(|name| it.name == name);
    ALL.iter().filter(is_wanted).try_for_each(|it| Ok(fuzzer(it, minutes * 60, seed)?))
}

/// The step of `ci`, with the examples that its tests have built.
pub(crate) fn short() -> Result<(), String> {
    ALL.iter().try_for_each(|target| changed(target, target.short_seconds, 1))
}

fn random(target: &Target, seconds: u64, seed: u64) -> Result<(), String> {
    process::run(&mut cargo(&["build", "-p", target.package, "--example", &target.example()]))?;
    changed(target, seconds, seed)
}

/// Runs the example as it was built.
fn changed(target: &Target, seconds: u64, seed: u64) -> Result<(), String> {
    let folder = made(&format!("fuzz/{}", target.name))?;
    let mut example = Command::new(target_dir().join("debug/examples").join(target.example()));
    example.arg(seconds.to_string()).arg(seed.to_string()).arg(folder).args(samples(target));
    process::run(&mut example)
}

fn guided(target: &Target, seconds: u64, seed: u64) -> Result<(), String> {
    // What went different ways there is where this begins.
    random(target, target.short_seconds, seed)?;
    let folder = made(&format!("fuzz/{}", target.name))?;
    let corpus = made(&format!("fuzz/{}/corpus", target.name))?;
    let host = text_of("rustc", &["-vV"])?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc names no host")?;
    // For a named target, programs that run while building are not instrumented.
    let mut build = cargo(&["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", host]);
    build.args(["--bin", target.name]).arg("--target-dir").arg(target_dir().join("fuzz"));
    process::run(build.env("RUSTFLAGS", INSTRUMENTED))?;
    let mut fuzzer = Command::new(target_dir().join("fuzz").join(host).join("release").join(target.name));
    let given = target.samples.map(|(folder, _)| folder).filter(|folder| Path::new(folder).exists());
    fuzzer.arg(corpus).args(given).args(RULES);
    fuzzer.arg(format!("-max_total_time={seconds}")).arg(format!("-seed={seed}"));
    process::run(fuzzer.arg(format!("-artifact_prefix={}/", folder.display())))
}

fn made(name: &str) -> Result<PathBuf, String> {
    let folder = target_dir().join(name);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

/// Sorted, so that a seed means the same run.
fn samples(target: &Target) -> Vec<PathBuf> {
    let Some((folder, ending)) = target.samples else { return Vec::new() };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut samples: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    samples.retain(|path| path.to_string_lossy().contains(ending));
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
        let usual = || Options { target: None, minutes: 10, seed: 1, engine: Engine::Random };
        assert_eq!(options(""), Some(usual()));
        let target = Some("resp".to_owned());
        assert_eq!(
            options("resp --guided --minutes 3 --seed 9"),
            Some(Options { target, minutes: 3, seed: 9, engine: Engine::Guided })
        );
        assert_eq!((options("--minutes"), options("--minutes x"), options("now")), (None, None, None));
    }
}
