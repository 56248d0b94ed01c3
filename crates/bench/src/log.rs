//! What was done to the cache, operation by operation: for `--io-trace-log`.
//!
//! Only a run on a virtual clock is logged, where one operation is under way at a time: what the store says
//! between two operations belongs to the first of them.

use std::collections::HashMap;
use std::io;

use wavetank_model::{Nanos, Operation, StoreEvent, StoreFact, TierRole, Why};
use wavetank_store::Key;

use crate::plan::Plan;
use crate::request::{Name, Phase};

/// One operation on one tier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Logged {
    /// When, on the run's clock.
    pub at: Nanos,
    /// What was done.
    pub deed: Deed,
    /// The entry's length.
    pub bytes: u64,
    /// Where.
    pub tier: TierRole,
    /// To which entry.
    pub name: Name,
    /// On whose behalf.
    pub stage: Stage,
}

/// What was done to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It was read.
    Read,
    /// It was written.
    Write,
    /// It was deleted.
    Delete,
}

/// On whose behalf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Of a prompt that is computed.
    Prefill,
    /// Of an answer that is generated, or of what is read for it.
    Decode,
    /// Of another entry, which needs the room.
    Evict,
    /// Of a prompt and an answer.
    Both,
}

impl Stage {
    /// As in the reference's logs: writes belong to prefill, reads to decode, but a shared prompt is read for
    /// all that its request does.
    fn of(operation: Operation, why: Why, phase: Phase) -> Self {
        match (operation, why, phase) {
            (Operation::Read, Why::Prompt, Phase::PrefillDecode) => Self::Both,
            (Operation::Read, Why::Prompt, Phase::Prefill) | (Operation::Write, ..) => Self::Prefill,
            (Operation::Read, ..) => Self::Decode,
        }
    }
}

/// Takes what was done.
pub type LogWriter<'a> = dyn FnMut(&Logged) -> io::Result<()> + Send + 'a;

/// From what the store says to what was done.
pub(crate) struct Log<'a> {
    write: &'a mut LogWriter<'a>,
    roles: Vec<TierRole>,
    names: HashMap<u64, Name>,
    stage: Stage,
    pub(crate) failed: Option<io::Error>,
}

impl<'a> Log<'a> {
    pub(crate) fn new(plan: &Plan, write: &'a mut LogWriter<'a>) -> Self {
        let roles = plan.tiers.iter().map(|tier| tier.role).collect();
        Self { write, roles, names: HashMap::new(), stage: Stage::Prefill, failed: None }
    }

    /// What the store says from here on is about this operation.
    pub(crate) fn begin(&mut self, name: Name, operation: Operation, why: Why, phase: Phase) {
        self.stage = Stage::of(operation, why, phase);
        if operation == Operation::Write {
            self.names.insert(Key::from(name.to_string().as_str()).fingerprint(), name);
        }
    }

    /// The store said something.
    pub(crate) fn heard(&mut self, at: Nanos, event: &StoreEvent) {
        let rows = match event.fact {
            StoreFact::Hit { tier } => [Some((Deed::Read, tier, self.stage)), None],
            StoreFact::Stored { tier } => [Some((Deed::Write, tier, self.stage)), None],
            StoreFact::Demoted { from, to } => {
                [Some((Deed::Read, from, Stage::Evict)), Some((Deed::Write, to, Stage::Evict))]
            }
            // What rises was read by the hit.
            StoreFact::Promoted { to, .. } => [Some((Deed::Write, to, self.stage)), None],
            StoreFact::Evicted { tier } | StoreFact::Dropped { tier } => {
                [Some((Deed::Delete, tier, Stage::Evict)), None]
            }
            _ => [None, None],
        };
        for (deed, tier, stage) in rows.into_iter().flatten() {
            let Some(&name) = self.names.get(&event.key) else { continue };
            let (bytes, tier) = (event.bytes, self.roles[usize::from(tier)]);
            if let Err(error) = (self.write)(&Logged { at, deed, bytes, tier, name, stage }) {
                self.failed.get_or_insert(error);
            }
        }
        if matches!(event.fact, StoreFact::Evicted { .. }) {
            self.names.remove(&event.key);
        }
    }
}
