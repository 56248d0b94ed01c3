//! Points of a sweep that an executor of Python takes somewhere.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict};
use wavetank::{Error, ErrorKind, Result};
use wavetank_study::sweep::{Finished, Job, Runner, Stop, outcome};

use crate::waiting::LOOK;

/// Hands jobs to an object of Python: its `submit(job, inputs)` gives a future of what `run_point` says.
pub(crate) struct Executor {
    object: Py<PyAny>,
    /// What is in the inputs of all jobs, as hashes.
    contents: HashMap<PathBuf, String>,
}

impl Executor {
    pub(crate) fn of(object: Py<PyAny>, contents: Vec<(PathBuf, String)>) -> Self {
        Self { object, contents: contents.into_iter().collect() }
    }

    /// A future, and who hears that it is done.
    fn submit(&self, py: Python<'_>, job: &Job) -> PyResult<(Py<PyAny>, Receiver<()>)> {
        let inputs = PyDict::new(py);
        for path in job.inputs() {
            inputs.set_item(&path, self.contents.get(&path))?;
        }
        let future = self.object.bind(py).call_method1("submit", (job.json(), inputs))?;
        let (tell, told) = channel();
        let done = PyCFunction::new_closure(py, None, None, move |_, _| {
            // Whoever gave up does not listen.
            let _ = tell.send(());
        })?;
        future.call_method1("add_done_callback", (done,))?;
        Ok((future.unbind(), told))
    }
}

impl Runner for Executor {
    fn run(&self, job: &Job, stop: &Stop<'_>) -> Result<Option<Finished>> {
        // An interpreter that ends wants no result.
        let submitted = Python::try_attach(|py| self.submit(py, job).map_err(|error| failed(py, &error)));
        let Some((future, told)) = submitted.transpose()? else { return Ok(None) };
        while told.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            if stop.is_raised() {
                // One that cannot be ended any more goes on for nobody.
                let _ = Python::try_attach(|py| future.call_method0(py, "cancel").map(drop));
                return Ok(None);
            }
        }
        let answer = Python::try_attach(|py| {
            let result = future.call_method0(py, "result").and_then(|text| text.extract::<String>(py));
            result.map_err(|error| failed(py, &error))
        });
        answer.transpose()?.map(|answer| outcome(&answer)).transpose()
    }
}

/// What an executor did not manage is no fault of the point.
fn failed(py: Python<'_>, error: &PyErr) -> Error {
    let class = error.get_type(py).name().map_or_else(|_| "an exception".to_owned(), |name| name.to_string());
    let said = error.value(py).to_string();
    let why = if said.is_empty() { class } else { format!("{class}: {said}") };
    Error::new(ErrorKind::Io, format!("the executor failed: {why}"))
        .hint("points that are done are kept where there is an output: run it again to go on")
}
