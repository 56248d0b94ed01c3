//! Several traces as one, by time.

use wavetank_model::{Error, Result};

use super::apart::{keep_ids_apart, keep_names_apart};
use crate::requests::{Findings, Reader};
use crate::{Moment, Row};

/// One of the traces.
pub struct Part {
    /// Its requests.
    pub reader: Box<dyn Reader>,
    /// What its times are moved by, in nanoseconds.
    pub shift_ns: i64,
}

/// The traces being read. A request without a time comes right behind the one before it in its trace.
pub struct Merged {
    parts: Vec<Head>,
    same_ids: bool,
    tokens_per_id: Option<u32>,
    /// The part whose request was read last.
    at: usize,
}

/// A trace and its next request.
struct Head {
    part: Part,
    row: Row,
    has_row: bool,
    /// When it comes, or the last before it that has a time came.
    time: Moment,
    place: String,
    line: u64,
}

impl Merged {
    /// `parts` as one; equal ids are the same block in all of them where `same_ids`. Names are always kept
    /// apart.
    pub fn of(parts: Vec<Part>, same_ids: bool) -> Result<Self> {
        let mut sizes = parts.iter().filter_map(|part| part.reader.tokens_per_id());
        let tokens_per_id = sizes.next();
        if let Some(other) = sizes.find(|size| Some(*size) != tokens_per_id) {
            let first = tokens_per_id.unwrap_or_default();
            return Err(Error::input(format!(
                "an id stands for {first} tokens in one trace and for {other} in another"
            ))
            .hint("--trace-block-size says it for all of them, where that is right"));
        }
        let head = |part| Head {
            part,
            row: Row::default(),
            has_row: false,
            time: Moment { nanos: i64::MIN },
            place: String::new(),
            line: 0,
        };
        let mut parts: Vec<Head> = parts.into_iter().map(head).collect();
        parts.iter_mut().try_for_each(Head::advance)?;
        Ok(Self { parts, same_ids, tokens_per_id, at: 0 })
    }
}

impl Head {
    fn advance(&mut self) -> Result<()> {
        self.has_row = self.part.reader.read(&mut self.row)?;
        if let (true, Some(start)) = (self.has_row, self.row.start) {
            self.time = Moment { nanos: start.nanos.saturating_add(self.part.shift_ns) };
            self.row.start = Some(self.time);
        }
        Ok(())
    }
}

impl Reader for Merged {
    fn read(&mut self, row: &mut Row) -> Result<bool> {
        let waiting = self.parts.iter().enumerate().filter(|(_, head)| head.has_row);
        let Some((at, _)) = waiting.min_by_key(|(at, head)| (head.time, *at)) else { return Ok(false) };
        self.at = at;
        let parts = self.parts.len() as u64;
        let head = &mut self.parts[at];
        std::mem::swap(row, &mut head.row);
        (head.place, head.line) = (head.part.reader.place(), head.part.reader.line());
        if !self.same_ids {
            keep_ids_apart(row, at as u64, parts);
        }
        keep_names_apart(row, at as u64);
        head.advance()?;
        Ok(true)
    }

    fn place(&self) -> String {
        self.parts[self.at].place.clone()
    }

    fn line(&self) -> u64 {
        self.parts[self.at].line
    }

    fn tokens_per_id(&self) -> Option<u32> {
        self.tokens_per_id
    }

    fn findings(&self) -> Findings {
        let mut all = Findings::default();
        for head in &self.parts {
            let Findings { skipped, notes } = head.part.reader.findings();
            all.skipped += skipped;
            all.notes.extend(notes);
        }
        all
    }
}
