//! Bytes that an earlier decision produces: whoever needs them waits until they are there.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::bytes::Object;

/// An object in memory, from the decision that it will be there on.
#[derive(Default)]
pub(super) struct Promise {
    made: Mutex<Made>,
    changed: Condvar,
}

#[derive(Default)]
enum Made {
    #[default]
    NotYet,
    /// It is written, and nobody may read it.
    Filled(Object),
    Published(Arc<Object>),
    /// It will never be there: a device failed, or it was given up.
    Failed,
}

impl Promise {
    pub(super) fn fill(&self, object: Object) {
        self.make(Made::Filled(object));
    }

    /// Who wrote it is done, sooner or later; whether there are bytes.
    pub(super) fn publish(&self) -> bool {
        let mut made = self.wait_while(|made| matches!(made, Made::NotYet));
        if let Made::Filled(object) = std::mem::replace(&mut *made, Made::Failed) {
            *made = Made::Published(Arc::new(object));
        }
        self.changed.notify_all();
        matches!(*made, Made::Published(_))
    }

    /// It came from behind, or did not.
    pub(super) fn arrive(&self, object: Option<Object>) {
        self.make(object.map_or(Made::Failed, |object| Made::Published(Arc::new(object))));
    }

    /// Nobody will make it: whoever waits goes on without.
    pub(super) fn give_up(&self) {
        self.make(Made::Failed);
    }

    /// The object, once it can be read; absent if it never will.
    pub(super) fn wait(&self) -> Option<Arc<Object>> {
        match &*self.wait_while(|made| matches!(made, Made::NotYet | Made::Filled(_))) {
            Made::Published(object) => Some(Arc::clone(object)),
            _ => None,
        }
    }

    /// What was given up stays so: nobody may be left to publish it.
    fn make(&self, what: Made) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*made, Made::Failed) {
            *made = what;
        }
        drop(made);
        self.changed.notify_all();
    }

    fn wait_while(&self, mut is_so: impl FnMut(&Made) -> bool) -> MutexGuard<'_, Made> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed.wait_while(made, |made| is_so(made)).unwrap_or_else(PoisonError::into_inner)
    }
}

/// A copy in a tier behind, from the decision to make it on.
#[derive(Default)]
pub(super) struct Arrival {
    came: Mutex<Came>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
enum Came {
    #[default]
    NotYet,
    /// It is there from this moment on.
    At(Instant),
    /// A device failed.
    Failed,
}

impl Arrival {
    /// One that does not come.
    pub(super) fn never() -> Arc<Self> {
        let arrival = Self::default();
        arrival.came(None);
        Arc::new(arrival)
    }

    /// It was written, and is there from `at` on, or not.
    pub(super) fn came(&self, at: Option<Instant>) {
        *self.came.lock().unwrap_or_else(PoisonError::into_inner) = at.map_or(Came::Failed, Came::At);
        self.changed.notify_all();
    }

    /// Waits until it was written; when it is there, if ever.
    pub(super) fn wait(&self) -> Option<Instant> {
        let came = self.came.lock().unwrap_or_else(PoisonError::into_inner);
        let came = self.changed.wait_while(came, |came| matches!(came, Came::NotYet));
        match *came.unwrap_or_else(PoisonError::into_inner) {
            Came::At(at) => Some(at),
            _ => None,
        }
    }
}
