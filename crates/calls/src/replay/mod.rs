//! Recorded calls, made again.
//!
//! Time is that of the recording: between two calls eviction loops look and copies end when they are due
//! (spec/storage-trace.md 10.4). A prefetch is over before the next call begins; locks belong to the caller
//! that prefetched.

mod caller;
mod closed;
mod ear;
mod expect;
mod listen;
mod pinned;
mod tally;
mod told;

use serde::{Deserialize, Serialize};
use wavetank_model::{Fate, KeyId, LayoutId, LockMode, Prefetch, Recorded, Result, StorageCall};

use self::caller::{Callers, Custody};
use self::ear::Ear;
use self::expect::{ByThread, Expected, caller_of, expected, has_threads};
pub use self::listen::{Act, Listener, Made};
pub use self::tally::{Divergence, Tally};
use self::told::Told;
use crate::engine::{Engine, Tempo};
use crate::plan::Plan;

/// How recorded calls are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// As they are, whatever they find.
    #[default]
    Open,
    /// As they are, and what they found is put right: the recording knows better.
    Pinned,
    /// The caller reads what it finds and stores what it does not.
    Closed,
}

/// Recorded calls, and what they are about.
pub struct Recording<'a> {
    /// In the order they are made.
    pub calls: &'a [Recorded],
    /// How many keys they name.
    pub keys: usize,
    /// What an object of each layout takes.
    pub layout_bytes: &'a [u64],
    /// How it ends.
    pub end: End,
}

/// How a recording ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With its last call.
    Whole,
    /// Somewhere: what came after is not known.
    Cut,
}

/// How recorded calls are made again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Manner {
    /// What they are made on.
    pub plan: Plan,
    /// Who says when background work is done; [`Tempo::Told`] is what the recording says.
    pub tempo: Tempo,
    /// How they are taken.
    pub mode: Mode,
}

/// Makes the calls of `recording` again, and tells `listener` of each, if there is one.
pub fn replay<'a>(
    recording: &Recording<'a>,
    manner: &Manner,
    listener: Option<&'a mut (dyn Listener + 'a)>,
) -> Result<Tally> {
    let mut engine = Engine::new(&manner.plan, &manner.tempo)?;
    engine.know(recording.keys);
    if listener.is_some() {
        engine.keep_notes();
    }
    // A recording that tells of the background has what locks really did; elsewhere they are the callers'.
    let custody = if manner.tempo == Tempo::Told { Custody::Open } else { Custody::ByCaller };
    let mut player = Player {
        engine,
        layout_bytes: recording.layout_bytes,
        callers: Callers::new(recording.keys, custody),
        told: Told::new(recording, manner),
        tally: Tally::default(),
        fates: Vec::new(),
        by_thread: has_threads(recording.calls),
        ear: Ear::new(listener),
    };
    let expected = expected(recording.calls, recording.end);
    for (number, (recorded, expected)) in recording.calls.iter().zip(&expected).enumerate() {
        player.engine.advance(recorded.at);
        player.ear.turn(number, recorded.at, &mut player.engine);
        match manner.mode {
            Mode::Closed => player.decide(recorded)?,
            Mode::Open => player.make(number, recorded, expected)?,
            Mode::Pinned => {
                player.make(number, recorded, expected)?;
                player.put_right(recorded, expected);
            }
        }
        if player.ear.is_closed() {
            break;
        }
    }
    player.finish()
}

/// Makes calls.
struct Player<'a> {
    engine: Engine,
    layout_bytes: &'a [u64],
    callers: Callers,
    told: Told,
    tally: Tally,
    /// Of the call that was made last.
    fates: Vec<Fate>,
    by_thread: ByThread,
    ear: Ear<'a>,
}

