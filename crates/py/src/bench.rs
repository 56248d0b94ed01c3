//! A storage benchmark: flags by name in, the report out.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;
use wavetank::{BenchFiles, BenchObserver, BenchPlan, BenchWatch, Error, Pulse, Result};
use wavetank_cli::{bench_inputs, spare};
use wavetank_model::Nanos;

use crate::failure::exception;
use crate::value::{object_of, python_of};
use crate::waiting::{Course, wait_for};

/// Runs the benchmark that `flags` describe; progress is told in milliseconds of its time.
#[pyfunction]
#[pyo3(signature = (flags, progress=None))]
pub(crate) fn bench<'py>(
    py: Python<'py>,
    flags: &Bound<'py, PyDict>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyAny>, Option<String>)> {
    let words: Result<Vec<Vec<String>>> =
        object_of(flags)?.iter().map(|(name, value)| words(name, value)).collect();
    let words = words.map_err(|error| exception(py, &error))?.concat();
    let (report, failure) = wait_for(py, progress.as_ref(), move |course| run(&words, course))?;
    Ok((python_of(py, &report)?, failure))
}

/// The report, and what did not go as planned.
fn run(words: &[String], course: &Course) -> Result<(Value, Option<String>)> {
    let args = wavetank_cli::bench_args(words)?;
    let log: Option<PathBuf> = args.io_trace_log.clone();
    let plan = BenchPlan::of(&args)?;
    if let Some(log) = &log {
        let inputs = bench_inputs(&plan);
        spare(inputs.iter().map(PathBuf::as_path), &[("--io-trace-log", log.as_path())])?;
    }
    let mut watch = Told { course };
    let observer = BenchObserver { watch: &mut watch, stop: &course.stop, news: &mut |_| {} };
    let benched = wavetank::bench(&plan, observer, BenchFiles { log: log.as_deref(), calls: None })?;
    Ok((benched.report, benched.failure))
}

/// A flag as it is typed: `--num-users=4`; what is true is the flag alone, what is not given is nothing.
fn words(name: &str, value: &Value) -> Result<Vec<String>> {
    let flag = format!("--{}", name.replace('_', "-"));
    let typed = |value: &Value| match value {
        Value::String(text) => Ok(format!("{flag}={text}")),
        Value::Number(number) => Ok(format!("{flag}={number}")),
        other => Err(Error::usage(format!("must be a number or a text, not {other}")).at(name)),
    };
    match value {
        Value::Null | Value::Bool(false) => Ok(Vec::new()),
        Value::Bool(true) => Ok(vec![flag]),
        Value::Array(items) => items.iter().map(typed).collect(),
        one => typed(one).map(|word| vec![word]),
    }
}

/// Tells how much of its time is over.
struct Told<'a> {
    course: &'a Course,
}

impl BenchWatch for Told<'_> {
    fn pulse(&mut self, pulse: &Pulse) {
        let ms = |time: Nanos| time.as_ms() as u64;
        self.course.of.store(ms(pulse.of), Ordering::Relaxed);
        self.course.done.store(ms(pulse.at), Ordering::Relaxed);
    }
}
