//! Files that stay open between operations, so that reading one costs no look-up: as many as the limit
//! allows.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// How many there are, in all folders together.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Half of what this process may have open is left to others.
static LIMIT: LazyLock<usize> = LazyLock::new(|| {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| limit as usize / 2)
});

/// The descriptor of one file, where it is kept; closed when dropped.
#[derive(Default)]
pub(crate) struct KeptOpen(Mutex<Option<Arc<OwnedFd>>>);

impl KeptOpen {
    fn place(&self) -> MutexGuard<'_, Option<Arc<OwnedFd>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The descriptor, if it was kept.
    pub(crate) fn descriptor(&self) -> Option<Arc<OwnedFd>> {
        self.place().clone()
    }

    /// Keeps the file open for later, if not too many are.
    pub(crate) fn keep(&self, fd: &Arc<OwnedFd>) {
        let mut place = self.place();
        if place.is_some() {
            return;
        }
        if COUNT.fetch_add(1, Ordering::Relaxed) < *LIMIT {
            *place = Some(Arc::clone(fd));
        } else {
            COUNT.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for KeptOpen {
    fn drop(&mut self) {
        if self.place().take().is_some() {
            COUNT.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
