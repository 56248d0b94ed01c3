//! What the machine is, as far as a reader of results has to know it, and the best directory for entries.
//!
//! Everything is read from the files the kernel shows; what cannot be read is not known, and said so.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};
use wavetank_model::Result;

use crate::bench::machine::Machine;
use crate::bench::place;
use crate::host::{Drive, Host, is_in_memory, mount_of};

/// A machine, as the table and the summary show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hardware {
    /// The processor's model, where the kernel says it.
    pub cpu: Option<String>,
    /// Cores this process may use.
    pub cores: u32,
    /// Main memory this process may use, where that is known.
    pub memory_bytes: Option<u64>,
    /// The kernel's version.
    pub kernel: Option<String>,
    /// The GPU.
    pub gpu: Gpu,
    /// Where entries are stored.
    pub place: Place,
}

/// A GPU, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gpu {
    /// The first one.
    Found {
        /// Its model, where the driver says it.
        model: Option<String>,
        /// Its memory.
        total_bytes: u64,
        /// What of it was free.
        free_bytes: u64,
    },
    /// None that can be used.
    Missing {
        /// What is missing.
        why: String,
    },
}

/// The directory for entries, and how it was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Its absolute path.
    pub directory: PathBuf,
    /// Why it was taken.
    pub reason: String,
    /// Those that came before it, and why they were not.
    pub passed_over: Vec<PassedOver>,
    /// Directories of its path that were not there: they are made, and removed in the end.
    pub made: Vec<PathBuf>,
    /// The kind of file system, where that is known.
    pub file_system: Option<String>,
    /// What is below it, as far as that is known.
    pub drives: Vec<Drive>,
    /// What was free.
    pub free_bytes: Option<u64>,
}

/// A directory that was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedOver {
    /// It.
    pub directory: PathBuf,
    /// Why not.
    pub why: String,
}

/// Where to look.
pub(super) struct Surroundings {
    /// The system.
    pub(super) host: Host,
    /// The folder for temporary files.
    pub(super) temporary: PathBuf,
    /// The folder the command was given in.
    pub(super) current: PathBuf,
}

/// Where people mount what they benchmark (spec/kv-bench.md 17).
const MOUNTED: [&str; 2] = ["/mnt/nvme", "/mnt/ssd"];
/// The folder that is made where nothing is mounted.
const OWN: &str = "kvcache_benchmark";

impl Surroundings {
    /// This system.
    pub(super) fn here() -> Self {
        let current = std::env::current_dir().unwrap_or_else(|_| "/".into());
        let temporary = std::env::temp_dir();
        // The table of mounts knows no links.
        let temporary = temporary.canonicalize().unwrap_or(temporary);
        Self { host: Host::here(), temporary, current }
    }

    /// Main memory: what there is, or what this process is allowed if that is less.
    fn memory_bytes(&self, machine: &Machine) -> Option<u64> {
        self.host.group_memory_bytes().into_iter().chain(machine.memory_bytes).min()
    }
}

impl Hardware {
    /// This machine, with the drive that `directory` is on.
    pub fn here(directory: Option<&Path>) -> Result<Self> {
        Self::detect(&Machine::here(), &Surroundings::here(), directory)
    }

    /// Looks at `machine`; `typed` is the directory that was asked for.
    pub(super) fn detect(
        machine: &Machine,
        surroundings: &Surroundings,
        typed: Option<&Path>,
    ) -> Result<Self> {
        let gpu = match (machine.gpu)(0) {
            Ok(memory) => Gpu::Found {
                model: surroundings.host.gpu_models().into_iter().next(),
                total_bytes: memory.total_bytes,
                free_bytes: memory.free_bytes,
            },
            Err(error) => {
                let why = error.to_string().lines().next().unwrap_or_default().to_owned();
                Gpu::Missing { why }
            }
        };
        Ok(Self {
            cpu: surroundings.host.processor(),
            cores: machine.cores,
            memory_bytes: surroundings.memory_bytes(machine),
            kernel: surroundings.host.kernel(),
            gpu,
            place: Place::choose(surroundings, typed)?,
        })
    }

