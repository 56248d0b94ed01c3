//! Whether a package can be submitted.

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;
use wavetank_model::{Error, Result};

use super::rules::{RULES, Run};
use super::{
    KIND, Listed, MANIFEST, Manifest, OTHER, PLAN, REPORT, SCHEMA_VERSION, SYSTEM, sums, trial_file,
};
use crate::bench::submission::SUBMISSIONS;

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Everything that was looked at.
    pub findings: Vec<Finding>,
    /// What a submission has and the package does not; that is no failure.
    pub notes: Vec<String>,
}

/// One thing that has to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Of which benchmark; empty for the whole package.
    pub of: String,
    /// What has to hold.
    pub rule: &'static str,
    /// What was found, or what is wrong.
    pub result: Result<String, String>,
}

impl Checked {
    /// Whether everything holds.
    pub fn passed(&self) -> bool {
        self.findings.iter().all(|finding| finding.result.is_ok())
    }
}

/// Checks a package: its files against their checksums, and every benchmark against the rules. Only what is
/// no package at all is an error.
pub fn check_package(folder: &Path) -> Result<Checked> {
    let manifest: Manifest = read(&folder.join(MANIFEST))?;
    if (manifest.kind.as_str(), manifest.schema_version) != (KIND, SCHEMA_VERSION) {
        return Err(Error::input("is another kind of package").at(folder.display().to_string()));
    }
    let sums = sums::differences(folder).map_err(|error| in_a_line(&error));
    let mut findings = vec![
        of_all("checksums", sums.and_then(|wrong| in_words(wrong, "as they were written"))),
        of_all("version", version(&manifest)),
        of_all("benchmarks", listed_once(&manifest)),
    ];
    for listed in &manifest.runs {
        findings.extend(of_one(folder, listed));
    }
    let missing = SUBMISSIONS.iter().filter(|one| manifest.runs.iter().all(|listed| listed.name != one.name));
    let notes = missing.map(|one| format!("{} is not in it", one.name)).collect();
    Ok(Checked { findings, notes })
}

fn of_all(rule: &'static str, result: Result<String, String>) -> Finding {
    Finding { of: String::new(), rule, result }
}

fn in_words(wrong: Vec<String>, otherwise: &str) -> Result<String, String> {
    if wrong.is_empty() { Ok(otherwise.to_owned()) } else { Err(wrong.join("; ")) }
}

/// Every benchmark is in it once, in a folder of its own.
fn listed_once(manifest: &Manifest) -> Result<String, String> {
    let names: Vec<&str> = manifest.runs.iter().map(|listed| listed.name.as_str()).collect();
    if names.is_empty() {
        return Err("there are none".to_owned());
    }
    let known = |name: &str| name == OTHER || SUBMISSIONS.iter().any(|one| one.name == name);
    let mut wrong = Vec::new();
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            wrong.push(format!("{name} is listed twice"));
        } else if !known(name) {
            wrong.push(format!("{name} is no name of one"));
        }
    }
    in_words(wrong, &names.join(", "))
}

/// What the rules say of one benchmark, or which of its files cannot be read.
fn of_one(folder: &Path, listed: &Listed) -> Vec<Finding> {
    let finding = |rule, result| Finding { of: listed.name.clone(), rule, result };
    match run(folder, listed) {
        Ok(run) => RULES.iter().map(|rule| finding(rule.name, (rule.check)(&run))).collect(),
        Err(error) => vec![finding("files", Err(in_a_line(&error)))],
    }
}

/// What is wrong with a file, and where.
fn in_a_line(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// Rules and layout belong to a version; another one's are not ours to judge.
fn version(manifest: &Manifest) -> Result<String, String> {
    let (theirs, ours) = (manifest.wavetank_version.as_str(), env!("CARGO_PKG_VERSION"));
    if theirs == ours { Ok(ours.to_owned()) } else { Err(format!("made by {theirs}, checked by {ours}")) }
}

fn run(folder: &Path, listed: &Listed) -> Result<Run> {
    let folder = folder.join(&listed.name);
    let trial = |number| read(&folder.join(trial_file(number)));
    Ok(Run {
        plan: read(&folder.join(PLAN))?,
        systems: read(&folder.join(SYSTEM))?,
        report: read(&folder.join(REPORT))?,
        trials: (1..=listed.trials).map(trial).collect::<Result<_>>()?,
    })
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let hint = "a package is what `wavetank bench --mlperf DIR` writes";
    let text = fs::read_to_string(path).map_err(|error| Error::io(path, error).hint(hint))?;
    serde_json::from_str(&text).map_err(|error| {
        Error::input(format!("not as this version writes it: {error}"))
            .at(format!("{}:{}", path.display(), error.line()))
            .hint(hint)
    })
}
