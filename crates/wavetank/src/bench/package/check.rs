//! Whether a package can be submitted.

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;
use wavetank_model::{Error, Result};

use super::rules::{RULES, Run};
use super::{KIND, MANIFEST, Manifest, PLAN, SCHEMA_VERSION, SYSTEM, sums, trial_file};
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

/// Checks a package: its files against their checksums, and every benchmark against the rules.
pub fn check_package(folder: &Path) -> Result<Checked> {
    let manifest: Manifest = read(&folder.join(MANIFEST))?;
    if (manifest.kind.as_str(), manifest.schema_version) != (KIND, SCHEMA_VERSION) {
        return Err(Error::input("is another kind of package").at(folder.display().to_string()));
    }
    let mut findings = vec![
        of_all("checksums", in_words(sums::differences(folder)?, "as they were written")),
        of_all("system description", system(folder)),
        of_all("version", version(&manifest)),
    ];
    if manifest.runs.is_empty() {
        findings.push(of_all("benchmarks", Err("there are none".to_owned())));
    }
    for listed in &manifest.runs {
        let run = run(folder, &listed.name, listed.trials)?;
        findings.extend(RULES.iter().map(|rule| Finding {
            of: run.name.clone(),
            rule: rule.name,
            result: (rule.check)(&run),
        }));
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

fn system(folder: &Path) -> Result<String, String> {
    let system: Value = read(&folder.join(SYSTEM)).map_err(|error| error.to_string())?;
    let names: Vec<&str> = system.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    if names.is_empty() { Err("it says nothing".to_owned()) } else { Ok(names.join(", ")) }
}

/// Rules and layout belong to a version; another one's are not ours to judge.
fn version(manifest: &Manifest) -> Result<String, String> {
    let (theirs, ours) = (manifest.wavetank_version.as_str(), env!("CARGO_PKG_VERSION"));
    if theirs == ours { Ok(ours.to_owned()) } else { Err(format!("made by {theirs}, checked by {ours}")) }
}

fn run(folder: &Path, name: &str, trials: u32) -> Result<Run> {
    let folder = folder.join(name);
    let plan = read(&folder.join(PLAN))?;
    let trials = (1..=trials).map(|number| read(&folder.join(trial_file(number)))).collect::<Result<_>>()?;
    Ok(Run { name: name.to_owned(), plan, trials })
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
