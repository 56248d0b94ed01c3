//! Finished points in a file, so that a sweep that was interrupted goes on where it was.
//!
//! JSON lines: what the numbers of a point are called, then a line for each point. Points are found by the
//! hash of their plan, so a spec may change and keep what is still asked for.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wavetank_model::{Error, ErrorKind, Result};

use super::finished::{Finished, numbers};
use super::metric;

/// The first line.
#[derive(Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Heading {
    wavetank_sweep_points: u32,
    metrics: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    plan_hash: String,
    #[serde(with = "numbers")]
    metrics: Vec<f64>,
    warnings: Vec<String>,
}

const LAYOUT: u32 = 1;

/// Where the finished points of a sweep are whose rows go to `output`.
pub fn points_beside(output: &Path) -> PathBuf {
    output.with_extension("points.jsonl")
}

/// Finished points, in memory and in a file.
pub(crate) struct Store {
    file: Option<File>,
    name: String,
    finished: HashMap<String, Arc<Finished>>,
    /// What was found wrong with the file.
    pub(crate) note: Option<String>,
}

impl Store {
    /// Without a file.
    pub(crate) fn in_memory() -> Self {
        Self { file: None, name: String::new(), finished: HashMap::new(), note: None }
    }

    /// What `path` holds, and where more goes; nothing of it with `fresh`.
    pub(crate) fn open(path: &Path, start: Start) -> Result<Self> {
        let name = path.display().to_string();
        let failed = |error: io::Error| Error::io(path, error);
        let mut file = File::options().read(true).append(true).create(true).open(path).map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let mut store = Self { file: None, name, finished: HashMap::new(), note: None };
        let whole = match start {
            Start::Fresh => store.let_go(&bytes)?,
            Start::Resume => store.take_in(&bytes)?,
        };
        if whole < bytes.len() {
            file.set_len(whole as u64).map_err(failed)?;
        }
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        store.file = Some(file);
        if whole == 0 {
            store.write(&Heading::ours())?;
        }
        Ok(store)
    }

    /// Empties a file, unless it is someone else's.
    fn let_go(&self, bytes: &[u8]) -> Result<usize> {
        let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let ours = Heading::is_begun(bytes) || serde_json::from_slice::<Heading>(first).is_ok();
        if ours { Ok(0) } else { Err(Heading::foreign().at(format!("{}:1", self.name))) }
    }

    /// Reads lines; how many bytes of them are whole.
    fn take_in(&mut self, bytes: &[u8]) -> Result<usize> {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole == 0 && !Heading::is_begun(bytes) {
            return Err(Heading::foreign().at(format!("{}:1", self.name)));
        }
        if whole < bytes.len() {
            self.note = Some(format!("{}: the last line is torn and was left out", self.name));
        }
        for (number, line) in bytes[..whole].trim_ascii_end().split(|byte| *byte == b'\n').enumerate() {
            let place = format!("{}:{}", self.name, number + 1);
            if number == 0 && whole > 0 {
                Heading::check(line).map_err(|error| error.at(place))?;
                continue;
            }
            if line.is_empty() {
                continue;
            }
            let Line { plan_hash, metrics, warnings } = serde_json::from_slice(line).map_err(|error| {
                Error::input(format!("not a finished point: {error}")).at(place).hint("--fresh starts over")
            })?;
            self.finished.insert(plan_hash, Arc::new(Finished { metrics, warnings }));
        }
        Ok(whole)
    }

    pub(crate) fn find(&self, hash: &str) -> Option<Arc<Finished>> {
        self.finished.get(hash).cloned()
    }

    /// Keeps a point; it is in the file when this returns.
    pub(crate) fn keep(&mut self, hash: &str, finished: Finished) -> Result<Arc<Finished>> {
        let Finished { metrics, warnings } = finished.clone();
        self.write(&Line { plan_hash: hash.to_owned(), metrics, warnings })?;
        let finished = Arc::new(finished);
        self.finished.insert(hash.to_owned(), Arc::clone(&finished));
        Ok(finished)
    }

