//! Single requests of one length that share nothing (spec/replay.md 3, shape A).

use wavetank_model::{Nanos, Opening, Priority, Prompt, Request, Result, SessionId, Workload};

use super::Synthetic;
use super::arrival::Times;

/// The workload; nothing is held.
pub(super) struct Flat {
    load: Synthetic,
    times: Times,
    speedup: f64,
    opened: u32,
}

impl Flat {
    pub(super) fn of(load: &Synthetic, speedup: f64) -> Self {
        Self { load: load.clone(), times: load.arrivals.times(load.arrival_seed), speedup, opened: 0 }
    }
}

impl Workload for Flat {
    fn open(&mut self) -> Result<Option<Opening>> {
        if self.opened == self.load.request_count {
            return Ok(None);
        }
        let number = self.opened;
        self.opened += 1;
        let ms = self.times.next().expect("arrival times do not end");
        let request = Request {
            session: SessionId(number),
            turn: 0,
            prompt: Prompt::unique(u64::from(number), self.load.input_tokens),
            output_tokens: self.load.output_tokens,
            priority: Priority::default(),
            think: None,
            labels: None,
        };
        Ok(Some(Opening { at: Nanos::from_ms(ms / self.speedup), request }))
    }

    fn follow_up(&mut self, session: SessionId, turn: u32) -> Result<Request> {
        unreachable!("session {} of a flat load has no turn {turn}", session.0)
    }

    fn has_follow_ups(&self) -> bool {
        false
    }

    fn requests(&self) -> u64 {
        u64::from(self.load.request_count)
    }
}
