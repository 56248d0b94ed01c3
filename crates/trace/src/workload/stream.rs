//! Single-turn rows in the order of the file: memory is bounded by what is in flight.

use wavetank_model::{Labels, Opening, Prompt, Request, Result, SessionId, Workload};

use super::Survey;
use super::check::{Checked, Rows};
use crate::Moment;

/// A workload that reads as it goes.
pub(super) struct Stream {
    rows: Rows,
    requests: u64,
    first_start: Moment,
    opened: u32,
}

impl Stream {
    pub(super) fn of(rows: Rows, survey: &Survey) -> Self {
        Self { rows, requests: survey.requests, first_start: survey.first_start, opened: 0 }
    }
}

/// A prompt that is like no other of its trace.
pub(super) fn unlike_others(request: u32, tokens: u32) -> Prompt {
    Prompt::unique(1 << 63 | u64::from(request), tokens)
}

impl Workload for Stream {
    fn open(&mut self) -> Result<Option<Opening>> {
        let (tokens_per_id, starts) = (self.rows.tokens_per_id(), self.rows.options.starts);
        let keep_names = self.rows.options.keep_names;
        let Some(Checked { row, input_tokens, output_tokens, line }) = self.rows.next()? else {
            return Ok(None);
        };
        let session = SessionId(self.opened);
        self.opened += 1;
        let at = starts.at(row.start.unwrap_or(self.first_start), self.first_start);
        let labels = keep_names
            .then(|| Box::new(Labels { session: format!("request_{line}"), request: row.request.clone() }));
        let prompt = match row.ids.is_empty() {
            true => unlike_others(session.0, input_tokens),
            false => Prompt::from_ids(row.ids.iter().copied(), input_tokens, tokens_per_id),
        };
        let (priority, think) = (row.priority, None);
        let request = Request { session, turn: 0, prompt, output_tokens, priority, think, labels };
        Ok(Some(Opening { at, request }))
    }

    fn follow_up(&mut self, session: SessionId, turn: u32) -> Result<Request> {
        unreachable!("session {} of a stream has no turn {turn}", session.0)
    }

    fn has_follow_ups(&self) -> bool {
        false
    }

    fn requests(&self) -> u64 {
        self.requests
    }
}
