//! A trace of requests as a table that is read while it is asked for.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use wavetank::TraceInput;
use wavetank_model::Nanos;
use wavetank_trace::Row;
use wavetank_trace::requests::Reader;

use crate::columns::Values::{Ids, Number, Text, Texts, Whole};
use crate::columns::{Column, Tabular, stream};
use crate::failure::exception;

/// The requests of a trace, in any format there is, plain or compressed. Every look reads it again.
#[pyclass(frozen, module = "wavetank")]
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
        let input = TraceInput { files, format, trace_block_size };
        // What cannot be read is said now, not in the middle of somebody's data frame.
        py.detach(|| input.read().map(drop)).map_err(|error| exception(py, &error))?;
        Ok(Self { input })
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Rows> {
        let reader = self.input.read().map_err(|error| exception(py, &error))?;
        Ok(Rows { reader: Mutex::new(reader) })
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Whoever asks for other types casts what comes, as the protocol allows.
        drop(requested_schema);
        let mut reader = self.input.read().map_err(|error| exception(py, &error))?;
        stream(py, std::iter::from_fn(move || next(&mut *reader)))
    }

    fn __repr__(&self) -> String {
        format!("<wavetank.Trace: {}>", self.input.files.join(", "))
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
        let mut reader = self.reader.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let row = next(&mut **reader).transpose().map_err(|error| exception(py, &error))?;
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
