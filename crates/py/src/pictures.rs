//! Reports as JSON, pages and plots.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::Value;
use wavetank::{Error, ErrorKind, Result, Run, page as page_of};
use wavetank_report::render::{html, json, plots};

use crate::value::object_of;
use crate::waiting::wait_for;

/// A report as the command writes it, byte for byte.
#[pyfunction]
pub(crate) fn to_json(report: &Bound<'_, PyDict>) -> PyResult<String> {
    let mut bytes = Vec::new();
    json::write(&Value::Object(object_of(report)?), &mut bytes)?;
    text(bytes)
}

/// What was written is text.
pub(crate) fn text(bytes: Vec<u8>) -> PyResult<String> {
    String::from_utf8(bytes).map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))
}

fn runs(reports: Vec<(String, Bound<'_, PyDict>)>) -> PyResult<Vec<Run>> {
    let run = |(name, report): (String, Bound<'_, PyDict>)| {
        Ok(Run { name, report: Value::Object(object_of(&report)?) })
    };
    reports.into_iter().map(run).collect()
}

/// One page about reports, each with a name, that opens without a network.
#[pyfunction]
pub(crate) fn page(
    py: Python<'_>,
    title: String,
    reports: Vec<(String, Bound<'_, PyDict>)>,
) -> PyResult<String> {
    let runs = runs(reports)?;
    let drawn = wait_for(py, None, move |_| {
        let mut bytes = Vec::new();
        let written = html::write(&page_of(&title, &runs)?, &mut bytes);
        written.map(|()| bytes).map_err(|error| Error::new(ErrorKind::Io, error.to_string()))
    });
    text(drawn?)
}

/// The names of the plots of reports.
#[pyfunction]
pub(crate) fn plot_names(py: Python<'_>, reports: Vec<(String, Bound<'_, PyDict>)>) -> PyResult<Vec<String>> {
    let runs = runs(reports)?;
    wait_for(py, None, move |_| {
        let page = page_of("plots", &runs)?;
        Ok(plots::all(&page).into_iter().map(|plot| plot.name).collect())
    })
}

/// A plot of reports as the text of an SVG.
#[pyfunction]
pub(crate) fn plot(
    py: Python<'_>,
    name: String,
    reports: Vec<(String, Bound<'_, PyDict>)>,
) -> PyResult<String> {
    let runs = runs(reports)?;
    wait_for(py, None, move |_| drawn(&name, &runs, |plot| plot.svg()))
}

/// The same as a PNG.
#[pyfunction]
pub(crate) fn plot_png<'py>(
    py: Python<'py>,
    name: String,
    reports: Vec<(String, Bound<'py, PyDict>)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let runs = runs(reports)?;
    let png = wait_for(py, None, move |_| drawn(&name, &runs, |plot| plot.png()))?;
    Ok(PyBytes::new(py, &png))
}

fn drawn<T>(name: &str, runs: &[Run], draw: impl FnOnce(&plots::Plot<'_>) -> T) -> Result<T> {
    let page = page_of("plots", runs)?;
    let all = plots::all(&page);
    let plot = all.iter().find(|plot| plot.name == name).ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|plot| plot.name.as_str()).collect();
        let error = Error::usage(format!("there is no plot \"{name}\" of it"));
        error.hint(format!("there are {}", known.join(", ")))
    });
    plot.map(draw)
}
