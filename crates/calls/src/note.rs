//! What happens to objects besides what calls answer: for a recorder, and for whoever moves their bytes.

use wavetank_model::{KeyId, LayoutId, Nanos};

/// One thing, and when it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// When.
    pub at: Nanos,
    /// Bytes of memory that objects took then which had no name yet.
    pub unnamed: u64,
    /// What.
    pub what: Happened,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// A write of an object was given room in memory.
    Staged(KeyId),
    /// What was being written is not wanted any more.
    Unstaged(KeyId),
    /// What was being written is there.
    Admitted(KeyId),
    /// An object begins its way from the tier behind with this number.
    Loading(u8, KeyId),
    /// It came.
    Loaded(u8, KeyId),
    /// It could not be read, or came another way meanwhile: the way ends, and nothing came.
    Unloaded(u8, KeyId),
    /// An object in memory is not there any more.
    Freed(KeyId),
    /// Objects begin their way to the tier behind with this number.
    Copying(u8, Box<[KeyId]>),
    /// They have arrived, or failed: the way ends.
    Copied(u8, Box<[KeyId]>),
    /// Of those whose way to the tier behind with this number ends next, a device failed these.
    Lost(u8, Box<[KeyId]>),
    /// An object in the tier behind with this number is not there any more, or found no room there.
    Deleted(u8, KeyId),
    /// Objects are copied to the tier behind with this number later, because too much is on its way there:
    /// the way ends.
    Postponed(u8, Box<[KeyId]>),
    /// Objects whose copies were put off begin their way to the tier behind with this number.
    Resumed(u8, Box<[KeyId]>),
    /// The loop of a tier looked, memory being 0, and so many objects left; if it was to take no more than
    /// so many, how many that were.
    Passed(u8, u32, Option<u32>),
    /// A prefetch is over: its handle, what it had to load, and what of that a device failed.
    Fetched(u64, Box<[KeyId]>, Box<[KeyId]>),
    /// A recording said that objects were in the tier behind with this number from the start.
    Found(u8, Box<[KeyId]>, LayoutId),
    /// A recording said that objects left, and they did.
    Removed(Box<[KeyId]>),
}

/// Keeps notes where someone wants them; otherwise it costs a branch.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    kept: Option<Vec<Note>>,
    /// Bytes of memory taken by objects without a name.
    pub(crate) unnamed: u64,
}

impl Notes {
    pub(crate) fn keep(&mut self) {
        self.kept.get_or_insert_default();
    }

    #[inline]
    pub(crate) fn add(&mut self, at: Nanos, what: impl FnOnce() -> Happened) {
        if let Some(notes) = &mut self.kept {
            notes.push(Note { at, unnamed: self.unnamed, what: what() });
        }
    }

    pub(crate) fn are_kept(&self) -> bool {
        self.kept.as_ref().is_some_and(|notes| !notes.is_empty())
    }

    pub(crate) fn take(&mut self, into: &mut Vec<Note>) {
        if let Some(notes) = &mut self.kept {
            into.append(notes);
        }
    }
}
