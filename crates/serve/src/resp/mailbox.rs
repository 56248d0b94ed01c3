//! What other threads tell a thread of the front door.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Instant;

use mio::Waker;
use mio::net::TcpStream;
use wavetank_calls::Held;

use super::session::Found;

/// Something that happened elsewhere.
pub(super) enum Letter {
    /// A client connected.
    Connected(TcpStream, SocketAddr),
    /// What became of a key that was behind memory.
    Brought(Ticket, usize, Found),
    /// What a client saw is held.
    Held(u128, u64, Held),
    /// No more connections; those there are end, at the latest then.
    Drain(Instant),
}

/// Which command of which connection waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket {
    /// Where the connection is.
    pub(super) slot: usize,
    /// Which one it is: places are used again.
    pub(super) connection: u64,
    /// Which wait of this thread.
    pub(super) serial: u64,
}

/// Letters for one thread, and the means to wake it.
pub(super) struct Mailbox {
    letters: Mutex<Vec<Letter>>,
    waker: Waker,
    owner: OnceLock<ThreadId>,
}

impl Mailbox {
    /// An empty one.
    pub(super) fn new(waker: Waker) -> Arc<Self> {
        Arc::new(Self { letters: Mutex::default(), waker, owner: OnceLock::new() })
    }

    /// The calling thread reads it, always before it sleeps.
    pub(super) fn own(&self) {
        let _ = self.owner.set(thread::current().id());
    }

    /// Leaves a letter.
    pub(super) fn post(&self, letter: Letter) {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner).push(letter);
        if !self.is_own() {
            // It fails if the thread has more wakes than a counter holds: it is awake then.
            let _ = self.waker.wake();
        }
    }

    /// Whether the calling thread reads it.
    pub(super) fn is_own(&self) -> bool {
        self.owner.get() == Some(&thread::current().id())
    }

    /// Takes the letters.
    pub(super) fn take(&self, letters: &mut Vec<Letter>) {
        std::mem::swap(&mut *self.letters.lock().unwrap_or_else(PoisonError::into_inner), letters);
    }
}
