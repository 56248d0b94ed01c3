//! The first reading of a trace: every row is checked, and what the workload is becomes known.

use wavetank_model::Result;

use super::rows::Rows;
use super::{Starts, no_rows};

/// What a trace holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Survey {
    /// Requests.
    pub requests: u64,
    /// Inputs cut to what their ids cover.
    pub clamped: u64,
    /// The earliest start, in milliseconds of the trace.
    pub first_start_ms: f64,
    /// Things in the trace that are no requests of the workload; `notes` says why.
    pub skipped: u64,
    /// What whoever reads the results should know about how the trace was read.
    pub notes: Vec<String>,
    /// Whether the rows can be replayed in the order of the file, without holding them.
    pub(crate) streams: bool,
}

/// Reads all rows once.
pub(super) fn survey(rows: &mut Rows) -> Result<Survey> {
    let scheduled = matches!(rows.options.starts, Starts::Scheduled { .. });
    let mut survey = Survey { streams: true, ..Survey::default() };
    let mut latest = f64::NEG_INFINITY;
    while let Some(checked) = rows.next()? {
        survey.requests += 1;
        // What makes a row more than a single turn is judged when it is loaded into the index.
        survey.streams &= checked.row.session_id.is_none() && checked.row.delay.unwrap_or(0.0) == 0.0;
        if scheduled {
            let Some(start) = checked.row.timestamp else {
                survey.streams = false;
                continue;
            };
            survey.streams &= start >= latest;
            latest = start;
            if survey.requests == 1 {
                survey.first_start_ms = start;
            }
        }
    }
    survey.clamped = rows.clamped;
    if survey.requests == 0 { Err(no_rows(rows.name())) } else { Ok(survey) }
}
