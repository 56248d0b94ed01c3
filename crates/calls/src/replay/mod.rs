//! Recorded calls, made again.
//!
//! Time is that of the recording: between two calls eviction loops look and copies end when they are due
//! (spec/storage-trace.md 10.4). A prefetch is over before the next call begins; locks belong to the caller
//! that prefetched.

mod caller;
mod closed;
mod compare;
mod ear;
mod expect;
mod listen;
mod pinned;
mod record;
mod tally;
mod tenants;
#[cfg(test)]
mod tests;
mod told;

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use wavetank_model::{
    Fate, KeyId, KeyTable, LayoutId, LockMode, Nanos, Prefetch, Recorded, Result, StorageCall,
};

use self::caller::{Caller, Callers, Custody};
use self::ear::{Ear, Heard};
pub use self::expect::Expect;
use self::expect::{ByThread, Expected, caller_of, expected, has_threads};
pub use self::listen::{Act, Both, Listener, Made};
pub use self::record::Recorder;
pub use self::tally::{Count, Divergence, Operations, Tally};
use self::told::Told;
use crate::background::Background;
use crate::engine::{Engine, Tempo};
use crate::plan::Plan;

/// Calls between two looks at whether to stop.
const LOOK_EVERY: usize = 1024;

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
    /// What the keys are, where it matters whose they are.
    pub table: Option<&'a KeyTable>,
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
    /// Which of them are.
    pub scope: Scope,
}

/// Which calls are made, counted and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Scope {
    /// What outcomes are compared with; those of the first round, as the recording has no others.
    pub expect: Expect,
    /// Calls before it are made and not counted.
    pub from: Nanos,
    /// Calls from it on are not made.
    pub to: Nanos,
    /// So many times, each beginning when the one before ends.
    pub rounds: u32,
}

impl Default for Scope {
    fn default() -> Self {
        Self { expect: Expect::Auto, from: Nanos::ZERO, to: Nanos::MAX, rounds: 1 }
    }
}

/// Makes the calls of `recording` again, and tells `listener` of each, if there is one.
pub fn replay<'a>(
    recording: &Recording<'a>,
    manner: &Manner,
    listener: Option<&'a mut (dyn Listener + 'a)>,
) -> Result<Tally> {
    replay_until(recording, manner, &AtomicBool::new(false), listener)
}

/// The same, until somebody raises `stop`: then it ends with what there is.
pub fn replay_until<'a>(
    recording: &Recording<'a>,
    manner: &Manner,
    stop: &AtomicBool,
    listener: Option<&'a mut (dyn Listener + 'a)>,
) -> Result<Tally> {
    let mut engine = Engine::new(&manner.plan, &manner.tempo)?;
    engine.know(recording.keys);
    tenants::label(recording, &manner.plan, &mut engine)?;
    if listener.is_some() {
        engine.keep_notes();
    }
    // A recording that tells of the background has what locks really did; elsewhere they are the callers'.
    let custody = if manner.tempo == Tempo::Told { Custody::Open } else { Custody::ByCaller };
    let mut player = Player {
        engine,
        layout_bytes: recording.layout_bytes,
        layouts: if manner.mode == Mode::Closed { closed::layouts(recording) } else { Vec::new() },
        callers: Callers::new(recording.keys, custody),
        told: Told::new(recording, manner),
        tally: Tally::default(),
        warm: None,
        turn: Turn::default(),
        fates: Vec::new(),
        got: Vec::new(),
        by_thread: has_threads(recording.calls),
        expected: expected(recording.calls, recording.end, manner.scope.expect).into(),
        expect: manner.scope.expect,
        ear: Ear::new(listener),
    };
    player.play(recording, manner, stop)?;
    player.finish()
}