impl Player<'_> {
    /// Makes a call as it was made, and compares.
    fn make(&mut self, number: usize, recorded: &Recorded, expected: &Expected) -> Result<()> {
        self.fates.clear();
        let thread = caller_of(recorded, self.by_thread);
        let what = match &recorded.call {
            StorageCall::SubmitPrefetch(asked) => {
                self.prefetch(thread, asked)?;
                "prefetch"
            }
            StorageCall::ReserveWrite { keys, layout, .. } => {
                self.reserve(thread, keys, *layout)?;
                "reserve_write"
            }
            StorageCall::FinishWrite { keys } => return self.finish_write(thread, keys),
            StorageCall::ReadEnter { keys } => return self.enter(thread, keys),
            StorageCall::ReadExit { keys } => return self.exit(thread, keys),
            StorageCall::FinishRead { keys, locks } => return self.release(thread, keys, *locks),
            _ => {
                self.follow(recorded);
                return Ok(());
            }
        };
        self.compare(number, recorded, (what, expected));
        Ok(())
    }

    fn prefetch(&mut self, thread: Option<u32>, asked: &Prefetch) -> Result<()> {
        self.tally.calls += 1;
        self.tally.prefetches += 1;
        let caller = self.callers.of(thread);
        self.tally.surplus += caller.give_back(&mut self.engine);
        self.told.prefetch(asked, &mut self.engine, &mut self.fates);
        for (key, fate) in asked.rows.iter().flat_map(|row| &row.keys).zip(&self.fates) {
            let count = match fate {
                Fate::FirstTier => &mut self.tally.hits_l1,
                Fate::LowerTier => &mut self.tally.hits_l2,
                Fate::NoMemory => &mut self.tally.misses_no_memory,
                _ => &mut self.tally.misses,
            };
            *count += 1;
            self.tally.asked += 1;
            let is_hit = matches!(fate, Fate::FirstTier | Fate::LowerTier);
            if is_hit && asked.lock == LockMode::Lock {
                caller.hold(*key, asked.readers);
            }
        }
        self.ear.hear(thread, Act::Prefetch(asked), &self.fates, &mut self.engine)
    }

    fn reserve(&mut self, thread: Option<u32>, keys: &[KeyId], layout: LayoutId) -> Result<()> {
        self.tally.calls += 1;
        let bytes = self.layout_bytes[layout.0 as usize];
        self.engine.reserve_write(keys, bytes, &mut self.fates);
        for fate in &self.fates {
            match fate {
                Fate::Resident => self.tally.refused_resident += 1,
                Fate::Staged => self.tally.refused_staged += 1,
                Fate::NoMemory => self.tally.refused_no_memory += 1,
                _ => {}
            }
        }
        self.ear.hear(thread, Act::Reserve { keys, layout }, &self.fates, &mut self.engine)
    }

    fn finish_write(&mut self, thread: Option<u32>, keys: &[KeyId]) -> Result<()> {
        self.tally.calls += 1;
        self.fates.clear();
        self.engine.finish_write(keys, &mut self.fates);
        let stored = self.fates.iter().filter(|fate| **fate == Fate::Done).count() as u64;
        self.tally.stored += stored;
        self.tally.store_failed += keys.len() as u64 - stored;
        self.tally.expire(&self.fates);
        self.ear.hear(thread, Act::FinishWrite(keys), &self.fates, &mut self.engine)
    }

    fn enter(&mut self, thread: Option<u32>, keys: &[KeyId]) -> Result<()> {
        self.tally.calls += 1;
        self.engine.read_enter(keys, &mut self.fates);
        let caller = self.callers.of(thread);
        let is_held = |(key, fate): &(&KeyId, &Fate)| **fate == Fate::Done && caller.holds(**key);
        let held = keys.iter().zip(&self.fates).filter(is_held);
        let missing = keys.len() as u64 - held.count() as u64;
        self.tally.read_failed += missing;
        self.tally.read += if missing == 0 { keys.len() as u64 } else { 0 };
        self.tally.expire(&self.fates);
        caller.refused = missing > 0;
        self.ear.hear(thread, Act::Enter(keys), &self.fates, &mut self.engine)
    }

    fn exit(&mut self, thread: Option<u32>, keys: &[KeyId]) -> Result<()> {
        self.tally.calls += 1;
        let caller = self.callers.of(thread);
        if std::mem::take(&mut caller.refused) {
            let held: Vec<KeyId> = keys.iter().copied().filter(|key| caller.take(*key, 1)).collect();
            self.engine.read_refused(&held);
        }
        self.ear.hear(thread, Act::Exit(keys), &[], &mut self.engine)
    }

    fn release(&mut self, thread: Option<u32>, keys: &[KeyId], locks: u32) -> Result<()> {
        self.tally.calls += 1;
        let caller = self.callers.of(thread);
        self.fates.clear();
        for key in keys {
            if caller.take(*key, locks) {
                self.engine.finish_read(std::slice::from_ref(key), locks, &mut self.fates);
            } else {
                self.fates.push(Fate::Unlocked);
            }
        }
        let released = self.fates.iter().filter(|fate| **fate == Fate::Done).count() as u64;
        self.tally.released += released;
        self.tally.release_failed += keys.len() as u64 - released;
        self.tally.expire(&self.fates);
        self.ear.hear(thread, Act::Release(keys, locks), &self.fates, &mut self.engine)
    }

    /// Whether a call found, or was granted, what it was when it was recorded.
    fn compare(&mut self, number: usize, recorded: &Recorded, (what, expected): (&'static str, &Expected)) {
        let Some(expected) = expected else { return };
        let mut got = self.found(&recorded.call);
        got.sort_unstable();
        if got[..] == expected[..] {
            return;
        }
        let differs = if what == "prefetch" {
            &mut self.tally.prefetches_that_differ
        } else {
            &mut self.tally.writes_that_differ
        };
        *differs += 1;
        if self.tally.first_divergence.is_none() {
            let odd = got.iter().find(|key| expected.binary_search(key).is_err());
            let odd = odd.or_else(|| expected.iter().find(|key| got.binary_search(key).is_err()));
            self.tally.first_divergence = Some(Divergence {
                call: number as u64,
                at: recorded.at,
                what,
                expected: expected.len() as u64,
                got: got.len() as u64,
                key: odd.map_or(0, |key| key.0),
            });
        }
    }

    /// Keys that the call just made found, or was granted.
    fn found(&self, call: &StorageCall) -> Vec<KeyId> {
        let is_found = |fate: &Fate| matches!(fate, Fate::Done | Fate::FirstTier | Fate::LowerTier);
        call.keys().zip(&self.fates).filter(|(_, fate)| is_found(fate)).map(|(key, _)| key).collect()
    }

    fn finish(mut self) -> Result<Tally> {
        self.tally.surplus += self.callers.give_all_back(&mut self.engine);
        self.tally.held_at_end = self.engine.held();
        self.tally.background = self.engine.background().clone();
        (self.tally.used_l1, self.tally.used_l2) = self.engine.used();
        self.ear.end(&mut self.engine)?;
        Ok(self.tally)
    }
}
