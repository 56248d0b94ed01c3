//! `bench NAME`: CPU seconds, peak memory and wall time of the release binary on fixed cases, beside the
//! reference tool where it is installed. A new bench is one file and one row of [`BENCHES`].

mod machine;
pub(crate) mod measure;
mod outcome;
mod peer;
mod record;
mod replay;
mod table;
mod trace;

use std::fs;
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::process::{self, cargo};
use outcome::Outcome;
use peer::Peer;

/// Where inputs and reports of benches live, relative to the repository.
const FOLDER: &str = "target/bench";

/// A set of cases of one verb.
struct Bench {
    name: &'static str,
    /// The flag that takes the path of the JSON report.
    report_flag: &'static str,
    peer: Peer,
    /// Writes the inputs it needs and lists the cases.
    cases: fn() -> Result<Vec<Case>, String>,
}

/// One command to measure.
struct Case {
    name: &'static str,
    /// What follows the program's name, but for the report.
    args: Vec<String>,
    /// The case whose cost this one's is divided by.
    against: Option<&'static str>,
    /// How often the reference tool runs it; zero leaves it out.
    peer_reps: usize,
}

const BENCHES: &[Bench] = &[replay::BENCH];

/// What the user typed after the bench's name.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    reps: usize,
    peer: bool,
    record: bool,
}

/// Everything one bench measured, ready to be shown.
struct Results {
    outcomes: Vec<Outcome>,
    notes: Vec<String>,
}

/// The names of all benches, for the usage text.
pub(crate) fn names() -> String {
    BENCHES.iter().map(|bench| bench.name).collect::<Vec<_>>().join(", ")
}

pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    let (name, flags) = args.split_first().ok_or_else(|| Failure::Usage("which bench?".into()))?;
    let bench = BENCHES.iter().find(|bench| bench.name == name);
    let bench = bench.ok_or_else(|| Failure::Usage(format!("unknown bench `{name}`")))?;
    let options = Options::parse(flags).map_err(Failure::Usage)?;
    let revision = machine::revision()?;
    process::run(&mut cargo(&["build", "--release"]))?;
    let results = measure_all(bench, &options)?;
    print!("{}", table::results(&results));
    if options.record {
        let file = record::write(bench, &results, &revision)?;
        eprintln!("recorded in {}", file.display());
    }
    Ok(())
}

impl Options {
    fn parse(flags: &[String]) -> Result<Self, String> {
        let mut options = Self { reps: 5, peer: false, record: false };
        let mut flags = flags.iter();
        while let Some(flag) = flags.next() {
            match flag.as_str() {
                "--peer" => options.peer = true,
                "--record" => options.record = true,
                "--reps" => options.reps = repetitions(flags.next())?,
                _ => return Err(format!("unknown option `{flag}`")),
            }
        }
        Ok(options)
    }
}

fn repetitions(value: Option<&String>) -> Result<usize, String> {
    let number = value.and_then(|value| value.parse().ok()).filter(|&reps| reps > 0);
    number.ok_or_else(|| "--reps takes a number from 1".into())
}

/// Runs every case, ours and then the peer's.
fn measure_all(bench: &Bench, options: &Options) -> Result<Results, String> {
    let mut notes = Vec::new();
    let peer = if options.peer { bench.peer.program(&mut notes) } else { None };
    let mut outcomes = Vec::new();
    for case in (bench.cases)()? {
        let ours = Subject::ours(bench, &case);
        outcomes.push(ours.repeat(&case, options.reps)?);
        if let (Some(program), 1..) = (&peer, case.peer_reps) {
            outcomes.push(Subject::peer(bench, &case, program).repeat(&case, case.peer_reps)?);
        }
    }
    Ok(Results { outcomes, notes })
}

/// A program on a case: what to start, how to show it, where its report goes.
struct Subject {
    who: &'static str,
    program: PathBuf,
    args: Vec<String>,
    /// How the program is called in records, where no path of this machine belongs.
    shown: &'static str,
    report: PathBuf,
}

impl Subject {
    fn ours(bench: &Bench, case: &Case) -> Self {
        let report = Path::new(FOLDER).join("report.json");
        let args = command(&[bench.name], case, bench.report_flag, &report);
        Self {
            who: "wavetank",
            program: process::release_binary(),
            args,
            shown: "target/release/wavetank",
            report,
        }
    }

    fn peer(bench: &Bench, case: &Case, program: &Path) -> Self {
        let report = Path::new(FOLDER).join("peer-report.json");
        let args = command(&["-m", bench.peer.module], case, bench.report_flag, &report);
        Self { who: bench.peer.name, program: program.to_owned(), args, shown: "python", report }
    }

    fn repeat(&self, case: &Case, reps: usize) -> Result<Outcome, String> {
        eprintln!("measuring {}: {} ({reps} runs)", self.who, case.name);
        // A report left by an earlier run must not pass for this one's.
        let _ = fs::remove_file(&self.report);
        let mut samples = Vec::new();
        for _ in 0..reps {
            samples.push(measure::in_fresh_process(&self.program, &self.args)?);
        }
        let shown = std::iter::once(self.shown).chain(self.args.iter().map(String::as_str));
        let command = shown.map(process::quoted).collect::<Vec<_>>().join(" ");
        Outcome::of(self.who, case, command, &samples)?.with_report(&self.report)
    }
}

/// The verb, the case's own arguments, then where the report goes.
fn command(verb: &[&str], case: &Case, report_flag: &str, report: &Path) -> Vec<String> {
    let verb = verb.iter().map(|&word| word.to_owned());
    let report = [report_flag.to_owned(), report.display().to_string()];
    verb.chain(case.args.iter().cloned()).chain(report).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read() {
        assert_eq!(parse(""), Ok(Options { reps: 5, peer: false, record: false }));
        assert_eq!(parse("--record --reps 2 --peer"), Ok(Options { reps: 2, peer: true, record: true }));
    }

    #[test]
    fn wrong_options_are_refused() {
        for line in ["--reps", "--reps 0", "--reps x", "--pear", "now"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn every_bench_has_its_own_name() {
        assert!(
            BENCHES.iter().enumerate().all(|(at, b)| BENCHES[..at].iter().all(|other| other.name != b.name))
        );
    }
}
