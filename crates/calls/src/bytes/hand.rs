//! Threads that work on bytes.

use std::io;
use std::sync::mpsc::channel;
use std::thread::{Builder, JoinHandle};

use wavetank_model::{Error, Result};

/// Starts a thread.
pub(crate) fn start<R: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<JoinHandle<R>> {
    let told = |error: io::Error| Error::usage(format!("cannot start a thread: {error}"));
    Builder::new().name(name.to_owned()).spawn(work).map_err(told)
}

/// Starts a thread that makes what it needs itself; an error if it cannot. It gives something if it could.
pub(crate) fn start_with<T, R: Send + 'static>(
    name: &str,
    make: impl FnOnce() -> io::Result<T> + Send + 'static,
    work: impl FnOnce(T) -> R + Send + 'static,
) -> Result<JoinHandle<Option<R>>> {
    let (made, is_made) = channel();
    let thread = start(name, move || {
        let it = make().map_err(|error| made.send(Err(error))).ok()?;
        let _ = made.send(Ok(()));
        Some(work(it))
    })?;
    let made = is_made.recv().unwrap_or_else(|_| Err(io::Error::other("the thread ended")));
    made.map_err(|error| Error::usage(format!("cannot reach a tier: {error}")))?;
    Ok(thread)
}
