//! A trace of requests as a table that is read while it is asked for.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use wavetank::{Error, TraceInput};
use wavetank_model::Nanos;
use wavetank_trace::Row;
use wavetank_trace::requests::Reader;

use crate::columns::Values::{Ids, Number, Text, Texts, Whole};
use crate::columns::{Column, Tabular, stream};
use crate::failure::exception;
use crate::waiting::wait_for;

/// The requests of a trace, in any format there is, plain or compressed. Every look reads it again.
#[pyclass(frozen, module = "wavetank._wavetank")]
pub(crate) struct Trace {
    input: TraceInput,
}

#[pymethods]
impl Trace {
    #[new]
    #[pyo3(signature = (files, *, format=None, trace_block_size=None))]
    fn new(
        py: Python<'_>,
        files: Vec<String>,
        format: Option<String>,
        trace_block_size: Option<u32>,
    ) -> PyResult<Self> {
        let trace = Self { input: TraceInput { files, format, trace_block_size } };
        if trace.input.is_once() {
            let error = Error::usage("can be read once only, and a trace is read anew at every look");
            return Err(exception(py, &error.at("files").hint("name a file")));
        }
        // What cannot be read is said now, not in the middle of somebody's data frame.
        trace.open(py)?;
        Ok(trace)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Rows> {
        Ok(Rows { reader: Mutex::new(self.open(py)?) })
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Whoever asks for other types casts what comes, as the protocol allows.
        drop(requested_schema);
        let mut reader = self.open(py)?;
        stream(py, std::iter::from_fn(move || next(&mut *reader)))
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((Vec<String>,), Bound<'py, PyDict>)> {
        let TraceInput { files, format, trace_block_size } = &self.input;
        let named = PyDict::new(py);
        named.set_item("format", format)?;
        named.set_item("trace_block_size", trace_block_size)?;
        Ok(((files.clone(),), named))
    }

    fn __repr__(&self) -> String {
        format!("<wavetank.Trace: {}>", self.input.files.join(", "))
    }
}

impl Trace {
    fn open(&self, py: Python<'_>) -> PyResult<Box<dyn Reader>> {
        let input = self.input.clone();
        wait_for(py, None, move |_| input.read())
    }
}

fn next(reader: &mut dyn Reader) -> Option<wavetank::Result<Row>> {
    let mut row = Row::default();
    match reader.read(&mut row) {
        Ok(true) => Some(Ok(row)),
        Ok(false) => None,
        Err(error) => Some(Err(error)),
    }
}

/// The requests of a trace, one by one.
#[pyclass(frozen)]
pub(crate) struct Rows {
    reader: Mutex<Box<dyn Reader>>,
}

#[pymethods]
impl Rows {
    fn __iter__(rows: PyRef<'_, Self>) -> PyRef<'_, Self> {
        rows
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        // Python code may run while its values are made, and others may want the reader then.
        let row = py.detach(|| {
            let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            next(&mut **reader)
        });
        let row = row.transpose().map_err(|error| exception(py, &error))?;
        let Some(row) = row else { return Ok(None) };
        let dict = PyDict::new(py);
        for column in Row::COLUMNS {
            match column.values {
                Text(of) => dict.set_item(column.name, of(&row))?,
                Number(of) => dict.set_item(column.name, of(&row))?,
                Whole(of) => dict.set_item(column.name, of(&row))?,
                Ids(of) => dict.set_item(column.name, of(&row))?,
                Texts(of) => dict.set_item(column.name, of(&row))?,
                _ => {}
            }
        }
        Ok(Some(dict))
    }
}

fn ms(time: Option<Nanos>) -> Option<f64> {
    time.map(Nanos::as_ms)
}

impl Tabular for Row {
    const COLUMNS: &'static [Column<Self>] = &[
        Column { name: "request_id", values: Text(|row| row.request.as_deref()) },
        Column { name: "session_id", values: Text(|row| row.session.as_deref()) },
        Column { name: "timestamp_ms", values: Number(|row| row.start.map(|at| at.nanos as f64 / 1e6)) },
        Column { name: "delay_ms", values: Number(|row| ms(row.pause)) },
        Column { name: "wait_for", values: Texts(|row| &row.wait_for) },
        Column { name: "tool_wait_ms", values: Number(|row| ms(row.tool_wait)) },
        Column { name: "input_length", values: Whole(|row| row.input_tokens) },
        Column { name: "output_length", values: Whole(|row| row.output_tokens) },
        Column { name: "hash_ids", values: Ids(|row| &row.ids) },
        Column { name: "priority", values: Number(|row| Some(row.priority.soft.into())) },
        Column { name: "strict_priority", values: Whole(|row| Some(row.priority.strict)) },
        Column { name: "policy_class", values: Text(|row| row.policy_class.as_deref()) },
        Column { name: "request_kind", values: Text(|row| row.kind.as_deref()) },
    ];
}
