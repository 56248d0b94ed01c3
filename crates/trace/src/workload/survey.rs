//! The first reading of a trace: every row is checked, and what the workload is becomes known.

use wavetank_model::Result;

use super::check::Rows;
use super::{Starts, no_rows};
use crate::requests::Prompts;
use crate::{HashFill, Moment};

/// What a trace holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Survey {
    /// Requests.
    pub requests: u64,
    /// Inputs cut to what their ids cover.
    pub clamped: u64,
    /// The earliest start, in the time of the trace.
    pub first_start: Moment,
    /// Things in the trace that are no requests of the workload; `notes` says why.
    pub skipped: u64,
    /// What whoever reads the results should know about how the trace was read.
    pub notes: Vec<String>,
    /// Requests whose block ids, output length or pause are not the trace's own.
    pub(crate) filled_ids: u64,
    pub(crate) filled_outputs: u64,
    pub(crate) inferred_pauses: u64,
    /// Block ids that rows have, and those that their prompts need.
    pub(crate) ids: u64,
    pub(crate) needed_ids: u64,
    /// Requests with a pause and nothing that it could follow.
    pub(crate) paused_roots: u64,
    /// Whether the rows can be replayed in the order of the file, without holding them.
    pub(crate) streams: bool,
}

impl Survey {
    /// What `rows`, read to their end, were.
    pub(super) fn of(rows: &Rows, requests: u64) -> Self {
        let findings = rows.reader().findings();
        Self {
            requests,
            clamped: rows.clamped,
            skipped: findings.skipped,
            notes: findings.notes,
            filled_ids: rows.filled_ids,
            filled_outputs: rows.filled_outputs,
            ids: rows.ids,
            needed_ids: rows.needed_ids,
            ..Self::default()
        }
    }
}

/// Reads all rows once.
pub(super) fn survey(rows: &mut Rows) -> Result<Survey> {
    let is_scheduled = matches!(rows.options.starts, Starts::Scheduled { .. });
    let is_whole = rows.provides.prompts == Prompts::Whole && !rows.provides.dependencies;
    let mut streams = is_whole && rows.options.fill.hash != HashFill::Session;
    let (mut requests, mut first, mut latest) = (0, None, None);
    while let Some(checked) = rows.next()? {
        requests += 1;
        // What makes a row more than a single turn is judged when it is loaded into the index.
        streams &= checked.row.session.is_none() && checked.row.pause.is_none_or(|pause| pause.0 == 0);
        if is_scheduled {
            let start = checked.row.start;
            streams &= start.is_some() && start >= latest;
            (first, latest) = (first.or(start), start);
        }
    }
    if requests == 0 {
        return Err(no_rows(rows));
    }
    let first_start = first.unwrap_or_default();
    Ok(Survey { first_start, streams, ..Survey::of(rows, requests) })
}
