//! `torture`: faults and load on the command as users run it, in rounds until the time is up. Everything a
//! round draws follows from its seed; a problem says how to make it again (docs/torture.md).

mod child;
mod draw;
mod drive;
mod keys;
mod options;
mod redis;
mod round;
mod scenarios;
mod server;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::Failure;
use crate::process::{self, cargo, release_binary, target_dir, test_binary};
use options::{Build, Options};
use round::Round;
use scenarios::Entry;

/// After so many problems more of them say nothing new.
const ENOUGH: u64 = 20;

/// What came of a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Count {
    rounds: u64,
    cases: u64,
    failures: u64,
    time: Duration,
}

/// The whole of it.
struct Torture {
    binary: PathBuf,
    build: Build,
    counts: Vec<(&'static Entry, Count)>,
    notes: BTreeSet<String>,
}

/// The chore.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    let options = Options::of(args)?;
    let binary = match options.build {
        Build::Dev => {
            process::run(&mut cargo(&["build", "-p", "wavetank-cli"]))?;
            test_binary()
        }
        Build::Release => {
            process::run(&mut cargo(&["build", "--release"]))?;
            release_binary()
        }
    };
    Ok(tortured(&options, &binary)?)
}

/// The step of `ci`: a round of what is quick, with the command that its tests have built.
pub(crate) fn short() -> Result<(), String> {
    let only = ["recorder", "signals"].map(str::to_owned).to_vec();
    tortured(&Options { time: Duration::ZERO, seed: Some(1), only, build: Build::Dev }, &test_binary())
}

fn tortured(options: &Options, binary: &Path) -> Result<(), String> {
    let binary = std::path::absolute(binary).map_err(|e| e.to_string())?;
    let is_wanted =
        |entry: &&Entry| options.only.is_empty() || options.only.iter().any(|it| it == entry.name);
    let counts = scenarios::ALL.iter().filter(is_wanted).map(|entry| (entry, Count::default())).collect();
    let mut torture = Torture { binary, build: options.build, counts, notes: BTreeSet::new() };
    let begun = Instant::now();
    let seed = options.first_seed();
    println!("seed {seed}, {} s", options.time.as_secs());
    for (number, seed) in seeds(seed).enumerate() {
        if !torture.round(seed, number, begun + options.time) {
            break;
        }
    }
    torture.report()
}

/// The seeds of rounds: the first is the given one, so that any round can be the first of another run.
fn seeds(first: u64) -> impl Iterator<Item = u64> {
    // Short enough to be typed again.
    std::iter::successors(Some(first), |seed| Some(draw::mixed(*seed) >> 32))
}

impl Torture {
    /// Every scenario once, whether there is to be another round. The first round is made in any case.
    fn round(&mut self, seed: u64, number: usize, end: Instant) -> bool {
        for at in 0..self.counts.len() {
            if number > 0 && Instant::now() >= end {
                return false;
            }
            self.scenario(at, seed);
            if self.counts.iter().map(|(_, count)| count.failures).sum::<u64>() >= ENOUGH {
                println!("that is enough");
                return false;
            }
        }
        Instant::now() < end
    }

    fn scenario(&mut self, at: usize, seed: u64) {
        let (entry, count) = &mut self.counts[at];
        let begun = Instant::now();
        // A problem's files stay; their folder says which round they are of.
        let folder = folder_of(entry.name, seed);
        let (cases, notes, result) = match Round::begin(seed, entry.name, &self.binary, folder.clone()) {
            Ok(mut round) => {
                let result = (entry.run)(&mut round);
                (round.cases, round.notes, result)
            }
            Err(problem) => (0, Vec::new(), Err(problem)),
        };
        let took = begun.elapsed();
        *count = Count {
            rounds: count.rounds + 1,
            cases: count.cases + cases,
            failures: count.failures + u64::from(result.is_err()),
            time: count.time + took,
        };
        self.notes.extend(notes);
        match result {
            Ok(()) => {
                println!("{:<9} seed {seed}: {cases} cases, {:.1} s", entry.name, took.as_secs_f64());
                let _ = fs::remove_dir_all(&folder);
            }
            Err(problem) => {
                println!("{:<9} seed {seed}: FAILED: {problem}", entry.name);
                println!("  again: {}", again(entry.name, seed, self.build));
                println!("  files: {}", folder.display());
            }
        }
    }

    /// The table, and whether all went well.
    fn report(&self) -> Result<(), String> {
        let row = |name: &str, count: &Count| {
            let Count { rounds, cases, failures, time } = count;
            println!("{name:<10}{rounds:>8}{cases:>10}{failures:>10}{:>10.0}", time.as_secs_f64());
        };
        println!("\n{:<10}{:>8}{:>10}{:>10}{:>10}", "scenario", "rounds", "cases", "failures", "seconds");
        self.counts.iter().for_each(|(entry, count)| row(entry.name, count));
        let all = self.counts.iter().fold(Count::default(), |all, (_, one)| Count {
            rounds: all.rounds.max(one.rounds),
            cases: all.cases + one.cases,
            failures: all.failures + one.failures,
            time: all.time + one.time,
        });
        row("all", &all);
        self.notes.iter().for_each(|note| println!("note: {note}"));
        match all.failures {
            0 => Ok(()),
            failures => Err(format!("{failures} of the scenarios' rounds failed")),
        }
    }
}

/// The command that makes a round again.
fn again(name: &str, seed: u64, build: Build) -> String {
    let build = match build {
        Build::Dev => "",
        Build::Release => " --release",
    };
    format!("cargo xtask torture --only {name} --seed {seed} --minutes 0{build}")
}

fn folder_of(name: &str, seed: u64) -> PathBuf {
    let folder = target_dir().join("torture").join(format!("{name}-{seed}"));
    std::path::absolute(&folder).unwrap_or(folder)
}

/// A line for each scenario, for the usage text.
pub(crate) fn lines() -> String {
    scenarios::ALL.iter().map(|entry| format!("  {:<10}{}\n", entry.name, entry.about)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a round whose seed, given as the first one, makes another round.
    #[test]
    fn any_round_can_be_the_first_one() {
        let seeds_of = |first| seeds(first).take(4).collect::<Vec<u64>>();
        let run = seeds_of(7);
        assert_eq!(seeds_of(run[2])[..2], run[2..]);
        assert_eq!(run.iter().collect::<BTreeSet<_>>().len(), 4);
        let said = again("plans", run[2], Build::Release);
        assert_eq!(said, format!("cargo xtask torture --only plans --seed {} --minutes 0 --release", run[2]));
    }

    #[test]
    fn scenarios_are_sorted_and_say_what_they_do() {
        let names: Vec<&str> = scenarios::ALL.iter().map(|entry| entry.name).collect();
        assert!(names.is_sorted() && scenarios::ALL.iter().all(|entry| !entry.about.is_empty()));
    }
}
