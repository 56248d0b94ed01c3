//! From a spec to points, from a point to its plan and the name of its result.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wavetank::{Plan, ReplayMode, TapeKey, WorkloadPlan};
use wavetank_model::{Error, ErrorKind, Result, seeded};
use wavetank_sim::timing::TimingConfig;

use super::spec::{Mode, Spec};

/// In hints.
const RELATIVE: &str = "paths are relative to the folder of the sweep's file";

/// One thing to try.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    /// Its place among all points of the spec.
    pub(crate) number: usize,
    /// A value for each axis; `null` leaves the base as it is.
    pub(crate) values: Vec<Value>,
    /// Names its result.
    pub(crate) hash: String,
    /// Which points share a trace.
    pub(crate) tape: usize,
}

/// How much of a workload is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Part {
    Whole,
    /// The requests of the first sessions.
    First {
        part: u64,
        of: u64,
    },
}

impl Part {
    pub(crate) fn is_whole(self) -> bool {
        self == Self::Whole
    }

    /// How many of `all` requests that are.
    pub(crate) fn of(self, all: usize) -> usize {
        match self {
            Self::Whole => all,
            Self::First { part, of } => (all as u64 * part).div_ceil(of) as usize,
        }
    }
}

/// The values of every point, in order; drawn ones are all different.
pub(crate) fn enumerate(spec: &Spec) -> Vec<Vec<Value>> {
    match &spec.mode {
        Mode::List(points) => points.clone(),
        Mode::Grid => (0..spec.size()).map(|number| at(spec, number)).collect(),
        Mode::Random { samples, seed } => {
            let mut draw = seeded(*seed, "sweep");
            let mut drawn: Vec<Vec<Value>> = Vec::new();
            let mut seen = std::collections::HashSet::new();
            // A small space has fewer points than samples are wanted.
            for _ in 0..samples.saturating_mul(20) {
                let values: Vec<Value> = spec.axes.iter().map(|axis| axis.draw(&mut draw)).collect();
                if seen.insert(json!(values).to_string()) {
                    drawn.push(values);
                }
                if drawn.len() as u64 == *samples {
                    break;
                }
            }
            drawn
        }
    }
}

/// The point of a grid with this number: the last axis is fastest.
fn at(spec: &Spec, mut number: u64) -> Vec<Value> {
    let mut values: Vec<Value> = Vec::with_capacity(spec.axes.len());
    for axis in spec.axes.iter().rev() {
        let count = axis.values.len() as u64;
        values.push(axis.values[(number % count) as usize].clone());
        number /= count;
    }
    values.reverse();
    values
}

/// Makes plans of points.
pub(crate) struct Planner<'s> {
    pub(crate) spec: &'s Spec,
    /// Files that plans name, by what is in them.
    contents: Mutex<HashMap<PathBuf, String>>,
    tapes: Mutex<Vec<TapeKey>>,
}

impl<'s> Planner<'s> {
    pub(crate) fn of(spec: &'s Spec) -> Self {
        Self { spec, contents: Mutex::default(), tapes: Mutex::default() }
    }

    /// The plan of a point.
    pub(crate) fn plan(&self, values: &[Value]) -> Result<Plan> {
        let mut args = self.spec.base.clone();
        for (axis, value) in self.spec.axes.iter().zip(values).filter(|(_, value)| !value.is_null()) {
            let entered = self.spec.enter(&mut args, &axis.name, value);
            entered.map_err(|error| Error::input(error.to_string()).at(axis.place.clone()))?;
        }
        let plan = Plan::of(&args).map_err(|error| match error.kind() {
            ErrorKind::Io => error.hint(RELATIVE),
            _ => error,
        })?;
        if plan.workload.is_once() {
            return Err(Error::usage("standard input can be read once only").hint("name a trace file"));
        }
        if plan.replay_mode == ReplayMode::Online {
            return Err(Error::usage("a sweep simulates: live runs side by side would disturb each other")
                .at("replay_mode")
                .hint("leave it out; wavetank replay --replay-mode online runs one plan"));
        }
        Ok(plan)
    }

    /// The point with these values.
    pub(crate) fn point(&self, number: usize, values: Vec<Value>) -> Result<Point> {
        let plan = self.plan(&values)?;
        let hash = self.hash(&plan, Part::Whole)?;
        Ok(Point { number, values, hash, tape: self.tape(&plan) })
    }

    /// Which trace a plan replays, counted from 1; synthetic loads are not read.
    fn tape(&self, plan: &Plan) -> usize {
        if matches!(plan.workload, WorkloadPlan::Synthetic(_)) {
            return 0;
        }
        let key = TapeKey::of(plan);
        let mut tapes = self.tapes.lock().unwrap_or_else(PoisonError::into_inner);
        let known = tapes.iter().position(|known| *known == key);
        1 + known.unwrap_or_else(|| {
            tapes.push(key);
            tapes.len() - 1
        })
    }

