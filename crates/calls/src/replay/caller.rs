//! Who holds what: locks belong to the caller whose prefetch took them.

use std::collections::BTreeMap;

use wavetank_model::KeyId;

/// Every caller of a recording. One without threads has one.
pub(super) struct Callers {
    numbers: BTreeMap<Option<u32>, usize>,
    all: Vec<Caller>,
    keys: usize,
    custody: Custody,
}

/// Who may give back what a prefetch took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Custody {
    /// Who prefetched it, and by the next prefetch has given back all of it.
    ByCaller,
    /// Anyone, at any time, unless the recording says otherwise.
    Open,
}

/// What a caller that decides itself has to do.
#[derive(Default)]
pub(super) struct Pending {
    /// What it found and has not read.
    pub(super) reads: Vec<KeyId>,
    /// How often that is locked.
    pub(super) locks: u32,
    /// What it did not find and has not stored.
    pub(super) writes: Vec<KeyId>,
    /// All that it last looked for, ascending.
    pub(super) asked: Vec<KeyId>,
    /// What of that it found, ascending.
    pub(super) found: Vec<KeyId>,
    /// What it writes without having looked for it.
    pub(super) reserved: Vec<Reserved>,
}

/// A reservation as recorded.
pub(super) struct Reserved {
    pub(super) keys: Vec<KeyId>,
    /// What of them it may write.
    pub(super) granted: Vec<KeyId>,
}

impl Pending {
    /// Whether it looked for `key`.
    pub(super) fn has_asked(&self, key: KeyId) -> bool {
        self.asked.binary_search(&key).is_ok()
    }
}

/// What one caller is at.
pub(super) struct Caller {
    custody: Custody,
    /// Locks it holds, by key.
    locks: Vec<u32>,
    /// Keys it took since it gave all back.
    taken: Vec<KeyId>,
    /// The place of its last prefetch.
    pub(super) asked_at: Option<usize>,
    /// Whether the read it is in was refused.
    pub(super) refused: bool,
    pub(super) pending: Pending,
}

impl Callers {
    pub(super) fn new(keys: usize, custody: Custody) -> Self {
        let keys = if custody == Custody::ByCaller { keys } else { 0 };
        Self { numbers: BTreeMap::new(), all: Vec::new(), keys, custody }
    }

    /// The caller with this thread.
    pub(super) fn of(&mut self, thread: Option<u32>) -> &mut Caller {
        let Self { numbers, all, keys, custody } = self;
        let number = *numbers.entry(thread).or_insert_with(|| {
            all.push(Caller {
                custody: *custody,
                locks: vec![0; *keys],
                taken: Vec::new(),
                asked_at: None,
                refused: false,
                pending: Pending::default(),
            });
            all.len() - 1
        });
        &mut all[number]
    }

    /// Every one that made a call.
    pub(super) fn threads(&self) -> Vec<Option<u32>> {
        self.numbers.keys().copied().collect()
    }
}

impl Caller {
    /// A prefetch locked `key`.
    pub(super) fn hold(&mut self, key: KeyId, readers: u32) {
        if self.custody == Custody::Open {
            return;
        }
        self.locks[key.0 as usize] += readers.max(1);
        self.taken.push(key);
    }

    /// Whether the caller may read `key`.
    pub(super) fn holds(&self, key: KeyId) -> bool {
        self.custody == Custody::Open || self.locks[key.0 as usize] > 0
    }

    /// Takes locks of `key` from the caller, at most `locks`; whether it may give them back.
    pub(super) fn take(&mut self, key: KeyId, locks: u32) -> bool {
        if self.custody == Custody::Open {
            return true;
        }
        let held = &mut self.locks[key.0 as usize];
        let had = *held > 0;
        *held = held.saturating_sub(locks);
        had
    }

    /// Takes all locks from the caller, key by key.
    pub(super) fn take_all(&mut self) -> Vec<(KeyId, u32)> {
        let Self { locks, taken, .. } = self;
        let held = taken.drain(..).map(|key| (key, std::mem::take(&mut locks[key.0 as usize])));
        held.filter(|(_, locks)| *locks > 0).collect()
    }

    /// Whether whose locks they are is not known here: the recording says it, as far as it does.
    pub(super) fn defers(&self) -> bool {
        self.custody == Custody::Open
    }
}
