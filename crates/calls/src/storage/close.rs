//! How a storage layer ends: what is under way ends first, unless a device hangs.

use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wavetank_model::{Error, Result};

use super::Storage;
use super::state::Stop;
use crate::bytes::Depot;

/// How often it is looked whether a thread has ended.
const NAP: Duration = Duration::from_millis(2);

impl Storage {
    /// Ends what is under way, and removes what was written unless it is kept. A device that does not answer
    /// is waited for as long as the options say.
    pub fn close(mut self) -> Result<()> {
        self.end_threads()?;
        let shared = Arc::clone(&self.shared);
        drop(self);
        match Arc::try_unwrap(shared) {
            Ok(shared) => shared.depots.into_iter().try_for_each(Depot::clean),
            Err(_) => Err(Error::usage("objects are still being read")),
        }
    }

    /// Loads end first, because they end in stores and deletions; those are the last, and what was put off is
    /// copied where it stays.
    pub(super) fn end_threads(&mut self) -> Result<()> {
        let deadline = Instant::now() + self.closing;
        let (stop, stopped) = &self.shared.stop;
        *stop.lock().unwrap_or_else(PoisonError::into_inner) = Stop::Now;
        stopped.notify_all();
        let mut hang = !joined(self.loops.drain(..), deadline);
        {
            let mut state = self.shared.lock();
            state.loads = None;
            state.flow.ending = self.shared.depots.iter().map(|depot| !depot.outlives()).collect();
        }
        hang |= !joined(self.loaders.drain(..), deadline);
        hang |= !self.settled(deadline);
        self.shared.lock().errands.clear();
        hang |= !joined(self.porters.drain(..), deadline);
        if !hang {
            return Ok(());
        }
        let state = self.shared.lock();
        let (left, late) = (state.under_way, state.engine.late_counts().iter().sum::<u64>());
        let told = format!("a tier behind memory does not answer: {left} operations on it were given up");
        let told = if late > 0 { format!("{told}, {late} objects were still to be copied") } else { told };
        Err(Error::usage(told).hint("what it was to store is not there"))
    }

    /// Whether nothing is under way any more.
    fn settled(&self, deadline: Instant) -> bool {
        let (state, left) = (self.shared.waiting(), deadline.saturating_duration_since(Instant::now()));
        let waited = self.shared.ended.wait_timeout_while(state, left, |state| state.under_way > 0);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // Nobody is there to be told.
        let _ = self.end_threads();
    }
}

/// Whether threads have ended in time. One that panicked has said so; one that hangs is left alone.
fn joined<T>(threads: impl Iterator<Item = JoinHandle<T>>, deadline: Instant) -> bool {
    let mut all = true;
    for thread in threads {
        while !thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(NAP);
        }
        if thread.is_finished() {
            let _ = thread.join();
        } else {
            all = false;
        }
    }
    all
}
