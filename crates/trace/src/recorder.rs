//! Calls recorded as they are made: who makes them leaves a note in a bounded queue and goes on; a thread of
//! its own turns notes into records.
//!
//! A note that finds the queue full is lost, and where it would have been the recording says so.

mod page;
mod queue;
#[cfg(test)]
mod tests;

pub use page::Page;

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use wavetank_model::{Error, ErrorKind, KeyTable, Result};

use crate::calls::lct::{Recording, Written};
use queue::Queue;

/// Notes that wait to be written, where nothing else is said: some 3 MB twice, and a tenth of a second of
/// more calls than a store can take.
pub const ROOM: usize = 1 << 16;

/// Turns notes into records.
pub trait Scribe<N>: Send {
    /// A page begins: numbers of `keys` from before are void.
    fn begin(&mut self, keys: &mut KeyTable);
    /// Writes what a note means.
    fn write(&mut self, note: N, page: &mut Page<'_>);
}

/// Where calls are noted; a copy is another handle on the same recording.
pub struct Recorder<N>(Arc<Queue<N>>);

impl<N> Clone for Recorder<N> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<N> Recorder<N> {
    /// Notes what `make` gives, and never waits for the file. It is called under the lock that orders notes,
    /// so that a clock it reads says the order in the file; not at all if there is no room.
    #[inline]
    pub fn note(&self, make: impl FnOnce() -> N) {
        self.0.push(make);
    }

    /// What the recording has come to by now.
    pub fn so_far(&self) -> Kept {
        self.0.so_far()
    }
}

/// A recording whose thread runs; dropped or finished, it is written to its end.
pub struct Recordist<N> {
    queue: Arc<Queue<N>>,
    thread: Option<JoinHandle<Result<Kept>>>,
}

/// What a recording came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its files.
    pub written: Written,
    /// Notes that found the queue full, or came after the file could not be written any more.
    pub overrun: u64,
    /// Why it could not be written to its end, if it could not.
    pub failure: Option<String>,
}

impl Kept {
    /// Notes and calls that are not in it.
    pub fn lost(&self) -> u64 {
        self.overrun + self.written.lost
    }

    /// Why nothing is written any more though calls are made, if that is so.
    pub fn end(&self) -> Option<&str> {
        let is_full = self.written.lost > 0;
        self.failure.as_deref().or_else(|| is_full.then_some("its largest size was reached"))
    }
}

impl<N: Send + 'static> Recordist<N> {
    /// Records into `recording` what is noted from here on, with `room` for notes that wait.
    pub fn start(recording: Recording, scribe: impl Scribe<N> + 'static, room: usize) -> Result<Self> {
        let begun = Kept { written: recording.so_far(), overrun: 0, failure: None };
        let queue = Arc::new(Queue::new(room, begun));
        let taken = Arc::clone(&queue);
        let work = move || page::keep(&taken, recording, scribe);
        let thread = thread::Builder::new().name("recorder".to_owned()).spawn(work);
        let thread = thread.map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot start the recorder: {error}")).source(error)
        })?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// A handle to note with.
    pub fn recorder(&self) -> Recorder<N> {
        Recorder(Arc::clone(&self.queue))
    }

    /// Writes what was noted and ends the recording. Notes that come later are not taken.
    pub fn finish(mut self) -> Result<Kept> {
        self.queue.close();
        let thread = self.thread.take().expect("it is finished once");
        thread.join().unwrap_or_else(|_| Err(Error::new(ErrorKind::Io, "the recorder broke down")))
    }
}

impl<N> Drop for Recordist<N> {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
