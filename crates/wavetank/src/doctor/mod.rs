//! `wavetank doctor`: what this machine and a directory on it are like to run on, and what to do about what
//! is not as it should be.
//!
//! A [`Check`] is one file of `checks` and one row of its table; it looks at a `Subject` and gives a
//! [`Finding`]. What the kernel tells is read through `host`, what has to be tried out is tried by `trial`.

mod checks;
mod finding;
mod render;
mod subject;
mod trial;

use std::path::{Path, PathBuf};

use wavetank_model::{Error, Result};

pub use checks::{ALL, Check};
pub use finding::{Finding, Verdict};
use subject::Subject;

/// What was found, check by check.
pub struct Examination {
    /// The directory that was looked at, without links.
    pub directory: PathBuf,
    /// The kernel's version.
    pub kernel: Option<String>,
    /// Every check, in the order of the table.
    pub findings: Vec<(&'static Check, Finding)>,
}

/// Looks at this machine and at `directory`, where a file is written and removed.
pub fn examine(directory: &Path) -> Result<Examination> {
    let wrong = |what: String| {
        let place = directory.display().to_string();
        Error::usage(what).at(place).hint("name a directory that is there, as wavetank doctor /mnt/nvme")
    };
    let directory = directory.canonicalize().map_err(|error| wrong(format!("cannot be used: {error}")))?;
    if !directory.is_dir() {
        return Err(wrong("is not a directory".to_owned()));
    }
    Ok(Examination::of(&Subject::here(directory)))
}

impl Examination {
    fn of(subject: &Subject) -> Self {
        let findings = ALL.iter().map(|check| (check, check.look(subject))).collect();
        Self { directory: subject.directory.clone(), kernel: subject.host.kernel(), findings }
    }

    /// The worst of all verdicts.
    pub fn verdict(&self) -> Verdict {
        self.findings.iter().map(|(_, finding)| finding.verdict).max().unwrap_or(Verdict::Ok)
    }
}

#[cfg(test)]
mod tests;