/// Makes calls.
struct Player<'a> {
    engine: Engine,
    layout_bytes: &'a [u64],
    /// What an object of each key holds, where callers decide what they write.
    layouts: Vec<Option<LayoutId>>,
    callers: Callers,
    told: Told,
    tally: Tally,
    /// What had happened when counting began.
    warm: Option<Background>,
    turn: Turn,
    /// Of the call that was made last.
    fates: Vec<Fate>,
    /// Kept between comparisons, so that each need not allocate.
    got: Vec<KeyId>,
    by_thread: ByThread,
    /// What the recording lets be known of each call.
    expected: Rc<[Expected]>,
    expect: Expect,
    ear: Ear<'a>,
}

/// Whose turn it is: a recorded call.
#[derive(Clone, Copy, Default)]
struct Turn {
    number: usize,
    /// Its place in the recording.
    place: usize,
    at: Nanos,
    round: u32,
}

impl Player<'_> {
    fn play(&mut self, recording: &Recording<'_>, manner: &Manner, stop: &AtomicBool) -> Result<()> {
        let (calls, scope) = (recording.calls, &manner.scope);
        let expected = Rc::clone(&self.expected);
        let round_takes = calls.last().map_or(Nanos::ZERO, |last| last.at);
        for round in 0..scope.rounds {
            let begins = Nanos(round_takes.0.saturating_mul(round.into()));
            for (place, recorded) in calls.iter().enumerate() {
                let at = recorded.at + begins;
                if at >= scope.to || self.ear.is_closed() {
                    return Ok(());
                }
                let number = place + calls.len() * round as usize;
                if number.is_multiple_of(LOOK_EVERY) && stop.load(Ordering::Relaxed) {
                    self.tally.interrupted = true;
                    return Ok(());
                }
                self.turn = Turn { number, place, at, round };
                self.begin_counting(scope);
                self.engine.advance(at);
                self.told.unnamed(recorded, &mut self.engine);
                self.ear.turn(self.turn.number, at, &mut self.engine);
                self.take_turn(recorded, manner.mode, &expected[place])?;
            }
        }
        Ok(())
    }

    /// What comes from its time on is counted, and nothing before.
    fn begin_counting(&mut self, scope: &Scope) {
        if self.warm.is_none() && self.turn.at >= scope.from {
            self.engine.advance(Nanos(scope.from.0.saturating_sub(1)));
            self.warm = Some(self.engine.background().clone());
            self.tally = Tally::default();
        }
    }

    fn take_turn(&mut self, recorded: &Recorded, mode: Mode, expected: &Expected) -> Result<()> {
        match mode {
            Mode::Closed => self.decide(recorded),
            Mode::Open => self.make(recorded, expected),
            Mode::Pinned => {
                self.make(recorded, expected)?;
                self.put_right(recorded, expected);
                Ok(())
            }
        }
    }

    /// Makes a call as it was made, and compares.
    fn make(&mut self, recorded: &Recorded, expected: &Expected) -> Result<()> {
        self.fates.clear();
        let thread = caller_of(recorded, self.by_thread);
        let outcome = recorded.outcome.as_deref();
        match &recorded.call {
            StorageCall::SubmitPrefetch(asked) => {
                self.prefetch(thread, asked)?;
                self.compare(recorded, ("prefetch", expected));
            }
            StorageCall::ReserveWrite { keys, layout, .. } => {
                self.reserve(thread, (keys, *layout), outcome)?;
                self.compare(recorded, ("reserve_write", expected));
            }
            StorageCall::FinishWrite { keys } => {
                self.finish_write(thread, keys)?;
                self.compare_rest(recorded, "finish_write");
            }
            StorageCall::ReadEnter { keys } => {
                self.enter(thread, keys, outcome)?;
                self.compare_rest(recorded, "read");
            }
            StorageCall::ReadExit { keys } => self.exit(thread, keys, outcome)?,
            StorageCall::FinishRead { keys, locks } => {
                self.release(thread, (keys, *locks), outcome)?;
                self.compare_rest(recorded, "release");
            }
            _ => self.follow(recorded),
        }
        Ok(())
    }

    fn prefetch(&mut self, thread: Option<u32>, asked: &Prefetch) -> Result<()> {
        self.give_back(thread)?;
        self.tally.prefetches += 1;
        let took = self.told.prefetch(asked, &mut self.engine, &mut self.fates);
        self.tally.took.record(took);
        let caller = self.callers.of(thread);
        caller.asked_at = Some(self.turn.place);
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
        self.tell(thread, Act::Prefetch(asked), took)
    }

    fn reserve(
        &mut self,
        thread: Option<u32>,
        (keys, layout): (&[KeyId], LayoutId),
        outcome: Option<&[Fate]>,
    ) -> Result<()> {
        let bytes = self.layout_bytes[layout.0 as usize];
        self.told.reserve((keys, bytes), outcome, &mut self.engine, &mut self.fates);
        for fate in &self.fates {
            match fate {
                Fate::Resident => self.tally.refused_resident += 1,
                Fate::Staged => self.tally.refused_staged += 1,
                Fate::NoMemory => self.tally.refused_no_memory += 1,
                _ => {}
            }
        }
        self.tell(thread, Act::Reserve { keys, layout }, Nanos::ZERO)
    }

    fn finish_write(&mut self, thread: Option<u32>, keys: &[KeyId]) -> Result<()> {
        self.fates.clear();
        self.engine.finish_write(keys, &mut self.fates);
        let stored = self.fates.iter().filter(|fate| **fate == Fate::Done).count() as u64;
        self.tally.stored += stored;
        self.tally.store_failed += keys.len() as u64 - stored;
        self.tally.expire(&self.fates);
        self.tell(thread, Act::FinishWrite(keys), Nanos::ZERO)
    }

    fn enter(&mut self, thread: Option<u32>, keys: &[KeyId], outcome: Option<&[Fate]>) -> Result<()> {
        self.engine.read_enter(keys, &mut self.fates);
        let caller = self.callers.of(thread);
        for (at, (key, fate)) in keys.iter().zip(&mut self.fates).enumerate() {
            if *fate == Fate::Done && !(caller.holds(*key) && may(caller, outcome, at)) {
                *fate = Fate::Unlocked;
            }
        }
        let missing = self.fates.iter().filter(|fate| **fate != Fate::Done).count() as u64;
        self.tally.read_failed += missing;
        self.tally.read += if missing == 0 { keys.len() as u64 } else { 0 };
        self.tally.expire(&self.fates);
        caller.refused = missing > 0;
        self.tell(thread, Act::Enter(keys), Nanos::ZERO)
    }

    fn exit(&mut self, thread: Option<u32>, keys: &[KeyId], outcome: Option<&[Fate]>) -> Result<()> {
        let caller = self.callers.of(thread);
        self.fates.clear();
        if std::mem::take(&mut caller.refused) {
            for (at, key) in keys.iter().enumerate() {
                let gives = may(caller, outcome, at) && caller.take(*key, 1);
                if gives {
                    self.engine.read_refused(std::slice::from_ref(key));
                }
                self.fates.push(if gives { Fate::Done } else { Fate::Unlocked });
            }
        }
        self.tell(thread, Act::Exit(keys), Nanos::ZERO)
    }

    fn release(
        &mut self,
        thread: Option<u32>,
        (keys, locks): (&[KeyId], u32),
        outcome: Option<&[Fate]>,
    ) -> Result<()> {
        let caller = self.callers.of(thread);
        self.fates.clear();
        for (at, key) in keys.iter().enumerate() {
            if may(caller, outcome, at) && caller.take(*key, locks) {
                self.engine.finish_read(std::slice::from_ref(key), locks, &mut self.fates);
            } else {
                self.fates.push(Fate::Unlocked);
            }
        }
        let released = self.fates.iter().filter(|fate| **fate == Fate::Done).count() as u64;
        self.tally.released += released;
        self.tally.release_failed += keys.len() as u64 - released;
        self.tally.expire(&self.fates);
        self.tell(thread, Act::Release(keys, locks), Nanos::ZERO)
    }

    /// A caller gives back what it holds and the recording does not say that it gave back.
    fn give_back(&mut self, thread: Option<u32>) -> Result<()> {
        let held = self.held_by(thread);
        self.return_all(thread, &held)
    }

    /// At the end a caller gives back what it found beyond the recording; what it was not to give back stays
    /// held, as it did then.
    fn give_back_surplus(&mut self, thread: Option<u32>) -> Result<()> {
        let held = self.held_by(thread);
        let (leaked, surplus): (Vec<_>, Vec<_>) =
            held.into_iter().partition(|(key, _)| self.had(thread, *key));
        let leaked: Vec<KeyId> = leaked.into_iter().map(|(key, _)| key).collect();
        self.fates.clear();
        self.engine.read_enter(&leaked, &mut self.fates);
        self.tally.expire(&self.fates);
        self.return_all(thread, &surplus)
    }

    /// What a caller holds still, counted; it does not any more.
    fn held_by(&mut self, thread: Option<u32>) -> Vec<(KeyId, u32)> {
        let held = self.callers.of(thread).take_all();
        let leaked = held.iter().filter(|(key, _)| self.had(thread, *key)).count();
        self.tally.leaked += leaked as u64;
        self.tally.surplus += (held.len() - leaked) as u64;
        held
    }

    /// Whether the recording says that the last prefetch of a caller found `key`.
    fn had(&mut self, thread: Option<u32>, key: KeyId) -> bool {
        let asked_at = self.callers.of(thread).asked_at;
        let expected = asked_at.and_then(|place| self.expected[place].as_ref());
        expected.is_some_and(|keys| keys.binary_search(&key).is_ok())
    }

    fn return_all(&mut self, thread: Option<u32>, held: &[(KeyId, u32)]) -> Result<()> {
        for batch in held.chunk_by(|(_, one), (_, other)| one == other) {
            let (keys, locks): (Vec<KeyId>, u32) = (batch.iter().map(|(key, _)| *key).collect(), batch[0].1);
            self.fates.clear();
            self.engine.finish_read(&keys, locks, &mut self.fates);
            self.tally.expire(&self.fates);
            self.tell(thread, Act::GiveBack(&keys, locks), Nanos::ZERO)?;
        }
        self.fates.clear();
        Ok(())
    }

    fn tell(&mut self, thread: Option<u32>, act: Act<'_>, took: Nanos) -> Result<()> {
        self.tally.count(self.turn.at, &act, &self.fates);
        self.ear.hear(&Heard { thread, act, fates: &self.fates, took }, &mut self.engine)
    }

    fn finish(mut self) -> Result<Tally> {
        self.ear.turn(self.turn.number, self.turn.at, &mut self.engine);
        for thread in self.callers.threads() {
            self.give_back_surplus(thread)?;
        }
        self.tally.held_at_end = self.engine.held();
        let background = self.engine.background();
        self.tally.background = self.warm.as_ref().map_or(background.clone(), |warm| background.since(warm));
        (self.tally.used_l1, self.tally.used_l2) = self.engine.used();
        self.ear.end(&mut self.engine)?;
        Ok(self.tally)
    }
}

fn is_found(fate: &Fate) -> bool {
    matches!(fate, Fate::Done | Fate::FirstTier | Fate::LowerTier)
}

/// Whether a caller may use its lock of the key at this place of a call: where whose locks they are is not
/// known here, unless the recording says that it had none.
fn may(caller: &Caller, outcome: Option<&[Fate]>, at: usize) -> bool {
    !caller.defers() || outcome.is_none_or(|fates| fates.get(at) != Some(&Fate::Unlocked))
}