    /// `num_workers = 4, router_mode = "kv_router"`.
    pub(crate) fn describe(&self, values: &[Value]) -> String {
        let pairs = self.spec.axes.iter().zip(values).filter(|(_, value)| !value.is_null());
        pairs.map(|(axis, value)| format!("{} = {value}", axis.name)).collect::<Vec<_>>().join(", ")
    }

    /// The name of a plan's result: what it depends on, with files by their content.
    pub(crate) fn hash(&self, plan: &Plan, part: Part) -> Result<String> {
        let mut canonical = json!(plan);
        let mut files = Vec::new();
        if let WorkloadPlan::Trace { paths, .. } = &plan.workload {
            let contents: Result<Vec<_>> = paths.iter().map(|path| self.content(Path::new(path))).collect();
            canonical["workload"]["trace"]["paths"] = json!(contents?);
        }
        for path in plan.simulation.timings().filter_map(TimingConfig::file) {
            files.push(self.content(Path::new(path))?);
        }
        if let Part::First { part, of } = part {
            canonical["part"] = json!([part, of]);
        }
        canonical["files"] = json!(files);
        Ok(short(blake3::hash(canonical.to_string().as_bytes())))
    }

    /// What is in a file, or in the files of a directory, as a hash.
    fn content(&self, path: &Path) -> Result<String> {
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = contents.get(path) {
            return Ok(known.clone());
        }
        let mut hasher = blake3::Hasher::new();
        feed(path, &mut hasher).map_err(|error| Error::io(path, error).hint(RELATIVE))?;
        let hash = short(hasher.finalize());
        contents.insert(path.to_owned(), hash.clone());
        Ok(hash)
    }

    /// The files and folders that plans named, with hashes, in order.
    pub(crate) fn contents(&self) -> Vec<(PathBuf, String)> {
        let contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = contents.iter().map(|(path, hash)| (path.clone(), hash.clone())).collect();
        all.sort();
        all
    }

    /// The same as a report has it, so that parts of a sweep can be told to belong together.
    pub(crate) fn inputs(&self) -> Value {
        let name = |path: &Path| {
            let inside = path.strip_prefix(&self.spec.folder).unwrap_or(path);
            inside.display().to_string()
        };
        let files = self.contents();
        let mut files: Vec<_> = files.iter().map(|(path, hash)| (name(path), hash)).collect();
        files.sort();
        files.into_iter().map(|(path, hash)| json!({ "path": path, "blake3": hash })).collect()
    }
}

fn feed(path: &Path, hasher: &mut blake3::Hasher) -> io::Result<()> {
    if !path.is_dir() {
        return io::copy(&mut std::fs::File::open(path)?, hasher).map(drop);
    }
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
    files.retain(|file| file.is_file());
    files.sort();
    // A folder's tables are told apart by their names.
    files.iter().try_for_each(|file| {
        let name = file.file_name().unwrap_or_default().as_encoded_bytes();
        hasher.update(name).update(&[0]).update(&file.metadata()?.len().to_le_bytes());
        feed(file, hasher)
    })
}

/// Half of a hash is enough to tell plans apart.
fn short(hash: blake3::Hash) -> String {
    hash.as_bytes()[..16].iter().fold(String::with_capacity(32), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Broken by: files of a folder that are told apart by their bytes alone.
    #[test]
    fn a_folder_is_its_files_and_their_names() {
        let hash = |files: &[(&str, &str)]| {
            let folder = tempfile::tempdir().unwrap();
            files.iter().for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
            let mut hasher = blake3::Hasher::new();
            feed(folder.path(), &mut hasher).unwrap();
            short(hasher.finalize())
        };
        let files = [("a", "12"), ("b", "3")];
        assert_eq!(hash(&files), hash(&[files[1], files[0]]));
        assert_ne!(hash(&files), hash(&[("a", "1"), ("b", "23")]));
        assert_ne!(hash(&files), hash(&[("a", "12"), ("c", "3")]));
    }

    /// Broken by: a table that a result does not depend on, such as the router's.
    #[test]
    fn another_table_is_another_result() {
        let folder = tempfile::tempdir().unwrap();
        let table = folder.path().join("t.json").display().to_string();
        let base = "[base]\ninput_tokens = 1\noutput_tokens = 1\nrequest_count = 1\n[axes]\nseed = [1]\n";
        let spec = Spec::parse(base, Path::new(""), "s.toml").unwrap();
        let parameters = serde_json::Map::from_iter([("path".to_owned(), json!(table))]);
        let timing = TimingConfig { name: "grid".to_owned(), parameters };
        let mut engines = Planner::of(&spec).plan(&[json!(1)]).unwrap();
        let mut router = engines.clone();
        engines.simulation.engine.timing = timing.clone();
        router.simulation.router_config.router_prefill_load_model = Some(timing);
        for plan in [engines, router] {
            assert_eq!(plan.inputs().collect::<Vec<_>>(), [Path::new(&table)]);
            let hash = |content: &str| {
                fs::write(&table, content).unwrap();
                Planner::of(&spec).hash(&plan, Part::Whole).unwrap()
            };
            assert_eq!(hash("1"), hash("1"));
            assert_ne!(hash("1"), hash("2"));
        }
    }
}
