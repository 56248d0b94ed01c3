//! The folder of a suite: what is planned and done so far, and a report per scenario. Every file is written
//! beside its place and renamed, so that a killed suite leaves whole files.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wavetank_model::{Error, ErrorKind, Result};
use wavetank_report::render;

use super::plan::SuitePlan;

/// The version of the record's layout.
const SCHEMA_VERSION: u32 = 1;
/// The record's file.
const RECORD: &str = "suite.json";

/// What a suite has done so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    schema_version: u32,
    /// What is done in all.
    pub(super) plan: SuitePlan,
    /// How far each step of it is, in the same order.
    pub(super) steps: Vec<Progress>,
    /// What went wrong besides.
    pub(super) notes: Vec<String>,
}

/// How far a step is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(super) enum Progress {
    /// Its turn has not come.
    NotRun,
    /// It went to its end; an option of a submission has a report per trial as well.
    Done { report: String, trials: Vec<String> },
    /// It is not for this machine.
    Skipped,
    /// It could not go on; what it had measured is there, if anything.
    Failed { why: String, partial: Option<String> },
    /// Someone ended it; what it had measured is there, if anything.
    Interrupted { partial: Option<String> },
}

impl Record {
    /// Of a suite that has not begun.
    pub(super) fn of(plan: SuitePlan) -> Self {
        use super::plan::Task;
        let begin = |task: &Task| match task {
            Task::Run(_) => Progress::NotRun,
            Task::Skip { .. } => Progress::Skipped,
        };
        let steps = plan.steps.iter().map(|step| begin(&step.task)).collect();
        Self { schema_version: SCHEMA_VERSION, plan, steps, notes: Vec::new() }
    }
}

/// The folder that results go to.
#[derive(Clone, Debug)]
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    /// A folder of its own: not there yet, or empty.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let folder = Self(path.to_owned());
        fs::create_dir_all(path).map_err(|error| cannot_write(path, &error))?;
        let mut entries = fs::read_dir(path).map_err(|error| Error::io(path, error))?;
        if path.join(RECORD).exists() {
            let what = "holds the results of a suite";
            let hint = format!("go on with it: --resume {}", path.display());
            return Err(Error::usage(what).at(format!("--output {}", path.display())).hint(hint));
        }
        if entries.next().is_some() {
            let place = format!("--output {}", path.display());
            return Err(Error::usage("is not empty").at(place).hint("name a folder that is not there yet"));
        }
        Ok(folder)
    }

    /// The record of a suite that was begun.
    pub(super) fn record(&self) -> Result<Record> {
        let path = self.0.join(RECORD);
        let place = path.display().to_string();
        let text = fs::read_to_string(&path)
            .map_err(|error| Error::io(&path, error).hint("--resume takes the folder of a suite"))?;
        let invalid = |what: String| {
            Error::input(format!("not a suite's record: {what}"))
                .at(place.clone())
                .hint("go on with the version of wavetank that began it, or start a suite of its own")
        };
        let json: Value = serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        let version = json.pointer("/plan/wavetank_version").and_then(Value::as_str).unwrap_or_default();
        if version != env!("CARGO_PKG_VERSION") {
            let what = format!("begun by wavetank {version}, this is {}", env!("CARGO_PKG_VERSION"));
            return Err(Error::usage(what).at(place).hint("results of two versions do not compare"));
        }
        let record: Record = serde_json::from_value(json).map_err(|error| invalid(error.to_string()))?;
        if record.schema_version != SCHEMA_VERSION || record.steps.len() != record.plan.steps.len() {
            return Err(invalid("its steps are not those of its plan".to_owned()));
        }
        Ok(record)
    }

    /// Keeps the record.
    pub(super) fn keep(&self, record: &Record) -> Result<()> {
        let json = serde_json::to_value(record).expect("a record is JSON");
        self.write_json(RECORD, &json)
    }

    /// Reads a report.
    pub(super) fn read_json(&self, name: &str) -> Result<Value> {
        let path = self.0.join(name);
        let text = fs::read_to_string(&path).map_err(|error| Error::io(&path, error))?;
        serde_json::from_str(&text)
            .map_err(|error| Error::input(error.to_string()).at(path.display().to_string()))
    }

    /// Writes a report.
    pub(super) fn write_json(&self, name: &str, json: &Value) -> Result<()> {
        self.write(name, |out| render::json::write(json, out))
    }

    /// Removes a file, if it is there.
    pub(super) fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.0.join(name));
    }

    /// Writes a file: all of it or nothing.
    pub(super) fn write(
        &self,
        name: &str,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        let (path, part) = (self.0.join(name), self.0.join(format!(".{name}.part")));
        let written = File::create(&part).and_then(|file| {
            let mut out = BufWriter::new(file);
            content(&mut out)?;
            out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
            fs::rename(&part, &path)
        });
        written.map_err(|error| {
            let _ = fs::remove_file(&part);
            cannot_write(&path, &error)
        })
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write: {error}")).at(path.display().to_string())
}
