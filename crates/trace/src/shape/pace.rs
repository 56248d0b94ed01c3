//! The same requests at another rate (spec/replay.md 2.4, rescaled spans).

use std::collections::HashMap;

use wavetank_model::{Nanos, Result};

use super::around::Around;
use crate::convert::key;
use crate::requests::Reader;
use crate::{Moment, Row};

/// How times change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// How many times as fast requests come.
    pub rate: f64,
    /// Whether pauses within sessions stay as they are.
    pub keep_pauses: bool,
}

/// A trace whose times change; the first request's time stays.
pub struct Paced {
    reader: Box<dyn Reader>,
    pace: Pace,
    origin: Option<Moment>,
    /// When sessions began, before and now; only where pauses stay.
    sessions: HashMap<u128, [Moment; 2]>,
}

impl Paced {
    /// What `reader` reads, at another pace.
    pub fn of(reader: Box<dyn Reader>, pace: Pace) -> Self {
        Self { reader, pace, origin: None, sessions: HashMap::new() }
    }

    fn start(&mut self, start: Moment, row: &Row) -> Moment {
        let origin = *self.origin.get_or_insert(start);
        let away = (start.nanos as i128 - origin.nanos as i128) as f64 / self.pace.rate;
        let now = Moment { nanos: origin.nanos.saturating_add(away.round() as i64) };
        let Some(session) = row.session.as_deref().filter(|_| self.pace.keep_pauses) else { return now };
        let [before, begun] = *self.sessions.entry(key(session)).or_insert([start, now]);
        Moment { nanos: begun.nanos.saturating_add(start.nanos.saturating_sub(before.nanos)) }
    }
}

impl Around for Paced {
    fn advance(&mut self, row: &mut Row) -> Result<bool> {
        if !self.reader.read(row)? {
            return Ok(false);
        }
        row.start = row.start.map(|start| self.start(start, row));
        if !self.pace.keep_pauses {
            let scaled = |span: Nanos| Nanos((span.0 as f64 / self.pace.rate).round() as u64);
            (row.pause, row.tool_wait) = (row.pause.map(scaled), row.tool_wait.map(scaled));
        }
        Ok(true)
    }

    fn inner(&self) -> &dyn Reader {
        self.reader.as_ref()
    }
}
