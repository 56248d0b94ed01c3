//! Readers around readers: what one does differently, and the rest from the one inside.

use wavetank_model::Result;

use crate::Row;
use crate::requests::{Findings, Reader};

/// What a reader around another one does.
pub(super) trait Around: Send {
    /// The one inside.
    fn inner(&self) -> &dyn Reader;

    /// Reads the next request, as [`Reader::read`].
    fn advance(&mut self, row: &mut Row) -> Result<bool>;

    /// Adds what whoever reads the results should know.
    fn note(&self, _notes: &mut Vec<String>) {}
}

impl<A: Around> Reader for A {
    fn read(&mut self, row: &mut Row) -> Result<bool> {
        self.advance(row)
    }

    fn place(&self) -> String {
        self.inner().place()
    }

    fn line(&self) -> u64 {
        self.inner().line()
    }

    fn tokens_per_id(&self) -> Option<u32> {
        self.inner().tokens_per_id()
    }

    fn findings(&self) -> Findings {
        let mut findings = self.inner().findings();
        self.note(&mut findings.notes);
        findings
    }
}
