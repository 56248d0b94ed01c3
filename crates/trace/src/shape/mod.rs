//! Changing the shape of a trace without changing what its requests share: each a reader around a reader.

mod anonymize;
mod apart;
mod around;
mod copies;
mod feistel;
mod merge;
mod pace;
mod slice;
mod stretch;

pub use anonymize::{Anonymous, Scrub, Secret};
pub use copies::Copies;
pub use merge::{Merged, Part};
pub use pace::{Pace, Paced};
pub use slice::{Choice, Cut, Slice};
pub use stretch::{Stretch, Stretched};

use wavetank_model::Result;

use crate::requests::Reader;
use crate::{Moment, Row};

/// When the requests of a trace come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The earliest time.
    pub first: Moment,
    /// The latest.
    pub last: Moment,
}

impl Span {
    /// Reads `reader` to its end; nothing where no request has a time.
    pub fn of(reader: &mut dyn Reader) -> Result<Option<Self>> {
        let (mut span, mut row) = (None::<Self>, Row::default());
        while reader.read(&mut row)? {
            if let Some(start) = row.start {
                let Self { first, last } = span.unwrap_or(Self { first: start, last: start });
                span = Some(Self { first: first.min(start), last: last.max(start) });
            }
        }
        Ok(span)
    }
}

#[cfg(test)]
mod tests;
