//! A submission as a folder: what was run on what, every trial of it, and checksums.
//!
//! ```text
//! DIR/manifest.json     what is in it, and which version made it
//! DIR/NAME/plan.json    what was run: a submission's name, or `run`
//! DIR/NAME/system.json  the machines it ran on, one of each rank
//! DIR/NAME/report.json, DIR/NAME/trial_N.json
//! DIR/SHA256SUMS        of all other files, as `sha256sum --check` reads them
//! ```

mod check;
mod rules;
mod sums;

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wavetank_model::{Error, ErrorKind, Result};

use super::plan::BenchPlan;
use super::submission::Submission;
use super::suite::Hardware;

pub use check::{Checked, Finding, check_package};

/// What a manifest says it is.
const KIND: &str = "wavetank kv-cache submission";
const SCHEMA_VERSION: u32 = 1;
const MANIFEST: &str = "manifest.json";
const SYSTEM: &str = "system.json";
const PLAN: &str = "plan.json";
const REPORT: &str = "report.json";
/// A benchmark that is none of the submissions.
const OTHER: &str = "run";

/// What is in a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    kind: String,
    schema_version: u32,
    /// The version that made it.
    wavetank_version: String,
    /// In the order they were added.
    runs: Vec<Listed>,
}

/// A benchmark in a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    /// Its folder.
    name: String,
    /// How many trials.
    trials: u32,
}

/// What goes into a package of one benchmark.
#[derive(Clone, Copy)]
pub struct Results<'a> {
    /// What was run.
    pub plan: &'a BenchPlan,
    /// The whole report.
    pub report: &'a Value,
    /// The report of each trial alone.
    pub trials: &'a [Value],
    /// The machines it ran on: one, or that of each rank.
    pub systems: &'a [Hardware],
}

/// What a benchmark is called in a package: the submission that it is, if any.
pub fn package_name(plan: &BenchPlan) -> &'static str {
    Submission::of(plan).map_or(OTHER, |one| one.name)
}

/// A package that benchmarks are added to.
#[derive(Debug)]
pub struct Package {
    folder: PathBuf,
    manifest: Manifest,
}

impl Package {
    /// Opens a folder that is not there, is empty, or is a package of this version.
    pub fn open(folder: &Path) -> Result<Self> {
        let refuse = |what: &str| {
            Error::usage(format!("{}: {what}", folder.display()))
                .at("--mlperf")
                .hint("name a new folder, or a package that this version began")
        };
        fs::create_dir_all(folder).map_err(|error| refuse(&error.to_string()))?;
        let manifest = folder.join(MANIFEST);
        let is_empty = fs::read_dir(folder).map_err(|error| Error::io(folder, error))?.next().is_none();
        if is_empty {
            let manifest = Manifest {
                kind: KIND.to_owned(),
                schema_version: SCHEMA_VERSION,
                wavetank_version: env!("CARGO_PKG_VERSION").to_owned(),
                runs: Vec::new(),
            };
            return Ok(Self { folder: folder.to_owned(), manifest });
        }
        let text = fs::read_to_string(manifest).map_err(|_| refuse("is not empty and is no package"))?;
        let manifest: Manifest =
            serde_json::from_str(&text).map_err(|error| refuse(&format!("its manifest: {error}")))?;
        if (manifest.kind.as_str(), manifest.schema_version) != (KIND, SCHEMA_VERSION) {
            return Err(refuse("is another kind of package"));
        }
        if manifest.wavetank_version != env!("CARGO_PKG_VERSION") {
            return Err(refuse(&format!("was begun by version {}", manifest.wavetank_version)));
        }
        Ok(Self { folder: folder.to_owned(), manifest })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds a finished benchmark, in the place of one of the same name.
    pub fn add(&mut self, name: &str, results: Results<'_>) -> Result<()> {
        let Results { plan, report, trials, systems } = results;
        if plan.is_simulated() {
            return Err(Error::usage("a simulation is no result: nothing was measured"));
        }
        let folder = self.folder.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| Error::io(&folder, error))?;
        }
        fs::create_dir_all(&folder).map_err(|error| Error::io(&folder, error))?;
        write_json(&folder.join(PLAN), plan)?;
        write_json(&folder.join(SYSTEM), &systems)?;
        write_json(&folder.join(REPORT), report)?;
        for (number, report) in (1..).zip(trials) {
            write_json(&folder.join(trial_file(number)), report)?;
        }
        self.manifest.runs.retain(|listed| listed.name != name);
        let trials = trials.len() as u32;
        self.manifest.runs.push(Listed { name: name.to_owned(), trials });
        Ok(())
    }

    /// Writes what is in it, and the checksums of everything.
    pub fn seal(&self) -> Result<()> {
        write_json(&self.folder.join(MANIFEST), &self.manifest)?;
        sums::write(&self.folder)
    }
}

fn trial_file(number: u32) -> String {
    format!("trial_{number}.json")
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).expect("plain data");
    fs::write(path, text + "\n").map_err(|error| {
        Error::new(ErrorKind::Io, format!("cannot write: {error}")).at(path.display().to_string())
    })
}

#[cfg(test)]
mod tests;
