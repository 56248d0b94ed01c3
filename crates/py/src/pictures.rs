//! Reports as JSON, pages and plots.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;
use wavetank::{Error, Run, page as page_of};
use wavetank_report::render::{html, json, plots};

use crate::failure::exception;
use crate::value::object_of;

/// A report as the command writes it, byte for byte.
#[pyfunction]
pub(crate) fn to_json(report: &Bound<'_, PyDict>) -> PyResult<String> {
    let report = Value::Object(object_of(report)?);
    text(report_bytes(&report)?)
}

fn report_bytes(report: &Value) -> PyResult<Vec<u8>> {
    let mut bytes = Vec::new();
    json::write(report, &mut bytes)?;
    Ok(bytes)
}

fn text(bytes: Vec<u8>) -> PyResult<String> {
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
    title: &str,
    reports: Vec<(String, Bound<'_, PyDict>)>,
) -> PyResult<String> {
    let runs = runs(reports)?;
    let page = page_of(title, &runs).map_err(|error| exception(py, &error))?;
    let mut bytes = Vec::new();
    html::write(&page, &mut bytes)?;
    text(bytes)
}

/// The names of the plots of reports.
#[pyfunction]
pub(crate) fn plot_names(py: Python<'_>, reports: Vec<(String, Bound<'_, PyDict>)>) -> PyResult<Vec<String>> {
    let runs = runs(reports)?;
    let page = page_of("plots", &runs).map_err(|error| exception(py, &error))?;
    Ok(plots::all(&page).into_iter().map(|plot| plot.name).collect())
}

/// A plot of reports, as the text of an SVG and the bytes of a PNG.
#[pyfunction]
pub(crate) fn plot(
    py: Python<'_>,
    name: &str,
    reports: Vec<(String, Bound<'_, PyDict>)>,
) -> PyResult<(String, Vec<u8>)> {
    let runs = runs(reports)?;
    let page = page_of("plots", &runs).map_err(|error| exception(py, &error))?;
    let all = plots::all(&page);
    let Some(plot) = all.iter().find(|plot| plot.name == name) else {
        let known: Vec<&str> = all.iter().map(|plot| plot.name.as_str()).collect();
        let error = Error::usage(format!("there is no plot \"{name}\" of it"));
        return Err(exception(py, &error.hint(format!("there are {}", known.join(", ")))));
    };
    Ok((plot.svg(), plot.png()))
}
