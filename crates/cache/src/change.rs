//! What changed in a cache, for those who keep an index of it.

use wavetank_model::BlockKey;

/// Content that became findable, or that nobody can find any more, in the slots of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The group of the keys.
    pub group: u64,
    /// A bit per slot.
    pub slots: u8,
    /// What happened to them.
    pub kind: ChangeKind,
}

/// What happened to content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// Its first copy was published.
    Stored,
    /// Its last copy was evicted.
    Removed,
}

/// Changes that were not taken yet, if anyone wants them. A line divides those that were there when it was
/// drawn from those after it.
#[derive(Debug, Default)]
pub struct ChangeLog {
    kept: bool,
    changes: Vec<Change>,
    line: usize,
}

impl ChangeLog {
    /// Keeps changes from now on, except of private content.
    pub fn keep(&mut self) {
        self.kept = true;
    }

    /// Whether changes are kept.
    pub fn is_kept(&self) -> bool {
        self.kept
    }

    /// Draws the line here.
    pub fn settle(&mut self) {
        self.line = self.changes.len();
    }

    /// Moves out everything.
    pub fn take(&mut self, into: &mut Vec<Change>) {
        self.line = 0;
        into.append(&mut self.changes);
    }

    /// Moves out what stands before the line.
    pub fn take_settled(&mut self, into: &mut Vec<Change>) {
        into.extend(self.changes.drain(..std::mem::take(&mut self.line)));
    }

    pub(crate) fn note(&mut self, group: u64, slot: u32, kind: ChangeKind) {
        self.note_slots(group, 1 << slot, kind);
    }

    pub(crate) fn note_slots(&mut self, group: u64, slots: u8, kind: ChangeKind) {
        if !self.kept || BlockKey::is_private(group) {
            return;
        }
        match self.changes[self.line..].last_mut() {
            Some(last) if last.group == group && last.kind == kind => last.slots |= slots,
            _ => self.changes.push(Change { group, slots, kind }),
        }
    }
}

/// What a cache evicted, block by block in its order, if anyone wants it.
#[derive(Debug, Default)]
pub struct GivenUp {
    kept: bool,
    blocks: Vec<Option<BlockKey>>,
}

impl GivenUp {
    /// Keeps what is evicted from now on.
    pub fn keep(&mut self) {
        self.kept = true;
    }

    /// Moves out the keys of evicted blocks; `None` where the same content is still there.
    pub fn take(&mut self) -> impl ExactSizeIterator<Item = Option<BlockKey>> + '_ {
        self.blocks.drain(..)
    }

    pub(crate) fn note(&mut self, key: Option<BlockKey>) {
        if self.kept {
            self.blocks.push(key);
        }
    }
}
