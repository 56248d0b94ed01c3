//! Storage-call recordings of LMCache, `.lct` (spec/storage-trace.md 1): every known generation of
//! arguments is read and given its newest meaning; what is written is of the newest, with what is ours
//! beside it.

mod config;
mod cursor;
mod decode;
mod encode;
mod frame;
mod generation;
mod header;
mod key;
mod operation;
mod prefetch;
mod reader;
mod recording;
mod shape;
mod writer;

pub use config::{Difference, canonical, canonical_digest, differences, plain_digest};
pub use generation::Generations;
pub use header::Header;
pub use reader::{FRAME_LIMIT, Reader};
pub use recording::{LctOptions, Recording, Written, check_place, is_later_part};
pub use writer::Writer;

use wavetank_model::Error;

use super::{Calls, Entry};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "lct",
    about: "storage-call recordings of LMCache 0.4.4 to 0.5.6, and ours",
    read: |input| {
        let reader = Reader::open(input, FRAME_LIMIT)?;
        let level = &reader.header().level;
        if level != "storage" {
            return Err(Error::input(format!("its level is \"{}\"", cursor::brief(level)))
                .at(input.name())
                .hint("calls are recorded at level storage; `wavetank trace info` says what is in others"));
        }
        Ok(Box::new(reader) as Calls)
    },
    write: |output| Ok(Box::new(Writer::begin(output, &Header::storage(0.0, String::new()))?)),
};

#[cfg(test)]
mod tests;
