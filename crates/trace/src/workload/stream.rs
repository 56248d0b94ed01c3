//! Single-turn rows in the order of the file: memory is bounded by what is in flight.

use wavetank_model::{Labels, Nanos, Opening, Priority, Prompt, Request, Result, SessionId, Workload};

use super::Survey;
use super::rows::{Checked, Rows};

/// A workload that reads as it goes.
pub(super) struct Stream {
    rows: Rows,
    requests: u64,
    first_start_ms: f64,
    opened: u32,
}

impl Stream {
    pub(super) fn of(rows: Rows, survey: &Survey) -> Self {
        Self { rows, requests: survey.requests, first_start_ms: survey.first_start_ms, opened: 0 }
    }
}

impl Workload for Stream {
    fn open(&mut self) -> Result<Option<Opening>> {
        let (tokens_per_id, speedup) = (self.rows.options.tokens_per_id, self.rows.options.starts.speedup());
        let keep_names = self.rows.options.keep_names;
        let Some(Checked { row, input_tokens, line }) = self.rows.next()? else { return Ok(None) };
        let session = SessionId(self.opened);
        self.opened += 1;
        let start = row.timestamp.unwrap_or(self.first_start_ms) - self.first_start_ms;
        let labels = keep_names.then(|| {
            let request = row.request_id.map(|name| name.into_owned());
            Box::new(Labels { session: format!("request_{line}"), request })
        });
        let request = Request {
            session,
            turn: 0,
            prompt: Prompt::from_ids(row.hash_ids, input_tokens, tokens_per_id),
            output_tokens: row.output_length,
            priority: Priority { soft: row.priority, strict: row.strict_priority },
            think: None,
            labels,
        };
        Ok(Some(Opening { at: Nanos::from_ms(start / speedup), request }))
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
