//! Every request several times at once: as many times the load, and nothing shared between the copies
//! (spec/replay.md 2.4, duplicate_hash_space).

use wavetank_model::Result;

use super::apart::keep_apart;
use super::around::Around;
use crate::Row;
use crate::requests::Reader;

/// A trace and its copies.
pub struct Copies {
    reader: Box<dyn Reader>,
    copies: u64,
    row: Row,
    /// How many copies of it were handed over.
    given: u64,
}

impl Copies {
    /// `copies` of what `reader` reads, at least one.
    pub fn of(reader: Box<dyn Reader>, copies: u64) -> Self {
        assert!(copies > 0, "a trace is there at least once");
        Self { reader, copies, row: Row::default(), given: copies }
    }
}

impl Around for Copies {
    fn advance(&mut self, row: &mut Row) -> Result<bool> {
        if self.given == self.copies {
            if !self.reader.read(&mut self.row)? {
                return Ok(false);
            }
            self.given = 0;
        }
        row.clone_from(&self.row);
        keep_apart(row, self.given, self.copies);
        self.given += 1;
        Ok(true)
    }

    fn inner(&self) -> &dyn Reader {
        self.reader.as_ref()
    }
}
