//! A replay: flags by name in, the report and its requests out.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use wavetank::{Error, ErrorKind, Keep, Observer, Plan, ReplayArgs, Replayed, Result, Watch, replay as run};
use wavetank_cli::{spare, try_out};
use wavetank_model::{ServeEvent, Sink};
use wavetank_report::{Record, write_records};

use crate::failure::exception;
use crate::requests::Requests;
use crate::value::{object_of, python_of};
use crate::waiting::{Course, wait_for};

/// The names of all flags that a replay takes.
#[pyfunction]
pub(crate) fn replay_flags() -> Vec<&'static str> {
    ReplayArgs::names().collect()
}

/// Replays what `flags` describe: the report, and a table of requests where it is wanted.
#[pyfunction]
#[pyo3(signature = (flags, wanted, progress=None))]
pub(crate) fn replay<'py>(
    py: Python<'py>,
    flags: &Bound<'py, PyDict>,
    wanted: Wanted,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyAny>, Option<Requests>)> {
    let mut args = ReplayArgs::default();
    for (name, value) in object_of(flags)? {
        args.set(&name, &value).map_err(|error| exception(py, &error))?;
    }
    wanted.check().map_err(|error| exception(py, &error))?;
    let (report, records) = wait_for(py, progress.as_ref(), move |course| wanted.replay(&args, course))?;
    Ok((python_of(py, &report)?, records.map(Requests::of)))
}

/// What is wanted of a replay besides its report: a dictionary with these keys.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Wanted {
    /// Run so many consecutive seeds.
    seeds: Option<u32>,
    /// A table of requests.
    capture: bool,
    /// Requests as lines of JSON, in this file.
    jsonl: Option<PathBuf>,
}

impl Wanted {
    fn check(&self) -> Result<()> {
        match self.seeds {
            Some(_) if self.capture || self.jsonl.is_some() => {
                Err(Error::usage("cannot be combined with requests that are captured").at("seeds"))
            }
            _ => Ok(()),
        }
    }

    fn replay(&self, args: &ReplayArgs, course: &Course) -> Result<(serde_json::Value, Option<Vec<Record>>)> {
        let plan = Plan::of(args)?;
        if let Some(path) = &self.jsonl {
            spare(plan.inputs().chain(args.files()), &[("--report-jsonl-path", path.as_path())])?;
            try_out(path)?;
        }
        if let Some(count) = self.seeds {
            return Ok((wavetank::replay_seeds(&plan, count, &course.stop)?.report, None));
        }
        let keep = Keep { records: self.capture || self.jsonl.is_some(), pictures: true };
        let Replayed { report, records, .. } =
            run(&plan, Observer { watch: &mut Told { course }, stop: &course.stop, keep })?;
        let records: Option<Vec<Record>> = records.map(|records| records.sorted().collect());
        if let (Some(path), Some(records)) = (&self.jsonl, &records) {
            write(path, records)?;
        }
        Ok((report, records.filter(|_| self.capture)))
    }
}

fn write(path: &Path, records: &[Record]) -> Result<()> {
    let written = File::create(path).and_then(|file| write_records(records, &mut BufWriter::new(file)));
    written.map_err(|error| {
        Error::new(ErrorKind::Io, format!("cannot write: {error}")).at(path.display().to_string())
    })
}

/// Counts requests that ended.
struct Told<'a> {
    course: &'a Course,
}

impl Watch for Told<'_> {
    fn expect(&mut self, requests: u64) {
        self.course.of.store(requests, Ordering::Relaxed);
    }
}

impl Sink<ServeEvent<'_>> for Told<'_> {
    fn record(&mut self, event: &ServeEvent<'_>) {
        if event.ends_request() {
            self.course.done.fetch_add(1, Ordering::Relaxed);
        }
    }
}
