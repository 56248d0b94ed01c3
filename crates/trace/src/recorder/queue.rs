//! The queue between calls and the thread that writes them. It is taken whole, so what was lost was lost
//! behind the last note in it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Kept;

/// How long the thread waits for more, unless half of the room is taken: so old is what others read.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Queue<N> {
    state: Mutex<State<N>>,
    /// Half of the room is taken, or no more notes come.
    wanted: Condvar,
    /// What was written when it was last told.
    written: Mutex<Kept>,
}

struct State<N> {
    notes: Vec<N>,
    room: usize,
    /// Notes that came since it was full.
    lost: u64,
    /// Those lost before what was taken last, until it is told what became of that.
    untold: u64,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// What comes is counted and not kept: nobody writes it.
    Broken,
    Closed,
}

/// What is taken at a time.
pub(super) struct Batch {
    /// Notes that came after those in it and were not kept.
    pub(super) lost: u64,
    /// No more come.
    pub(super) is_last: bool,
}

impl<N> Queue<N> {
    pub(super) fn new(room: usize, begun: Kept) -> Self {
        let room = room.max(1);
        let state = State { notes: Vec::with_capacity(room), room, lost: 0, untold: 0, phase: Phase::Open };
        Self { state: Mutex::new(state), wanted: Condvar::new(), written: Mutex::new(begun) }
    }

    fn state(&self) -> MutexGuard<'_, State<N>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(super) fn push(&self, make: impl FnOnce() -> N) {
        let mut state = self.state();
        if state.phase != Phase::Open || state.notes.len() >= state.room {
            state.lost += u64::from(state.phase != Phase::Closed);
            return;
        }
        state.notes.push(make());
        let is_half = state.notes.len() == state.room.div_ceil(2);
        drop(state);
        if is_half {
            self.wanted.notify_one();
        }
    }

    /// So much is written.
    pub(super) fn tell(&self, kept: Kept) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        self.state().untold = 0;
        *written = kept;
    }

    /// What was told last, with the notes that are only counted since.
    pub(super) fn so_far(&self) -> Kept {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.state();
        Kept { overrun: written.overrun + state.lost + state.untold, ..written.clone() }
    }

    /// Room for another batch, so that taking one allocates nothing.
    pub(super) fn spare(&self) -> Vec<N> {
        Vec::with_capacity(self.state().room)
    }

    /// Takes everything into `notes`, which has to be empty; waits a while for more than a little.
    pub(super) fn take(&self, notes: &mut Vec<N>) -> Batch {
        let few =
            |state: &mut State<N>| state.phase == Phase::Open && state.notes.len() < state.room.div_ceil(2);
        let waited = self.wanted.wait_timeout_while(self.state(), PAUSE, few);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        std::mem::swap(&mut state.notes, notes);
        let lost = std::mem::take(&mut state.lost);
        state.untold += lost;
        Batch { lost, is_last: state.phase == Phase::Closed }
    }

    /// From here on notes are only counted.
    pub(super) fn give_up(&self) {
        let mut state = self.state();
        if state.phase == Phase::Open {
            state.phase = Phase::Broken;
        }
    }

    /// Waits until no more notes come; gives how many were lost since they were only counted.
    pub(super) fn wait_for_end(&self) -> u64 {
        let state = self.state();
        let waited = self.wanted.wait_while(state, |state| state.phase != Phase::Closed);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.lost) + state.notes.len() as u64
    }

    /// Notes that are not taken yet.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.state().notes.len()
    }

    /// No more notes come.
    pub(super) fn close(&self) {
        self.state().phase = Phase::Closed;
        self.wanted.notify_all();
    }
}
