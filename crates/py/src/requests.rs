//! The requests of a replay as a table.

use std::sync::Arc;

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use wavetank::Error;
use wavetank_report::{Admission, Record, Routing};

use crate::columns::Values::{Number, Rows, Text, Truth, Whole};
use crate::columns::{Column, Tabular, lists, stream};
use crate::failure::exception;
use crate::value::{pickled, python_of, unpickled};

/// One row per request that ended, in order of arrival. Anything that takes Arrow streams takes it.
#[pyclass(frozen, module = "wavetank._wavetank")]
pub(crate) struct Requests {
    records: Arc<[Record]>,
}

impl Requests {
    pub(crate) fn of(records: Vec<Record>) -> Self {
        Self { records: records.into() }
    }
}

#[pymethods]
impl Requests {
    /// Of what another one was pickled as.
    #[new]
    fn new(pickled: &[u8]) -> PyResult<Self> {
        unpickled(pickled).map(Self::of)
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyBytes>,)> {
        pickled(py, &*self.records)
    }

    fn __len__(&self) -> usize {
        self.records.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, at: isize) -> PyResult<Bound<'py, PyAny>> {
        let place = if at < 0 { at.checked_add_unsigned(self.records.len()) } else { Some(at) };
        let record = place.and_then(|at| self.records.get(usize::try_from(at).ok()?));
        let record = record.ok_or_else(|| PyIndexError::new_err(format!("there is no request {at}")))?;
        let json = serde_json::to_value(record);
        let json = json.map_err(|error| exception(py, &Error::input(error.to_string())))?;
        python_of(py, &json)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Whoever asks for other types casts what comes, as the protocol allows.
        drop(requested_schema);
        let records = Arc::clone(&self.records);
        stream(py, (0..records.len()).map(move |at| Ok(records[at].clone())))
    }

    fn __repr__(&self) -> String {
        format!("<wavetank.Requests: {} rows>", self.records.len())
    }
}

const fn column<T>(name: &'static str, values: crate::columns::Values<T>) -> Column<T> {
    Column { name, values }
}

impl Tabular for Record {
    const COLUMNS: &'static [Column<Self>] = &[
        column("request_id", Text(|r| r.request_id.as_deref())),
        column("session_id", Text(|r| Some(&r.session_id))),
        column("turn_index", Whole(|r| Some(r.turn_index))),
        column("uuid", Text(|r| Some(&r.uuid))),
        column("arrival_time_ms", Number(|r| Some(r.arrival_time_ms))),
        column("first_admit_ms", Number(|r| r.first_admit_ms)),
        column("terminal_time_ms", Number(|r| Some(r.terminal_time_ms))),
        column("first_token_ms", Number(|r| r.first_token_ms)),
        column("last_token_ms", Number(|r| r.last_token_ms)),
        column("ttft_ms", Number(|r| r.ttft_ms)),
        column("ttst_ms", Number(|r| r.ttst_ms)),
        column("e2e_latency_ms", Number(|r| r.e2e_latency_ms)),
        column("itl_ms", Number(|r| r.itl_ms)),
        column("input_length", Whole(|r| Some(r.input_length))),
        column("requested_output_length", Whole(|r| Some(r.requested_output_length))),
        column("output_length", Whole(|r| Some(r.output_length))),
        column("reused_input_tokens", Whole(|r| Some(r.reused_input_tokens))),
        column("prefill_worker_idx", Whole(|r| r.prefill_worker_idx)),
        column("decode_worker_idx", Whole(|r| r.decode_worker_idx)),
        column("source_held_ms", Number(|r| r.source_held_ms)),
        column("destination_reserved_ms", Number(|r| r.destination_reserved_ms)),
        column("destination_activated_ms", Number(|r| r.destination_activated_ms)),
        column("decode_route_overlap_tokens", Whole(|r| r.decode_route_overlap_tokens)),
        column("router_queue_ms", Number(|r| r.router_queue_ms)),
        column("engine_queue_ms", Number(|r| r.engine_queue_ms)),
        column("prefill_ms", Number(|r| Some(r.prefill_ms))),
        column("routing_history", Rows(Routing::fields, |rows| lists(rows, |r| &r.routing_history))),
        column("admission_history", Rows(Admission::fields, |rows| lists(rows, |r| &r.admission_history))),
        column("admission_count", Whole(|r| Some(r.admission_count))),
        column("readmission_count", Whole(|r| Some(r.readmission_count))),
        column("terminal_status", Text(|r| Some(&r.terminal_status))),
        column("rejection_reason", Text(|r| r.rejection_reason.as_deref())),
    ];
}

impl Tabular for Routing {
    const COLUMNS: &'static [Column<Self>] = &[
        column("pool", Text(|r| Some(&r.pool))),
        column("outcome", Text(|r| Some(&r.outcome))),
        column("queue_entered_at_ms", Number(|r| r.queue_entered_at_ms)),
        column("released_at_ms", Number(|r| Some(r.released_at_ms))),
        column("queue_wait_ms", Number(|r| Some(r.queue_wait_ms))),
        column("logical_worker_id", Whole(|r| Some(r.logical_worker_id))),
        column("scheduler_id", Whole(|r| Some(r.scheduler_id))),
        column("dp_rank", Whole(|r| Some(r.dp_rank))),
        column("reported_overlap_tokens", Whole(|r| Some(r.reported_overlap_tokens))),
    ];
}

impl Tabular for Admission {
    const COLUMNS: &'static [Column<Self>] = &[
        column("admission_ordinal", Whole(|a| Some(a.admission_ordinal))),
        column("at_ms", Number(|a| Some(a.at_ms))),
        column("reused_input_tokens", Whole(|a| Some(a.reused_input_tokens))),
        column("is_readmission", Truth(|a| a.is_readmission)),
    ];
}
