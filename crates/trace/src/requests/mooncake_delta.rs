//! Mooncake delta: Mooncake's rows, of which each later one of a session holds only what is added to the
//! prompt and the answer before it (spec/replay.md 2.3). Nothing in a file tells the two apart, so it is read
//! by its name alone.

use super::mooncake::{ENTRY as WHOLE, TOKENS_PER_ID};
use super::{Blocks, Entry, Prompts, Provides};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "mooncake_delta",
    about: "mooncake, but a later turn holds only what it adds to the prompt and the answer before it",
    provides: Provides {
        starts: true,
        sessions: true,
        pauses: true,
        blocks: Blocks::Of(TOKENS_PER_ID),
        prompts: Prompts::Added,
        ..Provides::LENGTHS
    },
    recognises: |_| false,
    read: WHOLE.read,
    write: WHOLE.write,
};

#[cfg(test)]
mod tests;
