//! One side of a comparison: a file of results, a directory of them, or a report in memory.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Deserializer, Value};
use wavetank_model::{Error, Result};

use super::formats::{self, Entry, Repeat};
use super::plan_differences;

/// The results of one or more repeats, all of one format.
#[derive(Clone, Debug)]
pub struct Side {
    /// Where it came from.
    pub name: String,
    format: &'static Entry,
    repeats: Vec<Repeat>,
}

/// The values of one metric over the repeats of a side.
#[derive(Clone, Debug, PartialEq)]
pub struct Trials(Vec<f64>);

impl Trials {
    /// Their mean.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// Distance from the smallest to the largest.
    pub fn spread(&self) -> f64 {
        let (low, high) = self.0.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| {
            (low.min(value), high.max(value))
        });
        high - low
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl Side {
    /// The results in a file, or in a directory of repeats.
    pub fn read(path: &Path) -> Result<Self> {
        let files = if path.is_dir() { results_in(path)? } else { vec![path.to_owned()] };
        let name = name_of(path);
        let mut side: Option<Self> = None;
        for file in &files {
            let place = file.display().to_string();
            let content = fs::read(file).map_err(|error| Error::io(file, error))?;
            let found = of_content(&name, &content).map_err(|error| error.within(place.clone()))?;
            match &mut side {
                None => side = Some(found),
                Some(side) => side.join(found).map_err(|error| error.within(place.clone()))?,
            }
        }
        side.ok_or_else(|| Error::input("no .json file in it").at(path.display().to_string()))
    }

    /// A report in memory.
    pub fn of_report(name: &str, report: &Value) -> Result<Self> {
        let (format, run) = formats::read(report)?;
        Ok(Self { name: name.to_owned(), format, repeats: vec![run] })
    }

    /// The name of its format, a row of [`formats::ALL`].
    pub fn format(&self) -> &'static str {
        self.format.name
    }

    /// How many runs it is made of.
    pub fn runs(&self) -> usize {
        self.repeats.len()
    }

    /// What to know about its numbers, each once.
    pub fn remarks(&self) -> BTreeSet<String> {
        self.repeats.iter().flat_map(|run| run.remarks.iter().cloned()).collect()
    }

    /// The values of `metric`: of every repeat, or of every seed of a single report.
    pub fn trials(&self, metric: &str) -> Option<Trials> {
        let values = self.repeats.iter().filter_map(|run| run.metrics.get(metric)).flatten();
        let all: Vec<f64> = values.copied().collect();
        if all.is_empty() { None } else { Some(Trials(all)) }
    }

    pub(super) fn metrics(&self) -> BTreeSet<&str> {
        self.repeats.iter().flat_map(|run| run.metrics.keys().map(String::as_str)).collect()
    }

    pub(super) fn plan(&self) -> Option<&Value> {
        self.repeats.first()?.plan.as_ref()
    }

    /// Adds the repeats of `other`.
    fn join(&mut self, other: Self) -> Result<()> {
        if other.format.name != self.format.name {
            let formats = format!("{}, the ones before it {}", other.format.name, self.format.name);
            return Err(Error::input(format!("is of another format: {formats}"))
                .hint("repeats are results of one program; compare the others with them"));
        }
        self.repeats.extend(other.repeats);
        Ok(())
    }
}

/// What a side is called: a file or directory without its extension, and one that all runs of a program have
/// in common as the directory it is in.
fn name_of(path: &Path) -> String {
    let is_artifact = formats::ALL
        .iter()
        .any(|format| format.artifact.is_some_and(|name| path.file_name().is_some_and(|file| file == name)));
    let folder = path.parent().and_then(Path::file_stem).filter(|_| is_artifact);
    folder.or(path.file_stem()).unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The results in a file: one object, or several one after the other.
pub(super) fn of_content(name: &str, content: &[u8]) -> Result<Side> {
    let mut side: Option<Side> = None;
    for (at, result) in Deserializer::from_slice(content).into_iter::<Value>().enumerate() {
        let result = result.map_err(|error| Error::input(format!("not valid JSON: {error}")))?;
        let found = Side::of_report(name, &result).map_err(|error| numbered(error, at))?;
        match &mut side {
            None => side = Some(found),
            Some(side) => {
                same_plan(side, &found, at)?;
                side.join(found).map_err(|error| numbered(error, at))?;
            }
        }
    }
    side.ok_or_else(|| Error::input("is empty"))
}

/// Results that were appended are repeats only if they were asked for alike.
fn same_plan(side: &Side, other: &Side, at: usize) -> Result<()> {
    match plan_differences(side, other).first() {
        None => Ok(()),
        Some((path, first, this)) => {
            let differs = format!("{path} is {this} in result {}, {first} in the first", at + 1);
            Err(Error::input(format!("its results are no repeats: {differs}"))
                .hint("write results that are to be compared into files of their own"))
        }
    }
}

/// Says which result of a file it is about, where that is not the first.
fn numbered(error: Error, at: usize) -> Error {
    if at == 0 {
        return error;
    }
    let message = format!("result {}: {}", at + 1, error.message());
    let numbered = Error::new(error.kind(), message);
    match error.advice() {
        Some(hint) => numbered.hint(hint),
        None => numbered,
    }
}

/// The files to read in a directory: what a program named as its result, in it or one below, or all there.
fn results_in(folder: &Path) -> Result<Vec<PathBuf>> {
    if let Some(result) = artifact_in(folder) {
        return Ok(vec![result]);
    }
    let io = |error| Error::io(folder, error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        paths.push(entry.map_err(io)?.path());
    }
    paths.sort();
    let is_hidden = |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
    let is_json = |path: &Path| path.extension().is_some_and(|extension| extension == "json");
    let file = |path: PathBuf| match path.is_dir() {
        true => artifact_in(&path),
        false => (is_json(&path) && !is_hidden(&path)).then_some(path),
    };
    Ok(paths.into_iter().filter_map(file).collect())
}

fn artifact_in(folder: &Path) -> Option<PathBuf> {
    let named = formats::ALL.iter().filter_map(|format| format.artifact);
    named.map(|name| folder.join(name)).find(|path| path.is_file())
}
