//! Cases of one verb of the release binary, beside the reference tool where it is installed.

use std::fs;
use std::path::{Path, PathBuf};

use super::measure;
use super::outcome::Outcome;
use super::peer::Peer;
use super::{FOLDER, Options, Page, table};
use crate::process::{self, cargo};

/// A set of cases of one verb.
pub(super) struct Suite {
    pub(super) verb: &'static str,
    /// The flag that takes the path of the JSON report.
    pub(super) report_flag: &'static str,
    pub(super) peer: Peer,
    /// Writes the inputs it needs and lists the cases.
    pub(super) cases: fn() -> Result<Vec<Case>, String>,
}

/// One command to measure.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// What follows the program's name, but for the report.
    pub(super) args: Vec<String>,
    /// The case whose cost this one's is divided by.
    pub(super) against: Option<&'static str>,
    /// How often the reference tool runs it; zero leaves it out.
    pub(super) peer_reps: usize,
}

/// Everything one bench measured, ready to be shown.
pub(super) struct Results {
    pub(super) outcomes: Vec<Outcome>,
    pub(super) notes: Vec<String>,
}

/// Builds the binary, runs the cases, shows them.
pub(super) fn measure(suite: &Suite, options: &Options) -> Result<Page, String> {
    process::run(&mut cargo(&["build", "--release"]))?;
    let results = measure_all(suite, options)?;
    let commands: String = results.outcomes.iter().map(|outcome| format!("{}\n", outcome.command)).collect();
    let method = format!(
        "CPU is user and system time of the process, the least of its runs; \
         peak memory is its largest resident set.\n\n```sh\n{commands}```\n"
    );
    Ok(Page { method, table: table::results(&results) })
}

/// Runs every case, ours and then the peer's.
fn measure_all(suite: &Suite, options: &Options) -> Result<Results, String> {
    let mut notes = Vec::new();
    let peer = if options.peer { suite.peer.program(&mut notes) } else { None };
    let mut outcomes = Vec::new();
    for case in (suite.cases)()? {
        let ours = Subject::ours(suite, &case);
        outcomes.push(ours.repeat(&case, options.reps)?);
        if let (Some(program), 1..) = (&peer, case.peer_reps) {
            outcomes.push(Subject::peer(suite, &case, program).repeat(&case, case.peer_reps)?);
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
    fn ours(suite: &Suite, case: &Case) -> Self {
        let report = Path::new(FOLDER).join("report.json");
        let args = command(&[suite.verb], case, suite.report_flag, &report);
        Self {
            who: "wavetank",
            program: process::release_binary(),
            args,
            shown: "target/release/wavetank",
            report,
        }
    }

    fn peer(suite: &Suite, case: &Case, program: &Path) -> Self {
        let report = Path::new(FOLDER).join("peer-report.json");
        let args = command(&["-m", suite.peer.module], case, suite.report_flag, &report);
        Self { who: suite.peer.name, program: program.to_owned(), args, shown: "python", report }
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