    fn write(&mut self, line: &impl Serialize) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut text = serde_json::to_vec(line).map_err(|error| Error::input(error.to_string()))?;
        text.push(b'\n');
        file.write_all(&text).map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot write: {error}")).at(self.name.clone())
        })
    }
}

/// What becomes of an earlier file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Its points are kept.
    Resume,
    /// It is emptied.
    Fresh,
}

impl Heading {
    fn ours() -> Self {
        let names = metric::all()[..metric::measured()].iter().map(|metric| metric.name.clone());
        Self { wavetank_sweep_points: LAYOUT, metrics: names.collect() }
    }

    /// Whether this is all of a file that was ended in its first line, or nothing.
    fn is_begun(bytes: &[u8]) -> bool {
        serde_json::to_vec(&Self::ours()).is_ok_and(|whole| whole.starts_with(bytes))
    }

    fn foreign() -> Error {
        Error::input("not a file of finished points").hint("name another output with -o")
    }

    fn check(line: &[u8]) -> Result<()> {
        match serde_json::from_slice::<Self>(line) {
            Ok(heading) if heading == Self::ours() => Ok(()),
            Ok(_) => Err(Error::input("points of another version of wavetank").hint("--fresh starts over")),
            Err(_) => Err(Self::foreign()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(first: f64) -> Finished {
        let mut metrics = vec![f64::NAN; metric::all().len()];
        metrics[0] = first;
        Finished { metrics, warnings: vec!["a \"note\"".to_owned()] }
    }

    /// Broken by: numbers that lose bits on the way, a torn line that is read or written after, or points
    /// that outlive a fresh start.
    #[test]
    fn what_is_kept_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points.jsonl");
        let odd = 0.1 + 0.2;
        let mut store = Store::open(&path, Start::Resume).unwrap();
        store.keep("aa", finished(odd)).unwrap();
        store.keep("bb", finished(1e-300 / 3.0)).unwrap();
        drop(store);
        let mut torn = std::fs::read_to_string(&path).unwrap();
        torn.push_str("{\"plan_hash\":\"cc\",\"metr");
        std::fs::write(&path, torn).unwrap();
        let mut store = Store::open(&path, Start::Resume).unwrap();
        assert!(store.note.take().unwrap().ends_with("the last line is torn and was left out"));
        store.keep("dd", finished(2.0)).unwrap();
        let store = Store::open(&path, Start::Resume).unwrap();
        assert!(store.note.is_none() && store.find("cc").is_none());
        for (hash, value) in [("aa", odd), ("bb", 1e-300 / 3.0), ("dd", 2.0)] {
            let found = store.find(hash).unwrap();
            assert_eq!(found.metrics[0].to_bits(), value.to_bits());
            assert!(found.metrics[1].is_nan() && found.warnings == ["a \"note\""]);
        }
        assert!(Store::open(&path, Start::Fresh).unwrap().find("aa").is_none());
    }

    /// Broken by: a line without an end that counts as torn, whoever wrote it; an empty line that counts as
    /// an empty file.
    #[test]
    fn a_file_of_someone_else_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        for text in ["dear diary\n", "dear diary", "\ndear diary\n"] {
            std::fs::write(&path, text).unwrap();
            for start in [Start::Resume, Start::Fresh] {
                let message = Store::open(&path, start).err().unwrap().to_string();
                assert!(message.contains("notes.txt:1: not a file of finished points\nhint: "), "{message}");
                assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
            }
        }
    }

    #[test]
    fn a_file_that_was_ended_in_its_first_line_is_begun_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points.jsonl");
        for start in [Start::Resume, Start::Fresh] {
            std::fs::write(&path, "{\"wavetank_sweep").unwrap();
            Store::open(&path, start).unwrap().keep("aa", finished(1.0)).unwrap();
            assert!(Store::open(&path, Start::Resume).unwrap().find("aa").is_some());
        }
    }
}
