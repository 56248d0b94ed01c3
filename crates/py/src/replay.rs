//! A replay: flags by name in, the report and its requests out.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use wavetank::{
    Error, Keep, Observer, Plan, ReplayArgs, Replayed, Result, Watch, processors, replay as run, write_whole,
};
use wavetank_cli::{spare, try_out};
use wavetank_model::{ServeEvent, Sink};
use wavetank_report::{Record, write_records};
use wavetank_study::advice::{Advisor, Asked, Setting};
use wavetank_study::sweep::Onlooker;

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
    /// What more of each thing would be worth, by this metric.
    advise: Option<String>,
    /// Prices of that.
    price: Option<String>,
}

impl Wanted {
    fn check(&self) -> Result<()> {
        match self.seeds {
            Some(_) if self.capture || self.jsonl.is_some() => {
                Err(Error::usage("cannot be combined with requests that are captured").at("seeds"))
            }
            Some(_) if self.advise.is_some() => Err(Error::usage("cannot be combined with advise")
                .at("seeds")
                .hint("advise runs three seeds where something is left to chance")),
            _ if self.price.is_some() && self.advise.is_none() => {
                Err(Error::usage("has no effect without advise").at("price"))
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
        let advisor = self.advisor(&plan)?;
        let replays = 1 + advisor.as_ref().map_or(0, |advisor| advisor.replays() as u64);
        let mut told = Told { course, replays };
        let keep = Keep { records: self.capture || self.jsonl.is_some(), pictures: true };
        let observer = Observer { watch: &mut told, stop: &course.stop, keep };
        let mut replayed = match &advisor {
            // Only who reads the file for this run alone knows the names in it.
            Some(advisor) if !keep.records => advisor.replay(observer)?,
            _ => run(&plan, observer)?,
        };
        if let Some(advisor) = &advisor {
            let setting = Setting { threads: processors(), stop: &course.stop, onlooker: &told };
            let advice = advisor.advise(&replayed, &setting)?;
            advice.into_iter().for_each(|advice| advice.enter(&mut replayed));
        }
        let Replayed { report, records, .. } = replayed;
        let records: Option<Vec<Record>> = records.map(|records| records.sorted().collect());
        if let (Some(path), Some(records)) = (&self.jsonl, &records) {
            write_whole(path, |out| write_records(records, out))?;
        }
        Ok((report, records.filter(|_| self.capture)))
    }

    fn advisor(&self, plan: &Plan) -> Result<Option<Advisor>> {
        let asked = self.advise.clone().map(|goal| Asked { goal, price: self.price.clone() });
        let advisor = asked.map(|asked| Advisor::of(plan, asked)).transpose()?;
        if let Some(path) = &self.jsonl {
            let inputs = advisor.iter().flat_map(Advisor::inputs);
            spare(inputs, &[("--report-jsonl-path", path.as_path())])?;
        }
        Ok(advisor)
    }
}

/// Counts requests that ended, of as many replays of them as there are.
struct Told<'a> {
    course: &'a Course,
    replays: u64,
}

impl Watch for Told<'_> {
    fn expect(&mut self, requests: u64) {
        self.course.of.store(requests * self.replays, Ordering::Relaxed);
    }
}

impl Onlooker for Told<'_> {
    fn expect(&self, _replays: usize, _kept: usize) {}

    fn done(&self) {
        let requests = self.course.of.load(Ordering::Relaxed) / self.replays;
        self.course.done.fetch_add(requests, Ordering::Relaxed);
    }
}

impl Sink<ServeEvent<'_>> for Told<'_> {
    fn record(&mut self, event: &ServeEvent<'_>) {
        if event.ends_request() {
            self.course.done.fetch_add(1, Ordering::Relaxed);
        }
    }
}
