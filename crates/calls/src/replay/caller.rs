//! Who holds what: locks belong to the caller whose prefetch took them.

use std::collections::BTreeMap;

use wavetank_model::{KeyId, LayoutId};

use crate::engine::Engine;

/// Every caller of a recording. One without threads has one.
pub(super) struct Callers {
    all: BTreeMap<Option<u32>, Caller>,
    keys: usize,
}

/// What a caller that decides itself has to do.
#[derive(Default)]
pub(super) struct Pending {
    /// What it found and has not read.
    pub(super) reads: Vec<KeyId>,
    /// How often that is locked.
    pub(super) locks: u32,
    /// What it did not find and has not stored.
    pub(super) writes: Vec<(LayoutId, Vec<KeyId>)>,
}

/// What one caller is at.
struct Caller {
    /// Locks it holds, by key.
    locks: Vec<u32>,
    /// Keys it took since it gave all back.
    taken: Vec<KeyId>,
    /// Whether the read it is in was refused.
    refused: bool,
    pending: Pending,
}

impl Callers {
    pub(super) fn new(keys: usize) -> Self {
        Self { all: BTreeMap::new(), keys }
    }

    fn caller(&mut self, thread: Option<u32>) -> &mut Caller {
        let keys = self.keys;
        let nobody = || Caller {
            locks: vec![0; keys],
            taken: Vec::new(),
            refused: false,
            pending: Pending::default(),
        };
        self.all.entry(thread).or_insert_with(nobody)
    }

    /// A prefetch locked `key`.
    pub(super) fn hold(&mut self, thread: Option<u32>, key: KeyId, readers: u32) {
        let caller = self.caller(thread);
        caller.locks[key.0 as usize] += readers.max(1);
        caller.taken.push(key);
    }

    /// Whether the caller holds `key`.
    pub(super) fn holds(&mut self, thread: Option<u32>, key: KeyId) -> bool {
        self.caller(thread).locks[key.0 as usize] > 0
    }

    /// Takes locks of `key` from the caller, at most `locks`; whether it had any.
    pub(super) fn take(&mut self, thread: Option<u32>, key: KeyId, locks: u32) -> bool {
        let held = &mut self.caller(thread).locks[key.0 as usize];
        let had = *held > 0;
        *held = held.saturating_sub(locks);
        had
    }

    /// Whether the read that begins is refused.
    pub(super) fn entered(&mut self, thread: Option<u32>, refused: bool) {
        self.caller(thread).refused = refused;
    }

    /// Whether the read that ends was refused.
    pub(super) fn was_refused(&mut self, thread: Option<u32>) -> bool {
        std::mem::take(&mut self.caller(thread).refused)
    }

    /// The caller has to do this.
    pub(super) fn set_pending(&mut self, thread: Option<u32>, pending: Pending) {
        self.caller(thread).pending = pending;
    }

    /// What it has to read, and how often that is locked; only once.
    pub(super) fn take_reads(&mut self, thread: Option<u32>) -> (Vec<KeyId>, u32) {
        let pending = &mut self.caller(thread).pending;
        (std::mem::take(&mut pending.reads), pending.locks)
    }

    /// What it has to store; only once.
    pub(super) fn take_writes(&mut self, thread: Option<u32>) -> Vec<(LayoutId, Vec<KeyId>)> {
        std::mem::take(&mut self.caller(thread).pending.writes)
    }

    /// The caller gives back all it holds; how many keys these were.
    pub(super) fn give_back(&mut self, thread: Option<u32>, engine: &mut Engine) -> u64 {
        self.caller(thread).give_back(engine)
    }

    /// Every caller does.
    pub(super) fn give_all_back(&mut self, engine: &mut Engine) -> u64 {
        self.all.values_mut().map(|caller| caller.give_back(engine)).sum()
    }
}

impl Caller {
    fn give_back(&mut self, engine: &mut Engine) -> u64 {
        let mut count = 0;
        for key in self.taken.drain(..) {
            let locks = std::mem::take(&mut self.locks[key.0 as usize]);
            if locks > 0 {
                engine.finish_read(&[key], locks, &mut Vec::new());
                count += 1;
            }
        }
        count
    }
}