    /// What would make results on `other` incomparable with those on this one.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let gib = |bytes: Option<u64>| bytes.map(|bytes| (bytes as f64 / GIB).round().to_string() + " GiB");
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "not known".to_owned());
        let rows = [
            ("processor", text(&self.cpu), text(&other.cpu)),
            ("cores", self.cores.to_string(), other.cores.to_string()),
            ("memory", text(&gib(self.memory_bytes)), text(&gib(other.memory_bytes))),
            ("kernel", text(&self.kernel), text(&other.kernel)),
            ("GPU", self.gpu.name(), other.gpu.name()),
            ("file system", text(&self.place.file_system), text(&other.place.file_system)),
            ("drive", self.place.drive_names(), other.place.drive_names()),
        ];
        rows.into_iter()
            .filter(|(_, was, is)| was != is)
            .map(|(what, was, is)| format!("{what}: {was} then, {is} now"))
            .collect()
    }
}

const GIB: f64 = (1u64 << 30) as f64;

impl Gpu {
    /// What it is called.
    pub fn name(&self) -> String {
        match self {
            Self::Found { model, total_bytes, .. } => {
                let model = model.as_deref().unwrap_or("GPU");
                format!("{model}, {:.0} GiB", *total_bytes as f64 / GIB)
            }
            Self::Missing { .. } => "none".to_owned(),
        }
    }
}

impl Place {
    /// The typed directory, or the best there is.
    fn choose(surroundings: &Surroundings, typed: Option<&Path>) -> Result<Self> {
        if let Some(typed) = typed {
            let directory = place::check(typed)?;
            return Ok(Self::of(surroundings, directory, "as typed".to_owned(), Vec::new()));
        }
        let mounted = MOUNTED.map(|path| (PathBuf::from(path), Kind::Mounted));
        let own = [surroundings.temporary.clone(), "/var/tmp".into(), surroundings.current.clone()]
            .map(|folder| (folder.join(OWN), Kind::Own));
        let mut passed_over: Vec<PassedOver> = Vec::new();
        for (directory, kind) in mounted.into_iter().chain(own) {
            match surroundings.refusal(&directory, kind) {
                None => {
                    let reason = match kind {
                        Kind::Mounted => "it is there and can be written to",
                        Kind::Own => "it is on a drive and can be written to",
                    };
                    return Ok(Self::of(surroundings, directory, reason.to_owned(), passed_over));
                }
                Some(why) if passed_over.iter().all(|other| other.directory != directory) => {
                    passed_over.push(PassedOver { directory, why });
                }
                Some(_) => {}
            }
        }
        let last = place::check(&surroundings.temporary.join(OWN))?;
        Ok(Self::of(surroundings, last, "nothing better was found".to_owned(), passed_over))
    }

    fn of(
        surroundings: &Surroundings,
        directory: PathBuf,
        reason: String,
        passed_over: Vec<PassedOver>,
    ) -> Self {
        let missing = |folder: &&Path| !surroundings.host.at(folder).exists();
        let made = directory.ancestors().take_while(missing).map(Path::to_owned).collect();
        let mount = mount_of(&surroundings.host, &directory);
        Self {
            reason,
            passed_over,
            made,
            drives: mount.as_ref().map(|mount| Drive::below(&surroundings.host, mount)).unwrap_or_default(),
            file_system: mount.map(|mount| mount.kind),
            free_bytes: place::free_bytes(&surroundings.host.at(&directory)).ok(),
            directory,
        }
    }

    /// Whether there is no drive below it.
    pub(super) fn is_in_memory(&self) -> bool {
        self.file_system.as_deref().is_some_and(is_in_memory)
    }

    /// What is below it, in words.
    pub(crate) fn drive_names(&self) -> String {
        let names: Vec<String> = self.drives.iter().map(ToString::to_string).collect();
        if names.is_empty() { "a drive that is not known".to_owned() } else { names.join(" and ") }
    }
}

/// How a directory came to be looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Someone mounted it.
    Mounted,
    /// It is made for this.
    Own,
}

impl Surroundings {
    /// Why entries are not stored in `directory`, if so.
    fn refusal(&self, directory: &Path, kind: Kind) -> Option<String> {
        let there = directory.ancestors().find(|folder| self.host.at(folder).exists())?;
        if kind == Kind::Mounted && there != directory {
            return Some("is not there".to_owned());
        }
        if !self.host.at(there).is_dir() {
            return Some("is not a directory".to_owned());
        }
        if access(self.host.at(there), Access::WRITE_OK | Access::EXEC_OK).is_err() {
            return Some("cannot be written to".to_owned());
        }
        let mount = mount_of(&self.host, directory)?;
        is_in_memory(&mount.kind).then(|| format!("is in memory ({})", mount.kind))
    }
}

#[cfg(test)]
mod tests;
