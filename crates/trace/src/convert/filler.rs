//! Ids for prompts that have none, and times for turns that have none.

use std::collections::HashMap;

use wavetank_model::{Error, Result};
use xxhash_rust::xxh3::xxh3_128;

use crate::{HashFill, Moment, Row};

/// Makes ids by a rule.
#[derive(Debug)]
pub(super) struct IdFiller {
    pub(super) rule: HashFill,
    pub(super) tokens_per_id: u32,
    /// Added to every id, to keep them apart from those of the trace itself.
    pub(super) base: u64,
    /// The next id that no prompt has, in units of blocks or of sessions.
    pub(super) next: u64,
    pub(super) sessions: HashMap<u128, u64>,
}

/// Ids of one session begin with its number; so many bits are left for blocks.
const BLOCK_BITS: u32 = 28;

impl IdFiller {
    /// Gives `row` ids that cover its `tokens`.
    pub(super) fn fill(&mut self, row: &mut Row, tokens: u32) {
        let blocks = u64::from(tokens.div_ceil(self.tokens_per_id));
        let first = match self.rule {
            HashFill::Session => self.base + (self.session(row) << BLOCK_BITS),
            HashFill::Unique | HashFill::None => {
                self.next += blocks;
                self.base + self.next - blocks
            }
        };
        row.ids.extend(first..first + blocks);
    }

    /// The number of the row's session; a row of none is its own.
    fn session(&mut self, row: &Row) -> u64 {
        let known = row.session.as_ref().map(|name| self.sessions.entry(key(name)).or_insert(self.next));
        match known {
            Some(number) if *number != self.next => *number,
            _ => {
                self.next += 1;
                self.next - 1
            }
        }
    }
}

/// Stands for a name in memory; names of one trace do not meet in 128 bits.
pub(crate) fn key(name: &str) -> u128 {
    xxh3_128(name.as_bytes())
}

/// When the last turn of every session came.
#[derive(Debug, Default)]
pub(super) struct StartFiller {
    last: HashMap<u128, Moment>,
}

impl StartFiller {
    /// Gives a later turn without a time the time of the turn before it, and its pause; tells whether it did.
    pub(super) fn fill(&mut self, row: &mut Row, target: &str) -> Result<bool> {
        let session = row.session.as_deref().map(key);
        let before = session.and_then(|session| self.last.get(&session)).copied();
        let is_filled = row.start.is_none();
        let start = match (row.start, before) {
            (Some(start), _) => start,
            (None, Some(before)) => {
                let wait =
                    row.pause.unwrap_or_default().0.saturating_add(row.tool_wait.unwrap_or_default().0);
                Moment { nanos: before.nanos.saturating_add_unsigned(wait) }
            }
            (None, None) => {
                return Err(Error::input(format!("it has no time, and {target} needs one"))
                    .hint("write a format that does without, such as mooncake (--to mooncake)"));
            }
        };
        row.start = Some(start);
        if let Some(session) = session {
            self.last.insert(session, start);
        }
        Ok(is_filled)
    }
}
