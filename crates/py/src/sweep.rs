//! Sweeps: a spec in, rows out. Points run on threads here, or wherever an executor takes them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use wavetank::{Error, Result, processors};
use wavetank_cli::{check_sweep_outputs, write_sweep_outputs};
use wavetank_study::sweep::{
    Local, Onlooker, Runner, Setting, Shard, Spec, Start, Sweep, Swept, Tree, answer, points_beside,
    write_report,
};

use crate::executor::Executor;
use crate::pictures::text;
use crate::points::Points;
use crate::value::{object_of, python_of, tree_of};
use crate::waiting::{Course, wait_for};

/// The name of a spec that is no file.
const NAME: &str = "sweep";

/// Runs the sweep that a dictionary or a TOML file describes: its report, its rows, the table of the command.
#[pyfunction]
#[pyo3(signature = (spec, wanted, executor=None, progress=None))]
pub(crate) fn sweep<'py>(
    py: Python<'py>,
    spec: &Bound<'py, PyAny>,
    wanted: Wanted,
    executor: Option<Py<PyAny>>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyAny>, Points, String)> {
    let source = Source::of(spec)?;
    let swept = wait_for(py, progress.as_ref(), move |course| wanted.sweep(source, executor, course))?;
    Ok((python_of(py, &swept.report())?, Points::of(&swept), swept.table()))
}

/// Runs a point that a sweep handed to an executor; says what came of it. `inputs` are its files with hashes
/// of what is in them, `places` where else they lie.
#[pyfunction]
#[pyo3(signature = (job, inputs, places=None))]
pub(crate) fn run_point(
    py: Python<'_>,
    job: String,
    inputs: HashMap<PathBuf, String>,
    places: Option<HashMap<PathBuf, PathBuf>>,
) -> PyResult<String> {
    let (local, places) = (held(inputs), places.unwrap_or_default());
    wait_for(py, None, move |course| Ok(answer(&job, &places, &*local, &course.stop)))
}

/// Files that were read, with hashes of what was in them.
type Read = HashMap<PathBuf, String>;

/// Who runs points in this process: a trace is read once, and again when something else is in it.
fn held(inputs: Read) -> Arc<Local> {
    static HELD: LazyLock<Mutex<(Read, Arc<Local>)>> = LazyLock::new(Mutex::default);
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let changed = inputs.iter().any(|(path, hash)| held.0.get(path).is_some_and(|known| known != hash));
    if changed {
        *held = Default::default();
    }
    held.0.extend(inputs);
    Arc::clone(&held.1)
}

/// The report of a sweep as the command writes it, byte for byte.
#[pyfunction]
pub(crate) fn sweep_json(report: &Bound<'_, PyDict>) -> PyResult<String> {
    let mut bytes = Vec::new();
    write_report(&object_of(report)?, &mut bytes)?;
    text(bytes)
}

/// Where a spec comes from.
enum Source {
    File(PathBuf),
    Tree(Tree),
}

impl Source {
    fn of(spec: &Bound<'_, PyAny>) -> PyResult<Self> {
        match spec.is_instance_of::<PyDict>() {
            true => tree_of(spec, NAME).map(Self::Tree),
            false => spec.extract().map(Self::File),
        }
    }

    fn spec(self) -> Result<(Spec, Option<PathBuf>)> {
        match self {
            Self::File(path) => Ok((Spec::read(&path)?, Some(path))),
            Self::Tree(tree) => Ok((Spec::of_tree(tree, Path::new(""), NAME)?, None)),
        }
    }
}

/// How a sweep is run: a dictionary with these keys.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Wanted {
    /// Files of rows; finished points are kept beside the first.
    outputs: Vec<PathBuf>,
    /// How many points run at a time.
    threads: Option<usize>,
    /// A part of the points: `1/3`.
    shard: Option<String>,
    /// Whether points that an earlier run finished are forgotten.
    fresh: bool,
    /// More points are refused.
    max_points: Option<u64>,
}

impl Wanted {
    fn sweep(&self, source: Source, executor: Option<Py<PyAny>>, course: &Course) -> Result<Swept> {
        let (spec, file) = source.spec()?;
        let shard = Shard::asked(self.shard.as_deref())?;
        self.check_size(spec.size())?;
        let threads = self.threads.unwrap_or_else(processors).max(1);
        let sweep = Sweep::prepare(&spec, shard, threads.min(processors()))?;
        let store = self.outputs.first().map(|output| points_beside(output));
        let spec_file = file.iter().map(|path| ("the spec", path.as_path()));
        let others = spec_file.chain(store.iter().map(|path| ("the finished points", path.as_path())));
        check_sweep_outputs(&sweep, &self.outputs, &others.collect::<Vec<_>>())?;
        let runner: Box<dyn Runner> = match executor {
            None => Box::new(Local::default()),
            Some(object) => Box::new(Executor::of(object, sweep.inputs())),
        };
        let start = if self.fresh { Start::Fresh } else { Start::Resume };
        let swept = sweep.run(&Setting {
            threads,
            stop: &course.stop,
            runner: &*runner,
            store: store.as_deref().map(|path| (path, start)),
            onlooker: &Told { course },
        })?;
        write_sweep_outputs(&swept, &self.outputs)?;
        Ok(swept)
    }

    fn check_size(&self, points: u64) -> Result<()> {
        match self.max_points.filter(|most| points > *most) {
            None => Ok(()),
            Some(most) => Err(Error::usage(format!("{points} points, and {most} are the most"))
                .at("max_points")
                .hint("max_points=None runs them all; mode \"random\" with samples tries some")),
        }
    }
}

/// Counts points that are done.
struct Told<'a> {
    course: &'a Course,
}

impl Onlooker for Told<'_> {
    fn expect(&self, points: usize, _kept: usize) {
        self.course.of.store(points as u64, Ordering::Relaxed);
    }

    fn done(&self) {
        self.course.done.fetch_add(1, Ordering::Relaxed);
    }
}
